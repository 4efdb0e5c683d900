//! Writes a sample wrongly, in every way that CBOR offers and at every item, with the lengths around
//! the item put right again so that nothing else is wrong. It also signs what no type of the protocol
//! would: by RFC 9052 and RFC 8032 alone, without the code that is tested.

use std::ops::Range;

use ed25519_dalek::{Signer as _, SigningKey};
use firn_protocol::{keys::IdentitySecret, reject::Reject};

/// What a receiver must say about a rewritten sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Exactly this.
    Code(Reject),
    /// Something of class malformed: the place is inside a signed header.
    Malformed,
    /// No, with any code; unless it is another message on the coordinator's word alone.
    Refused,
}

/// A sample written wrongly.
#[derive(Debug)]
pub struct Rewritten {
    /// How.
    pub how: &'static str,
    /// Offset of the item, in the innermost byte string that holds it.
    pub at: usize,
    /// How many byte strings what is changed is wrapped in.
    pub wraps: usize,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// What must come of it.
    pub expect: Expect,
}

/// What looks at a place first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Zone {
    /// The check of the form.
    Form,
    /// The comparison with the one protected header.
    Header,
    /// The signature.
    Signature,
}

/// An item: for each wrapping the bytes and the span that leads to it; the last span is its own.
struct Spot<'a> {
    levels: Vec<(&'a [u8], Range<usize>)>,
    zone: Zone,
    /// Of a byte string that wraps an item: what looks at that item first.
    content: Option<Zone>,
}

/// An item's head.
#[derive(Clone, Copy)]
pub(crate) struct Head {
    /// 0 to 7.
    pub(crate) major: u8,
    /// What the head says.
    pub(crate) argument: u64,
    /// Bytes of the head.
    pub(crate) length: usize,
}

/// Calls `visit` with every rewriting of a whole message.
pub fn each(bytes: &[u8], mut visit: impl FnMut(Rewritten)) {
    let mut spots = Vec::new();
    let end = walk(bytes, 0, &[], Zone::Form, &mut spots);
    assert_eq!(end, bytes.len(), "a sample is one item");
    for (how, tail) in [
        ("a zero behind", 0x00),
        ("a null behind", 0xf6),
        ("a break behind", 0xff),
    ] {
        visit(Rewritten {
            how,
            at: bytes.len(),
            wraps: 0,
            bytes: [bytes, &[tail]].concat(),
            expect: Expect::Code(Reject::TrailingBytes),
        });
    }
    for spot in &spots {
        rewrite(spot, &mut visit);
    }
}

/// How many items a message has, those in wrapped byte strings included.
#[must_use]
pub fn items(bytes: &[u8]) -> usize {
    let mut spots = Vec::new();
    walk(bytes, 0, &[], Zone::Form, &mut spots);
    spots.len()
}

fn walk<'a>(
    buffer: &'a [u8],
    start: usize,
    outer: &[(&'a [u8], Range<usize>)],
    zone: Zone,
    spots: &mut Vec<Spot<'a>>,
) -> usize {
    let head = head(&buffer[start..]);
    let place = spots.len();
    let level = |end: usize| [outer, &[(buffer, start..end)]].concat();
    spots.push(Spot {
        levels: Vec::new(),
        zone,
        content: None,
    });
    let mut end = start + head.length;
    match head.major {
        2 => {
            let content = end..end + usize::try_from(head.argument).unwrap();
            end = content.end;
            let content = &buffer[content];
            if is_wrapped(content) {
                let inner = level(end);
                walk(content, 0, &inner, zone, spots);
                spots[place].content = Some(zone);
            }
        }
        3 => end += usize::try_from(head.argument).unwrap(),
        4 => {
            let signed = is_envelope(&buffer[start..]) && zone == Zone::Form;
            for index in 0..head.argument {
                let zone = match index {
                    0 if signed => Zone::Header,
                    2 if signed => Zone::Signature,
                    _ => zone,
                };
                let element = spots.len();
                end = walk(buffer, end, outer, zone, spots);
                // The byte string itself belongs to the envelope; what is in it, to its judge.
                if signed {
                    spots[element].zone = Zone::Form;
                }
            }
        }
        5 => {
            for _ in 0..head.argument * 2 {
                end = walk(buffer, end, outer, zone, spots);
            }
        }
        _ => {}
    }
    spots[place].levels = level(end);
    end
}

/// Digests, points, keys and signatures may look like an item by chance; they have their lengths.
fn is_wrapped(content: &[u8]) -> bool {
    let container = content
        .first()
        .is_some_and(|first| matches!(first >> 5, 4 | 5));
    container
        && ![16, 32, 33, 48, 64].contains(&content.len())
        && firn_protocol::codec::form::check(content).is_ok()
}

/// Whether bytes begin like an envelope.
pub(crate) fn is_envelope(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x84, 0x58, 0x26, 0xa2])
}

/// The head of the first item.
pub(crate) fn head(bytes: &[u8]) -> Head {
    let (major, additional) = (bytes[0] >> 5, bytes[0] & 0x1f);
    let width = match additional {
        0..=23 => 0,
        24..=27 => 1 << (additional - 24),
        _ => panic!("a sample has an item of indefinite length"),
    };
    let argument = bytes[1..=width]
        .iter()
        .fold(0, |sum, byte| (sum << 8) | u64::from(*byte));
    Head {
        major,
        argument: if width == 0 {
            additional.into()
        } else {
            argument
        },
        length: 1 + width,
    }
}

/// A head with its argument in the shortest form.
#[must_use]
pub fn shortest(major: u8, argument: u64) -> Vec<u8> {
    match argument {
        0..=23 => vec![major << 5 | u8::try_from(argument).unwrap()],
        24..=0xff => wide(major, argument, 0),
        0x100..=0xffff => wide(major, argument, 1),
        0x1_0000..=0xffff_ffff => wide(major, argument, 2),
        _ => wide(major, argument, 3),
    }
}

/// A head with its argument in 1, 2, 4 or 8 bytes.
fn wide(major: u8, argument: u64, width: u8) -> Vec<u8> {
    let bytes = argument.to_be_bytes();
    let mut out = vec![major << 5 | (24 + width)];
    out.extend_from_slice(&bytes[8 - (1 << width)..]);
    out
}

/// A byte string.
#[must_use]
pub fn byte_string(content: &[u8]) -> Vec<u8> {
    [shortest(2, content.len() as u64), content.to_vec()].concat()
}

impl Spot<'_> {
    fn bytes(&self) -> &[u8] {
        let (buffer, span) = self.levels.last().unwrap();
        &buffer[span.clone()]
    }

    /// The whole message with other bytes in this place.
    fn with(&self, replacement: &[u8]) -> Vec<u8> {
        let mut current = replacement.to_vec();
        for (depth, (buffer, span)) in self.levels.iter().enumerate().rev() {
            if depth + 1 < self.levels.len() {
                current = byte_string(&current);
            }
            current = [&buffer[..span.start], &current, &buffer[span.end..]].concat();
        }
        current
    }
}

fn rewrite(spot: &Spot<'_>, visit: &mut impl FnMut(Rewritten)) {
    let item = spot.bytes();
    let head = head(item);
    let rest = &item[head.length..];
    let mut write = |how, replacement: Vec<u8>, code: Option<Reject>| {
        let expect = match (spot.zone, code) {
            (Zone::Form, Some(code)) => Expect::Code(code),
            (Zone::Header, Some(_)) => Expect::Malformed,
            (Zone::Signature, Some(_)) => Expect::Code(Reject::BadSignature),
            (_, None) => Expect::Refused,
        };
        visit(Rewritten {
            how,
            at: spot.levels.last().unwrap().1.start,
            // Only what is wrapped can have something behind it.
            wraps: spot.levels.len() - usize::from(code != Some(Reject::TrailingBytes)),
            bytes: spot.with(&replacement),
            expect,
        });
    };
    let mut code = |how, replacement, code| write(how, replacement, Some(code));

    if head.major != 7 {
        for width in 0..4 {
            let longer = wide(head.major, head.argument, width);
            if longer.len() > head.length {
                let how = "a head longer than needed";
                code(how, [&longer, rest].concat(), Reject::NotShortest);
            }
        }
        for reserved in 28..=30 {
            let bytes = [&[head.major << 5 | reserved], rest].concat();
            code("a reserved head", bytes, Reject::Reserved);
        }
    }
    for tag in [&[0xc0][..], &[0xc2], &[0xd8, 24], &[0xd9, 0xd9, 0xf7]] {
        code("a tag", [tag, item].concat(), Reject::Tag);
    }
    for (how, simple) in [
        ("null", &[0xf6][..]),
        ("undefined", &[0xf7]),
        ("an unassigned simple value", &[0xe0]),
        ("a simple value in two bytes", &[0xf8, 0x20]),
    ] {
        code(how, simple.to_vec(), Reject::SimpleValue);
    }
    for (how, float) in [
        ("a half", &[0xf9, 0x3c, 0x00][..]),
        ("a single", &[0xfa, 0x3f, 0x80, 0, 0]),
        ("a double", &[0xfb, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0]),
    ] {
        code(how, float.to_vec(), Reject::Float);
    }
    code("a break", vec![0xff], Reject::IndefiniteLength);
    code(
        "text that is not UTF-8",
        vec![0x62, 0xc3, 0x28],
        Reject::InvalidUtf8,
    );
    code(
        "arrays too deep",
        [vec![0x81; 17], vec![0x00]].concat(),
        Reject::TooDeep,
    );
    if spot.levels.len() == 1 {
        code("many arrays too deep", vec![0x81; 1000], Reject::TooDeep);
    }
    code("maps too deep", vec![0xa1; 18], Reject::TooDeep);
    for (how, claim) in [
        ("an array of 2^32 - 1 items", wide(4, 0xffff_ffff, 2)),
        ("an array of 2^64 - 1 items", wide(4, u64::MAX, 3)),
        ("a map of 2^32 - 1 entries", wide(5, 0xffff_ffff, 2)),
        ("bytes of 2^32 - 1", wide(2, 0xffff_ffff, 2)),
        ("bytes of 2^64 - 1", wide(2, u64::MAX, 3)),
        ("text of 2^32 - 1", wide(3, 0xffff_ffff, 2)),
    ] {
        code(how, claim, Reject::Truncated);
    }
    code(
        "a map with a key twice",
        vec![0xa2, 0x01, 0x00, 0x01, 0x00],
        Reject::DuplicateKey,
    );
    code(
        "a map out of order",
        vec![0xa2, 0x02, 0x00, 0x01, 0x00],
        Reject::UnsortedKeys,
    );
    if head.major != 7 {
        code("true", vec![0xf5], Reject::Schema);
    }
    by_type(spot, head, &mut write);
}

/// What depends on the type of the item.
fn by_type(
    spot: &Spot<'_>,
    head: Head,
    write: &mut impl FnMut(&'static str, Vec<u8>, Option<Reject>),
) {
    let item = spot.bytes();
    let rest = &item[head.length..];
    let indefinite = |body: &[u8]| [&[head.major << 5 | 31], body, &[0xff]].concat();
    match head.major {
        0 => {
            let negative = shortest(1, head.argument);
            write("the same number, negative", negative, Some(Reject::Schema));
            let number = head.argument.to_be_bytes();
            write(
                "a number as bytes",
                byte_string(&number),
                Some(Reject::Schema),
            );
        }
        1 => write("a number as text", vec![0x61, 0x31], Some(Reject::Schema)),
        2 => {
            write(
                "bytes in chunks",
                indefinite(item),
                Some(Reject::IndefiniteLength),
            );
            write("no chunks", indefinite(&[]), Some(Reject::IndefiniteLength));
            let numbers = rest
                .iter()
                .take(40)
                .flat_map(|byte| shortest(0, (*byte).into()));
            let count = shortest(4, rest.len().min(40) as u64);
            let list = count.into_iter().chain(numbers).collect();
            write("bytes as a list of numbers", list, Some(Reject::Schema));
            let text = [shortest(3, 2), vec![0x61, 0x62]].concat();
            write("bytes as text", text, Some(Reject::Schema));
            write("a byte more", byte_string(&[rest, &[0x00]].concat()), None);
            write("no bytes", vec![0x40], None);
            if !rest.is_empty() {
                write("a byte less", byte_string(&rest[..rest.len() - 1]), None);
            }
            if let Some(zone) = spot.content {
                let code = match zone {
                    Zone::Form => Some(Reject::TrailingBytes),
                    Zone::Signature => Some(Reject::BadSignature),
                    Zone::Header => None,
                };
                let inner = byte_string(&[rest, &[0x00]].concat());
                write("a zero behind what is wrapped", inner, code);
                write("wrapped twice", byte_string(item), None);
            }
        }
        3 => {
            write(
                "text in chunks",
                indefinite(item),
                Some(Reject::IndefiniteLength),
            );
            write("text as bytes", byte_string(rest), Some(Reject::Schema));
            write(
                "text with a control character",
                vec![0x61, 0x07],
                Some(Reject::Schema),
            );
        }
        4 => {
            write(
                "an open array",
                indefinite(rest),
                Some(Reject::IndefiniteLength),
            );
            let more = [shortest(4, head.argument + 1), rest.to_vec(), vec![0x00]].concat();
            write("an item more", more, None);
            if let Some(last) = last_item(item, head) {
                let head = |count| shortest(4, count);
                let (kept, last) = (&rest[..last - (item.len() - rest.len())], &item[last..]);
                let less = [head(count_of(item) - 1), kept.to_vec()].concat();
                write("an item less", less, None);
                let twice = [head(count_of(item) + 1), rest.to_vec(), last.to_vec()].concat();
                write("the last item twice", twice, None);
            }
            write("an array as a map", vec![0xa0], Some(Reject::Schema));
        }
        5 => {
            write(
                "an open map",
                indefinite(rest),
                Some(Reject::IndefiniteLength),
            );
            let shape = Some(Reject::EnvelopeShape);
            if head.argument == 0 {
                write(
                    "an algorithm that is not protected",
                    vec![0xa1, 0x01, 0x32],
                    shape,
                );
                write(
                    "a header that nobody knows",
                    vec![0xa1, 0x18, 0x64, 0x00],
                    shape,
                );
            } else {
                let extra = [
                    shortest(5, head.argument + 1),
                    rest.to_vec(),
                    vec![0x18, 0x64, 0],
                ];
                write(
                    "a protected header that nobody knows",
                    extra.concat(),
                    shape,
                );
                let other = [&item[..1], &[0x01, 0x27], &rest[2..]].concat();
                write("the deprecated algorithm", other, shape);
            }
            write("a map as an array", vec![0x80], Some(Reject::Schema));
        }
        _ => {
            write("a number for a truth", vec![0x01], Some(Reject::Schema));
            write("the other truth", vec![item[0] ^ 1], None);
        }
    }
}

fn count_of(item: &[u8]) -> u64 {
    head(item).argument
}

/// Where the last item of an array begins.
fn last_item(item: &[u8], head: Head) -> Option<usize> {
    let mut starts = Vec::new();
    let mut at = head.length;
    for _ in 0..head.argument {
        starts.push(at);
        at = walk(item, at, &[], Zone::Form, &mut Vec::new());
    }
    starts.pop()
}

/// An envelope around any payload, signed with this key.
#[must_use]
pub fn sign(kind: &str, secret: &IdentitySecret, payload: &[u8]) -> Vec<u8> {
    let key = SigningKey::from_bytes(&secret.seed());
    let protected = [
        &[0xa2, 0x01, 0x32, 0x04, 0x58, 0x20],
        key.verifying_key().as_bytes().as_slice(),
    ]
    .concat();
    let context = "Signature1";
    let aad = format!("firn/{kind}/v1");
    let to_be_signed = [
        vec![0x84],
        shortest(3, context.len() as u64),
        context.as_bytes().to_vec(),
        byte_string(&protected),
        byte_string(aad.as_bytes()),
        byte_string(payload),
    ]
    .concat();
    let signature = key.sign(&to_be_signed).to_bytes();
    [
        vec![0x84],
        byte_string(&protected),
        vec![0xa0],
        byte_string(payload),
        byte_string(&signature),
    ]
    .concat()
}

/// The payload of an envelope.
#[must_use]
pub fn payload(envelope: &[u8]) -> &[u8] {
    string_at(envelope, 2)
}

/// The first item of an array of byte strings: the document of what is endorsed.
#[must_use]
pub fn first_string(array: &[u8]) -> &[u8] {
    string_at(array, 0)
}

fn string_at(array: &[u8], place: usize) -> &[u8] {
    let mut at = 1;
    for _ in 0..place {
        at = walk(array, at, &[], Zone::Form, &mut Vec::new());
    }
    let head = head(&array[at..]);
    let start = at + head.length;
    &array[start..start + usize::try_from(head.argument).unwrap()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn puts_the_lengths_around_a_rewritten_item_right() {
        // [h'8 1 0 0 ...'] with a wrapped array of one zero, too short to be a digest.
        let bytes = [0x81, 0x42, 0x81, 0x00];
        let mut found = Vec::new();
        each(&bytes, |rewritten| {
            if rewritten.how == "a head longer than needed" && rewritten.wraps == 1 {
                found.push(rewritten.bytes);
            }
        });
        assert!(found.contains(&vec![0x81, 0x43, 0x81, 0x18, 0x00]));
        assert!(found.contains(&vec![0x81, 0x43, 0x98, 0x01, 0x00]));
        assert_eq!(items(&bytes), 4);
    }

    #[test]
    fn signs_as_the_protocol_does() {
        let world = crate::samples::World::fixed();
        let envelope = &world.open.grant;
        let payload = payload(envelope.as_bytes());
        let secret = world.people.grant_authority.secret();
        assert_eq!(sign("grant", secret, payload), envelope.as_bytes());
    }
}

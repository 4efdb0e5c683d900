//! Well-formed CBOR of the wrong values: numbers that no list has, names that are none, bounds that
//! are crossed. All of it is signed.

use firn_protocol::{codec, reject::Reject};

use super::{Case, Cases};
use crate::{
    rewriting::{payload, sign},
    samples::{World, head, member},
};

pub(super) fn cases(world: &World) -> Vec<Case> {
    let mut all = grants(world);
    all.extend(policies(world));
    all.extend(checkpoints(world));
    all.extend(words(world));
    all
}

/// The same bytes with one piece exchanged, which must be there once.
pub(super) fn exchanged(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let found: Vec<_> = (0..bytes.len())
        .filter(|at| bytes[*at..].starts_with(from))
        .collect();
    assert_eq!(
        found.len(),
        1,
        "{} in {}",
        hex::encode(from),
        hex::encode(bytes)
    );
    [&bytes[..found[0]], to, &bytes[found[0] + from.len()..]].concat()
}

fn grants(world: &World) -> Vec<Case> {
    let mut cases = Cases::of("document-grant");
    let body = payload(world.open.grant.as_bytes());
    let secret = world.people.grant_authority.secret();
    let signed = |body: &[u8]| sign("grant", secret, body);
    let one_more = [&[0x8c], &body[1..], &[0x00]].concat();
    cases.add("a field more", Reject::NotCanonical, signed(&one_more));
    let text = |text: &str| [&[0x78, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let owner = text("spiffe://td/requester/desk");
    for (name, other) in [
        ("an owner in capitals", "spiffe://TD/requester/desk"),
        ("an owner without a scheme", "://td/requester/desk/dddddd"),
        ("an owner with a port", "spiffe://td:443/requester/d"),
        (
            "an owner of a role that is none",
            "spiffe://td/signer/desk-desk",
        ),
        ("an owner with a path", "spiffe://td/requester/desk/a"),
        ("an owner with an escape", "spiffe://td/requester/d%65sk"),
        (
            "an owner with a hyphen behind",
            "spiffe://td/requester/desk-",
        ),
        ("an owner with a zero in it", "spiffe://td/requester/de\0sk"),
    ] {
        let other = exchanged(body, &owner, &text(other));
        cases.add(name, Reject::Schema, signed(&other));
    }
    let policy = codec::encode(&world.policy_digest()).unwrap();
    let short = [&[0x58, 0x1f], &policy[2..33]].concat();
    cases.add(
        "a digest of 31 bytes",
        Reject::Schema,
        signed(&exchanged(body, &policy, &short)),
    );
    let long = [&[0x58, 0x21], &policy[2..], &[0x00]].concat();
    cases.add(
        "a digest of 33 bytes",
        Reject::Schema,
        signed(&exchanged(body, &policy, &long)),
    );
    cases.cases
}

fn policies(world: &World) -> Vec<Case> {
    let mut cases = Cases::of("document-policy");
    let body = payload(world.documents.policy.as_bytes());
    let secret = world.people.policy_authority.secret();
    let signed = |body: &[u8]| sign("policy", secret, body);
    // The rules: network [1, [4]], outflow [3, [80000, 70000]], sighash [5, [false]].
    let network = [0x82, 0x01, 0x81, 0x04];
    let outflow = [0x82, 0x03, 0x82, 0x1a, 0x00, 0x01, 0x38, 0x80];
    let sighash = [0x82, 0x05, 0x81, 0xf4];
    for (name, code, from, to) in [
        (
            "a rule that is none",
            Reject::Schema,
            &network[..],
            &[0x82, 0x09, 0x81, 0x04][..],
        ),
        (
            "a rule without content",
            Reject::Schema,
            &network,
            &[0x81, 0x01],
        ),
        // What is left over is read as what follows.
        (
            "a rule with three parts",
            Reject::Schema,
            &network,
            &[0x83, 0x01, 0x81, 0x04, 0],
        ),
        (
            "a network that is none",
            Reject::Schema,
            &network,
            &[0x82, 0x01, 0x81, 0x05],
        ),
        (
            "network zero",
            Reject::Schema,
            &network,
            &[0x82, 0x01, 0x81, 0x00],
        ),
        (
            "a network as text",
            Reject::Schema,
            &network,
            &[0x82, 0x01, 0x81, 0x61, 0x34],
        ),
        (
            "a network of 2^64 - 1",
            Reject::Schema,
            &network,
            &[
                0x82, 0x01, 0x81, 0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
            ],
        ),
        (
            "more than 21 million bitcoin",
            Reject::Schema,
            &outflow,
            &[
                0x82, 0x03, 0x82, 0x1b, 0x00, 0x07, 0x75, 0xf0, 0x5a, 0x07, 0x40, 0x01,
            ],
        ),
        (
            "a negative amount",
            Reject::Schema,
            &outflow,
            &[0x82, 0x03, 0x82, 0x3a, 0x00, 0x01, 0x38, 0x80],
        ),
        (
            "a number for a truth",
            Reject::Schema,
            &sighash,
            &[0x82, 0x05, 0x81, 0x00],
        ),
    ] {
        cases.add(name, code, signed(&exchanged(body, from, to)));
    }
    cases.cases
}

fn checkpoints(world: &World) -> Vec<Case> {
    let mut cases = Cases::of("document-checkpoint");
    let head = head(&world.people, member(1));
    let body = payload(head.as_bytes());
    let secret = world.people.members[0].secret();
    let signed = |body: &[u8]| sign("checkpoint", secret, body);
    cases.add("nothing signed", Reject::Truncated, signed(&[]));
    cases.add("an empty list signed", Reject::Schema, signed(&[0x80]));
    let two = [&[0x82], &body[1..body.len() - 9]].concat();
    cases.add("a field less", Reject::Schema, signed(&two));
    cases.add("a number signed", Reject::Schema, signed(&[0x00]));
    cases.add("a map signed", Reject::Schema, signed(&[0xa1, 0x00, 0x00]));
    cases.add("text signed", Reject::Schema, signed(b"\x65hello"));
    cases.cases
}

/// The coordinator's own words to the operator.
fn words(_: &World) -> Vec<Case> {
    let mut cases = Cases::of("from-ceremony-progress");
    // [1, [step, done, of]]
    let step = |step: &[u8]| [&[0x82, 0x01, 0x83], step, &[0x02, 0x03]].concat();
    cases.add(
        "a step with a control character",
        Reject::Schema,
        step(b"\x63a\x1bb"),
    );
    cases.add(
        "a step with a line break",
        Reject::Schema,
        step(b"\x63a\nb"),
    );
    let long = [&[0x78, 65][..], &[b'a'; 65]].concat();
    cases.add("a step of 65 bytes", Reject::Schema, step(&long));
    cases.add(
        "a step in Latin-1",
        Reject::InvalidUtf8,
        step(b"\x63a\xe4b"),
    );
    cases.add(
        "a step with a surrogate",
        Reject::InvalidUtf8,
        step(b"\x63\xed\xa0\x80"),
    );
    cases.add(
        "a step with an overlong character",
        Reject::InvalidUtf8,
        step(b"\x62\xc0\xaf"),
    );
    let numbers = |numbers: &[u8]| [&[0x82, 0x01, 0x83, 0x61, b'a'], numbers].concat();
    cases.add(
        "a count of 65536",
        Reject::Schema,
        numbers(&[0x1a, 0, 1, 0, 0, 0x03]),
    );
    cases.add("a message that is none", Reject::Schema, [0x82, 0x00, 0x80]);
    cases.add(
        "a message of another version",
        Reject::Schema,
        [0x82, 0x19, 0xff, 0xff, 0x80],
    );
    cases.add("a message without content", Reject::Schema, [0x81, 0x01]);
    cases.add("an empty message", Reject::Schema, [0x80]);
    cases.add(
        "a message that is a map",
        Reject::Schema,
        [0xa1, 0x01, 0x80],
    );
    cases.add("a break alone", Reject::IndefiniteLength, [0xff]);
    cases.add(
        "an array that is never filled",
        Reject::Truncated,
        [0x9a, 0xff, 0xff, 0xff, 0xff],
    );

    let mut failed = Cases::of("from-ceremony-failed");
    // [3, [code, culprit, step]]
    let with =
        |code: &[u8], culprit: &[u8]| [&[0x82, 0x03, 0x83], code, culprit, &[0x61, b'a']].concat();
    let good = [0x19, 0x01, 0x37];
    failed.add(
        "a code that is none",
        Reject::Schema,
        with(&[0x18, 0x63], &[0x80]),
    );
    failed.add(
        "a code as a name",
        Reject::Schema,
        with(b"\x69dkg_share", &[0x80]),
    );
    failed.add(
        "two culprits",
        Reject::Schema,
        with(&good, &[0x82, 0x01, 0x02]),
    );
    failed.add("member zero", Reject::Schema, with(&good, &[0x81, 0x00]));
    failed.add(
        "member 65536",
        Reject::Schema,
        with(&good, &[0x81, 0x1a, 0, 1, 0, 0]),
    );
    failed.add(
        "no culprit as null",
        Reject::SimpleValue,
        with(&good, &[0xf6]),
    );
    [cases.cases, failed.cases].concat()
}

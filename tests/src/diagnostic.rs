//! Samples as people read them: the diagnostic notation of RFC 8949, section 8, with long byte strings
//! shortened and signed documents inside a message only named.

use std::fmt::Write as _;

use crate::{
    rewriting::{self, head, is_envelope},
    samples::{Kind, Sample, Signer},
};

/// Columns of a line.
const WIDTH: usize = 98;
/// Bytes of a byte string that are shown.
const SHOWN: usize = 4;

/// The page with one example of each kind.
#[must_use]
pub fn page(samples: &[Sample]) -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n## Documents\n");
    for sample in samples.iter().filter(|sample| sample.signer.is_some()) {
        let Kind::Document(kind) = sample.kind else {
            continue;
        };
        let (signed, payload) = match sample.signer {
            Some(Signer::Operators) => ("endorsed", rewriting::first_string(&sample.bytes)),
            Some(Signer::One(_)) | None => ("signed", rewriting::payload(&sample.bytes)),
        };
        let heading = format!("`{}`, {signed} as `firn/{kind}/v1`", sample.rule);
        example(&mut page, &heading, sample, payload);
    }
    page.push_str("\n## Messages\n");
    for sample in samples {
        let Kind::Message(sum, number) = sample.kind else {
            continue;
        };
        let heading = format!("`{}`, number {number} of {sum}", sample.rule);
        example(&mut page, &heading, sample, &sample.bytes);
    }
    page
}

fn example(page: &mut String, heading: &str, sample: &Sample, shown: &[u8]) {
    let (limit, shown) = (sample.limit, notation(shown));
    write!(
        page,
        "\n{heading}, at most {limit} bytes:\n\n```\n{shown}\n```\n"
    )
    .unwrap();
}

const INTRODUCTION: &str = "\
# Examples

One example of each document and message, in the diagnostic notation of RFC 8949. Fields are in the
order of [protocol.cddl](protocol.cddl), whose rule stands in front of each, with the most bytes that a
receiver takes of it, envelope included. Byte strings are shown by their first bytes and their length. A
signed document inside another is shown by the length of its envelope. The whole bytes are in
`tests/vectors/`; a test makes this page of the same samples.
";

/// One item.
#[must_use]
pub fn notation(bytes: &[u8]) -> String {
    let (text, end) = item(bytes, 0, 0);
    assert_eq!(end, bytes.len());
    text
}

fn item(bytes: &[u8], start: usize, indent: usize) -> (String, usize) {
    let head = head(&bytes[start..]);
    let end = start + head.length;
    let content = |length: u64| &bytes[end..end + usize::try_from(length).unwrap()];
    match head.major {
        0 => (head.argument.to_string(), end),
        1 => (format!("-{}", head.argument + 1), end),
        2 => {
            let content = content(head.argument);
            (byte_string(content), end + content.len())
        }
        3 => {
            let content = content(head.argument);
            let text = std::str::from_utf8(content).unwrap();
            (format!("{text:?}"), end + content.len())
        }
        4 => list(bytes, end, head.argument, indent),
        7 => (
            (if head.argument == 21 { "true" } else { "false" }).to_owned(),
            end,
        ),
        _ => panic!("no sample has a map or a tag outside an envelope"),
    }
}

fn byte_string(content: &[u8]) -> String {
    if is_envelope(content) {
        return format!(
            "/ signed, {} bytes / h'{}…'",
            content.len(),
            hex::encode(&content[..1])
        );
    }
    if content.len() <= SHOWN * 2 {
        return format!("h'{}'", hex::encode(content));
    }
    let shown = hex::encode(&content[..SHOWN]);
    format!("/ {} bytes / h'{shown}…'", content.len())
}

/// On one line where it fits, else an item a line.
fn list(bytes: &[u8], mut at: usize, count: u64, indent: usize) -> (String, usize) {
    let mut items = Vec::new();
    for _ in 0..count {
        let (text, end) = item(bytes, at, indent + 2);
        items.push(text);
        at = end;
    }
    let line = format!("[{}]", items.join(", "));
    let fits = indent + line.chars().count() < WIDTH && !line.contains('\n');
    if fits {
        return (line, at);
    }
    let margin = " ".repeat(indent + 2);
    let lines: String = items
        .iter()
        .map(|item| format!("{margin}{item},\n"))
        .collect();
    (format!("[\n{lines}{}]", " ".repeat(indent)), at)
}

#[cfg(test)]
mod tests {
    use super::notation;

    #[test]
    fn writes_what_rfc_8949_writes() {
        let bytes = hex::decode("85182082614100f52041ff").unwrap();
        assert_eq!(notation(&bytes), r#"[32, ["A", 0], true, -1, h'ff']"#);
    }
}

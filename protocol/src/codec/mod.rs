//! The only way in and out of bytes: CBOR in the core deterministic form of RFC 8949 section
//! 4.2.1. It decides whether bytes are exactly what we would have written ourselves, and never
//! repairs or defaults anything.
//!
//! Decoding runs in three steps, each of which can only refuse: [`form`] walks the raw bytes without
//! allocating, ciborium fills the typed value, and the value is encoded again and compared. The
//! last step is what catches a value that two byte strings could stand for.

mod collections;
pub mod form;
mod numbered;

use serde::{Serialize, de::DeserializeOwned};

pub use collections::{Blob, List, Maybe, Text};

/// Why bytes are not a value of the wanted type. Every variant is a wire fact: none carries text
/// from the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// More bytes than the message kind may have.
    #[error("input is larger than its kind allows")]
    TooLarge,
    /// The input ends inside an item.
    #[error("input ends inside an item")]
    Truncated,
    /// Bytes remain after the one item.
    #[error("bytes remain after the item")]
    TrailingBytes,
    /// An indefinite length, or the break that would end one.
    #[error("indefinite length")]
    IndefiniteLength,
    /// An integer or a length in more bytes than it needs.
    #[error("integer or length not in its shortest form")]
    NotShortest,
    /// Map keys out of bytewise order.
    #[error("map keys out of order")]
    UnsortedKeys,
    /// The same map key twice.
    #[error("duplicate map key")]
    DuplicateKey,
    /// A floating-point number.
    #[error("floating-point number")]
    Float,
    /// A tag: the schema has none.
    #[error("tag")]
    Tag,
    /// null, undefined, or a simple value other than true and false.
    #[error("simple value other than true and false")]
    Simple,
    /// Additional information 28 to 30, which RFC 8949 reserves.
    #[error("reserved additional information")]
    Reserved,
    /// A text string that is not UTF-8.
    #[error("text that is not UTF-8")]
    InvalidUtf8,
    /// Nesting over [`crate::limits::MAX_DEPTH`].
    #[error("nested too deeply")]
    TooDeep,
    /// Well-formed, but not of the wanted schema: a wrong type, length, number or bound.
    #[error("not of the wanted schema")]
    Schema,
    /// Decodes, but would be written differently.
    #[error("not the canonical encoding of its value")]
    NotCanonical,
}

/// The deterministic encoding of `value`.
///
/// # Errors
/// [`Malformed::Schema`] when `value` holds something that has no place on the wire. Types of this
/// crate never do.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Malformed> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).map_err(|_| Malformed::Schema)?;
    Ok(bytes)
}

/// The value that `bytes` stand for, if they are its one encoding and at most `limit` bytes long.
///
/// # Errors
/// The first thing that is wrong, form before schema.
pub fn decode<T: Serialize + DeserializeOwned>(bytes: &[u8], limit: usize) -> Result<T, Malformed> {
    if bytes.len() > limit {
        return Err(Malformed::TooLarge);
    }
    form::check(bytes)?;
    let value: T =
        ciborium::de::from_reader_with_recursion_limit(bytes, crate::limits::MAX_DEPTH + 1)
            .map_err(|_| Malformed::Schema)?;
    // A value may be rebuilt only from its own bytes.
    if encode(&value)? != bytes {
        return Err(Malformed::NotCanonical);
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use serde_tuple::{Deserialize_tuple, Serialize_tuple};

    use super::*;

    #[derive(Debug, PartialEq, Serialize_tuple, Deserialize_tuple)]
    struct Pair {
        left: u64,
        right: Text<4>,
    }

    fn refusal(hex: &str) -> Malformed {
        decode::<Pair>(&hex::decode(hex).unwrap(), 64).unwrap_err()
    }

    #[test]
    fn reads_back_what_it_writes() {
        let pair = Pair {
            left: 500,
            right: Text::new("ab").unwrap(),
        };
        let bytes = encode(&pair).unwrap();
        assert_eq!(hex::encode(&bytes), "821901f4626162");
        assert_eq!(decode::<Pair>(&bytes, 64).unwrap(), pair);
    }

    #[test]
    fn refuses_each_deviation_by_its_name() {
        let table = [
            ("821901f462616200", Malformed::TrailingBytes),
            ("821901f46261", Malformed::Truncated),
            ("", Malformed::Truncated),
            ("9f1901f4626162ff", Malformed::IndefiniteLength),
            ("821901f47f626162ff", Malformed::IndefiniteLength),
            ("821a000001f4626162", Malformed::NotShortest),
            ("821901f478026162", Malformed::NotShortest),
            ("98021901f4626162", Malformed::NotShortest),
            // An item too many is what serde would ignore: the comparison catches it.
            ("831901f462616200", Malformed::NotCanonical),
            ("811901f4", Malformed::Schema),
            ("821901f4456162636465", Malformed::Schema),
            ("821901f4656162636465", Malformed::Schema),
            ("82f5626162", Malformed::Schema),
            ("82f6626162", Malformed::Simple),
            ("82f7626162", Malformed::Simple),
            ("82f93c00626162", Malformed::Float),
            ("82c101626162", Malformed::Tag),
            ("821901f462ff62", Malformed::InvalidUtf8),
            ("82a2020101016162", Malformed::UnsortedKeys),
            ("82a2010101016162", Malformed::DuplicateKey),
            ("821c626162", Malformed::Reserved),
            ("a2646c656674016572696768746161", Malformed::Schema),
        ];
        for (hex, reason) in table {
            assert_eq!(refusal(hex), reason, "{hex}");
        }
        assert_eq!(
            decode::<Pair>(&[0x00; 65], 64).unwrap_err(),
            Malformed::TooLarge
        );
    }

    #[test]
    fn refuses_a_depth_of_seventeen_and_reads_sixteen() {
        let nested = |depth: usize| {
            let mut bytes = vec![0x81; depth];
            bytes.push(0x00);
            bytes
        };
        assert_eq!(form::check(&nested(16)), Ok(()));
        assert_eq!(form::check(&nested(17)), Err(Malformed::TooDeep));
    }

    #[test]
    fn clips_a_text_at_a_character_and_shows_no_control_character() {
        for (text, clipped) in [
            ("", ""),
            ("abcd", "abcd"),
            ("abcde", "abcd"),
            ("abc\u{e4}", "abc"),
            ("a\n\u{85}b", "a  "),
        ] {
            assert_eq!(Text::<4>::clipped(text).as_str(), clipped);
            assert!(Text::<4>::new(clipped).is_some(), "{text:?}");
        }
    }
}

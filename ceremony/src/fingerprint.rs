//! A digest as people compare it: read aloud on one machine, checked on another. It decides whether
//! what was said stands for a digest, and where it first does not; never whether it is the right one.

mod words;

use self::words::{EVEN, ODD};

/// Words of a fingerprint: one for each byte of the digest.
pub const WORDS: usize = 32;
/// Words of a row, which is read out in one breath and repeated by the listener.
const WORDS_IN_ROW: usize = 8;
/// How much of what was typed an error repeats.
const REPEATED: usize = 24;

/// The words of a digest. The lists alternate, so that a word that was left out, said twice or swapped
/// with its neighbour is noticed where it happens.
#[must_use]
pub fn words(digest: &[u8; 32]) -> [&'static str; WORDS] {
    let mut words = [""; WORDS];
    for (position, (word, byte)) in words.iter_mut().zip(digest).enumerate() {
        *word = list(position)
            .get(usize::from(*byte))
            .copied()
            .unwrap_or_default();
    }
    words
}

/// The words in four numbered rows, with a gap in the middle of each.
#[must_use]
pub fn rows(digest: &[u8; 32]) -> Vec<String> {
    let words = words(digest);
    let rows = words.chunks(WORDS_IN_ROW).zip(1_u8..);
    rows.map(|(row, number)| {
        let (left, right) = row.split_at(row.len() / 2);
        format!("{number}  {}  {}", left.join(" "), right.join(" "))
    })
    .collect()
}

/// All 64 hexadecimal digits in groups of four.
#[must_use]
pub fn spoken(digest: &[u8; 32]) -> String {
    let groups: Vec<String> = digest.chunks(2).map(hex::encode).collect();
    groups.join(" ")
}

/// The first eight digits, for lines where the whole stands nearby.
#[must_use]
pub fn short(digest: &[u8; 32]) -> String {
    hex::encode(digest).chars().take(8).collect()
}

/// Why a text is not a fingerprint. Positions count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAFingerprint {
    /// A word of neither list.
    #[error("{} is {word:?}, which is in neither list", place(*position))]
    Unknown {
        /// Which word.
        position: usize,
        /// The beginning of it.
        word: String,
    },
    /// A word of the list for the places before and after.
    #[error(
        "{} is {word:?}, which cannot stand there: a word was left out or said twice, here or before",
        place(*position)
    )]
    OtherList {
        /// Which word.
        position: usize,
        /// The word as it stands in the list.
        word: &'static str,
    },
    /// All words are good, but not 32.
    #[error("it has {found} words, and a fingerprint has {WORDS}")]
    Count {
        /// How many there are.
        found: usize,
    },
    /// Hexadecimal digits, but not 64.
    #[error("it has {found} hexadecimal digits, and a fingerprint has 64")]
    Digits {
        /// How many there are.
        found: usize,
    },
}

fn place(position: usize) -> String {
    let from_zero = position.saturating_sub(1);
    let row = (from_zero / WORDS_IN_ROW).saturating_add(1);
    let in_row = (from_zero % WORDS_IN_ROW).saturating_add(1);
    format!("word {in_row} of row {row}")
}

/// The digest that a text stands for: its words in any case, with commas, line ends and the numbers of
/// the rows as they come, or 64 hexadecimal digits in any grouping.
///
/// # Errors
/// [`NotAFingerprint`], with the first word that is wrong.
pub fn parse(text: &str) -> Result<[u8; 32], NotAFingerprint> {
    let pieces = || {
        text.split(|letter: char| !letter.is_alphanumeric())
            .filter(|piece| !piece.is_empty())
    };
    let all_hex = pieces().all(|piece| piece.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if all_hex && pieces().next().is_some() {
        return parse_hex(&pieces().collect::<String>());
    }
    let mut bytes = [0; WORDS];
    let mut found = 0_usize;
    // Numbers are those of the rows; no word has a digit.
    for word in pieces().filter(|piece| !piece.bytes().all(|byte| byte.is_ascii_digit())) {
        let byte = parse_word(found, word)?;
        if let Some(slot) = bytes.get_mut(found) {
            *slot = byte;
        }
        found = found.saturating_add(1);
    }
    if found == WORDS {
        Ok(bytes)
    } else {
        Err(NotAFingerprint::Count { found })
    }
}

fn parse_hex(digits: &str) -> Result<[u8; 32], NotAFingerprint> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(digits, &mut bytes).map_err(|_| NotAFingerprint::Digits {
        found: digits.len(),
    })?;
    Ok(bytes)
}

/// The byte of a word at a place that counts from 0.
fn parse_word(place: usize, word: &str) -> Result<u8, NotAFingerprint> {
    let position = place.saturating_add(1);
    let at = |place| {
        let mut known = list(place).iter().zip(0_u8..=u8::MAX);
        known
            .find(|(known, _)| known.eq_ignore_ascii_case(word))
            .map(|(known, byte)| (*known, byte))
    };
    match (at(place), at(position)) {
        (Some((_, byte)), _) => Ok(byte),
        (None, Some((word, _))) => Err(NotAFingerprint::OtherList { position, word }),
        (None, None) => Err(NotAFingerprint::Unknown {
            position,
            word: word.chars().take(REPEATED).collect(),
        }),
    }
}

const fn list(place: usize) -> &'static [&'static str; 256] {
    if place.is_multiple_of(2) { &EVEN } else { &ODD }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sha2::{Digest, Sha256};

    use super::*;

    /// Twice the fingerprint that the list's authors show, cut to 32 bytes.
    const SHOWN: &str =
        "E582 94F2 E9A2 2748 6E8B 061B 31CC 528F D7FA 3F19 E582 94F2 E9A2 2748 6E8B 061B";
    const SAID: &str = "topmost Istanbul Pluto vagabond treadmill Pacific brackish dictator \
        goldfish Medusa afflict bravado chatter revolver Dupont midsummer \
        stopwatch whimsical cowbell bottomless topmost Istanbul Pluto vagabond \
        treadmill Pacific brackish dictator goldfish Medusa afflict bravado";

    fn shown() -> [u8; 32] {
        parse(SHOWN).unwrap()
    }

    fn with_word(position: usize, word: &str) -> String {
        let mut words: Vec<&str> = SAID.split_whitespace().collect();
        words[position.saturating_sub(1)] = word;
        words.join(" ")
    }

    /// Three independent transcriptions of the list have this digest.
    #[test]
    fn the_lists_are_the_published_ones() {
        let all = [EVEN, ODD].concat().join("\n");
        let digest = hex::encode(Sha256::digest(&all));
        assert_eq!(
            digest,
            "e9b7b0052233a74aa56724ed3f79c272036aed68d8f4c0856e833c8043b9ac62"
        );
        let lower: BTreeSet<String> = all.split('\n').map(str::to_lowercase).collect();
        assert_eq!(
            lower.len(),
            512,
            "a word stands for one byte at one kind of place"
        );
        let hex = |word: &String| word.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(!lower.iter().any(hex), "no word is taken for digits");
    }

    #[test]
    fn says_what_the_lists_authors_say() {
        assert_eq!(words(&shown()).join(" "), SAID);
    }

    #[test]
    fn every_byte_comes_back_at_both_kinds_of_places() {
        for byte in 0..=u8::MAX {
            assert_eq!(parse(&words(&[byte; 32]).join(" ")), Ok([byte; 32]));
        }
    }

    #[test]
    fn takes_words_as_people_write_them() {
        let rows = rows(&shown()).join("\n");
        assert!(rows.starts_with("1  topmost Istanbul Pluto vagabond  treadmill "));
        assert!(rows.contains("\n4  treadmill "));
        for text in [
            rows.clone(),
            rows.replace("  ", ". ").replace(' ', ", "),
            SAID.to_uppercase(),
            SAID.to_lowercase().replace(' ', "\r\n"),
            format!("\t{SAID}.\n"),
            SHOWN.to_lowercase().replace(' ', ":"),
            SHOWN.replace(' ', ""),
            spoken(&shown()),
        ] {
            assert_eq!(parse(&text), Ok(shown()), "{text}");
        }
    }

    #[test]
    fn names_the_first_word_that_is_wrong() {
        let unknown = |position, word: &str| NotAFingerprint::Unknown {
            position,
            word: word.to_owned(),
        };
        let other = |position, word| NotAFingerprint::OtherList { position, word };
        let left_out = SAID.replacen("Pluto ", "", 1);
        let twice = SAID.replacen("Pluto", "Pluto Pluto", 1);
        let swapped = SAID.replacen("Istanbul Pluto", "Pluto Istanbul", 1);
        for (text, wrong) in [
            (with_word(1, "atop"), unknown(1, "atop")),
            (with_word(32, "bravery"), unknown(32, "bravery")),
            (with_word(9, "über"), unknown(9, "über")),
            (with_word(9, &"x".repeat(999)), unknown(9, &"x".repeat(24))),
            (left_out, other(3, "vagabond")),
            (twice, other(4, "Pluto")),
            (swapped, other(2, "Pluto")),
            (
                format!("{SAID} Pluto vagabond"),
                NotAFingerprint::Count { found: 34 },
            ),
            ("topmost".to_owned(), NotAFingerprint::Count { found: 1 }),
            (String::new(), NotAFingerprint::Count { found: 0 }),
            (", \n".to_owned(), NotAFingerprint::Count { found: 0 }),
            (SHOWN[1..].to_owned(), NotAFingerprint::Digits { found: 63 }),
            (format!("{SHOWN}00"), NotAFingerprint::Digits { found: 66 }),
            (format!("{SHOWN} g"), unknown(1, "E582")),
        ] {
            assert_eq!(parse(&text), Err(wrong), "{text}");
        }
        assert_eq!(place(11), "word 3 of row 2");
    }

    #[test]
    fn nothing_of_the_digest_is_left_out_when_it_is_compared() {
        for bit in 0..256 {
            let mut other = shown();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(words(&other), words(&shown()));
            assert_ne!(spoken(&other), spoken(&shown()));
        }
        assert_eq!(spoken(&shown()).replace(' ', ""), hex::encode(shown()));
        assert!(hex::encode(shown()).starts_with(&short(&shown())));
    }
}

//! Asking a person whether a fingerprint is the one that the others have. It decides what counts as a
//! yes: all of the fingerprint where it is given, its two ends where a person has just read all of it,
//! and never silence.

use std::io::{BufRead, IsTerminal, Write, stderr, stdin};

use crate::{error::Error, fingerprint, output::Output};

/// The option that stands for the answer of a person.
pub(crate) const OPTION: &str = "--fingerprint";

/// Whether there will be an answer: given, or by a person at the terminal. Asked before anything is shown
/// or made.
///
/// # Errors
/// [`Error::NobodyToAsk`].
pub(crate) fn can_be_answered(
    what: &str,
    given: Option<&str>,
    option: &'static str,
) -> Result<(), Error> {
    if given.is_some() || stdin().is_terminal() {
        return Ok(());
    }
    Err(Error::NobodyToAsk {
        what: what.to_owned(),
        option,
    })
}

/// Makes sure that a person has compared the fingerprint of `what`, which the others read out: `given`
/// is what they said; without it the fingerprint is shown and the person at the terminal is asked.
///
/// # Errors
/// As [`can_be_answered`] and [`given_or_asked`].
pub(crate) fn compared(
    what: &str,
    digest: &[u8; 32],
    given: Option<&str>,
    option: &'static str,
    output: Output,
) -> Result<(), Error> {
    can_be_answered(what, given, option)?;
    if given.is_none() {
        show(what, digest, output);
    }
    given_or_asked(what, digest, given)
}

/// The same where there can be an answer and the fingerprint has been shown.
///
/// # Errors
/// [`Error::FingerprintDiffers`]; [`Error::NotConfirmed`]; [`Error::Usage`] for a fingerprint that is
/// none.
pub(crate) fn given_or_asked(
    what: &str,
    digest: &[u8; 32],
    given: Option<&str>,
) -> Result<(), Error> {
    match given {
        Some(given) => matches(what, digest, given),
        None => asked(what, digest, &mut stdin().lock(), &mut stderr()),
    }
}

/// The fingerprint, as it is read aloud and as it is written.
pub(crate) fn show(what: &str, digest: &[u8; 32], output: Output) {
    output.say(format_args!("Fingerprint of {what}:"));
    for row in fingerprint::rows(digest) {
        output.say(format_args!("    {row}"));
    }
    output.say(format_args!("    {}", fingerprint::spoken(digest)));
}

fn matches(what: &str, digest: &[u8; 32], given: &str) -> Result<(), Error> {
    let parsed = fingerprint::parse(given).map_err(|error| Error::Usage {
        what: format!("{given:?} is no fingerprint: {error}"),
    })?;
    if parsed == *digest {
        Ok(())
    } else {
        Err(Error::FingerprintDiffers {
            what: what.to_owned(),
            found: fingerprint::spoken(digest),
        })
    }
}

/// Asks until there is an answer; three that are none are a no.
fn asked(
    what: &str,
    digest: &[u8; 32],
    answers: &mut impl BufRead,
    screen: &mut impl Write,
) -> Result<(), Error> {
    let no = || Error::NotConfirmed {
        what: what.to_owned(),
    };
    // Whoever has closed the screen will not answer either.
    let mut prompt = |text: &str| {
        let _ = screen
            .write_all(text.as_bytes())
            .and_then(|()| screen.flush());
    };
    let words = fingerprint::words(digest);
    let (first, last) = words.first().zip(words.last()).ok_or_else(no)?;
    prompt(
        "Have the others read theirs to you, and compare every word. Is it the same?\n\
         Then type the first and the last word, or paste all that they sent you; empty for no.\n",
    );
    for _ in 0..3 {
        prompt("> ");
        let mut line = String::new();
        let read = answers.read_line(&mut line).map_err(|_| no())?;
        let answer = line.trim();
        if read == 0 || answer.is_empty() {
            return Err(no());
        }
        let typed: Vec<String> = answer.split_whitespace().map(str::to_lowercase).collect();
        if typed == [first.to_lowercase(), last.to_lowercase()] {
            return Ok(());
        }
        // All of it, and another: that is no slip of the finger.
        if fingerprint::parse(answer).is_ok() {
            return matches(what, digest, answer);
        }
        prompt("That is neither the first and the last word nor a fingerprint.\n");
    }
    Err(no())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::{asked, matches};
    use crate::{error::Error, fingerprint};

    fn digest() -> [u8; 32] {
        std::array::from_fn(|index| u8::try_from(index).unwrap() ^ 0x5a)
    }

    fn answered(text: &str) -> Result<(), Error> {
        let mut answers = Cursor::new(text.to_owned());
        asked("the plan", &digest(), &mut answers, &mut Vec::new())
    }

    #[test]
    fn only_the_ends_or_the_whole_are_a_yes() {
        let words = fingerprint::words(&digest());
        let ends = format!("{} {}\n", words[0], words[31]);
        assert!(answered(&ends).is_ok());
        assert!(answered(&ends.to_uppercase()).is_ok());
        assert!(answered(&format!("what?\n{ends}")).is_ok());
        assert!(answered(&format!("{}\n", words.join(" "))).is_ok());
        assert!(answered(&format!("{}\n", fingerprint::spoken(&digest()))).is_ok());
        for no in ["", "\n", "yes\nyes\nyes\nyes\n", &format!("{}\n", words[0])] {
            assert!(
                matches!(answered(no), Err(Error::NotConfirmed { .. })),
                "{no:?}"
            );
        }
    }

    #[test]
    fn another_fingerprint_is_no_slip() {
        let mut other = digest();
        other[17] ^= 1;
        let text = fingerprint::words(&other).join(" ");
        for refused in [
            answered(&format!("{text}\n")),
            matches("the plan", &digest(), &text),
            matches("the plan", &digest(), &hex::encode(other)),
        ] {
            assert!(matches!(refused, Err(Error::FingerprintDiffers { .. })));
        }
        assert!(matches("the plan", &digest(), &hex::encode(digest())).is_ok());
        let cut = &hex::encode(digest())[..62];
        assert!(matches!(
            matches("the plan", &digest(), cut),
            Err(Error::Usage { .. })
        ));
    }
}

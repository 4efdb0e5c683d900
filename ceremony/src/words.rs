//! Times and durations as people write and read them. It decides how they look, and never what the
//! time is.

use std::{str::FromStr, time::Duration};

pub(crate) use firn_client::date;
use firn_protocol::ids::UnixMillis;

/// The longest that a person can mean: a year.
pub(crate) const LONGEST: Duration = Duration::from_hours(366 * 24);

/// How long something is good: `90s`, `30m`, `4h`, `2d`, or several of them, `1h30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span(Duration);

impl Span {
    /// In milliseconds.
    pub(crate) fn millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "a duration is a number with s, m, h or d behind it, such as 30m or 4h, and at most a \
             year"
                .to_owned()
        };
        let mut total = 0_u64;
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest
                .find(|letter: char| !letter.is_ascii_digit())
                .ok_or_else(wrong)?;
            let (number, behind) = rest.split_at(end);
            let mut letters = behind.chars();
            let seconds: u64 = match letters.next() {
                Some('s') => 1,
                Some('m') => 60,
                Some('h') => 3_600,
                Some('d') => 86_400,
                _ => return Err(wrong()),
            };
            total = number
                .parse::<u64>()
                .ok()
                .and_then(|number| number.checked_mul(seconds))
                .and_then(|part| part.checked_add(total))
                .ok_or_else(wrong)?;
            rest = letters.as_str();
        }
        if total == 0 || total > LONGEST.as_secs() {
            return Err(wrong());
        }
        Ok(Self(Duration::from_secs(total)))
    }
}

/// How far a time is from now, in its two largest units: `in 3 h 59 min`, `2 d 1 h ago`.
pub(crate) fn from_now(time: UnixMillis, now: UnixMillis) -> String {
    if time >= now {
        format!("in {}", length(time.value().saturating_sub(now.value())))
    } else {
        format!("{} ago", length(now.value().saturating_sub(time.value())))
    }
}

/// A length of time in its two largest units.
pub(crate) fn length(millis: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let mut rest = millis / 1000;
    let mut said = Vec::new();
    for (seconds, unit) in UNITS {
        let count = rest.checked_div(seconds).unwrap_or_default();
        rest = rest.checked_rem(seconds).unwrap_or_default();
        if count > 0 {
            said.push(format!("{count} {unit}"));
        } else if !said.is_empty() {
            break;
        }
        if said.len() == 2 {
            break;
        }
    }
    if said.is_empty() {
        "0 s".to_owned()
    } else {
        said.join(" ")
    }
}

/// `1 signature is`, `2 signatures are`: a count with its noun and verb.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun} is")
    } else {
        format!("{count} {noun}s are")
    }
}

#[cfg(test)]
mod tests {
    use firn_protocol::ids::UnixMillis;

    use super::{Span, from_now, length};

    #[test]
    fn a_duration_has_units_and_bounds() {
        for (text, millis) in [
            ("90s", Some(90_000)),
            ("30m", Some(1_800_000)),
            ("4h", Some(14_400_000)),
            ("1h30m", Some(5_400_000)),
            ("366d", Some(366 * 86_400_000)),
            ("367d", None),
            ("0h", None),
            ("", None),
            ("4", None),
            ("h", None),
            ("4 h", None),
            ("-4h", None),
            ("4w", None),
            ("99999999999999999999h", None),
        ] {
            assert_eq!(
                text.parse::<Span>().ok().map(Span::millis),
                millis,
                "{text:?}"
            );
        }
    }

    #[test]
    fn times_are_said_by_distance() {
        let time = UnixMillis::new(1_700_000_000_123);
        assert_eq!(from_now(time.plus(14_340_000), time), "in 3 h 59 min");
        assert_eq!(from_now(time, time.plus(176_400_000)), "2 d 1 h ago");
        assert_eq!(length(999), "0 s");
        assert_eq!(length(86_400_000), "1 d");
        assert_eq!(length(61_000), "1 min 1 s");
        assert_eq!(length(86_400_000 + 5_000), "1 d");
    }
}

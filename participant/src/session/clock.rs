//! Another's clock against this one. It decides whether they differ by more than is allowed, and never
//! which of them is right.

use std::fmt;

use firn_protocol::ids::UnixMillis;

/// Two clocks that differ by more than is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockSkew {
    /// What the other's clock said.
    pub theirs: UnixMillis,
    /// What this one says.
    pub own: UnixMillis,
}

/// When, by this clock, something was said that names its sayer's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaidBetween {
    /// Not before.
    pub earliest: UnixMillis,
    /// Not after.
    pub latest: UnixMillis,
}

impl SaidBetween {
    /// Compares the time that was said.
    ///
    /// # Errors
    /// [`ClockSkew`], where it lies outside by more than `skew_ms`.
    pub fn compare(self, theirs: UnixMillis, skew_ms: u64) -> Result<(), ClockSkew> {
        if theirs.plus(skew_ms) < self.earliest || self.latest.plus(skew_ms) < theirs {
            return Err(ClockSkew {
                theirs,
                own: self.latest,
            });
        }
        Ok(())
    }
}

impl fmt::Display for ClockSkew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (theirs, own) = (self.theirs.value(), self.own.value());
        let side = if theirs < own { "behind" } else { "ahead of" };
        let seconds = theirs.abs_diff(own) / 1000;
        write!(
            f,
            "the other clock is {seconds} s {side} this one: {theirs} there, {own} here, in milliseconds \
             since 1970"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_may_differ_by_the_allowed_skew_on_either_side_and_no_more() {
        let said = SaidBetween {
            earliest: UnixMillis::new(100_000),
            latest: UnixMillis::new(110_000),
        };
        for (theirs, allowed) in [
            (97_999, false),
            (98_000, true),
            (105_000, true),
            (112_000, true),
            (112_001, false),
            (0, false),
            (u64::MAX, false),
        ] {
            let compared = said.compare(UnixMillis::new(theirs), 2_000);
            assert_eq!(compared.is_ok(), allowed, "{theirs}");
        }
    }

    #[test]
    fn says_how_far_the_clocks_are_apart() {
        let day = ClockSkew {
            theirs: UnixMillis::new(86_400_000),
            own: UnixMillis::new(0),
        };
        assert!(day.to_string().contains("86400 s ahead of this one"));
    }
}

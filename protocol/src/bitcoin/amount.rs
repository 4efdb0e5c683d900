//! Amounts in satoshi. Decides what an amount can be at all; never what it may be spent on.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An amount in satoshi: at most 21 million bitcoin, so that a sum of many still fits a `u64`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(try_from = "u64", into = "u64")]
pub struct Sats(u64);

impl Sats {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// 21 million bitcoin: consensus refuses any output or sum above it.
    pub const MAX: Self = Self(2_100_000_000_000_000);

    /// The amount, unless it is above [`Sats::MAX`].
    #[must_use]
    pub const fn new(sats: u64) -> Option<Self> {
        if sats <= Self::MAX.0 {
            Some(Self(sats))
        } else {
            None
        }
    }

    /// The number of satoshi.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }

    /// The sum, unless it is above [`Sats::MAX`].
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).and_then(Self::new)
    }

    /// The difference, unless it would be negative.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// The sum of all, unless it is above [`Sats::MAX`].
    pub fn checked_sum(amounts: impl IntoIterator<Item = Self>) -> Option<Self> {
        amounts.into_iter().try_fold(Self::ZERO, Self::checked_add)
    }
}

impl TryFrom<u64> for Sats {
    type Error = &'static str;

    fn try_from(sats: u64) -> Result<Self, Self::Error> {
        Self::new(sats).ok_or("amount above 21 million bitcoin")
    }
}

impl From<Sats> for u64 {
    fn from(amount: Sats) -> Self {
        amount.0
    }
}

impl fmt::Display for Sats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sat", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Sats;

    #[test]
    fn no_amount_and_no_sum_is_above_21_million_bitcoin() {
        let one = Sats::new(1).unwrap();
        assert_eq!(Sats::new(Sats::MAX.value()), Some(Sats::MAX));
        assert_eq!(Sats::new(Sats::MAX.value() + 1), None);
        assert_eq!(Sats::new(u64::MAX), None);
        assert_eq!(Sats::MAX.checked_add(one), None);
        assert_eq!(Sats::ZERO.checked_sub(one), None);
        assert_eq!(Sats::checked_sum([Sats::MAX, Sats::ZERO]), Some(Sats::MAX));
        assert_eq!(Sats::checked_sum([Sats::MAX, one]), None);
    }
}

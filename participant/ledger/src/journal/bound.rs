//! What others know of this journal. It decides whether a journal holds at least that, in the same
//! history; it never decides whom to ask.

use super::Head;

/// Who knows a head of this journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knower {
    /// The look-up index beside the journal.
    Index,
    /// The anchor file in its other folder.
    Anchor,
    /// A peer that has witnessed a signed head.
    Witness,
}

impl std::fmt::Display for Knower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Index => "the index",
            Self::Anchor => "the anchor",
            Self::Witness => "a witness",
        })
    }
}

/// A head that this journal has had, as somebody knows it: a lower bound for where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Who knows it.
    pub knower: Knower,
    /// What they know.
    pub head: Head,
}

/// How a journal breaks a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoundBreach {
    /// The journal ends before the bound: acknowledged records are gone.
    #[error("the journal ends at {found}, {} knows {}", bound.knower, bound.head)]
    Behind {
        /// The broken bound.
        bound: Bound,
        /// Where the journal ends.
        found: Head,
    },
    /// The journal had another root at the bound's size: it is another history.
    #[error("the journal had {found}, {} knows {}", bound.knower, bound.head)]
    Diverged {
        /// The broken bound.
        bound: Bound,
        /// What the journal had at that size.
        found: Head,
    },
}

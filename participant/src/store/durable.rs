//! The proof that something is on disk. Only the store makes one, after fdatasync has returned, so
//! whatever asks for it cannot come too early.

use firn_ledger::journal::{Head, Sequence};

/// Proof that a command's records, and all before them, are on disk. It cannot be copied: one token
/// lets one thing out.
#[derive(Debug, PartialEq, Eq)]
pub struct Durable {
    head: Head,
    first: Sequence,
    records: usize,
}

impl Durable {
    /// For the store alone, and only once the sync that covers `head` has returned.
    pub(super) const fn after_sync(head: Head, first: Sequence, records: usize) -> Self {
        Self {
            head,
            first,
            records,
        }
    }

    /// The head of the ledger that is on disk; it includes the records.
    #[must_use]
    pub const fn head(&self) -> Head {
        self.head
    }

    /// The place of the command's first record; without records, where it would have been.
    #[must_use]
    pub const fn first(&self) -> Sequence {
        self.first
    }

    /// How many records the command led to.
    #[must_use]
    pub const fn records(&self) -> usize {
        self.records
    }
}

/// A command whose records are on disk.
#[derive(Debug, PartialEq, Eq)]
pub struct Committed<A> {
    /// What the rules answer.
    pub answer: A,
    /// The proof.
    pub durable: Durable,
}

/// Why a command is not committed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError<R> {
    /// The rules refuse it.
    #[error("refused: {0:?}")]
    Refused(R),
    /// Its records do not fit into one batch.
    #[error("the records do not fit into one batch")]
    TooLarge,
    /// Too many are waiting.
    #[error("the ledger is busy")]
    Busy,
    /// The ledger is closed or has failed. Whether the records were written is not known.
    #[error("the ledger has stopped")]
    Stopped,
}

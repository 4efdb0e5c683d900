//! Where a journal stands: everything that the next record depends on. It decides whether a record is
//! the next one; it never looks back.

use firn_protocol::{
    codec::Malformed,
    ids::UnixMillis,
    merkle::{Frontier, MerkleRoot, TreeSize},
};

use super::{Entry, Flaw, NewRecord, RecordHash, Sequence};

/// How many records a journal has, and the Merkle root over them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The number of records.
    pub size: TreeSize,
    /// The root over their encodings.
    pub root: MerkleRoot,
}

impl Head {
    /// The head of a journal without records.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            size: TreeSize::EMPTY,
            root: MerkleRoot::empty(),
        }
    }
}

impl std::fmt::Display for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} records, root {}", self.size, self.root)
    }
}

/// The end of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tip {
    frontier: Frontier,
    last: RecordHash,
    last_time: Option<UnixMillis>,
}

impl Tip {
    /// The end of a journal without records.
    #[must_use]
    pub fn genesis() -> Self {
        Self {
            frontier: Frontier::default(),
            last: RecordHash::genesis(),
            last_time: None,
        }
    }

    /// The end of a journal, from parts kept elsewhere; not yet believed.
    #[must_use]
    pub const fn from_parts(
        frontier: Frontier,
        last: RecordHash,
        last_time: Option<UnixMillis>,
    ) -> Self {
        Self {
            frontier,
            last,
            last_time,
        }
    }

    /// The number of records and their root.
    #[must_use]
    pub fn head(&self) -> Head {
        Head {
            size: self.size(),
            root: self.frontier.root(),
        }
    }

    /// The number of records.
    #[must_use]
    pub const fn size(&self) -> TreeSize {
        self.frontier.size()
    }

    /// The right edge of the Merkle tree.
    #[must_use]
    pub const fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// The hash that the next record must name.
    #[must_use]
    pub const fn last_record(&self) -> RecordHash {
        self.last
    }

    /// The time of the last record.
    #[must_use]
    pub const fn last_time(&self) -> Option<UnixMillis> {
        self.last_time
    }

    /// The place of the next record.
    #[must_use]
    pub const fn next_sequence(&self) -> Sequence {
        Sequence::new(self.size().leaves())
    }

    /// Makes the next entry, without moving.
    ///
    /// # Errors
    /// [`Malformed`] if the codec refuses the record, which its types rule out.
    pub fn next_entry(&self, new: NewRecord, time: UnixMillis) -> Result<Entry, Malformed> {
        Entry::place(new, self.next_sequence(), time, self.last)
    }

    /// Moves past `entry`.
    ///
    /// # Errors
    /// [`Flaw::Sequence`] or [`Flaw::Chain`] if it is not the next one; the tip is then unchanged.
    pub fn advance(&mut self, entry: &Entry) -> Result<(), Flaw> {
        if entry.record().sequence() != self.next_sequence() {
            return Err(Flaw::Sequence {
                found: entry.record().sequence(),
            });
        }
        if entry.record().previous() != self.last {
            return Err(Flaw::Chain);
        }
        self.frontier
            .append(entry.leaf())
            .map_err(|_| Flaw::Sequence {
                found: entry.record().sequence(),
            })?;
        self.last = entry.hash();
        self.last_time = Some(entry.record().time());
        Ok(())
    }
}

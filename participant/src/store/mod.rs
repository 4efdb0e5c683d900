//! The ledger on disk: journal files, index and anchor, one thread that writes, and the token that
//! says something is durable. It decides when; the rules decide what; the format is `firn_ledger`'s.
//!
//! A command takes this way: [`Committer::commit`] queues it, the ledger's thread asks the [`Rules`],
//! writes their records with all others that wait in one write, calls fdatasync once, and only then
//! answers each with a [`Durable`]. A failed write or sync ends the process ([`end_process`]).

mod anchor;
mod clock;
mod committer;
mod durable;
mod error;
mod files;
mod index;
mod ledger;
mod memory;
mod rules;
#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "offsets in small files")]
mod tests;

use std::{path::PathBuf, sync::Arc};

use firn_ledger::journal::{Bound, Head, Knower, SegmentBytes};

pub use clock::{Clock, FakeClock, SystemClock};
pub use committer::{Committer, OnFatal, end_process};
pub use durable::{CommitError, Committed, Durable};
pub use error::StoreError;
pub use files::{FolderFiles, SegmentFiles};
pub use index::{SledTable, StateTable};
pub use ledger::View;
pub use memory::{CommitOutcome, MemoryFiles, MemoryStore};
pub use rules::{Admitted, Moment, NotAdmitted, RuleViolation, Rules};

use anchor::{Anchor, IfMissing};
use committer::{Work, Writer};
use ledger::Ledger;

/// Where a ledger is, and how it is kept.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder of the journal and the index; its parent must exist.
    pub data: PathBuf,
    /// The folder of the anchor: another one, on another disk if there is one; its parent must exist.
    pub anchor: PathBuf,
    /// Make a new anchor where there is none although there is a journal. For one start, by an
    /// operator who knows that the journal is the newest.
    pub replace_lost_anchor: bool,
    /// The length of new segments.
    pub segment_bytes: SegmentBytes,
    /// After how many records the anchor follows.
    pub anchor_every: u64,
    /// How many requests may wait before the ledger is busy.
    pub waiting: usize,
    /// Heads of this ledger that others are known to have seen.
    pub witnessed: Vec<Head>,
}

impl Options {
    /// The usual options.
    #[must_use]
    pub const fn new(data: PathBuf, anchor: PathBuf) -> Self {
        Self {
            data,
            anchor,
            replace_lost_anchor: false,
            segment_bytes: SegmentBytes::DEFAULT,
            anchor_every: 64,
            waiting: 1024,
            witnessed: Vec::new(),
        }
    }
}

/// An open ledger.
pub struct Store<R: Rules> {
    writer: Writer<R>,
    head: Head,
}

impl<R: Rules> Store<R> {
    /// Opens a ledger, or makes one where there is none: locks it, checks every record against index,
    /// anchor and witnessed heads, cuts off a torn tail that nobody knows of, brings the index to the
    /// end, and starts the thread. Blocks for as long as that takes.
    ///
    /// # Errors
    /// [`StoreError`], each with a code and an advice. Nothing was changed then but a torn tail, an
    /// index that was no good, or a new anchor.
    pub fn open(
        options: &Options,
        rules: R,
        clock: Arc<dyn Clock>,
        on_fatal: OnFatal,
    ) -> Result<Self, StoreError> {
        files::ensure_private_folder(&options.data)?;
        let files = FolderFiles::open(&options.data.join("journal"))?;
        let is_new = files.is_new()?;
        // Before the first segment, so that a journal never stands without an anchor.
        let missing = if is_new || options.replace_lost_anchor {
            IfMissing::Create
        } else {
            IfMissing::Refuse
        };
        let mut anchor = Anchor::open(&options.anchor, missing)?;
        let (state, settled) =
            SledTable::open(&options.data.join("index"), R::STATE_VERSION, !is_new)?;
        let mut bounds = vec![
            Bound {
                knower: Knower::Anchor,
                head: anchor.head(),
            },
            Bound {
                knower: Knower::Index,
                head: settled.head(),
            },
        ];
        bounds.extend(options.witnessed.iter().map(|head| Bound {
            knower: Knower::Witness,
            head: *head,
        }));

        let ledger = Ledger::open(
            rules,
            files,
            state,
            &settled,
            &bounds,
            options.segment_bytes,
        )?;
        let head = ledger.head();
        anchor.set_both(head)?;
        let anchor_every = options.anchor_every;
        let work = Work {
            ledger,
            anchor: Some(anchor),
            anchor_every,
            clock,
            on_fatal,
        };
        Ok(Self {
            writer: Writer::start(work, options.waiting)?,
            head,
        })
    }

    /// A way to the ledger.
    #[must_use]
    pub fn committer(&self) -> Committer<R> {
        self.writer.committer()
    }

    /// Where the ledger stood when it was opened.
    #[must_use]
    pub const fn opened_at(&self) -> Head {
        self.head
    }

    /// Closes the ledger after all that was asked before, with the anchor at its end, and gives its last
    /// head; none if it had failed. Blocks: not for a task of the runtime.
    #[must_use]
    pub fn close(self) -> Option<Head> {
        self.writer.close()
    }
}

//! The ledger without threads: commands in, records written and synced, answers out, in that order.
//! It decides when something is durable; what may be written is decided by the rules.

use firn_ledger::{
    journal::{
        Appender, Bound, End, Entry, Head, MAX_BATCH_RECORDS, Place, Scanner, SegmentBytes,
        Sequence, Tip, batch_bytes, encode_batch,
    },
    table::Table,
};
use firn_protocol::{codec::Malformed, ids::UnixMillis, merkle::MerkleTree};

use super::{
    Admitted, CommitError, Committed, Durable, Moment, NotAdmitted, Rules, StateTable, StoreError,
    files::SegmentFiles,
};

/// After how many replayed records the state is settled, so that a long replay needs little memory.
const SETTLE_EVERY: usize = 4096;

/// What becomes of a command that is judged, but not yet written: its answer, the place of its first
/// record and how many it has.
type Judged<R> =
    Result<(<R as Rules>::Answer, Sequence, usize), CommitError<<R as Rules>::Refusal>>;

/// What became of one command.
pub(super) type Outcome<R> =
    Result<Committed<<R as Rules>::Answer>, CommitError<<R as Rules>::Refusal>>;

/// The durable ledger, as a query sees it.
pub struct View<'a> {
    state: &'a dyn Table,
    tree: &'a MerkleTree,
    tip: &'a Tip,
}

impl<'a> View<'a> {
    /// What the records amount to by the rules.
    #[must_use]
    pub const fn state(&self) -> &'a dyn Table {
        self.state
    }

    /// The Merkle tree over the records: old roots, inclusion and consistency proofs.
    #[must_use]
    pub const fn tree(&self) -> &'a MerkleTree {
        self.tree
    }

    /// Where the journal stands: head and time of the last record.
    #[must_use]
    pub const fn tip(&self) -> &'a Tip {
        self.tip
    }
}

pub(super) struct Ledger<R, F, T> {
    rules: R,
    files: F,
    state: T,
    appender: Appender,
    tree: MerkleTree,
    tip: Tip,
}

impl<R: Rules, F: SegmentFiles, T: StateTable> Ledger<R, F, T> {
    /// Reads the journal from its first record, checks it against every bound, and brings `state`,
    /// which stands for the first `settled` records, to its end.
    pub(super) fn open(
        rules: R,
        mut files: F,
        mut state: T,
        settled: &Tip,
        bounds: &[Bound],
        size: SegmentBytes,
    ) -> Result<Self, StoreError> {
        let mut tree = MerkleTree::default();
        let mut last_batch = Vec::new();
        let mut unsettled = 0_usize;
        let mut scanner = Scanner::new(&mut files, bounds)?;
        while let Some(batch) = scanner.next_batch()? {
            for entry in batch.entries() {
                tree.append(entry.leaf());
                if entry.record().sequence() >= settled.next_sequence() {
                    apply(&rules, &mut state, entry)?;
                    unsettled = unsettled.saturating_add(1);
                }
            }
            if unsettled >= SETTLE_EVERY {
                state.settle(scanner.tip())?;
                unsettled = 0;
            }
            last_batch = batch.into_entries();
        }
        let (tip, end) = (scanner.tip().clone(), scanner.end());
        let place = end.as_ref().and_then(|(_, place)| place.clone());
        if let Some((end, Some(place))) = end {
            make_durable(&mut files, end, &place, &last_batch)?;
        }
        state.settle(&tip)?;
        Ok(Self {
            rules,
            files,
            state,
            appender: Appender::new(size, place),
            tree,
            tip,
        })
    }

    pub(super) fn view(&self) -> View<'_> {
        View {
            state: &self.state,
            tree: &self.tree,
            tip: &self.tip,
        }
    }

    pub(super) fn head(&self) -> Head {
        self.tip.head()
    }

    /// Judges the commands in order, writes what they lead to, and answers all of them once that is
    /// durable; refusals wait too, since they may rest on records of the same batch.
    ///
    /// An error ends the process: what is on disk and what is in memory may then differ.
    pub(super) fn commit(
        &mut self,
        commands: Vec<R::Command>,
        now: UnixMillis,
    ) -> Result<Vec<Outcome<R>>, StoreError> {
        let mut pending = Pending {
            entries: Vec::new(),
            record_bytes: 0,
            tip: self.tip.clone(),
        };
        let mut judged = Vec::with_capacity(commands.len());
        for command in commands {
            judged.push(self.judge(command, now, &mut pending)?);
        }
        self.write(&mut pending)?;
        let head = self.tip.head();
        let answer = |(answer, first, records)| Committed {
            answer,
            durable: Durable::after_sync(head, first, records),
        };
        Ok(judged.into_iter().map(|one| one.map(answer)).collect())
    }

    fn judge(
        &mut self,
        command: R::Command,
        now: UnixMillis,
        pending: &mut Pending,
    ) -> Result<Judged<R>, StoreError> {
        let moment = Moment {
            now,
            last: pending.tip.last_time(),
        };
        let Admitted { records, answer } = match self.rules.admit(&self.state, command, moment) {
            Ok(admitted) => admitted,
            Err(NotAdmitted::Refused(refusal)) => return Ok(Err(CommitError::Refused(refusal))),
            Err(NotAdmitted::Unreadable(error)) => return Err(error.into()),
        };
        let (first, count) = (pending.tip.next_sequence(), records.len());
        let mut tip = pending.tip.clone();
        let mut entries = Vec::with_capacity(count);
        for new in records {
            let entry = tip.next_entry(new, now)?;
            // An entry that its own tip made is the next one.
            tip.advance(&entry).map_err(|_| Malformed::Schema)?;
            entries.push(entry);
        }
        let bytes = entries.iter().map(|entry| entry.bytes().len()).sum();
        if !self.fits(count, bytes) {
            return Ok(Err(CommitError::TooLarge));
        }
        let all = pending.entries.len().saturating_add(count);
        if !self.fits(all, pending.record_bytes.saturating_add(bytes)) {
            self.write(pending)?;
        }
        for entry in &entries {
            apply(&self.rules, &mut self.state, entry)?;
        }
        pending.tip = tip;
        pending.record_bytes = pending.record_bytes.saturating_add(bytes);
        pending.entries.append(&mut entries);
        Ok(Ok((answer, first, count)))
    }

    fn fits(&self, records: usize, record_bytes: usize) -> bool {
        records <= MAX_BATCH_RECORDS
            && batch_bytes(records, record_bytes) <= self.appender.capacity()
    }

    /// One write, one sync; only then the ledger stands at the new tip.
    fn write(&mut self, pending: &mut Pending) -> Result<(), StoreError> {
        let entries = std::mem::take(&mut pending.entries);
        pending.record_bytes = 0;
        if entries.is_empty() {
            return Ok(());
        }
        let Some(write) = self.appender.append(&self.tip, &entries) else {
            return Err(Malformed::TooLarge.into());
        };
        if let Some(header) = &write.create {
            self.files
                .create(header)
                .map_err(StoreError::io("making a journal segment"))?;
        }
        let written = self.files.write(write.segment, write.offset, &write.bytes);
        written.map_err(StoreError::io("writing the journal"))?;
        self.files
            .sync(write.segment)
            .map_err(StoreError::io("syncing the journal"))?;
        entries
            .iter()
            .for_each(|entry| self.tree.append(entry.leaf()));
        self.tip = pending.tip.clone();
        self.state.settle(&self.tip)?;
        Ok(())
    }
}

/// Records that are applied, but not yet written.
struct Pending {
    entries: Vec<Entry>,
    record_bytes: usize,
    /// The tip after them.
    tip: Tip,
}

fn apply<R: Rules>(rules: &R, state: &mut impl Table, entry: &Entry) -> Result<(), StoreError> {
    rules
        .apply(state, entry.record())
        .map_err(|violation| StoreError::Unlawful {
            sequence: entry.record().sequence(),
            violation,
        })
}

/// Brings the disk to what was just read. A torn tail becomes zeros again. The last batch is written
/// once more, byte for byte: a process that was killed, or that ended because a sync failed, may have
/// left it in the system's memory only, where a second sync would not find it any more.
fn make_durable(
    files: &mut impl SegmentFiles,
    end: End,
    place: &Place,
    last_batch: &[Entry],
) -> Result<(), StoreError> {
    let segment = place.header.number();
    match end {
        End::TornTail {
            segment,
            offset,
            written,
        } => {
            tracing::warn!(
                code = "torn_tail_cut",
                %segment,
                offset,
                written,
                "cutting off a write that was never finished and never acknowledged"
            );
            let zeros = vec![
                0;
                place
                    .header
                    .segment_bytes()
                    .as_usize()
                    .saturating_sub(offset)
            ];
            files
                .write(segment, offset, &zeros)
                .map_err(StoreError::io("cutting a torn tail"))?;
        }
        End::Clean => {
            let record_bytes = last_batch.iter().map(|entry| entry.bytes().len()).sum();
            let start = place
                .offset
                .saturating_sub(batch_bytes(last_batch.len(), record_bytes));
            // With a segment made after it, the last batch was acknowledged long ago.
            if let Some(bytes) =
                encode_batch(last_batch, &place.header, start).filter(|_| start > 0)
            {
                files
                    .write(segment, start, &bytes)
                    .map_err(StoreError::io("writing the last batch again"))?;
            }
        }
    }
    files
        .sync(segment)
        .map_err(StoreError::io("syncing the journal"))
}

//! A ledger in memory, for tests and simulations: the same code and the same tokens over files that
//! are byte strings. Each write, sync and creation can be counted and made to fail. Nothing in it is
//! durable, so no daemon uses it.

use std::{
    io,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use firn_ledger::{
    journal::{
        Head, MemorySegments, SegmentBytes, SegmentHeader, SegmentNumber, SegmentSource, Tip,
    },
    table::MemoryTable,
};
use firn_protocol::ids::UnixMillis;

use super::{CommitError, Committed, Rules, StoreError, View, files::SegmentFiles, ledger::Ledger};

/// The files of a journal in memory. Copies are the same files.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles(Arc<Mutex<Disk>>);

#[derive(Debug, Default)]
struct Disk {
    /// What a crash leaves.
    synced: MemorySegments,
    /// What a reader sees.
    written: MemorySegments,
    /// What was written since the last sync.
    unsynced: Vec<(SegmentNumber, Range<usize>)>,
    steps: u64,
    syncs: u64,
    fails_at: Option<u64>,
}

impl MemoryFiles {
    /// Files that hold these segments.
    #[must_use]
    pub fn holding(segments: MemorySegments) -> Self {
        let disk = Disk {
            synced: segments.clone(),
            written: segments,
            ..Disk::default()
        };
        Self(Arc::new(Mutex::new(disk)))
    }

    /// What is on disk after a power cut that loses everything not synced.
    #[must_use]
    pub fn synced(&self) -> MemorySegments {
        self.disk().synced.clone()
    }

    /// What is on disk if everything written arrives.
    #[must_use]
    pub fn written(&self) -> MemorySegments {
        self.disk().written.clone()
    }

    /// How many syncs there were.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.disk().syncs
    }

    /// How many creations, writes and syncs there were.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.disk().steps
    }

    /// Lets the `n`th creation, write or sync from now on fail, counted from 0, and all after it. A write
    /// that fails leaves its first half in what is written.
    pub fn fail_after(&self, n: u64) {
        let mut disk = self.disk();
        disk.fails_at = Some(disk.steps.saturating_add(n));
    }

    /// Lets nothing fail any more.
    pub fn heal(&self) {
        self.disk().fails_at = None;
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self) -> io::Result<MutexGuard<'_, Disk>> {
        let mut disk = self.disk();
        if disk.fails_at.is_some_and(|step| disk.steps >= step) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        disk.steps = disk.steps.saturating_add(1);
        Ok(disk)
    }
}

impl SegmentSource for MemoryFiles {
    fn numbers(&mut self) -> io::Result<Vec<SegmentNumber>> {
        self.disk().written.numbers()
    }

    fn read(&mut self, number: SegmentNumber) -> io::Result<Vec<u8>> {
        self.disk().written.read(number)
    }
}

impl SegmentFiles for MemoryFiles {
    fn create(&mut self, header: &SegmentHeader) -> io::Result<()> {
        let mut disk = self.step()?;
        let mut bytes = header.encode();
        bytes.resize(header.segment_bytes().as_usize(), 0);
        disk.synced.0.insert(header.number(), bytes.clone());
        disk.written.0.insert(header.number(), bytes);
        Ok(())
    }

    fn write(&mut self, segment: SegmentNumber, offset: usize, bytes: &[u8]) -> io::Result<()> {
        let (mut disk, arrives, outcome) = match self.step() {
            Ok(disk) => (disk, bytes.len(), Ok(())),
            // A disk that fails in the middle of a write leaves a torn one.
            Err(error) => (self.disk(), bytes.len() / 2, Err(error)),
        };
        let end = offset.saturating_add(arrives);
        let space = disk
            .written
            .0
            .get_mut(&segment)
            .and_then(|all| all.get_mut(offset..end))
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        space.copy_from_slice(bytes.get(..arrives).unwrap_or_default());
        disk.unsynced.push((segment, offset..end));
        outcome
    }

    fn sync(&mut self, segment: SegmentNumber) -> io::Result<()> {
        let mut disk = self.step()?;
        let (ours, others) = std::mem::take(&mut disk.unsynced)
            .into_iter()
            .partition(|(written, _)| *written == segment);
        disk.unsynced = others;
        let Disk {
            synced, written, ..
        } = &mut *disk;
        for (_, range) in ours {
            let from = written
                .0
                .get(&segment)
                .and_then(|all| all.get(range.clone()));
            let to = synced
                .0
                .get_mut(&segment)
                .and_then(|all| all.get_mut(range));
            let (Some(from), Some(to)) = (from, to) else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            to.copy_from_slice(from);
        }
        disk.syncs = disk.syncs.saturating_add(1);
        Ok(())
    }
}

/// What became of one command of a batch.
pub type CommitOutcome<R> =
    Result<Committed<<R as Rules>::Answer>, CommitError<<R as Rules>::Refusal>>;

/// A ledger in memory, without threads.
pub struct MemoryStore<R: Rules> {
    ledger: Ledger<R, MemoryFiles, MemoryTable>,
}

impl<R: Rules> MemoryStore<R> {
    /// Opens what `files` hold; with [`MemoryFiles::default`], an empty ledger.
    ///
    /// # Errors
    /// As the daemon's store: [`StoreError`].
    pub fn open(rules: R, files: MemoryFiles) -> Result<Self, StoreError> {
        Self::open_sized(rules, files, SegmentBytes::DEFAULT)
    }

    /// As [`MemoryStore::open`], with new segments of this length: a simulation copies many.
    ///
    /// # Errors
    /// As the daemon's store: [`StoreError`].
    pub fn open_sized(
        rules: R,
        files: MemoryFiles,
        segment_bytes: SegmentBytes,
    ) -> Result<Self, StoreError> {
        let (state, start) = (MemoryTable::default(), Tip::genesis());
        let ledger = Ledger::open(rules, files, state, &start, &[], segment_bytes)?;
        Ok(Self { ledger })
    }

    /// Commits all commands in one batch, as the daemon's thread does with those that wait.
    ///
    /// # Errors
    /// [`StoreError`] where a daemon's process would end, with nobody answered.
    pub fn commit_all(
        &mut self,
        commands: Vec<R::Command>,
        now: UnixMillis,
    ) -> Result<Vec<CommitOutcome<R>>, StoreError> {
        self.ledger.commit(commands, now)
    }

    /// Commits one command.
    ///
    /// # Errors
    /// [`CommitError`]; [`CommitError::Stopped`] where a daemon's process would end.
    pub fn commit(
        &mut self,
        command: R::Command,
        now: UnixMillis,
    ) -> Result<Committed<R::Answer>, CommitError<R::Refusal>> {
        let outcomes = self
            .ledger
            .commit(vec![command], now)
            .map_err(|_| CommitError::Stopped)?;
        outcomes
            .into_iter()
            .next()
            .unwrap_or(Err(CommitError::Stopped))
    }

    /// Looks at the ledger.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        self.ledger.view()
    }

    /// Where it stands.
    #[must_use]
    pub fn head(&self) -> Head {
        self.ledger.head()
    }
}

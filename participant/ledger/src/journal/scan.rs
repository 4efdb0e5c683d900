//! Reading a journal from its first record to its last, one segment in memory at a time. It decides
//! where the journal ends and whether everything up to there is what was written; it never skips,
//! repairs or guesses.

use std::io;

use firn_protocol::codec::Malformed;

use super::{
    Batch, Bound, BoundBreach, Head, SECTOR_BYTES, SegmentHeader, SegmentNumber, SegmentSource,
    Sequence, Tip, all_zero, batch,
};

/// What is wrong at one place of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// A segment is not there, but a later one is.
    #[error("a segment is missing before segment {found}")]
    SegmentMissing {
        /// The segment found in its place.
        found: SegmentNumber,
    },
    /// A segment header does not verify.
    #[error("the segment header does not verify")]
    SegmentHeader,
    /// A segment of a format that this version does not know.
    #[error("the segment has format version {found}, which this version does not read")]
    SegmentVersion {
        /// The version found.
        found: u32,
    },
    /// A segment file is shorter or longer than its header says; no crash does that.
    #[error("the segment has {found} bytes, which is not what its header says")]
    SegmentLength {
        /// The length found.
        found: usize,
    },
    /// A segment that verifies but does not continue this journal.
    #[error("the segment does not continue the one before it")]
    SegmentPlace,
    /// Neither a batch nor zeros.
    #[error("neither a batch nor never-written space")]
    BatchHeader,
    /// The end mark of a batch is wrong.
    #[error("the batch's end mark is wrong")]
    BatchEnd,
    /// The hash of a batch is wrong.
    #[error("the batch's hash is wrong")]
    BatchHash,
    /// A record is said to be longer than its batch or than any record.
    #[error("the record's length is impossible")]
    EntryLength,
    /// A record is not what its check says.
    #[error("the record's check is wrong")]
    EntryCheck,
    /// A record is not a record.
    #[error("not a record: {0}")]
    Record(Malformed),
    /// A record of another place.
    #[error("the record says that it is number {found}")]
    Sequence {
        /// The number that it gives itself.
        found: Sequence,
    },
    /// A record that names another predecessor.
    #[error("the record names another predecessor")]
    Chain,
}

/// Damage, and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("segment {segment}, byte {offset}, record {sequence}: {flaw}")]
pub struct Damage {
    /// The segment.
    pub segment: SegmentNumber,
    /// The byte within its file.
    pub offset: usize,
    /// The first record that can no longer be believed.
    pub sequence: Sequence,
    /// What is wrong there.
    pub flaw: Flaw,
}

/// How a journal that holds no damage ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// After the last batch there is only never-written space.
    Clean,
    /// After the last batch there is one that was never finished, hence never acknowledged.
    TornTail {
        /// The segment that holds it: the last one.
        segment: SegmentNumber,
        /// Where it begins; everything from here to the segment's end is to become zeros.
        offset: usize,
        /// How many bytes there are from there to the last one that is not zero.
        written: usize,
    },
}

/// Why a scan stopped before the journal's end.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// A segment could not be read at all.
    #[error("segments cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// The journal is damaged.
    #[error("damaged: {0}")]
    Damaged(#[from] Damage),
    /// Somebody knows of another or a longer history.
    #[error(transparent)]
    Breach(#[from] BoundBreach),
}

/// Walks over a journal's batches.
pub struct Scanner<'a, S> {
    source: &'a mut S,
    bounds: Vec<Bound>,
    /// The segments not yet opened, the next one last.
    ahead: Vec<SegmentNumber>,
    current: Option<Open>,
    tip: Tip,
    end: Option<End>,
    /// After the end, and after an error: then there is no end.
    over: bool,
}

/// The segment being read.
struct Open {
    header: SegmentHeader,
    bytes: Vec<u8>,
    offset: usize,
}

/// Where writing goes on.
#[derive(Clone, Debug)]
pub struct Place {
    /// The header of the last segment.
    pub header: SegmentHeader,
    /// The first never-written byte in it.
    pub offset: usize,
}

impl<'a, S: SegmentSource> Scanner<'a, S> {
    /// Begins at the first record. The journal must honour every bound.
    ///
    /// # Errors
    /// [`ScanError::Unreadable`] if the segments cannot be listed.
    pub fn new(source: &'a mut S, bounds: &[Bound]) -> Result<Self, ScanError> {
        let mut ahead = source.numbers()?;
        ahead.sort_unstable_by(|left, right| right.cmp(left));
        let bounds = bounds.to_vec();
        Ok(Self {
            source,
            bounds,
            ahead,
            current: None,
            tip: Tip::genesis(),
            end: None,
            over: false,
        })
    }

    /// The next batch, or nothing at the journal's end.
    ///
    /// # Errors
    /// The first damage or broken bound. The scan is then over: asking again gives no batch.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, ScanError> {
        if self.over {
            return Ok(None);
        }
        let step = self.step();
        self.over = !matches!(step, Ok(Some(_)));
        step
    }

    /// Where the journal stands after the last batch given.
    #[must_use]
    pub const fn tip(&self) -> &Tip {
        &self.tip
    }

    /// How the journal ends, and where writing goes on if there is a segment; known once
    /// [`Scanner::next_batch`] has given nothing.
    #[must_use]
    pub fn end(&self) -> Option<(End, Option<Place>)> {
        let place = self.current.as_ref().map(|open| Place {
            header: open.header.clone(),
            offset: open.offset,
        });
        self.end.map(|end| (end, place))
    }

    fn step(&mut self) -> Result<Option<Batch>, ScanError> {
        loop {
            match &self.current {
                Some(open) => {
                    let rest = open.bytes.get(open.offset..).unwrap_or_default();
                    if !all_zero(rest) {
                        return self.read_batch();
                    }
                    if self.ahead.is_empty() {
                        return self.finish(End::Clean);
                    }
                    self.open_next()?;
                }
                None if self.ahead.is_empty() => return self.finish(End::Clean),
                None => self.open_next()?,
            }
        }
    }

    fn open_next(&mut self) -> Result<(), ScanError> {
        let wanted = self
            .current
            .as_ref()
            .map_or(SegmentNumber::FIRST, |open| open.header.number().next());
        let Some(found) = self.ahead.pop() else {
            return Ok(());
        };
        if found != wanted {
            return Err(self.damage(wanted, 0, Flaw::SegmentMissing { found }));
        }
        let bytes = self.source.read(wanted)?;
        let header = SegmentHeader::read(&bytes, wanted, &self.tip)
            .map_err(|flaw| self.damage(wanted, 0, flaw))?;
        self.current = Some(Open {
            header,
            bytes,
            offset: SECTOR_BYTES,
        });
        Ok(())
    }

    fn read_batch(&mut self) -> Result<Option<Batch>, ScanError> {
        let Some(open) = &mut self.current else {
            return Ok(None);
        };
        let before = self.tip.clone();
        match batch::read_batch(&open.bytes, &open.header, open.offset, &mut self.tip) {
            Ok(batch) => {
                open.offset = open.offset.saturating_add(batch.length());
                self.honour_bounds(before, &batch)?;
                Ok(Some(batch))
            }
            Err(misfit) => {
                self.tip = before;
                let segment = open.header.number();
                if self.ahead.is_empty() && batch::is_torn(&open.bytes, &open.header, open.offset) {
                    let rest = open.bytes.get(open.offset..).unwrap_or_default();
                    let written = rest
                        .iter()
                        .rposition(|byte| *byte != 0)
                        .unwrap_or(0)
                        .saturating_add(1);
                    let offset = open.offset;
                    return self.finish(End::TornTail {
                        segment,
                        offset,
                        written,
                    });
                }
                let batch::Misfit {
                    offset,
                    sequence,
                    flaw,
                } = misfit;
                Err(Damage {
                    segment,
                    offset,
                    sequence,
                    flaw,
                }
                .into())
            }
        }
    }

    /// Compares the roots at those bounds that this batch reaches.
    fn honour_bounds(&self, mut tip: Tip, batch: &Batch) -> Result<(), ScanError> {
        let (from, to) = (tip.size(), self.tip.size());
        if !self
            .bounds
            .iter()
            .any(|bound| bound.head.size > from && bound.head.size <= to)
        {
            return Ok(());
        }
        for entry in batch.entries() {
            if tip.advance(entry).is_err() {
                break;
            }
            for bound in self
                .bounds
                .iter()
                .filter(|bound| bound.head.size == tip.size())
            {
                if bound.head != tip.head() {
                    return Err(BoundBreach::Diverged {
                        bound: *bound,
                        found: tip.head(),
                    }
                    .into());
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self, end: End) -> Result<Option<Batch>, ScanError> {
        for bound in &self.bounds {
            if bound.head.size > self.tip.size() {
                return Err(BoundBreach::Behind {
                    bound: *bound,
                    found: self.tip.head(),
                }
                .into());
            }
            if bound.head.size == Head::empty().size && bound.head != Head::empty() {
                return Err(BoundBreach::Diverged {
                    bound: *bound,
                    found: Head::empty(),
                }
                .into());
            }
        }
        self.end = Some(end);
        Ok(None)
    }

    fn damage(&self, segment: SegmentNumber, offset: usize, flaw: Flaw) -> ScanError {
        Damage {
            segment,
            offset,
            sequence: self.tip.next_sequence(),
            flaw,
        }
        .into()
    }
}

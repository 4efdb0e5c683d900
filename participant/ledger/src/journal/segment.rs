//! Segments: one preallocated file each, and the sector that says which one it is. It decides whether
//! a file is the segment that it should be, never what its batches hold.

use firn_protocol::tagged::tagged_hash;

use super::{Flaw, RecordHash, Sequence, Tip, all_zero, take};

/// The unit in which a disk tears a write, and the alignment of every batch.
pub const SECTOR_BYTES: usize = 512;

const MAGIC: [u8; 8] = *b"FIRNJNL1";
const VERSION: u32 = 1;

/// A segment's place among the segments, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentNumber(u64);

impl SegmentNumber {
    /// The first segment.
    pub const FIRST: Self = Self(0);

    /// The segment with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }

    /// The one after it; the last number has itself.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The name of its file.
    #[must_use]
    pub fn file_name(self) -> String {
        format!("{:020}.journal", self.0)
    }

    /// The segment that a file of this name is.
    #[must_use]
    pub fn from_file_name(name: &str) -> Option<Self> {
        let number = Self(name.strip_suffix(".journal")?.parse().ok()?);
        (number.file_name() == name).then_some(number)
    }
}

impl std::fmt::Display for SegmentNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The length of a segment's file: a whole number of sectors, at least 2 and at most 64 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentBytes(u32);

impl SegmentBytes {
    /// 4 MiB: a few thousand batches between two file creations.
    pub const DEFAULT: Self = Self(4 << 20);
    /// 64 MiB: one segment is read into memory as a whole.
    pub const MAX: Self = Self(64 << 20);

    /// A segment of this many bytes.
    #[must_use]
    pub fn new(bytes: u32) -> Option<Self> {
        let sectors = usize::try_from(bytes).ok()?;
        let whole = sectors.is_multiple_of(SECTOR_BYTES) && sectors / SECTOR_BYTES >= 2;
        (whole && bytes <= Self::MAX.0).then_some(Self(bytes))
    }

    /// The number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        self.0
    }

    /// The largest batch that fits into an empty segment.
    #[must_use]
    pub fn capacity(self) -> usize {
        self.as_usize().saturating_sub(SECTOR_BYTES)
    }

    /// The number of bytes as a length in memory.
    #[must_use]
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// What a segment says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    bytes: SegmentBytes,
    number: SegmentNumber,
    first: Sequence,
    previous: RecordHash,
    check: [u8; 32],
}

impl SegmentHeader {
    /// The header of the segment that begins where the journal stands.
    #[must_use]
    pub fn new(bytes: SegmentBytes, number: SegmentNumber, tip: &Tip) -> Self {
        let (first, previous) = (tip.next_sequence(), tip.last_record());
        let mut header = Self {
            bytes,
            number,
            first,
            previous,
            check: [0; 32],
        };
        header.check = tagged_hash("firn/segment", &[&header.checked_part()]);
        header
    }

    /// How long the file is.
    #[must_use]
    pub const fn segment_bytes(&self) -> SegmentBytes {
        self.bytes
    }

    /// Which segment it is.
    #[must_use]
    pub const fn number(&self) -> SegmentNumber {
        self.number
    }

    /// The hash over the rest of the header; batches are bound to it.
    #[must_use]
    pub const fn check(&self) -> &[u8; 32] {
        &self.check
    }

    /// The first sector of the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut sector = self.checked_part();
        sector.extend_from_slice(&self.check);
        sector.resize(SECTOR_BYTES, 0);
        sector
    }

    /// Reads the header of `segment`, a whole file, which must continue the journal at `tip`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(segment: &[u8], number: SegmentNumber, tip: &Tip) -> Result<Self, Flaw> {
        let mut rest = segment;
        let magic = take::<8>(&mut rest).ok_or(Flaw::SegmentHeader)?;
        let version = take::<4>(&mut rest)
            .map(u32::from_be_bytes)
            .ok_or(Flaw::SegmentHeader)?;
        if magic != MAGIC {
            return Err(Flaw::SegmentHeader);
        }
        if version != VERSION {
            return Err(Flaw::SegmentVersion { found: version });
        }
        let header = Self::read_fields(&mut rest).ok_or(Flaw::SegmentHeader)?;
        let wanted = tagged_hash("firn/segment", &[&header.checked_part()]);
        let padding = segment.get(segment.len().saturating_sub(rest.len())..SECTOR_BYTES);
        if header.check != wanted || !padding.is_some_and(all_zero) {
            return Err(Flaw::SegmentHeader);
        }
        if segment.len() != header.bytes.as_usize() {
            return Err(Flaw::SegmentLength {
                found: segment.len(),
            });
        }
        if header != Self::new(header.bytes, number, tip) {
            return Err(Flaw::SegmentPlace);
        }
        Ok(header)
    }

    fn read_fields(rest: &mut &[u8]) -> Option<Self> {
        let bytes = u32::try_from(u64::from_be_bytes(take(rest)?)).ok()?;
        Some(Self {
            bytes: SegmentBytes::new(bytes)?,
            number: SegmentNumber(u64::from_be_bytes(take(rest)?)),
            first: Sequence::new(u64::from_be_bytes(take(rest)?)),
            previous: RecordHash::from_bytes(take(rest)?),
            check: take(rest)?,
        })
    }

    fn checked_part(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SECTOR_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_be_bytes());
        bytes.extend_from_slice(&u64::from(self.bytes.0).to_be_bytes());
        bytes.extend_from_slice(&self.number.0.to_be_bytes());
        bytes.extend_from_slice(&self.first.value().to_be_bytes());
        bytes.extend_from_slice(self.previous.as_bytes());
        bytes
    }
}

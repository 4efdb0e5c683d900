//! Batches: the records of one write and one fdatasync, whole or not at all. It decides whether a
//! batch verifies and, if not, whether a write cut short explains it.

use firn_protocol::tagged::tagged_hash;

use super::{
    Entry, Flaw, MAX_RECORD_BYTES, Sequence, Tip, all_zero, segment::SECTOR_BYTES,
    segment::SegmentHeader, take,
};

/// The most records of one batch.
pub const MAX_BATCH_RECORDS: usize = 4096;

const MAGIC: [u8; 8] = *b"FIRNBTCH";
/// The last bytes of a batch. Each has two bits or more, so that one flipped bit never makes the end
/// look unwritten.
const END_MARK: [u8; 8] = *b"FIRNDONE";
const HEADER_BYTES: usize = 8 + 4 + 4 + 4 + 32;
const ENTRY_HEAD_BYTES: usize = 4 + 8;
const TRAILER_BYTES: usize = 32 + END_MARK.len();

/// A batch that verified.
#[derive(Debug)]
pub struct Batch {
    entries: Vec<Entry>,
    length: usize,
}

impl Batch {
    /// Its records, in order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Its records, in order, for keeping.
    #[must_use]
    pub fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    /// How many bytes of the segment it takes.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }
}

/// What does not verify, and where, counted from the segment's start.
pub(super) struct Misfit {
    pub(super) offset: usize,
    pub(super) sequence: Sequence,
    pub(super) flaw: Flaw,
}

/// How many bytes a batch takes whose records have `record_bytes` bytes together; always a whole
/// number of sectors.
#[must_use]
pub fn batch_bytes(records: usize, record_bytes: usize) -> usize {
    let heads = records.saturating_mul(ENTRY_HEAD_BYTES);
    let around = HEADER_BYTES.saturating_add(TRAILER_BYTES);
    let bytes = around.saturating_add(heads).saturating_add(record_bytes);
    bytes
        .checked_next_multiple_of(SECTOR_BYTES)
        .unwrap_or(usize::MAX)
}

/// The bytes of a batch for `offset` of `segment`. None if there are no entries, or more entries or
/// bytes than a batch can have.
#[must_use]
pub fn encode_batch(entries: &[Entry], segment: &SegmentHeader, offset: usize) -> Option<Vec<u8>> {
    if entries.is_empty() || entries.len() > MAX_BATCH_RECORDS {
        return None;
    }
    let record_bytes = entries.iter().map(|entry| entry.bytes().len()).sum();
    let length = batch_bytes(entries.len(), record_bytes);
    let mut bytes = Vec::with_capacity(length);
    bytes.resize(HEADER_BYTES, 0);
    for entry in entries {
        bytes.extend_from_slice(&u32::try_from(entry.bytes().len()).ok()?.to_be_bytes());
        bytes.extend_from_slice(entry.hash_prefix());
        bytes.extend_from_slice(entry.bytes());
    }
    bytes.resize(length.checked_sub(TRAILER_BYTES)?, 0);
    // The first sector holds the header and the last one the end mark, so only the sectors between
    // can be zeros, and they are final by now.
    let header = Header {
        length: u32::try_from(length).ok()?,
        count: u32::try_from(entries.len()).ok()?,
        zero_sectors: u32::try_from(zero_sectors(bytes.get(SECTOR_BYTES..).unwrap_or_default()))
            .ok()?,
    };
    let check = header.check(segment, offset);
    let (front, body) = bytes.split_first_chunk_mut::<HEADER_BYTES>()?;
    front.copy_from_slice(&[header.checked_part().as_slice(), &check].concat());
    let hash = tagged_hash("firn/batch", &[&check, body]);
    bytes.extend_from_slice(&hash);
    bytes.extend_from_slice(&END_MARK);
    Some(bytes)
}

/// Reads the batch at `offset`, whose records must continue the journal at `tip`, and moves the tip
/// past it; with an error the tip is worth nothing any more.
pub(super) fn read_batch(
    segment: &[u8],
    header: &SegmentHeader,
    offset: usize,
    tip: &mut Tip,
) -> Result<Batch, Misfit> {
    let misfit = |at: usize, tip: &Tip, flaw| Misfit {
        offset: at,
        sequence: tip.next_sequence(),
        flaw,
    };
    let (start, check) = Header::read(segment, header, offset)
        .ok_or_else(|| misfit(offset, tip, Flaw::BatchHeader))?;
    let batch = start
        .cut(segment, offset)
        .ok_or_else(|| misfit(offset, tip, Flaw::BatchHeader))?;
    let (covered, hash, mark) =
        parts(batch).ok_or_else(|| misfit(offset, tip, Flaw::BatchHeader))?;
    let end = |back: usize| offset.saturating_add(batch.len()).saturating_sub(back);

    let mut entries = Vec::new();
    let mut rest = covered;
    for _ in 0..start.count {
        let at = end(TRAILER_BYTES).saturating_sub(rest.len());
        let entry = read_entry(&mut rest).map_err(|flaw| misfit(at, tip, flaw))?;
        tip.advance(&entry).map_err(|flaw| misfit(at, tip, flaw))?;
        entries.push(entry);
    }
    if mark != END_MARK {
        return Err(misfit(end(END_MARK.len()), tip, Flaw::BatchEnd));
    }
    // The hash covers the padding too; that it is zeros and short keeps the encoding unique.
    let one_encoding = all_zero(rest) && rest.len() < SECTOR_BYTES;
    let counted = zero_sectors(batch) == usize::try_from(start.zero_sectors).unwrap_or(usize::MAX);
    if hash != tagged_hash("firn/batch", &[&check, covered]) || !one_encoding || !counted {
        return Err(misfit(end(TRAILER_BYTES), tip, Flaw::BatchHash));
    }
    Ok(Batch {
        entries,
        length: batch.len(),
    })
}

/// Whether an unfinished write into never-written space explains that the batch at `offset` does not
/// verify: rules 1 to 4 of the journal's description, within one segment.
pub(super) fn is_torn(segment: &[u8], header: &SegmentHeader, offset: usize) -> bool {
    let Some(rest) = segment.get(offset..) else {
        return false;
    };
    let later = (1..rest.len().div_ceil(SECTOR_BYTES))
        .map(|sectors| offset.saturating_add(sectors.saturating_mul(SECTOR_BYTES)));
    // Rule 1. A later header that verifies inside this very batch would be a forgery inside a record's
    // body; it needs the segment's check, and buys no more than a start refused for an operator to see.
    if later
        .into_iter()
        .any(|place| Header::read(segment, header, place).is_some())
    {
        return false;
    }
    match Header::read(segment, header, offset) {
        Some((start, _)) => {
            let Some(batch) = start.cut(segment, offset) else {
                return false;
            };
            let after = rest.get(batch.len()..).unwrap_or_default();
            let missing =
                usize::try_from(start.zero_sectors).is_ok_and(|own| zero_sectors(batch) > own);
            all_zero(after) && (missing || end_mark_is_cut_short(batch))
        }
        None => {
            let sector = rest.get(..SECTOR_BYTES).unwrap_or(rest);
            let written = rest
                .iter()
                .rposition(|byte| *byte != 0)
                .map_or(0, |last| last.saturating_add(1));
            let begins_like_one = rest
                .iter()
                .zip(MAGIC)
                .take(written)
                .all(|(found, own)| *found == own);
            all_zero(sector) || (written < HEADER_BYTES && begins_like_one)
        }
    }
}

struct Header {
    length: u32,
    count: u32,
    zero_sectors: u32,
}

impl Header {
    fn checked_part(&self) -> Vec<u8> {
        let numbers = [self.length, self.count, self.zero_sectors].map(u32::to_be_bytes);
        [MAGIC.as_slice(), &numbers.concat()].concat()
    }

    /// Bound to its place, so that a batch copied to another place is not one.
    fn check(&self, segment: &SegmentHeader, offset: usize) -> [u8; 32] {
        let place = (offset as u64).to_be_bytes();
        tagged_hash(
            "firn/batch-header",
            &[segment.check(), &place, &self.checked_part()],
        )
    }

    /// The header at `offset` and its check, if they verify.
    fn read(segment: &[u8], place: &SegmentHeader, offset: usize) -> Option<(Self, [u8; 32])> {
        let mut rest = segment.get(offset..)?;
        if take::<8>(&mut rest)? != MAGIC {
            return None;
        }
        let header = Self {
            length: u32::from_be_bytes(take(&mut rest)?),
            count: u32::from_be_bytes(take(&mut rest)?),
            zero_sectors: u32::from_be_bytes(take(&mut rest)?),
        };
        let check = take::<32>(&mut rest)?;
        (check == header.check(place, offset)).then_some((header, check))
    }

    /// The bytes of the whole batch, if it has a possible length.
    fn cut<'a>(&self, segment: &'a [u8], offset: usize) -> Option<&'a [u8]> {
        let length = usize::try_from(self.length).ok()?;
        let batch = segment.get(offset..)?.get(..length)?;
        let possible = !batch.is_empty() && length.is_multiple_of(SECTOR_BYTES);
        let few =
            usize::try_from(self.count).is_ok_and(|count| (1..=MAX_BATCH_RECORDS).contains(&count));
        (possible && few).then_some(batch)
    }
}

/// A batch without its header: what the hash covers, the hash, and the end mark.
fn parts(batch: &[u8]) -> Option<(&[u8], [u8; 32], [u8; END_MARK.len()])> {
    let (front, mark) = batch.split_last_chunk()?;
    let (front, hash) = front.split_last_chunk()?;
    Some((front.get(HEADER_BYTES..)?, *hash, *mark))
}

fn read_entry(rest: &mut &[u8]) -> Result<Entry, Flaw> {
    let length = take::<4>(rest)
        .map(u32::from_be_bytes)
        .ok_or(Flaw::EntryLength)?;
    let check = take::<8>(rest).ok_or(Flaw::EntryLength)?;
    let length = usize::try_from(length)
        .ok()
        .filter(|length| *length <= MAX_RECORD_BYTES);
    let (bytes, after) = length
        .and_then(|length| rest.split_at_checked(length))
        .ok_or(Flaw::EntryLength)?;
    let entry = Entry::read(bytes).map_err(Flaw::Record)?;
    if entry.hash_prefix() != check {
        return Err(Flaw::EntryCheck);
    }
    *rest = after;
    Ok(entry)
}

fn zero_sectors(bytes: &[u8]) -> usize {
    bytes
        .chunks_exact(SECTOR_BYTES)
        .filter(|sector| all_zero(sector))
        .count()
}

/// Whether the batch ends in the beginning of an end mark and then zeros.
fn end_mark_is_cut_short(batch: &[u8]) -> bool {
    let Some((_, mark)) = batch.split_last_chunk::<{ END_MARK.len() }>() else {
        return false;
    };
    let written = mark
        .iter()
        .zip(END_MARK)
        .take_while(|(found, own)| **found == *own)
        .count();
    written < END_MARK.len() && all_zero(mark.get(written..).unwrap_or_default())
}

//! The journal's bytes: how records become batches and segments, and what a reader may conclude from
//! them. It never writes, and it never repairs: it says where a journal ends and why.
//!
//! # Format
//!
//! All integers outside CBOR are big-endian. A *segment* is one preallocated file of zeros, a whole
//! number of 512-byte sectors, whose length never changes. Its first sector is the segment header
//! ([`SegmentHeader`]); *batches* follow, one after another, each a whole number of sectors, and then
//! zeros to the end.
//!
//! ```text
//! segment header   magic "FIRNJNL1" | version u32 | segment bytes u64 | number u64
//!                  | first sequence u64 | hash of the record before 32 | check 32 | zeros
//! batch            header | entry... | zeros | trailer
//!   batch header   magic "FIRNBTCH" | batch bytes u32 | entries u32 | zero sectors u32 | check 32
//!   entry          record bytes u32 | first 8 bytes of the record hash | record
//!   batch trailer  hash 32 | "FIRNDONE"
//! record           CBOR [sequence, kind, time in ms, body, hash of the record before]
//! ```
//!
//! - record hash: `firn/record` over the record's CBOR. The first record is 0 and names
//!   [`RecordHash::genesis`].
//! - segment check: `firn/segment` over what stands before it.
//! - batch header check: `firn/batch-header` over segment check, offset (u64) and what stands before it.
//! - batch hash: `firn/batch` over the header's check and everything between it and the hash.
//!
//! The Merkle leaf of a record is its CBOR (RFC 6962: `SHA256(0x00 || CBOR)`).
//!
//! # Torn or damaged
//!
//! A batch is written by one write and acknowledged only after one fdatasync, and the next batch is
//! begun only after that. A power cut can therefore leave the last batch incomplete, in space that
//! held nothing but zeros: some sectors as they were written, the rest still zero; a killed process
//! can leave a prefix of bytes. A batch never shares a sector with another, so nothing acknowledged
//! is ever written over. From this follow the rules of [`Scanner`] for a batch that does not verify:
//!
//! 1. Something follows it (a later segment, or a later batch header that verifies): it was
//!    acknowledged, so this is **damage**.
//! 2. Its header verifies, all after its end is zero, and either its end mark is cut short by zeros,
//!    or it has more all-zero sectors than its header counted when it was encoded: **torn**.
//! 3. Its header does not verify, and either the header's whole sector is zero, or the segment ends
//!    in zeros before the header does and what is there begins like one: **torn**.
//! 4. Anything else is **damage**. No single flipped bit in a complete batch is ever taken for a torn
//!    one: it neither shortens the end mark (each of its bytes has two bits or more) nor makes a
//!    sector of zeros out of one that its header's count does not include, unless that sector held
//!    one single bit.
//!
//! Zeros where a whole batch was look like a batch never written. That is why a torn tail is
//! cut only if no [`Bound`] (index, anchor, witness) knows of more records, and why the anchor and
//! the peers exist.

mod append;
mod batch;
mod bound;
mod check;
mod record;
mod scan;
mod segment;
mod source;
mod tip;

pub use append::{Appender, Write};
pub use batch::{Batch, MAX_BATCH_RECORDS, batch_bytes, encode_batch};
pub use bound::{Bound, BoundBreach, Knower};
pub use check::{Finding, Report, check, check_with};
pub use record::{
    Entry, MAX_BODY_BYTES, MAX_RECORD_BYTES, NewRecord, Record, RecordHash, RecordKind, Sequence,
};
pub use scan::{Damage, End, Flaw, Place, ScanError, Scanner};
pub use segment::{SECTOR_BYTES, SegmentBytes, SegmentHeader, SegmentNumber};
pub use source::{MemorySegments, SegmentSource};
pub use tip::{Head, Tip};

/// Takes the next `N` bytes off the front.
fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (front, back) = rest.split_first_chunk::<N>()?;
    *rest = back;
    Some(*front)
}

/// Whether there is nothing but zeros.
fn all_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

//! One record: what it holds and which bytes it is. What a kind means is decided by the rules.

use firn_protocol::{
    byte_string,
    codec::{self, Blob, Malformed},
    ids::UnixMillis,
    merkle::LeafHash,
    tagged::tagged_hash,
};
use serde::{Deserialize, Serialize};
use serde_tuple::{Deserialize_tuple, Serialize_tuple};

/// The most bytes of a record's body: a message of one MiB and what is said about it.
pub const MAX_BODY_BYTES: usize = (1 << 20) + (64 << 10);
/// The most bytes of an encoded record: the body and at most 61 bytes around it.
pub const MAX_RECORD_BYTES: usize = MAX_BODY_BYTES + 64;

byte_string!(
    /// The tagged hash of a record's CBOR, which the next record names.
    RecordHash,
    32
);

impl RecordHash {
    /// What the first record names, since none stands before it.
    #[must_use]
    pub fn genesis() -> Self {
        Self::from_bytes(tagged_hash("firn/ledger-genesis", &[]))
    }

    fn of(record: &[u8]) -> Self {
        Self::from_bytes(tagged_hash("firn/record", &[record]))
    }
}

/// A record's place in the journal, counted from 0; also the index of its Merkle leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Sequence(u64);

impl Sequence {
    /// The place of the `n`th record, from 0.
    #[must_use]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// The number.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl std::fmt::Display for Sequence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Which kind of record this is; the numbers belong to the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordKind(u16);

impl RecordKind {
    /// The kind with this number.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }
}

/// What somebody wants recorded, before it has a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecord {
    kind: RecordKind,
    body: Blob<MAX_BODY_BYTES>,
}

impl NewRecord {
    /// A record to be written.
    ///
    /// # Errors
    /// [`Malformed::TooLarge`] if the body is over [`MAX_BODY_BYTES`].
    pub fn new(kind: RecordKind, body: Vec<u8>) -> Result<Self, Malformed> {
        let body = Blob::new(body).ok_or(Malformed::TooLarge)?;
        Ok(Self { kind, body })
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> RecordKind {
        self.kind
    }

    /// Its body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        self.body.as_bytes()
    }
}

/// A record as it stands in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Record {
    sequence: Sequence,
    kind: RecordKind,
    time: UnixMillis,
    body: Blob<MAX_BODY_BYTES>,
    previous: RecordHash,
}

impl Record {
    /// Its place.
    #[must_use]
    pub const fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> RecordKind {
        self.kind
    }

    /// When it was written by the participant's own clock.
    #[must_use]
    pub const fn time(&self) -> UnixMillis {
        self.time
    }

    /// Its body, opaque here.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        self.body.as_bytes()
    }

    /// The hash of the record before it.
    #[must_use]
    pub const fn previous(&self) -> RecordHash {
        self.previous
    }
}

/// A record with its one encoding and the hashes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    record: Record,
    bytes: Vec<u8>,
    hash: RecordHash,
}

impl Entry {
    /// Gives `new` its place after `previous`.
    ///
    /// # Errors
    /// [`Malformed`] if the codec refuses the record, which its types rule out.
    pub(super) fn place(
        new: NewRecord,
        sequence: Sequence,
        time: UnixMillis,
        previous: RecordHash,
    ) -> Result<Self, Malformed> {
        let NewRecord { kind, body } = new;
        let record = Record {
            sequence,
            kind,
            time,
            body,
            previous,
        };
        let bytes = codec::encode(&record)?;
        let hash = RecordHash::of(&bytes);
        Ok(Self {
            record,
            bytes,
            hash,
        })
    }

    /// Reads a record from its bytes.
    ///
    /// # Errors
    /// [`Malformed`] unless the bytes are the one encoding of a record.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let record = codec::decode(bytes, MAX_RECORD_BYTES)?;
        Ok(Self {
            record,
            bytes: bytes.to_vec(),
            hash: RecordHash::of(bytes),
        })
    }

    /// The record.
    #[must_use]
    pub const fn record(&self) -> &Record {
        &self.record
    }

    /// The record's CBOR.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The record's hash.
    #[must_use]
    pub const fn hash(&self) -> RecordHash {
        self.hash
    }

    /// The beginning of the hash, which stands before the record in its batch.
    pub(super) fn hash_prefix(&self) -> &[u8] {
        let (prefix, _) = self.hash.as_bytes().split_at(8);
        prefix
    }

    /// The record's Merkle leaf.
    #[must_use]
    pub fn leaf(&self) -> LeafHash {
        LeafHash::of(&self.bytes)
    }
}

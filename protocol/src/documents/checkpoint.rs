//! A participant's word on how far its ledger reaches.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use crate::{
    envelope::{Document, Envelope},
    ids::UnixMillis,
    limits,
    merkle::{MerkleRoot, TreeSize},
};

/// Size and Merkle root of a ledger, of which fdatasync has returned. Only a checkpoint signed
/// with a participant's own key counts against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Checkpoint {
    /// Records.
    pub size: TreeSize,
    /// RFC 9162 root over them.
    pub root: MerkleRoot,
    /// The participant's clock.
    pub time: UnixMillis,
}

impl Document for Checkpoint {
    const KIND: &'static str = "checkpoint";
    const LIMIT: usize = limits::SMALL_DOCUMENT;
}

/// A checkpoint as it travels.
pub type SignedCheckpoint = Envelope<Checkpoint>;

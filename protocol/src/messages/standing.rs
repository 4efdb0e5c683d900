//! Where a member stands: its own head and the heads that it has witnessed of the others. Every
//! signing and ceremony conversation carries it, which is how roll-backs and clones are found out.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use crate::{
    codec::List,
    documents::SignedCheckpoint,
    envelope::Document,
    ids::{Identifier, MessageDigest, UnixMillis},
    limits,
};

/// A member's own head, and the latest it has witnessed of each other member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Standing {
    /// Its own head, of which fdatasync has returned.
    pub checkpoint: SignedCheckpoint,
    /// Others' heads, each signed by its own member, ascending by signer; stored before said.
    pub witnessed: List<SignedCheckpoint, { limits::MAX_MEMBERS }>,
    /// The member's clock.
    pub time: UnixMillis,
}

/// A member's word that it has stored something durably.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Acknowledgement {
    /// Who.
    pub member: Identifier,
    /// Digest of the document that was stored.
    pub what: MessageDigest,
    /// Where the member stands with it.
    pub standing: Standing,
}

impl Document for Acknowledgement {
    const KIND: &'static str = "acknowledgement";
    const LIMIT: usize = limits::ROSTER_DOCUMENT;
}

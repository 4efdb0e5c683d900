//! What each member signs when a ceremony has made its share: that it saw the same key made from
//! the same messages as everybody else.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use crate::{
    choice,
    codec::{List, Text},
    envelope::{Document, Verified},
    ids::{
        BuildDigest, CertificateSetDigest, GroupKey, Identifier, PlanDigest, SessionId,
        ShareVersion, TranscriptDigest, VerifyingShare,
    },
    limits,
    tagged::tagged_hash,
};

choice!(
    /// How a share is sealed on its member's disk.
    pub enum Sealing {
        /// Under a passphrase that somebody types at start.
        1 "passphrase" => Passphrase,
        /// Under a key file on the machine.
        2 "key-file" => KeyFile,
        /// Under a credential of the service manager.
        3 "credential" => Credential,
    }
);

/// One member's word on one sharing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Certificate {
    /// Whose word.
    pub member: Identifier,
    /// The plan.
    pub plan: PlanDigest,
    /// The attempt that succeeded.
    pub attempt: SessionId,
    /// Everything that was said in it.
    pub transcript: TranscriptDigest,
    /// The group key with its true parity.
    pub group_key: GroupKey,
    /// Every member's verifying share, ascending by identifier.
    pub verifying_shares: List<(Identifier, VerifyingShare), { limits::MAX_MEMBERS }>,
    /// The version of the sharing.
    pub share_version: ShareVersion,
    /// How the member keeps its share.
    pub sealing: Sealing,
    /// The member's software, as it calls itself.
    pub software: Text<{ limits::MAX_NAME }>,
    /// SHA-256 of the member's binary.
    pub build: BuildDigest,
}

impl Document for Certificate {
    const KIND: &'static str = "certificate";
    const LIMIT: usize = limits::SMALL_DOCUMENT;
}

impl Certificate {
    /// Whether two members saw the same key made from the same messages.
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        self.plan == other.plan
            && self.attempt == other.attempt
            && self.transcript == other.transcript
            && self.group_key == other.group_key
            && self.verifying_shares == other.verifying_shares
            && self.share_version == other.share_version
    }
}

/// The digest of the certificates of all members, given ascending by identifier.
#[must_use]
pub fn certificate_set_digest(certificates: &[Verified<Certificate>]) -> CertificateSetDigest {
    // Digests have one length, so their sequence has one reading.
    let digests: Vec<u8> = certificates.iter().flat_map(Verified::digest).collect();
    CertificateSetDigest::from_bytes(tagged_hash("firn/certificate-set", &[&digests]))
}

const _: () = assert!(limits::SMALL_DOCUMENT > limits::MAX_MEMBERS * 40 + 1024);

//! Between a coordinator and a member while a key is made. FROST's own messages carry no context,
//! so each is wrapped in a signed document that binds plan and attempt.
//!
//! Sealed packages are not signed one by one: their sender signs the Merkle root over all of them,
//! and each travels with its inclusion proof. So every member can bind all n(n-1) ciphertexts in
//! its certificate while it receives only its own.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::Standing;
use crate::{
    codec::{self, Blob, List, Malformed},
    documents::Certificate,
    envelope::{Document, Endorsed, Envelope},
    ids::{
        Identifier, MessageDigest, PlanDigest, Point, SealingKey, SessionId, Signature,
        TranscriptDigest,
    },
    limits,
    merkle::{LeafHash, MerkleRoot, MerkleTree},
    session::SessionHeader,
    tagged::tagged_hash,
};

/// Opens an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct DkgOpen {
    /// The attempt, by the coordinator's word; its session id is the attempt's name.
    pub header: Envelope<SessionHeader>,
    /// The [`crate::documents::Plan`].
    pub plan: Endorsed,
}

/// A member's round one: FROST's commitment and proof, and a sealing key for each sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct DkgRound1 {
    /// The attempt.
    pub attempt: SessionId,
    /// The plan.
    pub plan: PlanDigest,
    /// Who.
    pub member: Identifier,
    /// Exactly t coefficient commitments.
    pub commitment: List<Point, { limits::MAX_THRESHOLD }>,
    /// FROST's proof of knowledge of the constant term.
    pub proof: Signature,
    /// One for each other member as a sender, ascending; made for this attempt only.
    pub sealing_keys: List<(Identifier, SealingKey), { limits::MAX_MEMBERS }>,
    /// Where the member stands.
    pub standing: Standing,
}

impl Document for DkgRound1 {
    const KIND: &'static str = "dkg-round1";
    const LIMIT: usize = limits::ROSTER_DOCUMENT;
}

/// Everybody's round one, ascending by identifier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct DkgRound1Set {
    /// Exactly one of each member.
    pub messages: List<Envelope<DkgRound1>, { limits::MAX_MEMBERS }>,
}

/// FROST's round two package for one recipient, sealed with HPKE (RFC 9180).
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct SealedPackage {
    /// For whom.
    pub recipient: Identifier,
    /// The encapsulated key.
    pub encapsulated: SealingKey,
    /// A 32-byte share and the 16-byte tag of AES-256-GCM.
    pub ciphertext: Blob<64>,
}

/// What a member signs about its round two: what it answers, and all that it sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct DkgManifest {
    /// The attempt.
    pub attempt: SessionId,
    /// Who.
    pub member: Identifier,
    /// Digests of everybody's round one, as this member saw them, ascending.
    pub round1: List<MessageDigest, { limits::MAX_MEMBERS }>,
    /// Root over the sealed packages, ascending by recipient, see [`package_leaf`].
    pub packages: MerkleRoot,
}

impl Document for DkgManifest {
    const KIND: &'static str = "dkg-manifest";
    const LIMIT: usize = limits::SMALL_DOCUMENT;
}

/// A member's round two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct DkgRound2 {
    /// What it signs.
    pub manifest: Envelope<DkgManifest>,
    /// What it sealed, ascending by recipient.
    pub packages: List<SealedPackage, { limits::MAX_MEMBERS }>,
}

/// An RFC 9162 inclusion proof in a tree of at most [`limits::MAX_MEMBERS`] leaves.
pub type InclusionPath = List<MessageDigest, 5>;

/// A sealed package and the proof that its sender signed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct ProvenPackage {
    /// Who sealed it.
    pub sender: Identifier,
    /// What.
    pub package: SealedPackage,
    /// Proof in the sender's manifest.
    pub path: InclusionPath,
}

/// Everybody's manifest, and everything that is sealed to one member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Delivery {
    /// Exactly one of each member, ascending.
    pub manifests: List<Envelope<DkgManifest>, { limits::MAX_MEMBERS }>,
    /// Exactly one of each other member, ascending.
    pub packages: List<ProvenPackage, { limits::MAX_MEMBERS }>,
}

/// Everybody's certificate, ascending by identifier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct CertificateSet {
    /// Exactly one of each member.
    pub certificates: List<Envelope<Certificate>, { limits::MAX_MEMBERS }>,
}

/// The private half of a sealing key. Published only in a [`Complaint`], which ends its attempt.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct SealingSecret([u8; 32]);

impl SealingSecret {
    /// Wraps the bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Debug for SealingSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealingSecret")
    }
}

impl serde::Serialize for SealingSecret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for SealingSecret {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = Blob::<32>::deserialize(deserializer)?;
        <[u8; 32]>::try_from(bytes.as_bytes())
            .map(Self)
            .map_err(|_| serde::de::Error::custom("secret of another length"))
    }
}

/// A member's proof that another dealt it a bad share: the key that opens the sealed package, for
/// anybody to look. It opens that one package and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Complaint {
    /// The attempt.
    pub attempt: SessionId,
    /// Who complains.
    pub member: Identifier,
    /// The sealed package with its sender and its proof.
    pub package: ProvenPackage,
    /// What opens it.
    pub secret: SealingSecret,
}

impl Document for Complaint {
    const KIND: &'static str = "complaint";
    const LIMIT: usize = limits::SMALL_DOCUMENT;
}

/// Opens a proof of life: the fresh sharing signs a challenge that every member computes itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct ProofOpen {
    /// The session, by the coordinator's word.
    pub header: Envelope<SessionHeader>,
}

/// The bytes of a sealed package as a leaf of its sender's tree.
///
/// # Errors
/// Never for values that were decoded.
pub fn package_leaf(package: &SealedPackage) -> Result<Vec<u8>, Malformed> {
    codec::encode(package)
}

/// The tree over a sender's sealed packages, ascending by recipient: its root goes into the
/// manifest, its inclusion proofs with the packages.
///
/// # Errors
/// Never for values that were decoded.
pub fn package_tree(packages: &[SealedPackage]) -> Result<MerkleTree, Malformed> {
    let leaves = packages
        .iter()
        .map(|package| Ok(LeafHash::of(&package_leaf(package)?)))
        .collect::<Result<Vec<_>, Malformed>>()?;
    Ok(MerkleTree::from_leaves(&leaves))
}

/// The digest over everything that was said in an attempt: plan, attempt, round one and manifests,
/// the last two ascending by identifier.
///
/// # Errors
/// Never for values that were decoded.
pub fn transcript_digest(
    plan: PlanDigest,
    attempt: SessionId,
    round1: &[MessageDigest],
    manifests: &[MessageDigest],
) -> Result<TranscriptDigest, Malformed> {
    let bytes = codec::encode(&(plan, attempt, round1, manifests))?;
    Ok(TranscriptDigest::from_bytes(tagged_hash(
        "firn/transcript",
        &[&bytes],
    )))
}

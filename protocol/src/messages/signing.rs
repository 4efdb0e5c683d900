//! Between a coordinator and a member: opening, commitments, package, shares, final, receipt; and
//! the sums that name every message either of them may send on a stream.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use super::{
    Acknowledgement, CertificateSet, Complaint, Deliver, Delivery, DkgOpen, DkgRound1,
    DkgRound1Set, DkgRound2, MemberStatus, News, OutcomeQuery, OutcomeStatement, ProofOpen,
    Standing, StatusQuery,
};
use crate::{
    codec::{self, Blob, List, Malformed, Maybe},
    documents::{Certificate, Grant, InputSignature, Intent, Policy, Receipt, SignedCheckpoint},
    envelope::{Document, Endorsed, Envelope},
    ids::{
        Identifier, KeyId, MessageDigest, Nonce, PackageDigest, Point, RequestId, SessionId,
        SignatureShare, UnixMillis,
    },
    limits,
    reject::Reject,
    session::SessionHeader,
    sum,
    tagged::tagged_hash,
};

/// Opens a signing session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct SignOpen {
    /// The session, by the coordinator's word.
    pub header: Envelope<SessionHeader>,
    /// What is to be signed, by the requester's word.
    pub intent: Envelope<Intent>,
    /// The control plane's permission.
    pub grant: Envelope<Grant>,
    /// Signed approvals.
    pub approvals: List<Blob<{ limits::SMALL_DOCUMENT }>, { limits::MAX_APPROVALS }>,
}

/// Commitments to one input's nonce pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Commitment {
    /// To the hiding nonce.
    pub hiding: Point,
    /// To the binding nonce.
    pub binding: Point,
}

/// A member's commitments, its standing and its news. Signed by the member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Commitments {
    /// The session.
    pub session: SessionId,
    /// Who.
    pub member: Identifier,
    /// One for each own input, ascending by input.
    pub inputs: List<Commitment, { limits::MAX_SESSION_INPUTS }>,
    /// Where the member stands.
    pub standing: Standing,
    /// What the others may not know yet.
    pub news: News,
}

impl Document for Commitments {
    const KIND: &'static str = "commitments";
    const LIMIT: usize = limits::MAX_COMMITMENTS;
}

/// What the coordinator signs about a package: one digest for each input's ordered list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct PackageBody {
    /// The session.
    pub session: SessionId,
    /// See [`input_digest`]; ascending by input.
    pub inputs: List<MessageDigest, { limits::MAX_SESSION_INPUTS }>,
}

impl Document for PackageBody {
    const KIND: &'static str = "package";
    const LIMIT: usize = limits::MAX_SHARES;
}

/// All commitments of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Package {
    /// The coordinator's word on the lists.
    pub body: Envelope<PackageBody>,
    /// The members' own words, ascending by identifier.
    pub commitments: List<Envelope<Commitments>, { limits::MAX_THRESHOLD }>,
}

/// A member's signature shares. Signed by the member, for one package and no other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct ShareList {
    /// The session.
    pub session: SessionId,
    /// Who.
    pub member: Identifier,
    /// Digest of the [`PackageBody`] that the shares are for.
    pub package: PackageDigest,
    /// One for each own input, ascending by input.
    pub shares: List<SignatureShare, { limits::MAX_SESSION_INPUTS }>,
    /// Its head, which covers the record of the release.
    pub checkpoint: SignedCheckpoint,
}

impl Document for ShareList {
    const KIND: &'static str = "shares";
    const LIMIT: usize = limits::MAX_SHARES;
}

/// The result, which every member verifies against the group key before it believes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Final {
    /// The session.
    pub session: SessionId,
    /// One signature for each own input, ascending by input.
    pub signatures: List<InputSignature, { limits::MAX_SESSION_INPUTS }>,
}

/// A member's signed no.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Refusal {
    /// Digest of the message that was refused, see [`message_digest`].
    pub about: MessageDigest,
    /// The session, where it is known.
    pub session: Maybe<SessionId>,
    /// The request, where it is known.
    pub request_id: Maybe<RequestId>,
    /// Why.
    pub code: Reject,
    /// The member that is at fault, where one is.
    pub culprit: Maybe<Identifier>,
    /// Whether and when to try again; none where trying again is useless.
    pub retry_after_ms: Maybe<u32>,
    /// The member's clock.
    pub time: UnixMillis,
}

impl Document for Refusal {
    const KIND: &'static str = "refusal";
    const LIMIT: usize = limits::SMALL_DOCUMENT;
}

/// Asks for the documents of a key. Signed by whoever asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct KeyQuery {
    /// The key.
    pub key_id: KeyId,
    /// Random, so that an old answer is of no use.
    pub nonce: Nonce,
}

impl Document for KeyQuery {
    const KIND: &'static str = "key-query";
    const LIMIT: usize = limits::SMALL_DOCUMENT;
}

/// Everything that says what a key is, for whoever has the Authorities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct KeyDocuments {
    /// The [`crate::documents::Plan`] that made the sharing.
    pub plan: Endorsed,
    /// The members' certificates, ascending by identifier.
    pub certificates: List<Envelope<Certificate>, { limits::MAX_MEMBERS }>,
    /// The policy.
    pub policy: Envelope<Policy>,
    /// The [`crate::documents::Activation`].
    pub activation: Endorsed,
}

sum!(
    /// What a coordinator may say to a member.
    pub enum ToMember {
        /// Opens a signing session.
        1 => SignOpen(SignOpen),
        /// All commitments.
        2 => Package(Package),
        /// The result.
        3 => Final(Final),
        /// Asks what a key is.
        4 => KeyQuery(Envelope<KeyQuery>),
        /// Hands over documents that make a sharing usable.
        5 => Deliver(Deliver),
        /// A requester asks what became of a request.
        6 => OutcomeQuery(Envelope<OutcomeQuery>),
        /// An operator asks how this member is.
        7 => StatusQuery(Envelope<StatusQuery>),
        /// Opens an attempt of a DKG.
        10 => DkgOpen(DkgOpen),
        /// Everybody's round one.
        11 => DkgRound1Set(DkgRound1Set),
        /// Everybody's manifest, and what is sealed to this member.
        12 => Delivery(Delivery),
        /// Everybody's certificate.
        13 => CertificateSet(CertificateSet),
        /// Opens a proof of life.
        14 => ProofOpen(ProofOpen),
    }
);

sum!(
    /// What a member may say to a coordinator.
    pub enum FromMember {
        /// Its commitments.
        1 => Commitments(Envelope<Commitments>),
        /// Its shares.
        2 => Shares(Envelope<ShareList>),
        /// Its receipt.
        3 => Receipt(Envelope<Receipt>),
        /// Its no.
        4 => Refusal(Envelope<Refusal>),
        /// What a key is.
        5 => KeyDocuments(KeyDocuments),
        /// That it has stored something.
        6 => Acknowledgement(Envelope<Acknowledgement>),
        /// What became of a request.
        7 => Outcome(Envelope<OutcomeStatement>),
        /// How it is.
        8 => Status(Envelope<MemberStatus>),
        /// Its round one.
        10 => DkgRound1(Envelope<DkgRound1>),
        /// Its round two.
        11 => DkgRound2(DkgRound2),
        /// Its certificate.
        12 => Certificate(Envelope<Certificate>),
        /// Its complaint about another member.
        13 => Complaint(Envelope<Complaint>),
    }
);

/// The digest that stands for one input's ordered list of commitments.
///
/// # Errors
/// Never for values that were decoded.
pub fn input_digest(list: &[(Identifier, Commitment)]) -> Result<MessageDigest, Malformed> {
    let bytes = codec::encode(list)?;
    Ok(MessageDigest::from_bytes(tagged_hash(
        "firn/commitment-list",
        &[&bytes],
    )))
}

/// The digest that stands for a message as it was received, decoded or not.
#[must_use]
pub fn message_digest(bytes: &[u8]) -> MessageDigest {
    MessageDigest::from_bytes(tagged_hash("firn/message", &[bytes]))
}

//! Between the operator's tool and a coordinator: running a ceremony, delivering documents, asking
//! who is there.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use super::{
    Acknowledgement, Commitments, Delivery, DkgManifest, DkgRound1, KeyDocuments, KeyQuery,
    PackageBody, ShareList, StatusQuery, StatusReport,
};
use crate::{
    codec::{List, Maybe, Text},
    documents::{Certificate, InputSignature},
    envelope::{Document, Endorsed, Envelope},
    ids::{CeremonyId, Identifier, Nonce, UnixMillis},
    limits,
    names::SpiffeId,
    reject::Reject,
    session::SessionHeader,
    sum,
};

/// Runs a ceremony.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct RunCeremony {
    /// The [`crate::documents::Plan`].
    pub plan: Endorsed,
}

/// Documents that make a sharing usable, for every member of its roster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Deliver {
    /// The documents.
    pub documents: KeyDocuments,
}

/// Asks who is connected. Signed by the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct PresenceQuery {
    /// Random.
    pub nonce: Nonce,
}

impl Document for PresenceQuery {
    const KIND: &'static str = "presence-query";
    const LIMIT: usize = limits::SMALL_DOCUMENT;
}

sum!(
    /// What the operator's tool may ask a coordinator.
    pub enum ToCeremony {
        /// Run a ceremony.
        1 => Run(RunCeremony),
        /// Deliver documents.
        2 => Deliver(Deliver),
        /// Who is there?
        3 => Presence(Envelope<PresenceQuery>),
        /// How is everybody?
        4 => Status(Envelope<StatusQuery>),
        /// What is a key? Signed by the operator.
        5 => Key(Envelope<KeyQuery>),
    }
);

/// How far a ceremony has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Progress {
    /// The step, in a word that people know.
    pub step: Text<{ limits::MAX_NAME }>,
    /// Members that have done it.
    pub done: u16,
    /// Members that must.
    pub of: u16,
}

/// The evidence of one proof of life: a signature alone would not tell new shares from old.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct ProofRecord {
    /// The session.
    pub header: Envelope<SessionHeader>,
    /// The members' commitments.
    pub commitments: List<Envelope<Commitments>, { limits::MAX_THRESHOLD }>,
    /// The coordinator's word on their lists.
    pub package: Envelope<PackageBody>,
    /// The members' shares.
    pub shares: List<Envelope<ShareList>, { limits::MAX_THRESHOLD }>,
    /// The signature.
    pub signature: InputSignature,
}

/// The evidence of a DKG that succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct CeremonyRecord {
    /// The attempt.
    pub header: Envelope<SessionHeader>,
    /// Everybody's round one.
    pub round1: List<Envelope<DkgRound1>, { limits::MAX_MEMBERS }>,
    /// Everybody's manifest.
    pub manifests: List<Envelope<DkgManifest>, { limits::MAX_MEMBERS }>,
    /// What each member was delivered, ascending by recipient.
    pub deliveries: List<Delivery, { limits::MAX_MEMBERS }>,
    /// Everybody's certificate.
    pub certificates: List<Envelope<Certificate>, { limits::MAX_MEMBERS }>,
    /// Proofs of life.
    pub proofs: List<ProofRecord, 64>,
}

/// Why a ceremony failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct CeremonyFailed {
    /// Why.
    pub code: Reject,
    /// The member at fault, where one is.
    pub culprit: Maybe<Identifier>,
    /// The step that it failed in.
    pub step: Text<{ limits::MAX_NAME }>,
}

/// Who has stored the delivered documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct ActivationResult {
    /// Signed words of those who have.
    pub acknowledgements: List<Envelope<Acknowledgement>, { limits::MAX_MEMBERS }>,
    /// Those who have not, and why.
    pub missing: List<(Identifier, Reject), { limits::MAX_MEMBERS }>,
}

/// One member's connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct MemberPresence {
    /// The member.
    pub id: SpiffeId,
    /// Its software.
    pub software: Text<{ limits::MAX_NAME }>,
    /// Since when it has been connected.
    pub since: UnixMillis,
}

/// Who is connected, ascending by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Presence {
    /// The members.
    pub members: List<MemberPresence, { limits::MAX_REPORTED }>,
    /// Ceremonies that are running.
    pub ceremonies: List<CeremonyId, 16>,
}

sum!(
    /// What a coordinator may answer the operator's tool.
    pub enum FromCeremony {
        /// It goes on.
        1 => Progress(Progress),
        /// It has succeeded.
        2 => Certified(CeremonyRecord),
        /// It has failed.
        3 => Failed(CeremonyFailed),
        /// What came of a delivery.
        4 => Delivered(ActivationResult),
        /// Who is there.
        5 => Presence(Presence),
        /// How everybody is.
        6 => Status(StatusReport),
        /// What a key is.
        7 => Key(KeyDocuments),
    }
);

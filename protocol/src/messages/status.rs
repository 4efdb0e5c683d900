//! How each member is, by its own signed word: what an operator looks at before and after everything.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use crate::{
    choice,
    codec::{List, Maybe, Text},
    documents::SignedCheckpoint,
    envelope::{Document, Envelope},
    ids::{
        ActivationDigest, AuthoritiesDigest, BuildDigest, Epoch, KeyId, Nonce, PlanDigest,
        PolicyVersion, ShareVersion, UnixMillis,
    },
    limits,
    names::SpiffeId,
    reject::Reject,
};

/// Plans that one member announces as accepted.
pub const MAX_ACCEPTED: usize = 64;

choice!(
    /// How far a share has come.
    pub enum ShareStage {
        /// Sealed; other members' certificates are missing.
        1 "pending" => Pending,
        /// All certificates agree; proofs of life may be made.
        2 "certified" => Certified,
        /// Usable.
        3 "active" => Active,
    }
);

/// Asks every member how it is. Signed by an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct StatusQuery {
    /// Random, so that an old answer is of no use.
    pub nonce: Nonce,
    /// The operator's clock.
    pub time: UnixMillis,
}

impl Document for StatusQuery {
    const KIND: &'static str = "status-query";
    const LIMIT: usize = limits::SMALL_DOCUMENT;
}

/// One key, as one member has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct KeyStatus {
    /// The key.
    pub key_id: KeyId,
    /// The version of the member's share.
    pub share_version: ShareVersion,
    /// How far the share has come.
    pub stage: ShareStage,
    /// What made it usable.
    pub activation: Maybe<ActivationDigest>,
    /// The policy in force.
    pub policy_version: Maybe<PolicyVersion>,
    /// The highest epoch.
    pub epoch: Maybe<Epoch>,
    /// Who holds it; none before anybody has shown a grant.
    pub owner: Maybe<SpiffeId>,
}

/// One member's word on how it is. Signed by the member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct MemberStatus {
    /// The nonce of the query.
    pub nonce: Nonce,
    /// Who.
    pub name: SpiffeId,
    /// The software, as it calls itself.
    pub software: Text<{ limits::MAX_NAME }>,
    /// SHA-256 of the binary.
    pub build: BuildDigest,
    /// The Authorities that count for it.
    pub authorities: AuthoritiesDigest,
    /// Its head.
    pub checkpoint: SignedCheckpoint,
    /// Why it would sign nothing now; none where it would.
    pub stopped: Maybe<Reject>,
    /// When its TLS certificate ends.
    pub certificate_expires: UnixMillis,
    /// Plans that its operator has accepted and that have not made a key yet, ascending.
    pub accepted: List<PlanDigest, MAX_ACCEPTED>,
    /// Its keys, ascending by key id.
    pub keys: List<KeyStatus, { limits::MAX_KEYS }>,
    /// The member's clock.
    pub time: UnixMillis,
}

impl Document for MemberStatus {
    const KIND: &'static str = "status";
    const LIMIT: usize = limits::ROSTER_DOCUMENT;
}

/// What a coordinator knows of one member, and the member's own word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct MemberReport {
    /// Who, by the name in its certificate.
    pub id: SpiffeId,
    /// Since when it has been connected; none where it is not.
    pub connected: Maybe<UnixMillis>,
    /// When it was last connected, where it is not.
    pub last_seen: Maybe<UnixMillis>,
    /// Its own word; none where it gave none in time.
    pub status: Maybe<Envelope<MemberStatus>>,
}

/// Everybody that a coordinator has seen since it started, ascending by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct StatusReport {
    /// The coordinator.
    pub coordinator: SpiffeId,
    /// Its software, as it calls itself.
    pub software: Text<{ limits::MAX_NAME }>,
    /// Since when it has been running.
    pub since: UnixMillis,
    /// The members.
    pub members: List<MemberReport, { limits::MAX_REPORTED }>,
}

// A member with every key and plan that it may announce fits its document.
const _: () = assert!(
    MemberStatus::LIMIT > limits::MAX_KEYS * 600 + MAX_ACCEPTED * 34 + limits::SMALL_DOCUMENT
);
const _: () = assert!(
    limits::MAX_FRAME
        > limits::MAX_REPORTED * (limits::SMALL_DOCUMENT + limits::ENVELOPE_OVERHEAD)
);

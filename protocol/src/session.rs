//! What one attempt of one session binds, and the id that follows from it. Every member computes
//! the id itself; nobody is told.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use crate::{
    codec::List,
    envelope::{Document, Verified},
    ids::{
        ActivationDigest, CeremonyId, Epoch, Flow, Identifier, IntentDigest, KeyId, Nonce,
        PlanDigest, PolicyDigest, RequestId, RulesDigest, SessionId, ShareVersion,
    },
    limits,
    names::SpiffeId,
    sum,
};

/// A session that signs a requester's intent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct RequestSubject {
    /// The activation that it counts under.
    pub activation: ActivationDigest,
    /// The request.
    pub request_id: RequestId,
    /// What is signed.
    pub intent: IntentDigest,
    /// The policy that it is judged by.
    pub policy: PolicyDigest,
}

/// A session of a ceremony.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct CeremonySubject {
    /// The plan.
    pub plan: PlanDigest,
    /// The ceremony that the plan names.
    pub ceremony_id: CeremonyId,
    /// The rules that the plan binds.
    pub rules: RulesDigest,
}

sum!(
    /// On whose authority a session stands.
    pub enum Subject {
        /// A grant under an activation.
        1 => Request(RequestSubject),
        /// A plan.
        2 => Ceremony(CeremonySubject),
    }
);

/// Everything that a session binds. Signed by the coordinator that opens it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct SessionHeader {
    /// What the session is for.
    pub flow: Flow,
    /// On whose authority.
    pub subject: Subject,
    /// The key.
    pub key_id: KeyId,
    /// Its sharing.
    pub share_version: ShareVersion,
    /// The owner's epoch; for a ceremony, the epoch that its plan names.
    pub epoch: Epoch,
    /// Who carries.
    pub coordinator: SpiffeId,
    /// Random bytes of the coordinator.
    pub nonce: Nonce,
    /// Who takes part, ascending: exactly t for a signature, everybody for a DKG.
    pub members: List<Identifier, { limits::MAX_MEMBERS }>,
}

impl Document for SessionHeader {
    const KIND: &'static str = "session";
    const LIMIT: usize = limits::SMALL_DOCUMENT;
}

impl SessionHeader {
    /// Whether the members are in ascending order, none of them twice.
    #[must_use]
    pub fn members_ascend(&self) -> bool {
        self.members
            .array_windows()
            .all(|[left, right]| left < right)
    }
}

impl Verified<SessionHeader> {
    /// The session's id: the digest of its header.
    #[must_use]
    pub fn session_id(&self) -> SessionId {
        SessionId::from_bytes(self.digest())
    }
}

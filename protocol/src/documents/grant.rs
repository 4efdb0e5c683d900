//! The control plane's short-lived permission for one request.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use crate::{
    envelope::Document,
    ids::{
        ActivationDigest, Epoch, IntentDigest, KeyId, PolicyDigest, PolicyVersion, RequestId,
        RevocationVersion, UnixMillis,
    },
    limits,
    names::SpiffeId,
};

/// Lets one owner ask for one intent once, for a short while. Signed by the grant authority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Grant {
    /// The key.
    pub key_id: KeyId,
    /// The activation that it counts under.
    pub activation: ActivationDigest,
    /// Who may ask: the requester that signs the intent.
    pub owner: SpiffeId,
    /// The owner's epoch; a participant that has seen a higher one refuses.
    pub epoch: Epoch,
    /// A member that knows only older policies refuses and fetches.
    pub least_policy_version: PolicyVersion,
    /// A member that knows only older revocations refuses and fetches.
    pub least_revocation_version: RevocationVersion,
    /// The policy that the control plane meant.
    pub policy: PolicyDigest,
    /// What may be signed.
    pub intent: IntentDigest,
    /// Under which request.
    pub request_id: RequestId,
    /// Not before this time.
    pub not_before: UnixMillis,
    /// Not at or after this time.
    pub expires: UnixMillis,
}

impl Document for Grant {
    const KIND: &'static str = "grant";
    const LIMIT: usize = limits::SMALL_DOCUMENT;
}

//! The operators' word that a sharing may be used, under which policy and from which epoch.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use crate::{
    codec::{Blob, List},
    envelope::Document,
    ids::{
        AuthoritiesDigest, CertificateSetDigest, Epoch, KeyId, PolicyDigest, PolicyVersion,
        ShareVersion,
    },
    limits,
};

/// Makes a sharing usable. Endorsed by the operators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Activation {
    /// The key.
    pub key_id: KeyId,
    /// The sharing.
    pub share_version: ShareVersion,
    /// The certificates of all its members.
    pub certificates: CertificateSetDigest,
    /// The policy that it starts with.
    pub policy: PolicyDigest,
    /// That policy's version.
    pub policy_version: PolicyVersion,
    /// The keys that count.
    pub authorities: AuthoritiesDigest,
    /// Below this epoch nothing is signed.
    pub first_epoch: Epoch,
    /// For a reshare: the signed receipts of the old members that they are frozen.
    pub freeze_receipts: List<Blob<1024>, { limits::MAX_MEMBERS }>,
}

impl Document for Activation {
    const KIND: &'static str = "activation";
    const LIMIT: usize = limits::ROSTER_DOCUMENT;
}

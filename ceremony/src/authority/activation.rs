//! The operators' word that a certified sharing may be used. It decides that the parts belong together
//! before anybody signs.

use firn_protocol::{
    codec::List,
    documents::{Activation, Ceremony, Policy},
    envelope::{Endorsed, Envelope, Verified},
    ids::{AuthoritiesDigest, Epoch, PolicyDigest},
    messages::KeyDocuments,
    sharing::CertifiedSharing,
};

use crate::error::Error;

/// The activation of a sharing that a DKG has made, under its policy.
#[must_use]
pub fn activation(
    sharing: &CertifiedSharing,
    policy: &Verified<Policy>,
    authorities: AuthoritiesDigest,
) -> Activation {
    let first_epoch = match &sharing.plan().ceremony {
        Ceremony::Dkg(terms) => terms.first_epoch,
        Ceremony::Reshare(terms) => terms.epoch,
        // A retirement makes nothing that could be activated; the highest epoch opens nothing.
        Ceremony::Retire(_) => Epoch::new(u64::MAX),
    };
    Activation {
        key_id: sharing.key_id(),
        share_version: sharing.share_version(),
        certificates: sharing.set_digest(),
        policy: PolicyDigest::from_bytes(policy.digest()),
        policy_version: policy.version,
        authorities,
        first_epoch,
        freeze_receipts: List::empty(),
    }
}

/// Everything that says what a key is, for delivery.
///
/// # Errors
/// Never for a sharing that was certified.
pub fn key_documents(
    sharing: &CertifiedSharing,
    policy: Envelope<Policy>,
    activation: Endorsed,
) -> Result<KeyDocuments, Error> {
    let set = sharing
        .certificate_set()
        .map_err(Error::unverified("the certificates"))?;
    Ok(KeyDocuments {
        plan: sharing.plan().endorsed().clone(),
        certificates: set.certificates,
        policy,
        activation,
    })
}

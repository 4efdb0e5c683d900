//! What one request needs: the requester's intent and the control plane's grant for exactly that. It
//! decides nothing about the payment; the digest that is granted is computed, never received.

use firn_protocol::{
    bitcoin::Network,
    codec::Blob,
    documents::{Content, Grant, Intent},
    envelope::Envelope,
    ids::{Epoch, IntentDigest, KeyId, RequestId, RevocationVersion, UnixMillis},
    keys::IdentitySecret,
    limits,
    names::SpiffeId,
    sharing::ActiveSharing,
};

use crate::error::Error;

/// What the control plane decides about one request.
#[derive(Debug, Clone)]
pub struct GrantTerms {
    /// Who may ask.
    pub owner: SpiffeId,
    /// The owner's epoch.
    pub epoch: Epoch,
    /// What may be signed.
    pub intent: IntentDigest,
    /// Under which request.
    pub request_id: RequestId,
    /// Not before this time.
    pub not_before: UnixMillis,
    /// Not at or after this time.
    pub expires: UnixMillis,
}

/// An intent to have a PSBT signed, by the requester's word.
///
/// # Errors
/// [`Error::Usage`] for a PSBT that is too large.
pub fn intent(
    network: Network,
    key_id: KeyId,
    psbt: &[u8],
    requester: &IdentitySecret,
) -> Result<Envelope<Intent>, Error> {
    let psbt = Blob::new(psbt.to_vec()).ok_or_else(|| Error::Usage {
        what: format!("a PSBT has at most {} bytes", limits::MAX_PSBT),
    })?;
    let intent = Intent {
        network,
        key_id,
        content: Content::Psbt(psbt),
    };
    Ok(Envelope::sign(&intent, requester)?)
}

/// A grant under a key's present activation and policy, signed.
///
/// # Errors
/// [`Error::Document`].
pub fn grant(
    terms: GrantTerms,
    sharing: &ActiveSharing,
    authority: &IdentitySecret,
) -> Result<Envelope<Grant>, Error> {
    let grant = Grant {
        key_id: sharing.certified().key_id(),
        activation: sharing.activation_digest(),
        owner: terms.owner,
        epoch: terms.epoch,
        least_policy_version: sharing.policy().version,
        least_revocation_version: RevocationVersion::new(0),
        policy: sharing.policy_digest(),
        intent: terms.intent,
        request_id: terms.request_id,
        not_before: terms.not_before,
        expires: terms.expires,
    };
    Ok(Envelope::sign(&grant, authority)?)
}

//! The keys that this participant holds shares of, loaded from ledger, documents and vault, each
//! checked against the others.

use std::sync::Arc;

use firn_ledger::rules::{KeyState, ShareStage, StateError, View};
use firn_protocol::{
    envelope::Endorsed,
    ids::{Identifier, KeyId, MessageDigest},
    messages::{CertificateSet, KeyDocuments},
    reject::Reject,
    sharing::{ActiveSharing, CertifiedSharing, verify_plan},
    threshold::SigningShare,
};

use super::{Host, Service, ServiceError};
use crate::session::KeyInUse;

/// A key and this participant's share of it.
pub(super) struct LoadedKey {
    /// Plan and certificates.
    pub(super) certified: CertifiedSharing,
    /// This participant's place.
    pub(super) member: Identifier,
    /// Everything, once it is activated.
    pub(super) active: Option<Arc<KeyInUse>>,
    /// What it signs with.
    pub(super) share: SigningShare,
    /// What it gives whoever asks what the key is.
    pub(super) documents: Option<KeyDocuments>,
}

/// A key that is in use, for as long as a session needs it.
pub(super) struct InUse(pub(super) Arc<LoadedKey>, Arc<KeyInUse>);

impl AsRef<KeyInUse> for InUse {
    fn as_ref(&self) -> &KeyInUse {
        &self.1
    }
}

impl<H: Host> Service<H> {
    /// Loads every key of the ledger. A key whose documents or share do not open is a reason not to
    /// start: it would be a key that silently cannot sign.
    pub(super) async fn load_keys(&self) -> Result<(), ServiceError> {
        let (keys, heads) = self
            .look(|view| {
                let view = View(view.state());
                Ok::<_, StateError>((view.keys()?, view.all_witnessed()?))
            })
            .await?
            .map_err(|_| ServiceError::LedgerStopped)?;
        self.remember(heads);
        for (key_id, state) in keys {
            if state.stage == ShareStage::Pending {
                tracing::warn!(%key_id, "a share waits for the other members' certificates");
                continue;
            }
            self.load_key(key_id, &state).map_err(|error| match error {
                LoadError::Local(error) => error,
                LoadError::Code(code) => ServiceError::KeyDocuments {
                    key: key_id.to_string(),
                    code,
                },
            })?;
        }
        Ok(())
    }

    fn load_key(&self, key_id: KeyId, state: &KeyState) -> Result<(), LoadError> {
        if let Some(active) = &state.active.0 {
            let documents = self.documents.key_documents(active.activation)?;
            let documents = documents.ok_or(Reject::ActivationMismatch)?;
            // A crash may have come between the record and the rename.
            self.vault
                .promote(key_id, state.share_version, state.attempt)?;
            return self.use_key(&documents).map(|_| ());
        }
        let plan = self
            .documents
            .plan(state.plan)?
            .ok_or(Reject::PlanNotAccepted)?;
        let digest = state.certificates.0.ok_or(Reject::CertificateMismatch)?;
        let set = self
            .documents
            .certificate_set(digest)?
            .ok_or(Reject::CertificateMismatch)?;
        let certified = self.certify(plan, &set)?;
        self.hold_certified(certified)
    }

    /// Verifies a plan and its certificates.
    pub(super) fn certify(
        &self,
        plan: Endorsed,
        set: &CertificateSet,
    ) -> Result<CertifiedSharing, Reject> {
        let plan = verify_plan(plan, &self.authorities, self.authorities_digest)?;
        CertifiedSharing::verify(plan, &set.certificates)
    }

    /// Holds a sharing that is certified and not active: proofs of life may be made with it.
    pub(super) fn hold_certified(&self, certified: CertifiedSharing) -> Result<(), LoadError> {
        let member = self.place(&certified)?;
        let attempt = certified.attempt()?;
        let opened =
            self.vault
                .load_pending(certified.key_id(), certified.share_version(), attempt)?;
        let share = SigningShare::from_bytes(member, &opened.share, certified.public())
            .map_err(|_| Reject::ShareUnavailable)?;
        let key_id = certified.key_id();
        let key = LoadedKey {
            certified,
            member,
            active: None,
            share,
            documents: None,
        };
        self.keys().insert(key_id, Arc::new(key));
        Ok(())
    }

    /// Uses a sharing that is active and promoted.
    pub(super) fn use_key(&self, documents: &KeyDocuments) -> Result<MessageDigest, LoadError> {
        let sharing = ActiveSharing::verify(documents, &self.authorities, self.authorities_digest)?;
        let certified = sharing.certified().clone();
        let member = self.place(&certified)?;
        let opened = self
            .vault
            .load_active(certified.key_id(), certified.share_version())?;
        let share = SigningShare::from_bytes(member, &opened.share, certified.public())
            .map_err(|_| Reject::ShareUnavailable)?;
        let digest = MessageDigest::from_bytes(*sharing.activation_digest().as_bytes());
        let key = LoadedKey {
            member,
            active: Some(Arc::new(KeyInUse { sharing, member })),
            share,
            documents: Some(documents.clone()),
            certified,
        };
        tracing::info!(key_id = %key.certified.key_id(), "key in use");
        self.keys().insert(key.certified.key_id(), Arc::new(key));
        Ok(digest)
    }

    /// The key, if its share is active.
    pub(super) fn key_in_use(&self, key_id: KeyId) -> Result<InUse, Reject> {
        let key = self.key(key_id)?;
        let active = key.active.clone().ok_or(Reject::ShareNotActive)?;
        Ok(InUse(key, active))
    }

    /// The key.
    pub(super) fn key(&self, key_id: KeyId) -> Result<Arc<LoadedKey>, Reject> {
        self.keys().get(&key_id).cloned().ok_or(Reject::KeyUnknown)
    }

    fn place(&self, certified: &CertifiedSharing) -> Result<Identifier, Reject> {
        let entry = certified.plan().member(&self.speaker.identity());
        Ok(entry.ok_or(Reject::NotAMember)?.identifier)
    }
}

/// Why a key is not loaded.
pub(super) enum LoadError {
    /// Files or vault.
    Local(ServiceError),
    /// Its documents.
    Code(Reject),
}

impl From<Reject> for LoadError {
    fn from(code: Reject) -> Self {
        Self::Code(code)
    }
}

impl From<crate::documents::DocumentError> for LoadError {
    fn from(error: crate::documents::DocumentError) -> Self {
        Self::Local(error.into())
    }
}

impl From<crate::vault::VaultError> for LoadError {
    fn from(error: crate::vault::VaultError) -> Self {
        Self::Local(error.into())
    }
}

impl LoadError {
    /// The code for a peer; the detail goes to the log.
    pub(super) fn to_peer(&self) -> Reject {
        match self {
            Self::Code(code) => *code,
            Self::Local(error) => {
                tracing::error!(code = error.code(), advice = error.advice(), "{error}");
                Reject::ShareUnavailable
            }
        }
    }
}

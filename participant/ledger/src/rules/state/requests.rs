//! Requests and sessions: what a request id stands for, who may still sign for it, and the receipt.

use firn_protocol::{
    bitcoin::Sats,
    choice,
    codec::{List, Malformed, Maybe},
    documents::Receipt,
    envelope::Envelope,
    ids::{
        Epoch, IntentDigest, KeyId, MessageDigest, PackageDigest, PolicyDigest, RequestId,
        SessionId, ShareVersion,
    },
    messages::RequestProgress,
    names::SpiffeId,
    sum,
};
use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use super::{StateError, View, key};
use crate::rules::body::ReceiptChunk;

/// Attempts of one request that may be open at once, through all coordinators together.
pub(in crate::rules) const MAX_OPEN_ATTEMPTS: usize = 64;

/// What a request id stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct RequestState {
    /// The intent.
    pub intent: IntentDigest,
    /// The policy that it was last judged by.
    pub policy: PolicyDigest,
    /// The owner's epoch at the last attempt.
    pub epoch: Epoch,
    /// What it costs the key, charged once.
    pub outflow: Sats,
    /// How far it has come.
    pub progress: RequestProgress,
    /// Attempts that are open, with the run of the process that opened them.
    pub open: List<(SessionId, u64), MAX_OPEN_ATTEMPTS>,
    /// Chunks of the stored receipt; 0 before there is one.
    pub receipt_chunks: u16,
}

/// A session of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct RequestPurpose {
    /// The request.
    pub request_id: RequestId,
    /// The epoch that it was opened at.
    pub epoch: Epoch,
    /// Who owned that epoch.
    pub owner: SpiffeId,
    /// Who carries.
    pub coordinator: SpiffeId,
}

sum!(
    /// What a session is for.
    pub enum SessionPurpose {
        /// A request.
        1 => Request(RequestPurpose),
        /// A proof of life of this attempt's sharing.
        2 => Proof(SessionId),
    }
);

choice!(
    /// How far a session has come.
    pub enum SessionStage {
        /// Nonces may exist.
        1 "open" => Open,
        /// Shares may have left.
        2 "released" => Released,
        /// Done.
        3 "completed" => Completed,
        /// Ended without a signature.
        4 "ended" => Ended,
    }
);

/// One session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct SessionState {
    /// The key.
    pub key_id: KeyId,
    /// Its sharing.
    pub share_version: ShareVersion,
    /// What it is for.
    pub purpose: SessionPurpose,
    /// How far it has come.
    pub stage: SessionStage,
    /// The run of the process that opened it; a later run has no nonces for it.
    pub run: u64,
    /// The package that shares were released for.
    pub package: Maybe<PackageDigest>,
}

impl View<'_> {
    /// What a request id stands for.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn request(
        &self,
        key_id: KeyId,
        request_id: RequestId,
    ) -> Result<Option<RequestState>, StateError> {
        self.read(&key(b'r', &[key_id.as_bytes(), request_id.as_bytes()]))
    }

    /// How many attempts a coordinator has opened under a grant.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn attempts(
        &self,
        grant: MessageDigest,
        coordinator: &SpiffeId,
    ) -> Result<u32, StateError> {
        Ok(self.read(&attempts_key(grant, coordinator))?.unwrap_or(0))
    }

    /// Whether it is on record that a request id was used for this other intent.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn conflicted(
        &self,
        key_id: KeyId,
        request_id: RequestId,
        other: IntentDigest,
    ) -> Result<bool, StateError> {
        let found: Option<bool> = self.read(&conflict_key(key_id, request_id, other))?;
        Ok(found.is_some())
    }

    /// The first request for an intent.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn first_request_for(
        &self,
        key_id: KeyId,
        intent: IntentDigest,
    ) -> Result<Option<RequestId>, StateError> {
        self.read(&key(b'i', &[key_id.as_bytes(), intent.as_bytes()]))
    }

    /// The stored receipt of a request.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn receipt(
        &self,
        key_id: KeyId,
        request_id: RequestId,
    ) -> Result<Option<Envelope<Receipt>>, StateError> {
        let Some(request) = self.request(key_id, request_id)? else {
            return Ok(None);
        };
        if request.receipt_chunks == 0 {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        for chunk in 0..request.receipt_chunks {
            let name = receipt_key(key_id, request_id, chunk);
            let chunk: ReceiptChunk = self.read(&name)?.ok_or(Malformed::Schema)?;
            bytes.extend_from_slice(chunk.as_bytes());
        }
        Ok(Some(Envelope::from_bytes(bytes)?))
    }

    /// A session.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn session(&self, session: SessionId) -> Result<Option<SessionState>, StateError> {
        self.read(&key(b's', &[session.as_bytes()]))
    }
}

pub(in crate::rules) fn attempts_key(grant: MessageDigest, coordinator: &SpiffeId) -> Vec<u8> {
    let coordinator = coordinator.to_string();
    key(b'm', &[grant.as_bytes(), coordinator.as_bytes()])
}

pub(in crate::rules) fn conflict_key(
    key_id: KeyId,
    request_id: RequestId,
    other: IntentDigest,
) -> Vec<u8> {
    let parts: [&[u8]; 3] = [key_id.as_bytes(), request_id.as_bytes(), other.as_bytes()];
    key(b'c', &parts)
}

pub(in crate::rules) fn receipt_key(key_id: KeyId, request_id: RequestId, chunk: u16) -> Vec<u8> {
    key(
        b'x',
        &[
            key_id.as_bytes(),
            request_id.as_bytes(),
            &chunk.to_be_bytes(),
        ],
    )
}

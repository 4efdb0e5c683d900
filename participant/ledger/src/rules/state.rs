//! What the records amount to: typed entries in the table, one prefix byte for each kind of entry.

use std::ops::ControlFlow;

use firn_protocol::{
    bitcoin::{Network, Sats},
    choice,
    codec::{self, List, Malformed, Maybe},
    documents::{Receipt, SignedCheckpoint},
    envelope::{Document, Envelope},
    ids::{
        ActivationDigest, AuthoritiesDigest, AuthoritiesVersion, CertificateSetDigest, Epoch,
        Identifier, IntentDigest, KeyId, MessageDigest, PackageDigest, PlanDigest, PolicyDigest,
        PolicyVersion, RequestId, SessionId, ShareVersion,
    },
    keys::IdentityKey,
    messages::{RequestProgress, ShareStage},
    names::{MAX_SPIFFE_ID, SpiffeId},
    sum,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use super::body::{CeremonyStep, Genesis, ReceiptChunk, SharePending, Witnessed};
use crate::table::{MAX_KEY_BYTES, MAX_VALUE_BYTES, Table, TableError};

/// Why the state cannot be read or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The table failed.
    #[error(transparent)]
    Table(#[from] TableError),
    /// An entry is not what was put in.
    #[error("an entry of the index does not decode: {0}")]
    Entry(#[from] Malformed),
}

/// The latest sharing of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct KeyState {
    /// Its version.
    pub share_version: ShareVersion,
    /// How far it has come.
    pub stage: ShareStage,
    /// The attempt that made it.
    pub attempt: SessionId,
    /// Its plan.
    pub plan: PlanDigest,
    /// This participant's place.
    pub member: Identifier,
    /// This participant's certificate.
    pub certificate: MessageDigest,
    /// All certificates.
    pub certificates: Maybe<CertificateSetDigest>,
    /// What made it usable.
    pub active: Maybe<ActiveState>,
    /// Proofs of life that were opened with it.
    pub proofs: u32,
}

/// What an activation says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct ActiveState {
    /// The activation.
    pub activation: ActivationDigest,
    /// The policy.
    pub policy: PolicyDigest,
    /// Its version.
    pub policy_version: PolicyVersion,
    /// The keys that count.
    pub authorities: AuthoritiesDigest,
    /// The network.
    pub network: Network,
}

/// The highest epoch of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct EpochState {
    /// The epoch.
    pub epoch: Epoch,
    /// Who holds it; nobody has shown a grant at the first epoch.
    pub owner: Maybe<SpiffeId>,
}

/// Attempts of one request that may be open at once, through all coordinators together.
pub(super) const MAX_OPEN_ATTEMPTS: usize = 64;

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

/// One attempt of a ceremony.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct AttemptState {
    /// The plan.
    pub plan: PlanDigest,
    /// The run of the process that opened it.
    pub run: u64,
    /// What has been sent.
    pub sent: List<(CeremonyStep, MessageDigest), 8>,
}

/// The table, read and written in these types.
pub struct View<'a>(pub &'a dyn Table);

impl View<'_> {
    fn read<V: Serialize + DeserializeOwned>(&self, key: &[u8]) -> Result<Option<V>, StateError> {
        let value = self.0.get(key)?;
        Ok(value
            .map(|bytes| codec::decode(&bytes, MAX_VALUE_BYTES))
            .transpose()?)
    }

    /// How the ledger began; none before its first record.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn genesis(&self) -> Result<Option<Genesis>, StateError> {
        self.read(b"g")
    }

    /// How often the process has started with this ledger.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn run(&self) -> Result<u64, StateError> {
        Ok(self.read(b"n")?.unwrap_or(0))
    }

    /// The Authorities in force.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn authorities(
        &self,
    ) -> Result<Option<(AuthoritiesDigest, AuthoritiesVersion)>, StateError> {
        self.read(b"a")
    }

    /// How many attempts a plan has had that was accepted on this machine; none if it was not.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn plan_attempts(&self, plan: PlanDigest) -> Result<Option<u32>, StateError> {
        self.read(&key(b'p', &[plan.as_bytes()]))
    }

    /// An attempt of a ceremony.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn attempt(&self, attempt: SessionId) -> Result<Option<AttemptState>, StateError> {
        self.read(&key(b't', &[attempt.as_bytes()]))
    }

    /// The latest sharing of a key.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn key(&self, key_id: KeyId) -> Result<Option<KeyState>, StateError> {
        self.read(&key(b'k', &[key_id.as_bytes()]))
    }

    /// All keys.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn keys(&self) -> Result<Vec<(KeyId, KeyState)>, StateError> {
        let mut found = Vec::new();
        self.each(b'k', |name, value| {
            let key_id = <[u8; 32]>::try_from(name).map_err(|_| Malformed::Schema)?;
            found.push((
                KeyId::from_bytes(key_id),
                codec::decode(value, MAX_VALUE_BYTES)?,
            ));
            Ok(())
        })?;
        Ok(found)
    }

    /// The share of this attempt, if it was sealed: also of one that another attempt came after.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn pended(
        &self,
        key_id: KeyId,
        attempt: SessionId,
    ) -> Result<Option<SharePending>, StateError> {
        self.read(&key(b'd', &[key_id.as_bytes(), attempt.as_bytes()]))
    }

    /// The highest epoch of a key.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn epoch(&self, key_id: KeyId) -> Result<Option<EpochState>, StateError> {
        self.read(&key(b'e', &[key_id.as_bytes()]))
    }

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

    /// The latest head witnessed of another participant.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn witnessed(
        &self,
        identity: &IdentityKey,
    ) -> Result<Option<SignedCheckpoint>, StateError> {
        self.read(&key(b'w', &[identity.as_bytes()]))
    }

    /// The latest heads witnessed of all other participants.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn all_witnessed(&self) -> Result<Vec<Witnessed>, StateError> {
        let mut found = Vec::new();
        self.each(b'w', |name, value| {
            let identity = <[u8; 32]>::try_from(name).map_err(|_| Malformed::Schema)?;
            let identity = IdentityKey::from_bytes(identity);
            let checkpoint = codec::decode(value, MAX_VALUE_BYTES)?;
            found.push(Witnessed {
                identity,
                checkpoint,
            });
            Ok(())
        })?;
        Ok(found)
    }

    pub(super) fn each(
        &self,
        kind: u8,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), Malformed>,
    ) -> Result<(), StateError> {
        let mut outcome = Ok(());
        self.0.prefix(&[kind], &mut |name, value| {
            outcome = visit(name.get(1..).unwrap_or_default(), value);
            if outcome.is_ok() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        Ok(outcome?)
    }
}

/// Writes one typed entry.
pub(super) fn write<V: Serialize>(
    table: &mut dyn Table,
    name: &[u8],
    value: &V,
) -> Result<(), StateError> {
    let bytes = codec::encode(value)?;
    table.put(name, &bytes)?;
    Ok(())
}

/// The name of an entry: its kind, then what it is about, all but the last part of fixed length.
pub(super) fn key(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut name = vec![kind];
    parts.iter().for_each(|part| name.extend_from_slice(part));
    name
}

pub(super) fn attempts_key(grant: MessageDigest, coordinator: &SpiffeId) -> Vec<u8> {
    let coordinator = coordinator.to_string();
    key(b'm', &[grant.as_bytes(), coordinator.as_bytes()])
}

pub(super) fn conflict_key(key_id: KeyId, request_id: RequestId, other: IntentDigest) -> Vec<u8> {
    let parts: [&[u8]; 3] = [key_id.as_bytes(), request_id.as_bytes(), other.as_bytes()];
    key(b'c', &parts)
}

pub(super) fn receipt_key(key_id: KeyId, request_id: RequestId, chunk: u16) -> Vec<u8> {
    key(
        b'x',
        &[
            key_id.as_bytes(),
            request_id.as_bytes(),
            &chunk.to_be_bytes(),
        ],
    )
}

// A key's state with all digests, and a request's with all its attempts, fit one value.
const _: () = assert!(MAX_VALUE_BYTES > MAX_OPEN_ATTEMPTS * 48 + 1024);
const _: () = assert!(MAX_KEY_BYTES > 1 + 32 + MAX_SPIFFE_ID);
const _: () = assert!(Receipt::LIMIT < (32 << 10) * (u16::MAX as usize));

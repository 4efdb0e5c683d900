//! What the records amount to: typed entries in the table, one prefix byte for each kind of entry.

mod requests;

use std::ops::ControlFlow;

use firn_protocol::{
    bitcoin::Network,
    codec::{self, List, Malformed, Maybe},
    documents::{Receipt, SignedCheckpoint},
    envelope::Document,
    ids::{
        ActivationDigest, AuthoritiesDigest, AuthoritiesVersion, CertificateSetDigest, Epoch,
        Identifier, KeyId, MessageDigest, PlanDigest, PolicyDigest, PolicyVersion, SessionId,
        ShareVersion,
    },
    keys::IdentityKey,
    messages::ShareStage,
    names::{MAX_SPIFFE_ID, SpiffeId},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_tuple::{Deserialize_tuple, Serialize_tuple};

pub(super) use requests::{MAX_OPEN_ATTEMPTS, attempts_key, conflict_key, receipt_key};
pub use requests::{RequestPurpose, RequestState, SessionPurpose, SessionStage, SessionState};

use super::body::{CeremonyStep, Frozen, Genesis, SharePending, Witnessed};
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

    /// Why this participant signs nothing any more; none where it does.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn frozen(&self) -> Result<Option<Frozen>, StateError> {
        self.read(b"z")
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

// A key's state with all digests, and a request's with all its attempts, fit one value.
const _: () = assert!(MAX_VALUE_BYTES > MAX_OPEN_ATTEMPTS * 48 + 1024);
const _: () = assert!(MAX_KEY_BYTES > 1 + 32 + MAX_SPIFFE_ID);
const _: () = assert!(Receipt::LIMIT < (32 << 10) * (u16::MAX as usize));

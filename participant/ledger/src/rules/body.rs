//! The bodies of records, each a document of its own kind. Numbers are never used again.

use firn_protocol::{
    bitcoin::{Network, Sats},
    choice,
    codec::{self, Blob, List, Malformed, Text},
    documents::{Receipt, SignedCheckpoint},
    envelope::Envelope,
    ids::{
        ActivationDigest, AuthoritiesDigest, AuthoritiesVersion, BuildDigest, CertificateSetDigest,
        Epoch, Identifier, IntentDigest, KeyId, MessageDigest, Nonce, PackageDigest, PlanDigest,
        PolicyDigest, PolicyVersion, RequestId, SessionId, ShareVersion, Signature,
    },
    keys::IdentityKey,
    limits,
    names::SpiffeId,
    reject::Reject,
};
use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use crate::journal::{MAX_BODY_BYTES, NewRecord, Record, RecordKind};

/// The ledger begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Genesis {
    /// Whose ledger.
    pub identity: IdentityKey,
    /// Random: two ledgers of one participant never begin alike.
    pub nonce: Nonce,
}

/// The process started. Every session that was open before is dead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Started {
    /// The software, as it calls itself.
    pub software: Text<{ limits::MAX_NAME }>,
    /// SHA-256 of the binary.
    pub build: BuildDigest,
}

/// The operator of this machine accepted Authorities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct AuthoritiesAccepted {
    /// Which.
    pub authorities: AuthoritiesDigest,
    /// Their version; never lower than before.
    pub version: AuthoritiesVersion,
}

/// The operator of this machine accepted a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct PlanAccepted {
    /// Which.
    pub plan: PlanDigest,
}

/// An attempt of a ceremony began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct AttemptOpened {
    /// The attempt.
    pub attempt: SessionId,
    /// Its plan.
    pub plan: PlanDigest,
    /// Who carries.
    pub coordinator: SpiffeId,
}

choice!(
    /// A message of a ceremony.
    pub enum CeremonyStep {
        /// Commitment, proof and sealing keys.
        1 "round1" => Round1,
        /// Sealed packages.
        2 "round2" => Round2,
        /// Certificate.
        3 "certificate" => Certificate,
    }
);

/// A message of a ceremony is about to leave: after this there is never a second version of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct CeremonySent {
    /// The attempt.
    pub attempt: SessionId,
    /// Which message.
    pub step: CeremonyStep,
    /// Its digest.
    pub digest: MessageDigest,
}

/// A share is sealed on disk, and not usable yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct SharePending {
    /// The key.
    pub key_id: KeyId,
    /// The sharing.
    pub share_version: ShareVersion,
    /// The attempt that made it.
    pub attempt: SessionId,
    /// Its plan.
    pub plan: PlanDigest,
    /// This participant's place in it.
    pub member: Identifier,
    /// Digest of this participant's certificate.
    pub certificate: MessageDigest,
}

/// All members' certificates are here and agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct ShareCertified {
    /// The key.
    pub key_id: KeyId,
    /// The sharing.
    pub share_version: ShareVersion,
    /// The attempt.
    pub attempt: SessionId,
    /// The certificates.
    pub certificates: CertificateSetDigest,
}

/// The operators made a sharing usable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct ShareActivated {
    /// The key.
    pub key_id: KeyId,
    /// The sharing.
    pub share_version: ShareVersion,
    /// The activation.
    pub activation: ActivationDigest,
    /// The certificates that it names.
    pub certificates: CertificateSetDigest,
    /// The policy.
    pub policy: PolicyDigest,
    /// Its version.
    pub policy_version: PolicyVersion,
    /// The keys that count.
    pub authorities: AuthoritiesDigest,
    /// The network.
    pub network: Network,
    /// Below this epoch nothing is signed.
    pub first_epoch: Epoch,
}

/// A valid grant or fence raised a key's epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct EpochRaised {
    /// The key.
    pub key_id: KeyId,
    /// Its highest epoch from here on.
    pub epoch: Epoch,
    /// Who holds it.
    pub owner: SpiffeId,
}

/// One attempt of a request: session, reservation and charge in one record. No nonce exists before
/// it is on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct RequestOpened {
    /// The session.
    pub session: SessionId,
    /// The key.
    pub key_id: KeyId,
    /// Its sharing.
    pub share_version: ShareVersion,
    /// The activation that it counts under.
    pub activation: ActivationDigest,
    /// The owner's epoch.
    pub epoch: Epoch,
    /// The owner.
    pub owner: SpiffeId,
    /// The request.
    pub request_id: RequestId,
    /// What it stands for.
    pub intent: IntentDigest,
    /// The policy that it was judged by.
    pub policy: PolicyDigest,
    /// The grant.
    pub grant: MessageDigest,
    /// What it costs the key.
    pub outflow: Sats,
    /// Own inputs, each with a nonce pair.
    pub inputs: u32,
    /// Who carries.
    pub coordinator: SpiffeId,
    /// Who takes part.
    pub members: List<Identifier, { limits::MAX_MEMBERS }>,
}

/// One attempt of a proof of life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct ProofOpened {
    /// The session.
    pub session: SessionId,
    /// The key.
    pub key_id: KeyId,
    /// Its sharing.
    pub share_version: ShareVersion,
    /// The attempt of the ceremony that made it.
    pub attempt: SessionId,
    /// Who carries.
    pub coordinator: SpiffeId,
    /// Who takes part.
    pub members: List<Identifier, { limits::MAX_MEMBERS }>,
}

/// Shares are about to leave. Released counts as signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Released {
    /// The session.
    pub session: SessionId,
    /// The one package that they are for.
    pub package: PackageDigest,
}

/// The signatures are known and verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Completed {
    /// The session.
    pub session: SessionId,
    /// The receipt, as it is given to whoever asks, now and later.
    pub receipt: Envelope<Receipt>,
}

/// A proof of life is known and verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct ProofCompleted {
    /// The session.
    pub session: SessionId,
    /// The signature.
    pub signature: Signature,
}

/// A session ended without a signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct SessionEnded {
    /// The session.
    pub session: SessionId,
    /// Why.
    pub code: Reject,
}

/// A request id was used for another intent. Evidence; nothing is overwritten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Conflicted {
    /// The key.
    pub key_id: KeyId,
    /// The request.
    pub request_id: RequestId,
    /// What it stands for.
    pub intent: IntentDigest,
    /// What it was used for.
    pub other: IntentDigest,
    /// By whom.
    pub owner: SpiffeId,
}

/// A refusal, the first of its peer and code in a minute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct RefusedInFull {
    /// Who carried what was refused.
    pub peer: SpiffeId,
    /// Why.
    pub code: Reject,
    /// Digest of the message.
    pub about: MessageDigest,
}

/// Further refusals of the same peer and code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct RefusalsCounted {
    /// Who carried what was refused.
    pub peer: SpiffeId,
    /// Why.
    pub code: Reject,
    /// How many.
    pub count: u64,
}

/// Another participant's head, by its own signature. Stored before it is said to anybody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Witnessed {
    /// Whose.
    pub identity: IdentityKey,
    /// The head.
    pub checkpoint: SignedCheckpoint,
}

/// The participant has found out that its ledger is an old copy, or that another one runs beside it:
/// from here on it signs nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Frozen {
    /// A head that it has signed and that a peer has witnessed, and that this ledger never had.
    pub witnessed: SignedCheckpoint,
}

/// The kinds of records, each with the number that stands in the journal.
macro_rules! bodies {
    ($($number:literal => $variant:ident,)+) => {
        /// The body of a record.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each variant holds the type that is documented")]
        pub enum Body { $($variant($variant),)+ }

        $(impl From<$variant> for Body {
            fn from(body: $variant) -> Self { Self::$variant(body) }
        })+

        impl Body {
            /// The number of the kind.
            #[must_use]
            pub const fn number(&self) -> u16 {
                match self { $(Self::$variant(_) => $number,)+ }
            }

            /// The kind, as people read it.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => stringify!($variant),)+ }
            }

            /// The record to be written.
            ///
            /// # Errors
            /// When the body is over the bound of a record.
            pub fn to_record(&self) -> Result<NewRecord, Malformed> {
                let bytes = match self { $(Self::$variant(body) => codec::encode(body)?,)+ };
                NewRecord::new(RecordKind::new(self.number()), bytes)
            }

            /// The body of a record that was read.
            ///
            /// # Errors
            /// When the kind is unknown or the bytes are not of it.
            pub fn of(record: &Record) -> Result<Self, Malformed> {
                match record.kind().number() {
                    $($number => codec::decode(record.body(), MAX_BODY_BYTES).map(Self::$variant),)+
                    _ => Err(Malformed::Schema),
                }
            }
        }
    };
}

bodies! {
    1 => Genesis,
    2 => Started,
    3 => AuthoritiesAccepted,
    4 => PlanAccepted,
    5 => AttemptOpened,
    6 => CeremonySent,
    7 => SharePending,
    8 => ShareCertified,
    9 => ShareActivated,
    10 => EpochRaised,
    11 => RequestOpened,
    12 => ProofOpened,
    13 => Released,
    14 => Completed,
    15 => ProofCompleted,
    16 => SessionEnded,
    17 => Conflicted,
    18 => RefusedInFull,
    19 => RefusalsCounted,
    20 => Witnessed,
    21 => Frozen,
}

/// The chunks in which a receipt is kept: the index takes no large values.
pub(super) type ReceiptChunk = Blob<{ 32 << 10 }>;

//! What a member tells the others of its session about what happened without them. Entries, never
//! sums: whoever merges them can tell what it has already.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use crate::{
    bitcoin::Sats,
    choice,
    codec::{Blob, List},
    ids::{
        Epoch, IntentDigest, KeyId, PolicyDigest, PolicyVersion, RequestId, SessionId, UnixMillis,
    },
    limits,
    merkle::TreeSize,
    names::SpiffeId,
    sum,
};

choice!(
    /// How far a request has come. Released counts as signed.
    pub enum Progress {
        /// Reserved; no share has left.
        1 "open" => Open,
        /// A share has left.
        2 "released" => Released,
        /// Signatures are known.
        3 "completed" => Completed,
        /// Refused for good.
        4 "refused" => Refused,
    }
);

/// The highest epoch of a key and its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct EpochEntry {
    /// The key.
    pub key_id: KeyId,
    /// Its highest epoch.
    pub epoch: Epoch,
    /// Who holds it.
    pub owner: SpiffeId,
}

/// A request id that stands for an intent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct ReservationEntry {
    /// The key.
    pub key_id: KeyId,
    /// The request.
    pub request_id: RequestId,
    /// What it stands for.
    pub intent: IntentDigest,
    /// The policy that it was judged by.
    pub policy: PolicyDigest,
    /// The owner's epoch.
    pub epoch: Epoch,
    /// The latest session.
    pub session: SessionId,
    /// How far it has come.
    pub progress: Progress,
}

/// What a request was charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct ChargeEntry {
    /// The key.
    pub key_id: KeyId,
    /// The request.
    pub request_id: RequestId,
    /// Outflow.
    pub amount: Sats,
    /// When.
    pub time: UnixMillis,
}

/// The outpoints that a request spends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct SpentEntry {
    /// The key.
    pub key_id: KeyId,
    /// The request.
    pub request_id: RequestId,
    /// Transaction id in internal byte order, and index.
    pub outpoints: List<(Outpoint, u32), { limits::MAX_NEWS_OUTPOINTS }>,
}

crate::byte_string!(
    /// A transaction id in internal byte order.
    Outpoint, 32
);

/// A document that carries its own signature: a rejection, a freeze, a revocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct SignedEntry {
    /// The envelope.
    pub envelope: Blob<{ limits::SMALL_DOCUMENT }>,
}

/// A policy that is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct PolicyEntry {
    /// The key.
    pub key_id: KeyId,
    /// Its policy's version.
    pub version: PolicyVersion,
    /// Its policy's digest.
    pub policy: PolicyDigest,
}

sum!(
    /// One thing that happened.
    pub enum NewsEntry {
        /// An epoch was raised.
        1 => Epoch(EpochEntry),
        /// A request was reserved or went on.
        2 => Reservation(ReservationEntry),
        /// A request was charged.
        3 => Charge(ChargeEntry),
        /// Outpoints were used.
        4 => Spent(SpentEntry),
        /// A signed document came in.
        5 => Signed(SignedEntry),
        /// A policy came into use.
        6 => Policy(PolicyEntry),
    }
);

/// What happened in the sender's ledger from record `from` up to and without record `to`, as far
/// as other members need it. A range of nothing claims nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct News {
    /// First record that is covered.
    pub from: TreeSize,
    /// First record that is not.
    pub to: TreeSize,
    /// The entries.
    pub entries: List<NewsEntry, { limits::MAX_NEWS }>,
}

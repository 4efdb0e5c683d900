//! What a requester wants signed. The kinds are a closed list, and none of them is a raw digest.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use crate::{
    bitcoin::Network,
    codec::Blob,
    envelope::Document,
    ids::{KeyId, Nonce},
    limits, sum,
};

/// A challenge that can never be a transaction hash, since its tag is its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct ProofOfLife {
    /// Random bytes of the requester.
    pub nonce: Nonce,
}

sum!(
    /// The content of an intent.
    pub enum Content {
        /// A PSBT, version 0 or 2: the Taproot key path of every own input.
        1 => Psbt(Blob<{ limits::MAX_PSBT }>),
        /// A proof that the key can sign.
        2 => ProofOfLife(ProofOfLife),
    }
);

/// What a requester wants signed, by its own signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Intent {
    /// The network that the requester means.
    pub network: Network,
    /// The key.
    pub key_id: KeyId,
    /// What.
    pub content: Content,
}

impl Document for Intent {
    const KIND: &'static str = "intent";
    const LIMIT: usize = limits::MAX_INTENT;
}

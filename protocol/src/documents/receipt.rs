//! A participant's answer to a request, kept for ever: the same request gives the same receipt.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use crate::{
    codec::List,
    documents::SignedCheckpoint,
    envelope::Document,
    ids::{Epoch, IntentDigest, KeyId, PolicyDigest, RequestId, SessionId, Signature, UnixMillis},
    limits,
    reject::Reject,
    sum,
};

/// A signature and the input that it belongs to; input 0 for a proof of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct InputSignature {
    /// Index of the input in the transaction.
    pub input: u32,
    /// BIP-340 signature for the Taproot key path.
    pub signature: Signature,
}

/// The request was signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Completed {
    /// One signature for each own input, ascending by input.
    pub signatures: List<InputSignature, { limits::MAX_SESSION_INPUTS }>,
}

/// The request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Refused {
    /// Why.
    pub code: Reject,
}

sum!(
    /// How a request ended.
    pub enum Outcome {
        /// Signed.
        1 => Completed(Completed),
        /// Refused.
        2 => Refused(Refused),
    }
);

/// A participant's word on how a request ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Receipt {
    /// The key.
    pub key_id: KeyId,
    /// The request.
    pub request_id: RequestId,
    /// What was asked for.
    pub intent: IntentDigest,
    /// The policy that it was judged by.
    pub policy: PolicyDigest,
    /// The owner's epoch.
    pub epoch: Epoch,
    /// The session that ended it.
    pub session: SessionId,
    /// How.
    pub outcome: Outcome,
    /// Sequence of the ledger record that says so.
    pub position: u64,
    /// A checkpoint that covers that record.
    pub checkpoint: SignedCheckpoint,
    /// The participant's clock.
    pub time: UnixMillis,
}

impl Document for Receipt {
    const KIND: &'static str = "receipt";
    const LIMIT: usize = 128 << 10;
}

// 72 bytes for each signature of the largest session.
const _: () = assert!(Receipt::LIMIT > limits::MAX_SESSION_INPUTS * 72 + 4096);

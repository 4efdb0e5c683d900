//! Bitcoin: what a PSBT says, what would be signed, and which scripts are a key's own. Decides form
//! and ownership; never whether a payment is allowed, which is the policy's question.

pub mod amount;
pub mod network;
pub mod psbt;
pub mod sighash;
pub mod transaction;
mod wire;

pub use amount::Sats;
pub use network::Network;
pub use psbt::{KeyOrigin, Psbt, PsbtError};
pub use sighash::{KeyPathSighashes, SighashError, SighashType};
pub use transaction::{
    MAX_INPUTS, MAX_OUTPUTS, OutPoint, ScriptPubKey, TransactionError, TxIn, TxOut, Txid,
    UnsignedTransaction,
};

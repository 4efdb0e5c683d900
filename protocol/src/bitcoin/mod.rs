//! Bitcoin: what a PSBT says, what would be signed, and which scripts are a key's own. Decides form
//! and ownership; never whether a payment is allowed, which is the policy's question.

pub mod amount;
pub mod descriptor;
pub mod extended_key;
mod intent;
pub mod network;
pub mod own;
mod previous;
pub mod psbt;
pub mod sighash;
pub mod signature;
pub mod summary;
pub mod transaction;
mod wire;

pub use amount::Sats;
pub use descriptor::descriptor;
pub use extended_key::{Child, DerivedKey, ExtendedKey, KeyError};
pub use network::Network;
pub use own::{ChildRange, OwnScripts};
pub use psbt::{KeyOrigin, Psbt, PsbtError};
pub use sighash::{KeyPathSighashes, SighashError, SighashType};
pub use signature::verify_bip340;
pub use summary::{InputSummary, OutputSummary, OwnInput, Summary, SummaryError};
pub use transaction::{
    MAX_INPUTS, MAX_OUTPUTS, OutPoint, ScriptPubKey, TransactionError, TxIn, TxOut, Txid,
    UnsignedTransaction,
};

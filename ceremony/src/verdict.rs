//! Bitcoin Core's own word on a transaction, through its consensus library. It decides nothing itself
//! and shares no code with what made the signatures.

use bitcoinconsensus::{Utxo, VERIFY_ALL_PRE_TAPROOT, VERIFY_TAPROOT, verify_with_flags};
use firn_protocol::bitcoin::transaction::TxOut;

/// What consensus says of one input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputVerdict {
    /// The input's index.
    pub input: usize,
    /// Whether it may spend what it spends.
    pub is_valid: bool,
}

/// Verifies every input of `transaction`, whose inputs spend `spent` in this order.
///
/// An empty list, or one of another length than the transaction's inputs, verifies nothing.
#[must_use]
pub fn consensus(transaction: &[u8], spent: &[TxOut]) -> Vec<InputVerdict> {
    let outputs: Vec<Utxo> = spent.iter().filter_map(utxo).collect();
    if outputs.len() != spent.len() {
        return Vec::new();
    }
    let flags = VERIFY_ALL_PRE_TAPROOT | VERIFY_TAPROOT;
    spent
        .iter()
        .enumerate()
        .map(|(input, output)| {
            let script = output.script.as_bytes();
            let amount = output.value.value();
            let verdict =
                verify_with_flags(script, amount, transaction, Some(&outputs), input, flags);
            InputVerdict {
                input,
                is_valid: verdict.is_ok(),
            }
        })
        .collect()
}

/// Whether every input verifies, and there is one.
#[must_use]
pub fn accepts(transaction: &[u8], spent: &[TxOut]) -> bool {
    let verdicts = consensus(transaction, spent);
    !verdicts.is_empty() && verdicts.iter().all(|verdict| verdict.is_valid)
}

fn utxo(output: &TxOut) -> Option<Utxo> {
    let script = output.script.as_bytes();
    Some(Utxo {
        script_pubkey: script.as_ptr(),
        script_pubkey_len: u32::try_from(script.len()).ok()?,
        value: i64::try_from(output.value.value()).ok()?,
    })
}

//! Other people's implementations of what the members have signed: rust-bitcoin's sighashes, libsecp256k1's
//! BIP-340 and rust-miniscript's descriptors. Nothing here calls Firn's own.

use std::str::FromStr;

use bitcoin::{
    Amount, ScriptBuf, TapSighashType, Transaction, TxOut,
    consensus::deserialize,
    secp256k1::{Message, Secp256k1, XOnlyPublicKey, schnorr},
    sighash::{Prevouts, SighashCache},
};
use miniscript::{Descriptor, DescriptorPublicKey};

/// Verifies the key-path signature of every input.
///
/// # Errors
/// The first input that does not verify, and why.
pub fn verify(transaction: &[u8], spent: &[(u64, Vec<u8>)]) -> Result<Transaction, String> {
    let transaction: Transaction = deserialize(transaction).map_err(|error| error.to_string())?;
    if transaction.input.is_empty() || transaction.input.len() != spent.len() {
        return Err(format!(
            "{} inputs spend {} outputs",
            transaction.input.len(),
            spent.len()
        ));
    }
    let spent: Vec<TxOut> = spent
        .iter()
        .map(|(value, script)| TxOut {
            value: Amount::from_sat(*value),
            script_pubkey: ScriptBuf::from_bytes(script.clone()),
        })
        .collect();
    let verifier = Secp256k1::verification_only();
    let mut sighashes = SighashCache::new(&transaction);
    for (place, (input, output)) in transaction.input.iter().zip(&spent).enumerate() {
        let wrong = |what: &str| format!("input {place}: {what}");
        if !output.script_pubkey.is_p2tr() || !input.script_sig.is_empty() {
            return Err(wrong("not a Taproot input"));
        }
        let key = XOnlyPublicKey::from_slice(&output.script_pubkey.as_bytes()[2..])
            .map_err(|error| wrong(&error.to_string()))?;
        // Exactly 64 bytes: the key path with SIGHASH_DEFAULT.
        let witness: Vec<&[u8]> = input.witness.iter().collect();
        let [signature] = witness[..] else {
            return Err(wrong("not exactly one witness item"));
        };
        let signature =
            schnorr::Signature::from_slice(signature).map_err(|error| wrong(&error.to_string()))?;
        let sighash = sighashes
            .taproot_key_spend_signature_hash(
                place,
                &Prevouts::All(&spent),
                TapSighashType::Default,
            )
            .map_err(|error| wrong(&error.to_string()))?;
        verifier
            .verify_schnorr(&signature, &Message::from(sighash), &key)
            .map_err(|error| wrong(&error.to_string()))?;
    }
    Ok(transaction)
}

/// The scripts of the first `count` children of each branch of `tr(…/<0;1>/*)`: receiving, change.
///
/// # Panics
/// If it is not such a descriptor.
#[must_use]
pub fn scripts(descriptor: &str, count: u32) -> [Vec<Vec<u8>>; 2] {
    let descriptor = Descriptor::<DescriptorPublicKey>::from_str(descriptor).unwrap();
    let branches = descriptor.into_single_descriptors().unwrap();
    let branches: Vec<Vec<Vec<u8>>> = branches
        .iter()
        .map(|branch| {
            (0..count)
                .map(|index| {
                    let child = branch.at_derivation_index(index).unwrap();
                    child.script_pubkey().into_bytes()
                })
                .collect()
        })
        .collect();
    branches.try_into().expect("two branches")
}

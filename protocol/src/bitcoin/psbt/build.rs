//! Making a PSBT, for the operator's tool and for tests. What it makes is parsed before it is
//! handed out, so it can never make one that a participant would not read.

use super::{
    super::{
        sighash::SighashType,
        transaction::{TxIn, TxOut, UnsignedTransaction},
        wire::{put_compact_size, put_prefixed},
    },
    KeyOrigin, Psbt, PsbtError,
    fields::{self, Field},
};

/// An input of a PSBT to be made.
#[derive(Debug, Clone)]
pub struct NewInput {
    /// Outpoint and sequence.
    pub txin: TxIn,
    /// The output that it spends.
    pub spent: TxOut,
    /// The key to sign with, for an input of one's own: internal key and path.
    pub origin: Option<KeyOrigin>,
    /// The sighash type to ask for; none is the default of BIP-341.
    pub sighash_type: Option<SighashType>,
}

/// An output of a PSBT to be made.
#[derive(Debug, Clone)]
pub struct NewOutput {
    /// Amount and script.
    pub output: TxOut,
    /// The key that it pays to, for an output of one's own.
    pub origin: Option<KeyOrigin>,
}

/// Makes a PSBT of version 0.
///
/// # Errors
/// When the parts are not a transaction that a participant would read.
pub fn build_v0(
    version: u32,
    lock_time: u32,
    inputs: &[NewInput],
    outputs: &[NewOutput],
) -> Result<Vec<u8>, PsbtError> {
    let transaction = transaction(version, lock_time, inputs, outputs)?;
    let mut out = b"psbt\xff".to_vec();
    put(&mut out, &fields::UNSIGNED_TX, &transaction.to_bytes());
    out.push(0);
    for input in inputs {
        put_input(&mut out, input, &[]);
    }
    for output in outputs {
        put_origin(
            &mut out,
            [&fields::OUT_TAP_INTERNAL_KEY, &fields::OUT_TAP_BIP32],
            &output.origin,
        );
        out.push(0);
    }
    checked(out)
}

/// Makes a PSBT of version 2. The lock time goes into the fallback field.
///
/// # Errors
/// When the parts are not a transaction that a participant would read.
pub fn build_v2(
    version: u32,
    lock_time: u32,
    inputs: &[NewInput],
    outputs: &[NewOutput],
) -> Result<Vec<u8>, PsbtError> {
    transaction(version, lock_time, inputs, outputs)?;
    let mut out = b"psbt\xff".to_vec();
    put(&mut out, &fields::TX_VERSION, &version.to_le_bytes());
    put(
        &mut out,
        &fields::FALLBACK_LOCKTIME,
        &lock_time.to_le_bytes(),
    );
    put(&mut out, &fields::INPUT_COUNT, &count(inputs.len()));
    put(&mut out, &fields::OUTPUT_COUNT, &count(outputs.len()));
    put(&mut out, &fields::VERSION, &2_u32.to_le_bytes());
    out.push(0);
    for input in inputs {
        let TxIn { outpoint, sequence } = input.txin;
        let mut described = Vec::new();
        put(
            &mut described,
            &fields::PREVIOUS_TXID,
            outpoint.txid.as_bytes(),
        );
        put(
            &mut described,
            &fields::OUTPUT_INDEX,
            &outpoint.vout.to_le_bytes(),
        );
        put(&mut described, &fields::SEQUENCE, &sequence.to_le_bytes());
        put_input(&mut out, input, &described);
    }
    for NewOutput { output, origin } in outputs {
        put(
            &mut out,
            &fields::AMOUNT,
            &output.value.value().to_le_bytes(),
        );
        put(&mut out, &fields::SCRIPT, output.script.as_bytes());
        put_origin(
            &mut out,
            [&fields::OUT_TAP_INTERNAL_KEY, &fields::OUT_TAP_BIP32],
            origin,
        );
        out.push(0);
    }
    checked(out)
}

fn checked(psbt: Vec<u8>) -> Result<Vec<u8>, PsbtError> {
    Psbt::parse(&psbt)?.spent_outputs()?;
    Ok(psbt)
}

fn transaction(
    version: u32,
    lock_time: u32,
    inputs: &[NewInput],
    outputs: &[NewOutput],
) -> Result<UnsignedTransaction, PsbtError> {
    let inputs = inputs.iter().map(|input| input.txin).collect();
    let outputs = outputs.iter().map(|output| output.output.clone()).collect();
    Ok(UnsignedTransaction::new(
        version, inputs, outputs, lock_time,
    )?)
}

/// One input's map; `described` are the fields of version 2 that describe the transaction.
fn put_input(out: &mut Vec<u8>, input: &NewInput, described: &[u8]) {
    put(out, &fields::WITNESS_UTXO, &input.spent.to_bytes());
    if let Some(sighash_type) = input.sighash_type {
        put(
            out,
            &fields::SIGHASH_TYPE,
            &u32::from(sighash_type.to_u8()).to_le_bytes(),
        );
    }
    out.extend_from_slice(described);
    put_origin(
        out,
        [&fields::IN_TAP_INTERNAL_KEY, &fields::IN_TAP_BIP32],
        &input.origin,
    );
    out.push(0);
}

fn put_origin(
    out: &mut Vec<u8>,
    [internal_key, derivation]: [&Field; 2],
    origin: &Option<KeyOrigin>,
) {
    let Some(origin) = origin else { return };
    put(out, internal_key, &origin.x_only_key);
    let mut key = vec![derivation.key_type];
    key.extend_from_slice(&origin.x_only_key);
    // No leaf hashes: the key is the internal key.
    let mut value = vec![0];
    value.extend_from_slice(&origin.fingerprint);
    for step in &origin.path {
        value.extend_from_slice(&step.to_le_bytes());
    }
    put_prefixed(out, &key);
    put_prefixed(out, &value);
}

fn put(out: &mut Vec<u8>, field: &Field, value: &[u8]) {
    put_prefixed(out, &[field.key_type]);
    put_prefixed(out, value);
}

fn count(number: usize) -> Vec<u8> {
    let mut out = Vec::new();
    put_compact_size(&mut out, number);
    out
}

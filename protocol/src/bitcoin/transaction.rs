//! Transactions without signatures: their parts, their form and their id. Decides the form; never
//! whether consensus accepts a script.

use std::fmt;

use sha2::{Digest, Sha256};
use thiserror::Error;

use super::{
    amount::Sats,
    wire::{Cursor, WireError, put_compact_size, put_prefixed},
};
use crate::limits;

/// Inputs of a transaction: no more than one session can sign.
pub const MAX_INPUTS: usize = limits::MAX_SESSION_INPUTS;

/// Outputs of a transaction: more than a standard transaction (400,000 weight units, 124 for the
/// smallest output that pays somebody) has room for.
pub const MAX_OUTPUTS: usize = 4_000;

/// Why bytes are not a transaction that Firn handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TransactionError {
    /// The bytes end too early.
    #[error("the transaction is truncated")]
    Truncated,
    /// A compact size is longer than needed.
    #[error("a compact size in the transaction is longer than needed")]
    NonMinimalCompactSize,
    /// Bytes are left over.
    #[error("bytes follow the transaction")]
    TrailingBytes,
    /// An unsigned transaction is in the BIP-144 form.
    #[error("the unsigned transaction is serialised with witnesses")]
    WitnessSerialization,
    /// An unsigned transaction has a scriptSig.
    #[error("input {0} of the unsigned transaction has a scriptSig")]
    ScriptSig(usize),
    /// More than [`MAX_INPUTS`].
    #[error("more than {MAX_INPUTS} inputs")]
    TooManyInputs,
    /// More than [`MAX_OUTPUTS`].
    #[error("more than {MAX_OUTPUTS} outputs")]
    TooManyOutputs,
    /// Two inputs spend the same output.
    #[error("two inputs spend {0}")]
    DuplicateInput(OutPoint),
    /// An amount, or the sum of the outputs, is above 21 million bitcoin.
    #[error("an amount is above 21 million bitcoin")]
    AmountTooLarge,
    /// The BIP-144 flag is not 1, or the witnesses are all empty.
    #[error("the witness part of the transaction is not in its only form")]
    BadWitness,
    /// The previous transaction has no output of the number that is spent.
    #[error("the previous transaction has no output {0}")]
    NoSuchOutput(u32),
}

impl From<WireError> for TransactionError {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Truncated => Self::Truncated,
            WireError::NonMinimal => Self::NonMinimalCompactSize,
        }
    }
}

/// A transaction id, in the byte order of the serialisation (people read it reversed).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Txid([u8; 32]);

impl Txid {
    /// The id with these 32 bytes in the order of the serialisation.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes in the order of the serialisation.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Txid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .rev()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Which output an input spends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutPoint {
    /// The transaction that made the output.
    pub txid: Txid,
    /// The output's number in it.
    pub vout: u32,
}

impl fmt::Display for OutPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.txid, self.vout)
    }
}

/// The script that an output is locked with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScriptPubKey(Vec<u8>);

impl ScriptPubKey {
    /// The script with these bytes.
    #[must_use]
    pub const fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The Taproot script (BIP-341) of a 32-byte x-only output key.
    #[must_use]
    pub fn taproot(output_key: &[u8; 32]) -> Self {
        let mut bytes = vec![0x51, 0x20];
        bytes.extend_from_slice(output_key);
        Self(bytes)
    }

    /// The script's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The x-only output key, if this is a Taproot script.
    #[must_use]
    pub fn taproot_output_key(&self) -> Option<[u8; 32]> {
        match self.0.as_slice() {
            [0x51, 0x20, key @ ..] => key.try_into().ok(),
            _ => None,
        }
    }
}

/// An output: an amount and its script.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TxOut {
    /// The amount.
    pub value: Sats,
    /// The script.
    pub script: ScriptPubKey,
}

impl TxOut {
    /// The output's serialisation.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.value.value().to_le_bytes().to_vec();
        put_prefixed(&mut out, self.script.as_bytes());
        out
    }

    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, TransactionError> {
        let (value, script) = read_output(cursor)?;
        Ok(Self {
            value,
            script: ScriptPubKey::new(script.to_vec()),
        })
    }
}

/// An input of an unsigned transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TxIn {
    /// The output that it spends.
    pub outpoint: OutPoint,
    /// Its sequence number.
    pub sequence: u32,
}

/// A transaction without scriptSigs and witnesses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UnsignedTransaction {
    version: u32,
    inputs: Vec<TxIn>,
    outputs: Vec<TxOut>,
    lock_time: u32,
}

impl UnsignedTransaction {
    /// Puts a transaction together.
    ///
    /// # Errors
    /// For too many inputs or outputs, two inputs that spend the same output, and outputs whose sum
    /// is above 21 million bitcoin.
    pub fn new(
        version: u32,
        inputs: Vec<TxIn>,
        outputs: Vec<TxOut>,
        lock_time: u32,
    ) -> Result<Self, TransactionError> {
        if inputs.len() > MAX_INPUTS {
            return Err(TransactionError::TooManyInputs);
        }
        if outputs.len() > MAX_OUTPUTS {
            return Err(TransactionError::TooManyOutputs);
        }
        let mut outpoints: Vec<OutPoint> = inputs.iter().map(|input| input.outpoint).collect();
        outpoints.sort_unstable();
        for pair in outpoints.windows(2) {
            if let [first, second] = pair
                && first == second
            {
                return Err(TransactionError::DuplicateInput(*first));
            }
        }
        Sats::checked_sum(outputs.iter().map(|output| output.value))
            .ok_or(TransactionError::AmountTooLarge)?;
        Ok(Self {
            version,
            inputs,
            outputs,
            lock_time,
        })
    }

    /// Parses the serialisation that BIP-174 wants of an unsigned transaction: no witness form, no
    /// scriptSigs, nothing left over.
    ///
    /// # Errors
    /// One variant for each rule that the bytes break.
    pub fn parse(bytes: &[u8]) -> Result<Self, TransactionError> {
        Self::read(Cursor::new(bytes)).map_err(|error| match bytes {
            // No inputs and one output look like the marker and flag of BIP-144; what does not
            // parse as the former was meant as the latter.
            [_, _, _, _, 0, 1, ..] => TransactionError::WitnessSerialization,
            _ => error,
        })
    }

    /// The version.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// The inputs in order.
    #[must_use]
    pub fn inputs(&self) -> &[TxIn] {
        &self.inputs
    }

    /// The outputs in order.
    #[must_use]
    pub fn outputs(&self) -> &[TxOut] {
        &self.outputs
    }

    /// The lock time.
    #[must_use]
    pub const fn lock_time(&self) -> u32 {
        self.lock_time
    }

    /// The serialisation without witnesses; every scriptSig is empty.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.with_script_sigs(std::iter::empty())
    }

    /// The transaction's id, as long as every scriptSig stays empty.
    #[must_use]
    pub fn txid(&self) -> Txid {
        Txid(double_sha256(&[&self.to_bytes()]))
    }

    /// The serialisation with each input's scriptSig and witness stack (BIP-144). Missing ones are
    /// empty.
    pub(super) fn signed(&self, proofs: &[(&[u8], Vec<&[u8]>)]) -> Vec<u8> {
        let mut out = self.with_script_sigs(proofs.iter().map(|(script_sig, _)| *script_sig));
        if proofs.iter().all(|(_, witness)| witness.is_empty()) {
            return out;
        }
        let lock_time = out.split_off(out.len().saturating_sub(4));
        out.splice(4..4, [0, 1]);
        for index in 0..self.inputs.len() {
            let stack = proofs
                .get(index)
                .map_or(&[][..], |(_, witness)| witness.as_slice());
            put_compact_size(&mut out, stack.len());
            stack.iter().for_each(|item| put_prefixed(&mut out, item));
        }
        out.extend_from_slice(&lock_time);
        out
    }

    fn with_script_sigs<'a>(&self, mut script_sigs: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
        let mut out = self.version.to_le_bytes().to_vec();
        put_compact_size(&mut out, self.inputs.len());
        for input in &self.inputs {
            out.extend_from_slice(input.outpoint.txid.as_bytes());
            out.extend_from_slice(&input.outpoint.vout.to_le_bytes());
            put_prefixed(&mut out, script_sigs.next().unwrap_or_default());
            out.extend_from_slice(&input.sequence.to_le_bytes());
        }
        put_compact_size(&mut out, self.outputs.len());
        for output in &self.outputs {
            out.extend_from_slice(&output.to_bytes());
        }
        out.extend_from_slice(&self.lock_time.to_le_bytes());
        out
    }

    fn read(mut cursor: Cursor<'_>) -> Result<Self, TransactionError> {
        let version = cursor.u32()?;
        let count = bounded(
            cursor.compact_size()?,
            MAX_INPUTS,
            TransactionError::TooManyInputs,
        )?;
        let mut inputs = Vec::with_capacity(count);
        for index in 0..count {
            let (outpoint, script_sig, sequence) = read_input(&mut cursor)?;
            if !script_sig.is_empty() {
                return Err(TransactionError::ScriptSig(index));
            }
            inputs.push(TxIn { outpoint, sequence });
        }
        let count = bounded(
            cursor.compact_size()?,
            MAX_OUTPUTS,
            TransactionError::TooManyOutputs,
        )?;
        let mut outputs = Vec::with_capacity(count);
        for _ in 0..count {
            outputs.push(TxOut::read(&mut cursor)?);
        }
        let lock_time = cursor.u32()?;
        if !cursor.is_empty() {
            return Err(TransactionError::TrailingBytes);
        }
        Self::new(version, inputs, outputs, lock_time)
    }
}

pub(super) type Input<'a> = (OutPoint, &'a [u8], u32);

pub(super) fn read_input<'a>(cursor: &mut Cursor<'a>) -> Result<Input<'a>, TransactionError> {
    let txid = Txid(cursor.array()?);
    let vout = cursor.u32()?;
    let script_sig = cursor.prefixed()?;
    let sequence = cursor.u32()?;
    Ok((OutPoint { txid, vout }, script_sig, sequence))
}

pub(super) fn read_output<'a>(
    cursor: &mut Cursor<'a>,
) -> Result<(Sats, &'a [u8]), TransactionError> {
    let value = Sats::new(cursor.u64()?).ok_or(TransactionError::AmountTooLarge)?;
    Ok((value, cursor.prefixed()?))
}

fn bounded(count: u64, most: usize, error: TransactionError) -> Result<usize, TransactionError> {
    usize::try_from(count)
        .ok()
        .filter(|count| *count <= most)
        .ok_or(error)
}

pub(super) fn double_sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    Sha256::digest(hasher.finalize()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(sats: u64) -> TxOut {
        TxOut {
            value: Sats::new(sats).unwrap(),
            script: ScriptPubKey::taproot(&[7; 32]),
        }
    }

    fn input(byte: u8, vout: u32) -> TxIn {
        TxIn {
            outpoint: OutPoint {
                txid: Txid::new([byte; 32]),
                vout,
            },
            sequence: 5,
        }
    }

    #[test]
    fn refuses_a_duplicate_input() {
        let inputs = vec![input(1, 0), input(2, 0), input(1, 0)];
        assert_eq!(
            UnsignedTransaction::new(2, inputs, vec![output(1)], 0),
            Err(TransactionError::DuplicateInput(input(1, 0).outpoint))
        );
    }

    #[test]
    fn refuses_outputs_whose_sum_no_chain_can_hold() {
        let outputs = vec![output(Sats::MAX.value()), output(1)];
        assert_eq!(
            UnsignedTransaction::new(2, vec![input(1, 0)], outputs, 0),
            Err(TransactionError::AmountTooLarge)
        );
    }

    #[test]
    fn refuses_more_inputs_or_outputs_than_the_limits() {
        let inputs = |count: usize| {
            (0..count)
                .map(|n| input(1, u32::try_from(n).unwrap()))
                .collect::<Vec<_>>()
        };
        let outputs = |count| vec![output(1); count];
        let build = |ins, outs| UnsignedTransaction::new(2, inputs(ins), outputs(outs), 0);
        assert_eq!(
            build(MAX_INPUTS + 1, 1),
            Err(TransactionError::TooManyInputs)
        );
        assert_eq!(
            build(1, MAX_OUTPUTS + 1),
            Err(TransactionError::TooManyOutputs)
        );
        let largest = build(MAX_INPUTS, MAX_OUTPUTS).unwrap();
        assert_eq!(UnsignedTransaction::parse(&largest.to_bytes()), Ok(largest));
    }
}

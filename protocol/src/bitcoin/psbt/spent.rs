//! The outputs that a PSBT's inputs spend. Decides whether what is said about them agrees with
//! itself, by the rules of BIP-174 for signers; whether they exist only the chain knows.

use ::bitcoin::hashes::{Hash, hash160};
use sha2::{Digest, Sha256};

use super::{
    super::{
        amount::Sats,
        previous::previous_output,
        transaction::{TxIn, TxOut},
        wire::Cursor,
    },
    Psbt, PsbtError, PsbtInput,
    error::Place,
    fields,
    raw::Map,
};

impl Psbt {
    /// The spent output of every input, in order. A BIP-341 signature covers all of them, so one
    /// that is missing is an error here, though not in a PSBT as such.
    ///
    /// # Errors
    /// When one is missing, when they add up to too much, and where BIP-174 tells a signer to
    /// refuse: a witness UTXO alone for an output without witness, scripts that do not match.
    pub fn spent_outputs(&self) -> Result<Vec<TxOut>, PsbtError> {
        let mut outputs = Vec::with_capacity(self.inputs.len());
        for (index, input) in self.inputs.iter().enumerate() {
            let spent = input.spent().ok_or(PsbtError::MissingSpentOutput(index))?;
            check_scripts(index, input, spent)?;
            outputs.push(spent.clone());
        }
        Sats::checked_sum(outputs.iter().map(|output| output.value))
            .ok_or(PsbtError::SpentAmountTooLarge)?;
        Ok(outputs)
    }
}

/// The output that an input spends, from either field, or from both if they agree.
pub(super) fn spent_output(
    index: usize,
    map: &Map<'_>,
    txin: &TxIn,
) -> Result<Option<TxOut>, PsbtError> {
    let stated = map.value(&fields::WITNESS_UTXO).map(|value| {
        let mut cursor = Cursor::new(value);
        let output = TxOut::read(&mut cursor).ok().filter(|_| cursor.is_empty());
        let (place, field) = (Place::Input(index), fields::WITNESS_UTXO.name);
        output.ok_or(PsbtError::WrongValue { place, field })
    });
    let stated = stated.transpose()?;
    let Some(previous) = map.value(&fields::NON_WITNESS_UTXO) else {
        return Ok(stated);
    };
    let (txid, output) = previous_output(previous, txin.outpoint.vout).map_err(|error| {
        PsbtError::PreviousTransaction {
            input: index,
            error,
        }
    })?;
    if txid != txin.outpoint.txid {
        return Err(PsbtError::PreviousTransactionIdMismatch(index));
    }
    if stated.is_some_and(|stated| stated != output) {
        return Err(PsbtError::SpentOutputMismatch(index));
    }
    Ok(Some(output))
}

/// What BIP-174 wants a signer to check for inputs of every kind.
fn check_scripts(index: usize, input: &PsbtInput, spent: &TxOut) -> Result<(), PsbtError> {
    let script = spent.script.as_bytes();
    let mismatch = Err(PsbtError::ScriptMismatch(index));
    let mut program = script;
    if let [0xa9, 0x14, hash @ .., 0x87] = script
        && hash.len() == 20
    {
        if let Some(redeem) = &input.redeem_script {
            if hash160::Hash::hash(redeem).to_byte_array() != hash {
                return mismatch;
            }
            program = redeem;
        }
    } else if input.redeem_script.is_some() {
        return mismatch;
    } else if !is_witness_program(script) && !input.has_previous_transaction {
        return Err(PsbtError::WitnessUtxoForNonWitness(index));
    }
    match (&input.witness_script, program) {
        (None, _) => Ok(()),
        (Some(witness), [0x00, 0x20, hash @ ..]) if Sha256::digest(witness)[..] == *hash => Ok(()),
        (Some(_), _) => mismatch,
    }
}

/// BIP-141: a version and 2 to 40 bytes.
fn is_witness_program(script: &[u8]) -> bool {
    match script {
        [0x00 | 0x51..=0x60, length, program @ ..] => {
            usize::from(*length) == program.len() && (2..=40).contains(&program.len())
        }
        _ => false,
    }
}

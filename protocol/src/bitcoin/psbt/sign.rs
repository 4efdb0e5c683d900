//! Putting finished signatures into a PSBT and taking the transaction out. Decides only where they
//! belong; whether a signature is valid is for [`crate::bitcoin::signature`] to say first.

use super::{
    super::sighash::SighashType,
    Psbt, PsbtError,
    fields::{self, witness_stack},
    raw::RawPsbt,
};

/// A BIP-340 signature for the key path of one input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyPathSignature {
    /// The input's index.
    pub input: usize,
    /// The sighash type that was signed.
    pub sighash_type: SighashType,
    /// The signature.
    pub signature: [u8; 64],
}

impl KeyPathSignature {
    /// The form that the witness has (BIP-341): the type follows unless it is the default.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.signature.to_vec();
        if self.sighash_type != SighashType::Default {
            bytes.push(self.sighash_type.to_u8());
        }
        bytes
    }
}

/// Puts each signature into its input as `PSBT_IN_TAP_KEY_SIG`. Everything else stays byte for byte
/// as it was, unknown fields included, and so does the version; but in a version 2 PSBT that says
/// whether inputs and outputs may be added, these two flags are cleared, as BIP-370 demands of a
/// signer.
///
/// # Errors
/// When the PSBT does not parse, for an index without an input, an input that does not spend a
/// Taproot output or is signed already, and a sighash type that is not the one it asks for.
pub fn insert_key_path_signatures(
    original: &[u8],
    signatures: &[KeyPathSignature],
) -> Result<Vec<u8>, PsbtError> {
    let mut raw = RawPsbt::parse(original)?;
    let psbt = Psbt::from_raw(&raw)?;
    let values: Vec<Vec<u8>> = signatures.iter().map(KeyPathSignature::to_bytes).collect();
    for (signature, value) in signatures.iter().zip(&values) {
        let index = signature.input;
        let facts = psbt
            .inputs
            .get(index)
            .ok_or(PsbtError::NoSuchInput(index))?;
        let map = raw
            .inputs
            .get_mut(index)
            .ok_or(PsbtError::NoSuchInput(index))?;
        // The map is asked too: two signatures for one input may be given here.
        if facts.is_signed || map.has(&fields::TAP_KEY_SIG) {
            return Err(PsbtError::AlreadySigned(index));
        }
        let spent = facts.spent().ok_or(PsbtError::MissingSpentOutput(index))?;
        if spent.script.taproot_output_key().is_none() {
            return Err(PsbtError::NotTaproot(index));
        }
        if SighashType::of_field(facts.sighash_type) != Some(signature.sighash_type) {
            return Err(PsbtError::SighashTypeMismatch(index));
        }
        map.insert(&fields::TAP_KEY_SIG, value, &[fields::TAP_KEY_SIG.key_type]);
    }
    let modifiable = raw
        .global
        .array::<1>(&fields::TX_MODIFIABLE)
        .map(|[flags]| [flags & !0b11]);
    if let Some(flags) = &modifiable
        && !signatures.is_empty()
    {
        raw.global.replace(&fields::TX_MODIFIABLE, flags);
    }
    Ok(raw.to_bytes())
}

/// The final transaction: each input is finalised already or has a key path signature.
///
/// # Errors
/// When the PSBT does not parse or an input has neither.
pub fn extract_transaction(psbt: &[u8]) -> Result<Vec<u8>, PsbtError> {
    let raw = RawPsbt::parse(psbt)?;
    let facts = Psbt::from_raw(&raw)?;
    let mut proofs = Vec::with_capacity(raw.inputs.len());
    for (index, (map, input)) in raw.inputs.iter().zip(facts.inputs()).enumerate() {
        let script_sig = map.value(&fields::FINAL_SCRIPTSIG);
        let witness = map
            .value(&fields::FINAL_SCRIPTWITNESS)
            .and_then(witness_stack);
        if script_sig.is_some() || witness.is_some() {
            proofs.push((script_sig.unwrap_or_default(), witness.unwrap_or_default()));
            continue;
        }
        let spends_taproot = input
            .spent()
            .is_some_and(|spent| spent.script.taproot_output_key().is_some());
        let signature = map.value(&fields::TAP_KEY_SIG).filter(|_| spends_taproot);
        proofs.push((&[], vec![signature.ok_or(PsbtError::NotSigned(index))?]));
    }
    Ok(facts.transaction().signed(&proofs))
}

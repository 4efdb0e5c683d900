//! A signed PSBT as a transaction. It decides only where signatures belong; whether they are valid has
//! been verified before they come here.

use firn_protocol::{
    bitcoin::{
        PsbtError, SighashType,
        psbt::{KeyPathSignature, Psbt, extract_transaction, insert_key_path_signatures},
        transaction::TxOut,
    },
    documents::InputSignature,
};

/// A signed payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedPayment {
    /// The PSBT with its signatures.
    pub psbt: Vec<u8>,
    /// The final transaction.
    pub transaction: Vec<u8>,
    /// Its id, as people read it.
    pub txid: String,
    /// What each input spends, in order.
    pub spent: Vec<TxOut>,
}

/// Puts signatures where they belong. The rest of the PSBT stays byte for byte as it was.
///
/// # Errors
/// An input that does not exist or is signed already.
pub fn insert(psbt: &[u8], signatures: &[InputSignature]) -> Result<Vec<u8>, PsbtError> {
    let parsed = Psbt::parse(psbt)?;
    let signatures: Vec<_> = signatures
        .iter()
        .map(|made| {
            let input = usize::try_from(made.input).unwrap_or(usize::MAX);
            let asked = parsed.inputs().get(input);
            let field = asked.and_then(|input| input.sighash_type());
            KeyPathSignature {
                input,
                // What the members signed is what the PSBT asks for.
                sighash_type: SighashType::of_field(field).unwrap_or(SighashType::Default),
                signature: *made.signature.as_bytes(),
            }
        })
        .collect();
    insert_key_path_signatures(psbt, &signatures)
}

/// Puts the signatures where they belong and takes the transaction out.
///
/// # Errors
/// An input that does not exist, is signed already or stays unsigned.
pub fn finish(psbt: &[u8], signatures: &[InputSignature]) -> Result<SignedPayment, PsbtError> {
    let psbt = insert(psbt, signatures)?;
    let parsed = Psbt::parse(&psbt)?;
    Ok(SignedPayment {
        transaction: extract_transaction(&psbt)?,
        txid: parsed.transaction().txid().to_string(),
        spent: parsed.spent_outputs()?,
        psbt,
    })
}

//! What signing a PSBT would do to a key: which inputs and outputs are its own, what leaves, what
//! the fee is, and what exactly would be signed. Refuses what cannot be told for sure; whether it
//! is allowed is the policy's question.

use thiserror::Error;

use super::{
    amount::Sats,
    extended_key::{Child, DerivedKey},
    network::Network,
    own::OwnScripts,
    psbt::{Psbt, PsbtError},
    sighash::{KeyPathSighashes, SighashError, SighashType},
    transaction::{OutPoint, TxOut, UnsignedTransaction},
};

/// Why a PSBT has no summary, and so cannot be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SummaryError {
    /// The PSBT is not good enough for a signer.
    #[error(transparent)]
    Psbt(#[from] PsbtError),
    /// A sighash cannot be computed.
    #[error(transparent)]
    Sighash(#[from] SighashError),
    /// No input belongs to the key.
    #[error("no input belongs to this key")]
    NoOwnInput,
    /// The transaction has no output.
    #[error("the transaction has no output")]
    NoOutput,
    /// The outputs are worth more than the inputs.
    #[error("the outputs are worth more than the inputs")]
    OutputsExceedInputs,
    /// The key would get more than it gives, from foreign inputs.
    #[error("the own outputs are worth more than the own inputs")]
    NegativeOutflow,
    /// A number that no type of BIP-341 has.
    #[error("input {input} asks for sighash type {number:#x}, which BIP-341 does not have")]
    UnknownSighashType {
        /// The input's index.
        input: usize,
        /// The number.
        number: u32,
    },
    /// The internal key of an own input is another one than its script has.
    #[error("the internal key of input {0} is not the one of its script")]
    InputInternalKeyMismatch(usize),
    /// The internal key of an own output is another one than its script has.
    #[error("the internal key of output {0} is not the one of its script")]
    OutputInternalKeyMismatch(usize),
    /// An own input comes with a script tree, which no own script has.
    #[error("input {0} comes with a script path, which no script of this key has")]
    InputScriptPath(usize),
    /// An own output comes with a script tree, which no own script has.
    #[error("output {0} comes with a script tree, which no script of this key has")]
    OutputScriptPath(usize),
    /// An own input is signed already.
    #[error("input {0} belongs to this key and is signed already")]
    AlreadySigned(usize),
}

/// An input that belongs to the key, with all that signing it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnInput {
    /// The input's index.
    pub index: usize,
    /// The child's key.
    pub key: DerivedKey,
    /// The type to sign with: DEFAULT or ALL.
    pub sighash_type: SighashType,
    /// The 32 bytes to sign.
    pub sighash: [u8; 32],
}

/// One input: what it spends, and whose that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputSummary {
    /// The output that it spends.
    pub outpoint: OutPoint,
    /// Its sequence number.
    pub sequence: u32,
    /// Amount and script of what it spends.
    pub spent: TxOut,
    /// All that signing takes if it belongs to the key; `None` is foreign.
    pub own: Option<OwnInput>,
}

/// One output: what it pays, and to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputSummary {
    /// Amount and script.
    pub output: TxOut,
    /// The child that it pays to if it belongs to the key; `None` is foreign.
    pub own: Option<Child>,
}

/// What signing a PSBT would do to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    network: Network,
    transaction: UnsignedTransaction,
    inputs: Vec<InputSummary>,
    outputs: Vec<OutputSummary>,
    fee: Sats,
    outflow: Sats,
}

impl Summary {
    /// Works out what signing would do. `own` knows the key's scripts; `network` is the key's.
    ///
    /// # Errors
    /// One variant for each reason why a signer cannot go on.
    pub fn of(psbt: &Psbt, network: Network, own: &OwnScripts) -> Result<Self, SummaryError> {
        let transaction = psbt.transaction().clone();
        let spent = psbt.spent_outputs()?;
        let sighashes = KeyPathSighashes::new(&transaction, &spent)?;
        let mut inputs = Vec::with_capacity(spent.len());
        for (index, (txin, spent)) in transaction.inputs().iter().zip(spent).enumerate() {
            let own = own_input(psbt, index, &spent, own, &sighashes)?;
            let (outpoint, sequence) = (txin.outpoint, txin.sequence);
            inputs.push(InputSummary {
                outpoint,
                sequence,
                spent,
                own,
            });
        }
        let mut outputs = Vec::with_capacity(transaction.outputs().len());
        for (index, output) in transaction.outputs().iter().enumerate() {
            let own = own_output(psbt, index, output, own)?;
            outputs.push(OutputSummary {
                output: output.clone(),
                own,
            });
        }
        if outputs.is_empty() {
            return Err(SummaryError::NoOutput);
        }
        if inputs.iter().all(|input| input.own.is_none()) {
            return Err(SummaryError::NoOwnInput);
        }
        let fee = difference(
            inputs.iter().map(|input| input.spent.value),
            outputs.iter().map(|output| output.output.value),
        )
        .ok_or(SummaryError::OutputsExceedInputs)?;
        let own_inputs = inputs.iter().filter(|input| input.own.is_some());
        let own_outputs = outputs.iter().filter(|output| output.own.is_some());
        let outflow = difference(
            own_inputs.map(|input| input.spent.value),
            own_outputs.map(|output| output.output.value),
        )
        .ok_or(SummaryError::NegativeOutflow)?;
        Ok(Self {
            network,
            transaction,
            inputs,
            outputs,
            fee,
            outflow,
        })
    }

    /// The network.
    #[must_use]
    pub const fn network(&self) -> Network {
        self.network
    }

    /// The transaction that would be signed.
    #[must_use]
    pub const fn transaction(&self) -> &UnsignedTransaction {
        &self.transaction
    }

    /// The inputs in order.
    #[must_use]
    pub fn inputs(&self) -> &[InputSummary] {
        &self.inputs
    }

    /// The outputs in order.
    #[must_use]
    pub fn outputs(&self) -> &[OutputSummary] {
        &self.outputs
    }

    /// The inputs to sign, in order; never empty.
    pub fn own_inputs(&self) -> impl Iterator<Item = &OwnInput> {
        self.inputs.iter().filter_map(|input| input.own.as_ref())
    }

    /// All inputs less all outputs.
    #[must_use]
    pub const fn fee(&self) -> Sats {
        self.fee
    }

    /// Own inputs less own outputs: everything that leaves the key, the fee included.
    #[must_use]
    pub const fn outflow(&self) -> Sats {
        self.outflow
    }
}

fn own_input(
    psbt: &Psbt,
    index: usize,
    spent: &TxOut,
    own: &OwnScripts,
    sighashes: &KeyPathSighashes,
) -> Result<Option<OwnInput>, SummaryError> {
    let Some(facts) = psbt.inputs().get(index) else {
        return Ok(None);
    };
    let Some(key) = own.find(&facts.origins, &spent.script) else {
        return Ok(None);
    };
    if facts
        .internal_key
        .is_some_and(|stated| stated != key.x_only_internal_key())
    {
        return Err(SummaryError::InputInternalKeyMismatch(index));
    }
    // The signatures of a script path belong to it, so it is named first.
    if facts.has_script_path {
        return Err(SummaryError::InputScriptPath(index));
    }
    if facts.is_signed {
        return Err(SummaryError::AlreadySigned(index));
    }
    let number = facts.sighash_type.unwrap_or_default();
    let sighash_type =
        SighashType::of_field(facts.sighash_type).ok_or(SummaryError::UnknownSighashType {
            input: index,
            number,
        })?;
    let sighash = sighashes.sighash(index, sighash_type)?;
    Ok(Some(OwnInput {
        index,
        key,
        sighash_type,
        sighash,
    }))
}

fn own_output(
    psbt: &Psbt,
    index: usize,
    output: &TxOut,
    own: &OwnScripts,
) -> Result<Option<Child>, SummaryError> {
    let Some(facts) = psbt.outputs().get(index) else {
        return Ok(None);
    };
    let Some(key) = own.find(&facts.origins, &output.script) else {
        return Ok(None);
    };
    if facts
        .internal_key
        .is_some_and(|stated| stated != key.x_only_internal_key())
    {
        return Err(SummaryError::OutputInternalKeyMismatch(index));
    }
    if facts.has_script_path {
        return Err(SummaryError::OutputScriptPath(index));
    }
    Ok(Some(key.child()))
}

fn difference(plus: impl Iterator<Item = Sats>, minus: impl Iterator<Item = Sats>) -> Option<Sats> {
    Sats::checked_sum(plus)?.checked_sub(Sats::checked_sum(minus)?)
}

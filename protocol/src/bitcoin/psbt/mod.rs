//! PSBTs, version 0 (BIP-174, BIP-371) and 2 (BIP-370), as they are received. Decides whether one is
//! well formed and which transaction it describes; believes none of its statements about keys.

mod build;
mod error;
mod fields;
mod lock_time;
mod raw;
mod sign;
mod spent;

pub use self::{
    build::{NewInput, NewOutput, build_v0, build_v2},
    error::{Place, PsbtError},
    fields::PsbtVersion,
    raw::MAX_FIELDS,
    sign::{KeyPathSignature, extract_transaction, insert_key_path_signatures},
};
use self::{
    fields::taproot_key_origin,
    raw::{Map, RawPsbt, required},
};
use super::amount::Sats;
use super::transaction::{OutPoint, ScriptPubKey, TxIn, TxOut, Txid, UnsignedTransaction};

/// Where a wallet says that a key comes from: a hint that an index may use, never a proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyOrigin {
    /// The x-only key that the statement is about.
    pub x_only_key: [u8; 32],
    /// The first four bytes of the hash of the key that the path starts from.
    pub fingerprint: [u8; 4],
    /// The path from there; hardened steps have the highest bit set.
    pub path: Vec<u32>,
}

/// What a PSBT says about one input, apart from the transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PsbtInput {
    pub(super) spent: Option<TxOut>,
    pub(super) sighash_type: Option<u32>,
    pub(super) internal_key: Option<[u8; 32]>,
    pub(super) has_script_path: bool,
    pub(super) is_signed: bool,
    pub(super) origins: Vec<KeyOrigin>,
    has_previous_transaction: bool,
    redeem_script: Option<Vec<u8>>,
    witness_script: Option<Vec<u8>>,
}

impl PsbtInput {
    /// The output that it spends, if the PSBT tells.
    #[must_use]
    pub const fn spent(&self) -> Option<&TxOut> {
        self.spent.as_ref()
    }

    /// The sighash type that it asks for, as written.
    #[must_use]
    pub const fn sighash_type(&self) -> Option<u32> {
        self.sighash_type
    }

    /// Whether any signature or final field is in it.
    #[must_use]
    pub const fn is_signed(&self) -> bool {
        self.is_signed
    }
}

/// What a PSBT says about one output, apart from the transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PsbtOutput {
    pub(super) internal_key: Option<[u8; 32]>,
    pub(super) has_script_path: bool,
    pub(super) origins: Vec<KeyOrigin>,
}

/// A well formed PSBT: the transaction, and what is said about its inputs and outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Psbt {
    version: PsbtVersion,
    transaction: UnsignedTransaction,
    inputs: Vec<PsbtInput>,
    outputs: Vec<PsbtOutput>,
}

impl Psbt {
    /// Parses a PSBT of at most [`crate::limits::MAX_PSBT`] bytes, in binary form.
    ///
    /// # Errors
    /// One variant for each rule that the bytes break.
    pub fn parse(bytes: &[u8]) -> Result<Self, PsbtError> {
        Self::from_raw(&RawPsbt::parse(bytes)?)
    }

    /// The version.
    #[must_use]
    pub const fn version(&self) -> PsbtVersion {
        self.version
    }

    /// The transaction that it describes.
    #[must_use]
    pub const fn transaction(&self) -> &UnsignedTransaction {
        &self.transaction
    }

    /// What it says about each input, in the transaction's order.
    #[must_use]
    pub fn inputs(&self) -> &[PsbtInput] {
        &self.inputs
    }

    /// What it says about each output, in the transaction's order.
    #[must_use]
    pub fn outputs(&self) -> &[PsbtOutput] {
        &self.outputs
    }

    fn from_raw(raw: &RawPsbt<'_>) -> Result<Self, PsbtError> {
        let transaction = match &raw.unsigned {
            Some(transaction) => transaction.clone(),
            None => described_transaction(raw)?,
        };
        let inputs = (raw.inputs.iter().zip(transaction.inputs()).enumerate())
            .map(|(index, (map, txin))| read_input(index, map, txin))
            .collect::<Result<_, _>>()?;
        let outputs = raw.outputs.iter().map(read_output).collect();
        Ok(Self {
            version: raw.version,
            transaction,
            inputs,
            outputs,
        })
    }
}

/// The transaction that a version 2 PSBT describes field by field.
fn described_transaction(raw: &RawPsbt<'_>) -> Result<UnsignedTransaction, PsbtError> {
    let mut inputs = Vec::with_capacity(raw.inputs.len());
    for (index, map) in raw.inputs.iter().enumerate() {
        let place = Place::Input(index);
        let missing = |field: &fields::Field| PsbtError::MissingField {
            place,
            field: field.name,
        };
        let txid = map
            .array(&fields::PREVIOUS_TXID)
            .ok_or(missing(&fields::PREVIOUS_TXID))?;
        let vout = map
            .number(&fields::OUTPUT_INDEX)
            .ok_or(missing(&fields::OUTPUT_INDEX))?;
        let sequence = map.number(&fields::SEQUENCE).unwrap_or(u32::MAX);
        inputs.push(TxIn {
            outpoint: OutPoint {
                txid: Txid::new(txid),
                vout,
            },
            sequence,
        });
    }
    let mut outputs = Vec::with_capacity(raw.outputs.len());
    for (index, map) in raw.outputs.iter().enumerate() {
        let place = Place::Output(index);
        let field = fields::AMOUNT.name;
        let amount = map
            .array(&fields::AMOUNT)
            .ok_or(PsbtError::MissingField { place, field })?;
        let script = required(map, place, &fields::SCRIPT)?;
        let value = Sats::new(u64::from_le_bytes(amount));
        let value = value.ok_or(super::transaction::TransactionError::AmountTooLarge)?;
        outputs.push(TxOut {
            value,
            script: ScriptPubKey::new(script.to_vec()),
        });
    }
    let (place, field) = (Place::Global, fields::TX_VERSION.name);
    let version = raw.global.number(&fields::TX_VERSION);
    let version = version.ok_or(PsbtError::MissingField { place, field })?;
    let lock_time = lock_time::determine(&raw.global, &raw.inputs)?;
    Ok(UnsignedTransaction::new(
        version, inputs, outputs, lock_time,
    )?)
}

fn read_input(index: usize, map: &Map<'_>, txin: &TxIn) -> Result<PsbtInput, PsbtError> {
    let script_path = [
        fields::TAP_MERKLE_ROOT,
        fields::TAP_LEAF_SCRIPT,
        fields::TAP_SCRIPT_SIG,
    ];
    let signatures = [
        fields::PARTIAL_SIG,
        fields::FINAL_SCRIPTSIG,
        fields::FINAL_SCRIPTWITNESS,
        fields::TAP_KEY_SIG,
        fields::TAP_SCRIPT_SIG,
    ];
    Ok(PsbtInput {
        spent: spent::spent_output(index, map, txin)?,
        sighash_type: map.number(&fields::SIGHASH_TYPE),
        internal_key: map.array(&fields::IN_TAP_INTERNAL_KEY),
        has_script_path: script_path.iter().any(|field| map.has(field)),
        is_signed: signatures.iter().any(|field| map.has(field)),
        origins: key_origins(map, &fields::IN_TAP_BIP32),
        has_previous_transaction: map.has(&fields::NON_WITNESS_UTXO),
        redeem_script: map.value(&fields::REDEEM_SCRIPT).map(<[u8]>::to_vec),
        witness_script: map.value(&fields::WITNESS_SCRIPT).map(<[u8]>::to_vec),
    })
}

fn read_output(map: &Map<'_>) -> PsbtOutput {
    PsbtOutput {
        internal_key: map.array(&fields::OUT_TAP_INTERNAL_KEY),
        has_script_path: map.has(&fields::TAP_TREE),
        origins: key_origins(map, &fields::OUT_TAP_BIP32),
    }
}

/// The origins that a map states; their form was checked when the map was read.
fn key_origins(map: &Map<'_>, field: &fields::Field) -> Vec<KeyOrigin> {
    map.all(field)
        .filter_map(|(key, value)| {
            let (fingerprint, path) = taproot_key_origin(value)?.split_first_chunk::<4>()?;
            let (steps, _) = path.as_chunks::<4>();
            Some(KeyOrigin {
                x_only_key: key.try_into().ok()?,
                fingerprint: *fingerprint,
                path: steps.iter().map(|step| u32::from_le_bytes(*step)).collect(),
            })
        })
        .collect()
}

//! The message of a Taproot key path signature, computed here from parsed facts (BIP-341, "Common
//! signature message"). Signs for DEFAULT and ALL only; the other types are recognised and refused,
//! since each leaves a part of the transaction open.

use sha2::{Digest, Sha256};
use thiserror::Error;

use super::transaction::{TxOut, UnsignedTransaction};

/// The sighash types of BIP-341.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SighashType {
    /// 0x00: signs everything, without a byte that says so.
    Default,
    /// 0x01: signs everything.
    All,
    /// 0x02: leaves the outputs open.
    None,
    /// 0x03: leaves all outputs but one open.
    Single,
    /// 0x81: leaves the other inputs open.
    AllAnyoneCanPay,
    /// 0x82: leaves outputs and other inputs open.
    NoneAnyoneCanPay,
    /// 0x83: leaves other outputs and inputs open.
    SingleAnyoneCanPay,
}

impl SighashType {
    /// All types.
    pub const ALL_TYPES: [Self; 7] = [
        Self::Default,
        Self::All,
        Self::None,
        Self::Single,
        Self::AllAnyoneCanPay,
        Self::NoneAnyoneCanPay,
        Self::SingleAnyoneCanPay,
    ];

    /// The type's byte.
    #[must_use]
    pub const fn to_u8(self) -> u8 {
        match self {
            Self::Default => 0x00,
            Self::All => 0x01,
            Self::None => 0x02,
            Self::Single => 0x03,
            Self::AllAnyoneCanPay => 0x81,
            Self::NoneAnyoneCanPay => 0x82,
            Self::SingleAnyoneCanPay => 0x83,
        }
    }

    /// The type that a PSBT's sighash field means for a Taproot input: absent means DEFAULT; `None`
    /// for a number that is no type of BIP-341.
    #[must_use]
    pub fn of_field(field: Option<u32>) -> Option<Self> {
        let number = field.unwrap_or(0);
        Self::ALL_TYPES
            .into_iter()
            .find(|known| u32::from(known.to_u8()) == number)
    }

    /// Whether a signature of this type covers the whole transaction.
    #[must_use]
    pub const fn covers_everything(self) -> bool {
        match self {
            Self::Default | Self::All => true,
            Self::None
            | Self::Single
            | Self::AllAnyoneCanPay
            | Self::NoneAnyoneCanPay
            | Self::SingleAnyoneCanPay => false,
        }
    }
}

/// Why no sighash is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SighashError {
    /// The type leaves a part of the transaction open.
    #[error("sighash type {:#04x} leaves a part of the transaction open", .0.to_u8())]
    TypeRefused(SighashType),
    /// Not one spent output for each input.
    #[error("not one spent output for each input")]
    SpentOutputCount,
    /// No input has this index.
    #[error("there is no input {0}")]
    NoSuchInput(usize),
}

/// What all inputs' messages have in common: the five hashes over the whole transaction are made
/// once, and a transaction with many inputs costs one short hash for each.
#[derive(Clone)]
pub struct KeyPathSighashes {
    default: Sha256,
    all: Sha256,
    inputs: usize,
}

impl KeyPathSighashes {
    /// Hashes what the inputs have in common. `spent` are the outputs that the inputs spend, in
    /// their order.
    ///
    /// # Errors
    /// When there is not one spent output for each input.
    pub fn new(transaction: &UnsignedTransaction, spent: &[TxOut]) -> Result<Self, SighashError> {
        let inputs = transaction.inputs();
        if spent.len() != inputs.len() {
            return Err(SighashError::SpentOutputCount);
        }
        let mut outpoints = Sha256::new();
        let mut sequences = Sha256::new();
        for input in inputs {
            outpoints.update(input.outpoint.txid.as_bytes());
            outpoints.update(input.outpoint.vout.to_le_bytes());
            sequences.update(input.sequence.to_le_bytes());
        }
        let mut amounts = Sha256::new();
        let mut scripts = Sha256::new();
        for output in spent {
            let bytes = output.to_bytes();
            let (amount, script) = bytes.split_at(8.min(bytes.len()));
            amounts.update(amount);
            scripts.update(script);
        }
        let mut outputs = Sha256::new();
        for output in transaction.outputs() {
            outputs.update(output.to_bytes());
        }
        let hashes = [outpoints, amounts, scripts, sequences, outputs].map(Sha256::finalize);
        let midstate = |sighash_type: SighashType| {
            let tag = Sha256::digest(b"TapSighash");
            let mut hasher = Sha256::new();
            hasher.update(tag);
            hasher.update(tag);
            // The epoch, then the type.
            hasher.update([0, sighash_type.to_u8()]);
            hasher.update(transaction.version().to_le_bytes());
            hasher.update(transaction.lock_time().to_le_bytes());
            hashes.iter().for_each(|hash| hasher.update(hash));
            hasher
        };
        Ok(Self {
            default: midstate(SighashType::Default),
            all: midstate(SighashType::All),
            inputs: inputs.len(),
        })
    }

    /// The 32 bytes that a key path signature of this input signs.
    ///
    /// # Errors
    /// For an index without an input, and for types other than DEFAULT and ALL.
    pub fn sighash(&self, input: usize, of: SighashType) -> Result<[u8; 32], SighashError> {
        let missing = SighashError::NoSuchInput(input);
        let index = u32::try_from(input).map_err(|_| missing)?;
        if input >= self.inputs {
            return Err(missing);
        }
        let mut hasher = match of {
            SighashType::Default => self.default.clone(),
            SighashType::All => self.all.clone(),
            SighashType::None
            | SighashType::Single
            | SighashType::AllAnyoneCanPay
            | SighashType::NoneAnyoneCanPay
            | SighashType::SingleAnyoneCanPay => return Err(SighashError::TypeRefused(of)),
        };
        // The spend type: key path, no annex.
        hasher.update([0]);
        hasher.update(index.to_le_bytes());
        Ok(hasher.finalize().into())
    }
}

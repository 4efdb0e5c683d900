//! Why a PSBT is refused, by the rule that it breaks and the place where it does.

use std::fmt;

use thiserror::Error;

use super::super::{
    transaction::{OutPoint, TransactionError},
    wire::WireError,
};
use crate::limits;

/// Which key-value map of a PSBT is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The global map.
    Global,
    /// The map of the input with this index.
    Input(usize),
    /// The map of the output with this index.
    Output(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => f.write_str("the global map"),
            Self::Input(index) => write!(f, "input {index}"),
            Self::Output(index) => write!(f, "output {index}"),
        }
    }
}

/// Why a PSBT is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PsbtError {
    /// More than [`limits::MAX_PSBT`] bytes.
    #[error("the PSBT is larger than {} bytes", limits::MAX_PSBT)]
    TooLarge,
    /// The first five bytes are not `psbt` and 0xff.
    #[error("not a PSBT: the magic bytes are missing")]
    BadMagic,
    /// The bytes end within a map.
    #[error("the PSBT is truncated")]
    Truncated,
    /// Bytes follow the last map.
    #[error("bytes follow the last map of the PSBT")]
    TrailingBytes,
    /// A length is written longer than needed.
    #[error("a compact size in {0} is longer than needed")]
    NonMinimalCompactSize(Place),
    /// More fields than any transaction within the limits needs.
    #[error("the PSBT has more than {} fields", super::MAX_FIELDS)]
    TooManyFields,
    /// A key occurs twice in a map.
    #[error("a key of type {key_type:#04x} occurs twice in {place}")]
    DuplicateKey {
        /// The map.
        place: Place,
        /// The key's first byte.
        key_type: u8,
    },
    /// A version that no BIP defines.
    #[error("PSBT version {0} is not known")]
    UnsupportedVersion(u32),
    /// A field that belongs to the other version.
    #[error("{field} in {place} does not belong into a PSBT of this version")]
    FieldOfOtherVersion {
        /// The map.
        place: Place,
        /// The field's name in its BIP.
        field: &'static str,
    },
    /// A field that this version must have.
    #[error("{field} is missing in {place}")]
    MissingField {
        /// The map.
        place: Place,
        /// The field's name in its BIP.
        field: &'static str,
    },
    /// The key of a known field has another length than its BIP says.
    #[error("the key of {field} in {place} has a wrong length")]
    WrongKeyLength {
        /// The map.
        place: Place,
        /// The field's name in its BIP.
        field: &'static str,
    },
    /// The value of a known field has another length or form than its BIP says.
    #[error("the value of {field} in {place} has a wrong length or form")]
    WrongValue {
        /// The map.
        place: Place,
        /// The field's name in its BIP.
        field: &'static str,
    },
    /// The unsigned transaction, or the one that a version 2 PSBT describes, is not acceptable.
    #[error("the transaction: {0}")]
    Transaction(TransactionError),
    /// The previous transaction of an input is not acceptable.
    #[error("the previous transaction of input {input}: {error}")]
    PreviousTransaction {
        /// The input's index.
        input: usize,
        /// What is wrong with it.
        error: TransactionError,
    },
    /// The previous transaction has another id than the input spends from.
    #[error("the previous transaction of input {0} is another one than it spends from")]
    PreviousTransactionIdMismatch(usize),
    /// The spent output in the PSBT and the one in the previous transaction differ.
    #[error("the witness UTXO of input {0} is not the output of its previous transaction")]
    SpentOutputMismatch(usize),
    /// An input's required lock time is on the wrong side of 500,000,000, or zero.
    #[error("input {0} requires a lock time of the other kind")]
    RequiredLockTimeOutOfRange(usize),
    /// One input requires a time and another a height.
    #[error("the inputs require lock times that no transaction can meet at once")]
    ConflictingLockTimes,
    /// An input's spent output is not in the PSBT; BIP-341 signs over all of them.
    #[error("the spent output of input {0} is missing")]
    MissingSpentOutput(usize),
    /// The spent outputs add up to more than 21 million bitcoin.
    #[error("the spent outputs add up to more than 21 million bitcoin")]
    SpentAmountTooLarge,
    /// A witness UTXO alone for an output whose signature does not commit to the amount.
    #[error("input {0} has a witness UTXO but spends an output without a witness")]
    WitnessUtxoForNonWitness(usize),
    /// A redeemScript or witnessScript is not the one that is hashed in the script it belongs to.
    #[error("the redeemScript or witnessScript of input {0} is not the one that its script names")]
    ScriptMismatch(usize),
    /// No input has this index.
    #[error("there is no input {0}")]
    NoSuchInput(usize),
    /// The input has a signature or is finalised already, or two signatures are given for it.
    #[error("input {0} is signed already")]
    AlreadySigned(usize),
    /// The input does not spend a Taproot output, so a Taproot signature has no place in it.
    #[error("input {0} does not spend a Taproot output")]
    NotTaproot(usize),
    /// The input asks for another sighash type than the signature was made with.
    #[error("input {0} asks for another sighash type")]
    SighashTypeMismatch(usize),
    /// The input has no key path signature and is not finalised.
    #[error("input {0} is not signed")]
    NotSigned(usize),
    /// A previous output is spent by two inputs.
    #[error("two inputs spend {0}")]
    DuplicateInput(OutPoint),
}

impl PsbtError {
    pub(super) const fn wire(error: WireError, place: Place) -> Self {
        match error {
            WireError::Truncated => Self::Truncated,
            WireError::NonMinimal => Self::NonMinimalCompactSize(place),
        }
    }
}

impl From<TransactionError> for PsbtError {
    fn from(error: TransactionError) -> Self {
        match error {
            TransactionError::DuplicateInput(outpoint) => Self::DuplicateInput(outpoint),
            TransactionError::Truncated
            | TransactionError::NonMinimalCompactSize
            | TransactionError::TrailingBytes
            | TransactionError::WitnessSerialization
            | TransactionError::ScriptSig(_)
            | TransactionError::TooManyInputs
            | TransactionError::TooManyOutputs
            | TransactionError::AmountTooLarge
            | TransactionError::BadWitness
            | TransactionError::NoSuchOutput(_) => Self::Transaction(error),
        }
    }
}

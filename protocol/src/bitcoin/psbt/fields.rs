//! The fields that BIP-174, BIP-370 and BIP-371 define: which version each belongs to and what form
//! its key and value have. Decides form only; unknown fields are kept as they are.

use super::{
    super::wire::{Cursor, WireError},
    error::{Place, PsbtError},
    raw::Map,
};

/// The version of a PSBT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PsbtVersion {
    /// BIP-174.
    V0,
    /// BIP-370.
    V2,
}

/// What follows the type in a field's key.
#[derive(Clone, Copy)]
enum KeyData {
    None,
    Length(usize),
    /// A compressed or uncompressed key.
    PublicKey,
    /// BIP-341: 33 bytes and at most 128 hashes.
    ControlBlock,
}

/// What a field's value looks like.
#[derive(Clone, Copy)]
enum Value {
    Any,
    NonEmpty,
    Length(usize),
    /// A fingerprint and a path of 32-bit numbers.
    KeyOrigin,
    /// BIP-371: leaf hashes, then a key origin.
    TaprootKeyOrigin,
    /// 64 bytes, or 65 with a sighash type.
    SchnorrSignature,
    WitnessStack,
    CompactSize,
    /// BIP-371: depth, leaf version and script of each leaf.
    TaprootTree,
}

/// One field's definition. `only` is the version it is confined to.
pub(super) struct Field {
    pub(super) key_type: u8,
    pub(super) name: &'static str,
    key: KeyData,
    value: Value,
    only: Option<PsbtVersion>,
}

const fn field(key_type: u8, name: &'static str, key: KeyData, value: Value) -> Field {
    Field {
        key_type,
        name,
        key,
        value,
        only: None,
    }
}

const fn v2(key_type: u8, name: &'static str, value: Value) -> Field {
    Field {
        key_type,
        name,
        key: KeyData::None,
        value,
        only: Some(PsbtVersion::V2),
    }
}

pub(super) const UNSIGNED_TX: Field = Field {
    key_type: 0x00,
    name: "PSBT_GLOBAL_UNSIGNED_TX",
    key: KeyData::None,
    value: Value::Any,
    only: Some(PsbtVersion::V0),
};
pub(super) const TX_VERSION: Field = v2(0x02, "PSBT_GLOBAL_TX_VERSION", Value::Length(4));
pub(super) const FALLBACK_LOCKTIME: Field =
    v2(0x03, "PSBT_GLOBAL_FALLBACK_LOCKTIME", Value::Length(4));
pub(super) const INPUT_COUNT: Field = v2(0x04, "PSBT_GLOBAL_INPUT_COUNT", Value::CompactSize);
pub(super) const OUTPUT_COUNT: Field = v2(0x05, "PSBT_GLOBAL_OUTPUT_COUNT", Value::CompactSize);
pub(super) const TX_MODIFIABLE: Field = v2(0x06, "PSBT_GLOBAL_TX_MODIFIABLE", Value::Length(1));
pub(super) const VERSION: Field =
    field(0xfb, "PSBT_GLOBAL_VERSION", KeyData::None, Value::Length(4));

/// The key of an extended key has 78 bytes, BIP-32's serialisation.
const GLOBAL_FIELDS: [Field; 8] = [
    UNSIGNED_TX,
    field(
        0x01,
        "PSBT_GLOBAL_XPUB",
        KeyData::Length(78),
        Value::KeyOrigin,
    ),
    TX_VERSION,
    FALLBACK_LOCKTIME,
    INPUT_COUNT,
    OUTPUT_COUNT,
    TX_MODIFIABLE,
    VERSION,
];

pub(super) const NON_WITNESS_UTXO: Field =
    field(0x00, "PSBT_IN_NON_WITNESS_UTXO", KeyData::None, Value::Any);
pub(super) const WITNESS_UTXO: Field =
    field(0x01, "PSBT_IN_WITNESS_UTXO", KeyData::None, Value::Any);
pub(super) const PARTIAL_SIG: Field = field(
    0x02,
    "PSBT_IN_PARTIAL_SIG",
    KeyData::PublicKey,
    Value::NonEmpty,
);
pub(super) const SIGHASH_TYPE: Field = field(
    0x03,
    "PSBT_IN_SIGHASH_TYPE",
    KeyData::None,
    Value::Length(4),
);
pub(super) const REDEEM_SCRIPT: Field =
    field(0x04, "PSBT_IN_REDEEM_SCRIPT", KeyData::None, Value::Any);
pub(super) const WITNESS_SCRIPT: Field =
    field(0x05, "PSBT_IN_WITNESS_SCRIPT", KeyData::None, Value::Any);
pub(super) const FINAL_SCRIPTSIG: Field =
    field(0x07, "PSBT_IN_FINAL_SCRIPTSIG", KeyData::None, Value::Any);
pub(super) const FINAL_SCRIPTWITNESS: Field = field(
    0x08,
    "PSBT_IN_FINAL_SCRIPTWITNESS",
    KeyData::None,
    Value::WitnessStack,
);
pub(super) const PREVIOUS_TXID: Field = v2(0x0e, "PSBT_IN_PREVIOUS_TXID", Value::Length(32));
pub(super) const OUTPUT_INDEX: Field = v2(0x0f, "PSBT_IN_OUTPUT_INDEX", Value::Length(4));
pub(super) const SEQUENCE: Field = v2(0x10, "PSBT_IN_SEQUENCE", Value::Length(4));
pub(super) const REQUIRED_TIME: Field =
    v2(0x11, "PSBT_IN_REQUIRED_TIME_LOCKTIME", Value::Length(4));
pub(super) const REQUIRED_HEIGHT: Field =
    v2(0x12, "PSBT_IN_REQUIRED_HEIGHT_LOCKTIME", Value::Length(4));
pub(super) const TAP_KEY_SIG: Field = field(
    0x13,
    "PSBT_IN_TAP_KEY_SIG",
    KeyData::None,
    Value::SchnorrSignature,
);
pub(super) const TAP_SCRIPT_SIG: Field = field(
    0x14,
    "PSBT_IN_TAP_SCRIPT_SIG",
    KeyData::Length(64),
    Value::SchnorrSignature,
);
pub(super) const TAP_LEAF_SCRIPT: Field = field(
    0x15,
    "PSBT_IN_TAP_LEAF_SCRIPT",
    KeyData::ControlBlock,
    Value::NonEmpty,
);
pub(super) const IN_TAP_BIP32: Field = field(
    0x16,
    "PSBT_IN_TAP_BIP32_DERIVATION",
    KeyData::Length(32),
    Value::TaprootKeyOrigin,
);
pub(super) const IN_TAP_INTERNAL_KEY: Field = field(
    0x17,
    "PSBT_IN_TAP_INTERNAL_KEY",
    KeyData::None,
    Value::Length(32),
);
pub(super) const TAP_MERKLE_ROOT: Field = field(
    0x18,
    "PSBT_IN_TAP_MERKLE_ROOT",
    KeyData::None,
    Value::Length(32),
);

const INPUT_FIELDS: [Field; 25] = [
    NON_WITNESS_UTXO,
    WITNESS_UTXO,
    PARTIAL_SIG,
    SIGHASH_TYPE,
    REDEEM_SCRIPT,
    WITNESS_SCRIPT,
    field(
        0x06,
        "PSBT_IN_BIP32_DERIVATION",
        KeyData::PublicKey,
        Value::KeyOrigin,
    ),
    FINAL_SCRIPTSIG,
    FINAL_SCRIPTWITNESS,
    field(0x09, "PSBT_IN_POR_COMMITMENT", KeyData::None, Value::Any),
    field(0x0a, "PSBT_IN_RIPEMD160", KeyData::Length(20), Value::Any),
    field(0x0b, "PSBT_IN_SHA256", KeyData::Length(32), Value::Any),
    field(0x0c, "PSBT_IN_HASH160", KeyData::Length(20), Value::Any),
    field(0x0d, "PSBT_IN_HASH256", KeyData::Length(32), Value::Any),
    PREVIOUS_TXID,
    OUTPUT_INDEX,
    SEQUENCE,
    REQUIRED_TIME,
    REQUIRED_HEIGHT,
    TAP_KEY_SIG,
    TAP_SCRIPT_SIG,
    TAP_LEAF_SCRIPT,
    IN_TAP_BIP32,
    IN_TAP_INTERNAL_KEY,
    TAP_MERKLE_ROOT,
];

pub(super) const AMOUNT: Field = v2(0x03, "PSBT_OUT_AMOUNT", Value::Length(8));
pub(super) const SCRIPT: Field = v2(0x04, "PSBT_OUT_SCRIPT", Value::Any);
pub(super) const OUT_TAP_INTERNAL_KEY: Field = field(
    0x05,
    "PSBT_OUT_TAP_INTERNAL_KEY",
    KeyData::None,
    Value::Length(32),
);
pub(super) const TAP_TREE: Field =
    field(0x06, "PSBT_OUT_TAP_TREE", KeyData::None, Value::TaprootTree);
pub(super) const OUT_TAP_BIP32: Field = field(
    0x07,
    "PSBT_OUT_TAP_BIP32_DERIVATION",
    KeyData::Length(32),
    Value::TaprootKeyOrigin,
);

const OUTPUT_FIELDS: [Field; 8] = [
    field(0x00, "PSBT_OUT_REDEEM_SCRIPT", KeyData::None, Value::Any),
    field(0x01, "PSBT_OUT_WITNESS_SCRIPT", KeyData::None, Value::Any),
    field(
        0x02,
        "PSBT_OUT_BIP32_DERIVATION",
        KeyData::PublicKey,
        Value::KeyOrigin,
    ),
    AMOUNT,
    SCRIPT,
    OUT_TAP_INTERNAL_KEY,
    TAP_TREE,
    OUT_TAP_BIP32,
];

/// Checks each known field of a map against its definition.
pub(super) fn check_map(
    map: &Map<'_>,
    place: Place,
    version: PsbtVersion,
) -> Result<(), PsbtError> {
    let table: &[Field] = match place {
        Place::Global => &GLOBAL_FIELDS,
        Place::Input(_) => &INPUT_FIELDS,
        Place::Output(_) => &OUTPUT_FIELDS,
    };
    for pair in map.pairs() {
        let Some((key_type, data)) = pair.key.split_first() else {
            continue;
        };
        let Some(known) = table.iter().find(|field| field.key_type == *key_type) else {
            continue;
        };
        let field = known.name;
        if known.only.is_some_and(|only| only != version) {
            return Err(PsbtError::FieldOfOtherVersion { place, field });
        }
        if !key_fits(known.key, data) {
            return Err(PsbtError::WrongKeyLength { place, field });
        }
        if !value_fits(known.value, pair.value) {
            return Err(PsbtError::WrongValue { place, field });
        }
    }
    Ok(())
}

/// The leaf hashes' end and the origin of a value in the form of BIP-371's derivations.
pub(super) fn taproot_key_origin(value: &[u8]) -> Option<&[u8]> {
    let mut cursor = Cursor::new(value);
    let leaves = cursor.compact_size().ok()?;
    cursor.take(leaves.checked_mul(32)?).ok()?;
    Some(cursor.rest())
}

fn key_fits(form: KeyData, data: &[u8]) -> bool {
    match form {
        KeyData::None => data.is_empty(),
        KeyData::Length(length) => data.len() == length,
        KeyData::PublicKey => matches!(data.len(), 33 | 65),
        KeyData::ControlBlock => data
            .len()
            .checked_sub(33)
            .is_some_and(|path| path.is_multiple_of(32) && path <= 128 * 32),
    }
}

fn value_fits(form: Value, value: &[u8]) -> bool {
    match form {
        Value::Any => true,
        Value::NonEmpty => !value.is_empty(),
        Value::Length(length) => value.len() == length,
        Value::KeyOrigin => is_key_origin(value),
        Value::TaprootKeyOrigin => taproot_key_origin(value).is_some_and(is_key_origin),
        Value::SchnorrSignature => matches!(value.len(), 64 | 65),
        Value::WitnessStack => is_witness_stack(value).is_ok_and(|is| is),
        Value::CompactSize => compact_size(value).is_some(),
        Value::TaprootTree => is_taproot_tree(value).is_ok_and(|is| is),
    }
}

fn is_key_origin(value: &[u8]) -> bool {
    value.len() >= 4 && value.len().is_multiple_of(4)
}

/// A value that is one compact size.
pub(super) fn compact_size(value: &[u8]) -> Option<u64> {
    let mut cursor = Cursor::new(value);
    let number = cursor.compact_size().ok()?;
    cursor.is_empty().then_some(number)
}

/// Whether a value is one witness stack; allocates nothing, since this runs on what is received.
fn is_witness_stack(value: &[u8]) -> Result<bool, WireError> {
    let mut cursor = Cursor::new(value);
    for _ in 0..cursor.compact_size()? {
        cursor.prefixed()?;
    }
    Ok(cursor.is_empty())
}

/// The items of a value that is one witness stack.
pub(super) fn witness_stack(value: &[u8]) -> Option<Vec<&[u8]>> {
    let mut cursor = Cursor::new(value);
    let count = cursor.compact_size().ok()?;
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(cursor.prefixed().ok()?);
    }
    cursor.is_empty().then_some(items)
}

/// Whether a value is the leaves of one complete binary tree, depth first. BIP-341 allows 128
/// levels.
fn is_taproot_tree(value: &[u8]) -> Result<bool, WireError> {
    let mut cursor = Cursor::new(value);
    // The depths of the subtrees that have not begun yet, the next one last.
    let mut open: Vec<u8> = vec![0];
    while !cursor.is_empty() {
        let depth = cursor.u8()?;
        let _leaf_version = cursor.u8()?;
        cursor.prefixed()?;
        let Some(mut at) = open.pop() else {
            return Ok(false);
        };
        if depth > 128 || at > depth {
            return Ok(false);
        }
        // Going down to the leaf leaves the right half of each level to be filled.
        while at < depth {
            at = at.saturating_add(1);
            open.push(at);
        }
    }
    Ok(open.is_empty())
}

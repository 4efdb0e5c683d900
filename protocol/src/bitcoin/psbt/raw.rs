//! The key-value maps of a PSBT as they were written, unknown fields and their order included.
//! Decides where each map and field begins and ends; interprets only what it must to count maps.

use super::{
    super::{
        transaction::{MAX_INPUTS, MAX_OUTPUTS, TransactionError, UnsignedTransaction},
        wire::{Cursor, put_prefixed},
    },
    error::{Place, PsbtError},
    fields::{self, Field, PsbtVersion},
};
use crate::limits;

/// Fields in all maps together: ten for each input and four for each output at the limits would
/// be 26,000. It keeps what parsing allocates below the size limit's order.
pub const MAX_FIELDS: usize = 32_768;

const MAGIC: [u8; 5] = *b"psbt\xff";

/// One field as written: the key with its type, and the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair<'a> {
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
}

/// One map: its fields in the order in which they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Map<'a> {
    pairs: Vec<Pair<'a>>,
}

impl<'a> Map<'a> {
    pub(super) fn pairs(&self) -> &[Pair<'a>] {
        &self.pairs
    }

    /// The value of a field whose key is its type alone.
    pub(super) fn value(&self, field: &Field) -> Option<&'a [u8]> {
        self.pairs
            .iter()
            .find(|pair| pair.key == [field.key_type])
            .map(|pair| pair.value)
    }

    /// The value of a field of N bytes.
    pub(super) fn array<const N: usize>(&self, field: &Field) -> Option<[u8; N]> {
        self.value(field)?.try_into().ok()
    }

    /// The little-endian number in a field of four bytes.
    pub(super) fn number(&self, field: &Field) -> Option<u32> {
        self.array(field).map(u32::from_le_bytes)
    }

    /// Key data and value of each field of a type.
    pub(super) fn all(&self, field: &Field) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let key_type = field.key_type;
        self.pairs
            .iter()
            .filter_map(move |pair| match pair.key.split_first() {
                Some((first, data)) if *first == key_type => Some((data, pair.value)),
                Some(_) | None => None,
            })
    }

    pub(super) fn has(&self, field: &Field) -> bool {
        self.all(field).next().is_some()
    }

    /// Puts a field where the order of types wants it; fields that are there stay where they are.
    pub(super) fn insert(&mut self, field: &Field, value: &'a [u8], key: &'a [u8; 1]) {
        let at = self
            .pairs
            .iter()
            .position(|pair| {
                pair.key
                    .first()
                    .is_some_and(|first| *first > field.key_type)
            })
            .unwrap_or(self.pairs.len());
        self.pairs.insert(at, Pair { key, value });
    }

    /// Gives a field that is there another value.
    pub(super) fn replace(&mut self, field: &Field, value: &'a [u8]) {
        if let Some(pair) = self
            .pairs
            .iter_mut()
            .find(|pair| pair.key == [field.key_type])
        {
            pair.value = value;
        }
    }

    fn read(cursor: &mut Cursor<'a>, place: Place, left: &mut usize) -> Result<Self, PsbtError> {
        let wire = |error| PsbtError::wire(error, place);
        let mut pairs = Vec::new();
        loop {
            let key = cursor.prefixed().map_err(wire)?;
            if key.is_empty() {
                break;
            }
            *left = left.checked_sub(1).ok_or(PsbtError::TooManyFields)?;
            let value = cursor.prefixed().map_err(wire)?;
            pairs.push(Pair { key, value });
        }
        let mut keys: Vec<&[u8]> = pairs.iter().map(|pair| pair.key).collect();
        keys.sort_unstable();
        for neighbours in keys.windows(2) {
            if let [first, second] = neighbours
                && first == second
            {
                let key_type = first.first().copied().unwrap_or_default();
                return Err(PsbtError::DuplicateKey { place, key_type });
            }
        }
        Ok(Self { pairs })
    }

    fn write(&self, out: &mut Vec<u8>) {
        for pair in &self.pairs {
            put_prefixed(out, pair.key);
            put_prefixed(out, pair.value);
        }
        out.push(0);
    }
}

/// A PSBT's maps, each field of the right form, in a version that is known.
#[derive(Debug, Clone)]
pub(super) struct RawPsbt<'a> {
    pub(super) version: PsbtVersion,
    pub(super) global: Map<'a>,
    pub(super) inputs: Vec<Map<'a>>,
    pub(super) outputs: Vec<Map<'a>>,
    /// Version 0 only.
    pub(super) unsigned: Option<UnsignedTransaction>,
}

impl<'a> RawPsbt<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, PsbtError> {
        if bytes.len() > limits::MAX_PSBT {
            return Err(PsbtError::TooLarge);
        }
        let body = bytes.strip_prefix(&MAGIC).ok_or(PsbtError::BadMagic)?;
        let mut cursor = Cursor::new(body);
        let mut left = MAX_FIELDS;
        let global = Map::read(&mut cursor, Place::Global, &mut left)?;
        let version = version_of(&global)?;
        fields::check_map(&global, Place::Global, version)?;
        let (unsigned, inputs, outputs) = match version {
            PsbtVersion::V0 => {
                let unsigned = UnsignedTransaction::parse(required(
                    &global,
                    Place::Global,
                    &fields::UNSIGNED_TX,
                )?)?;
                let counts = (unsigned.inputs().len(), unsigned.outputs().len());
                (Some(unsigned), counts.0, counts.1)
            }
            PsbtVersion::V2 => {
                required(&global, Place::Global, &fields::TX_VERSION)?;
                let inputs = count(
                    &global,
                    &fields::INPUT_COUNT,
                    MAX_INPUTS,
                    TransactionError::TooManyInputs,
                )?;
                let outputs = count(
                    &global,
                    &fields::OUTPUT_COUNT,
                    MAX_OUTPUTS,
                    TransactionError::TooManyOutputs,
                )?;
                (None, inputs, outputs)
            }
        };
        let mut maps = |count: usize, place: fn(usize) -> Place| {
            (0..count)
                .map(|index| {
                    let map = Map::read(&mut cursor, place(index), &mut left)?;
                    fields::check_map(&map, place(index), version)?;
                    Ok(map)
                })
                .collect::<Result<Vec<_>, PsbtError>>()
        };
        let inputs = maps(inputs, Place::Input)?;
        let outputs = maps(outputs, Place::Output)?;
        if !cursor.is_empty() {
            return Err(PsbtError::TrailingBytes);
        }
        Ok(Self {
            version,
            global,
            inputs,
            outputs,
            unsigned,
        })
    }

    /// The serialisation: what was parsed comes out byte for byte, since every length was read in
    /// its only form.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        for map in std::iter::once(&self.global)
            .chain(&self.inputs)
            .chain(&self.outputs)
        {
            map.write(&mut out);
        }
        out
    }
}

/// The value of a field that must be there.
pub(super) fn required<'a>(
    map: &Map<'a>,
    place: Place,
    field: &Field,
) -> Result<&'a [u8], PsbtError> {
    map.value(field).ok_or(PsbtError::MissingField {
        place,
        field: field.name,
    })
}

fn version_of(global: &Map<'_>) -> Result<PsbtVersion, PsbtError> {
    let Some(value) = global.value(&fields::VERSION) else {
        return Ok(PsbtVersion::V0);
    };
    let field = fields::VERSION.name;
    let number = value.try_into().map(u32::from_le_bytes);
    match number.map_err(|_| PsbtError::WrongValue {
        place: Place::Global,
        field,
    })? {
        0 => Ok(PsbtVersion::V0),
        2 => Ok(PsbtVersion::V2),
        other => Err(PsbtError::UnsupportedVersion(other)),
    }
}

fn count(
    global: &Map<'_>,
    field: &Field,
    most: usize,
    error: TransactionError,
) -> Result<usize, PsbtError> {
    let value = required(global, Place::Global, field)?;
    fields::compact_size(value)
        .and_then(|number| usize::try_from(number).ok())
        .filter(|number| *number <= most)
        .ok_or(PsbtError::Transaction(error))
}

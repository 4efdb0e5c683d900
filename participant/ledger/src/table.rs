//! The ordered table in which the rules keep what they have concluded from the records. It decides
//! nothing: everything in it can be computed from the journal again, and a digest tells whether it
//! still is what was put in.

use std::{collections::BTreeMap, ops::ControlFlow};

use firn_protocol::tagged::tagged_hash;

/// The most bytes of a key.
pub const MAX_KEY_BYTES: usize = 512;
/// The most bytes of a value; larger ones would leave the index's own files (sled keeps values over
/// 128 KiB apart and never syncs them).
pub const MAX_VALUE_BYTES: usize = 64 << 10;

/// Why a table did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A key or a value over its bound.
    #[error("a key or a value of the index is over its bound")]
    TooLarge,
    /// The storage under the table failed.
    #[error("the index failed: {0}")]
    Storage(String),
}

/// What a walk calls for each key and value.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// Byte strings by byte strings, in the order of the keys.
pub trait Table {
    /// The value of a key.
    ///
    /// # Errors
    /// [`TableError::Storage`].
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, TableError>;

    /// Sets the value of a key.
    ///
    /// # Errors
    /// [`TableError`].
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), TableError>;

    /// Removes a key, if it is there.
    ///
    /// # Errors
    /// [`TableError::Storage`].
    fn delete(&mut self, key: &[u8]) -> Result<(), TableError>;

    /// Visits the entries from key `from` on, up to but without key `below`, in order, until the
    /// visitor breaks.
    ///
    /// # Errors
    /// [`TableError::Storage`].
    fn range(
        &self,
        from: &[u8],
        below: Option<&[u8]>,
        visit: &mut Visit<'_>,
    ) -> Result<(), TableError>;

    /// Visits the entries whose keys begin with `prefix`, in order, until the visitor breaks.
    ///
    /// # Errors
    /// [`TableError::Storage`].
    fn prefix(&self, prefix: &[u8], visit: &mut Visit<'_>) -> Result<(), TableError> {
        let mut below = prefix.to_vec();
        // The first key after all that begin with the prefix; there is none after 0xff..ff.
        while let Some(last) = below.pop() {
            if let Some(next) = last.checked_add(1) {
                below.push(next);
                break;
            }
        }
        self.range(
            prefix,
            (!below.is_empty()).then_some(below.as_slice()),
            visit,
        )
    }
}

/// Refuses what no table takes.
///
/// # Errors
/// [`TableError::TooLarge`].
pub const fn check_bounds(key: &[u8], value: &[u8]) -> Result<(), TableError> {
    if key.len() > MAX_KEY_BYTES || value.len() > MAX_VALUE_BYTES {
        return Err(TableError::TooLarge);
    }
    Ok(())
}

/// A table in memory, for replays and tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryTable(BTreeMap<Vec<u8>, Vec<u8>>);

impl MemoryTable {
    /// The digest of all that is in it.
    #[must_use]
    pub fn digest(&self) -> ContentDigest {
        let mut digest = ContentDigest::default();
        self.0
            .iter()
            .for_each(|(key, value)| digest.add(key, value));
        digest
    }
}

impl Table for MemoryTable {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, TableError> {
        Ok(self.0.get(key).cloned())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), TableError> {
        check_bounds(key, value)?;
        self.0.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), TableError> {
        self.0.remove(key);
        Ok(())
    }

    fn range(
        &self,
        from: &[u8],
        below: Option<&[u8]>,
        visit: &mut Visit<'_>,
    ) -> Result<(), TableError> {
        for (key, value) in self.0.range(from.to_vec()..) {
            if below.is_some_and(|below| key.as_slice() >= below) || visit(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// A digest of a set of entries that does not depend on their order and follows each change without a
/// walk over the rest: the sum of the entries' hashes modulo 2^256. It finds damage. It is no proof
/// against somebody who can choose many entries freely and write to the disk as well, who could
/// rewrite the digest too; against them stands the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentDigest([u128; 2]);

impl ContentDigest {
    /// Adds an entry.
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        let ([low, high], [own_low, own_high]) = (entry_hash(key, value), self.0);
        let (sum, carry) = own_low.overflowing_add(low);
        self.0 = [
            sum,
            own_high.wrapping_add(high).wrapping_add(u128::from(carry)),
        ];
    }

    /// Takes an entry away that was added before.
    pub fn remove(&mut self, key: &[u8], value: &[u8]) {
        let ([low, high], [own_low, own_high]) = (entry_hash(key, value), self.0);
        let (difference, borrow) = own_low.overflowing_sub(low);
        self.0 = [
            difference,
            own_high.wrapping_sub(high).wrapping_sub(u128::from(borrow)),
        ];
    }

    /// Its 32 bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        let halves = self.0.iter().flat_map(|half| half.to_be_bytes());
        bytes
            .iter_mut()
            .zip(halves)
            .for_each(|(byte, own)| *byte = own);
        bytes
    }
}

fn entry_hash(key: &[u8], value: &[u8]) -> [u128; 2] {
    let length = (key.len() as u64).to_be_bytes();
    let hash = tagged_hash("firn/index-entry", &[&length, key, value]);
    let mut halves = hash
        .as_chunks::<16>()
        .0
        .iter()
        .map(|half| u128::from_be_bytes(*half));
    [
        halves.next().unwrap_or_default(),
        halves.next().unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(table: &MemoryTable, prefix: &[u8]) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        table
            .prefix(prefix, &mut |key, _| {
                found.push(key.to_vec());
                ControlFlow::Continue(())
            })
            .unwrap();
        found
    }

    #[test]
    fn a_prefix_holds_its_keys_and_no_others() {
        let mut table = MemoryTable::default();
        for key in [
            &b"a"[..],
            b"b",
            b"b\x00",
            b"b\xff\xff",
            b"c",
            b"\xff",
            b"\xff\xff",
        ] {
            table.put(key, b"").unwrap();
        }
        assert_eq!(keys(&table, b"b"), [&b"b"[..], b"b\x00", b"b\xff\xff"]);
        assert_eq!(keys(&table, b"b\xff"), [&b"b\xff\xff"[..]]);
        assert_eq!(keys(&table, b"\xff"), [&b"\xff"[..], b"\xff\xff"]);
        assert_eq!(keys(&table, b"").len(), 7);
    }

    #[test]
    fn the_digest_depends_on_content_and_not_on_order_or_past() {
        let entries = [(&b"k"[..], &b"one"[..]), (b"ke", b"two"), (b"key", b"")];
        let digest_of = |order: &[usize]| {
            let mut digest = ContentDigest::default();
            order
                .iter()
                .for_each(|place| digest.add(entries[*place].0, entries[*place].1));
            digest
        };
        let mut digest = digest_of(&[0, 1, 2]);
        assert_eq!(digest, digest_of(&[2, 0, 1]));
        digest.add(b"k", b"eone");
        assert_ne!(digest, digest_of(&[0, 1, 2]));
        digest.remove(b"k", b"eone");
        assert_eq!(digest, digest_of(&[0, 1, 2]));
        assert_ne!(
            digest_of(&[0]),
            digest_of(&[0, 0]),
            "two equal entries must not cancel out"
        );
        assert_eq!(ContentDigest::default().to_bytes(), [0; 32]);
    }

    #[test]
    fn refuses_what_is_over_its_bound() {
        let mut table = MemoryTable::default();
        assert_eq!(
            table.put(&[0; MAX_KEY_BYTES + 1], b""),
            Err(TableError::TooLarge)
        );
        assert_eq!(
            table.put(b"", &[0; MAX_VALUE_BYTES + 1]),
            Err(TableError::TooLarge)
        );
    }
}

//! Trees that grow: the frontier, which knows its root, and the tree, which can also prove.
//! Neither ever forgets or changes a leaf.

use super::{
    ConsistencyProof, InclusionProof, LeafHash, MerkleError, MerkleRoot, TreeSize, node_hash,
};

/// The right edge of a tree: enough to append and to tell the root, 32 bytes for each one-bit of the
/// size. It cannot make proofs; that takes a [`MerkleTree`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    /// Roots of the complete subtrees from left to right, largest first.
    peaks: Vec<[u8; 32]>,
}

impl Frontier {
    /// Restores a frontier from what [`Frontier::parts`] gave.
    ///
    /// # Errors
    /// [`MerkleError::FrontierShape`] if the number of hashes is not the number of one-bits in `size`.
    pub fn restore(size: TreeSize, peaks: Vec<[u8; 32]>) -> Result<Self, MerkleError> {
        let wanted = usize::try_from(size.0.count_ones());
        if wanted != Ok(peaks.len()) {
            return Err(MerkleError::FrontierShape {
                size: size.0,
                hashes: peaks.len(),
            });
        }
        Ok(Self {
            size: size.0,
            peaks,
        })
    }

    /// Its size and hashes, for storing.
    #[must_use]
    pub fn parts(&self) -> (TreeSize, &[[u8; 32]]) {
        (TreeSize(self.size), &self.peaks)
    }

    /// How many leaves were appended.
    #[must_use]
    pub const fn size(&self) -> TreeSize {
        TreeSize(self.size)
    }

    /// Appends a leaf.
    ///
    /// # Errors
    /// [`MerkleError::OutOfRange`] at 2^64 - 1 leaves.
    pub fn append(&mut self, leaf: LeafHash) -> Result<(), MerkleError> {
        let full = MerkleError::OutOfRange {
            asked: self.size,
            size: self.size,
        };
        let grown = self.size.checked_add(1).ok_or(full)?;
        let mut node = leaf.0;
        // Each trailing one-bit is a complete subtree of the same height as the node that grows.
        for _ in 0..self.size.trailing_ones() {
            let Some(left) = self.peaks.pop() else { break };
            node = node_hash(&left, &node);
        }
        self.peaks.push(node);
        self.size = grown;
        Ok(())
    }

    /// The root over everything appended.
    #[must_use]
    pub fn root(&self) -> MerkleRoot {
        let folded = self
            .peaks
            .iter()
            .rev()
            .copied()
            .reduce(|right, left| node_hash(&left, &right));
        folded.map_or_else(MerkleRoot::empty, MerkleRoot)
    }
}

/// A tree that can prove: it keeps the hash of every complete subtree, 64 bytes for each leaf, so that
/// a proof or an old root costs a logarithm and not a walk over the whole history.
#[derive(Clone, Debug, Default)]
pub struct MerkleTree {
    /// `levels[h][i]` is the root over the leaves from `i * 2^h` up to `(i + 1) * 2^h`.
    levels: Vec<Vec<[u8; 32]>>,
}

impl MerkleTree {
    /// A tree over these leaves, in order.
    #[must_use]
    pub fn from_leaves(leaves: &[LeafHash]) -> Self {
        let mut tree = Self::default();
        for leaf in leaves {
            tree.append(*leaf);
        }
        tree
    }

    /// How many leaves were appended.
    #[must_use]
    pub fn size(&self) -> TreeSize {
        TreeSize(self.levels.first().map_or(0, |leaves| leaves.len() as u64))
    }

    /// Appends a leaf.
    pub fn append(&mut self, leaf: LeafHash) {
        let mut node = leaf.0;
        let mut height = 0_usize;
        loop {
            if self.levels.len() == height {
                self.levels.push(Vec::new());
            }
            let Some(level) = self.levels.get_mut(height) else {
                return;
            };
            level.push(node);
            let [.., left, right] = level.as_slice() else {
                return;
            };
            if !level.len().is_multiple_of(2) {
                return;
            }
            node = node_hash(left, right);
            height = height.saturating_add(1);
        }
    }

    /// The root that this tree had when it had `size` leaves.
    ///
    /// # Errors
    /// [`MerkleError::OutOfRange`] if it has not grown to that size.
    pub fn root_at(&self, size: TreeSize) -> Result<MerkleRoot, MerkleError> {
        if size.0 == 0 {
            return Ok(MerkleRoot::empty());
        }
        self.range(0, size.0).map(MerkleRoot)
    }

    /// Proves that the leaf at `index` is in the tree of `size` leaves (RFC 9162, section 2.1.3.1).
    ///
    /// # Errors
    /// [`MerkleError::OutOfRange`] unless `index < size` and `size` is at most the tree's own.
    pub fn inclusion_proof(
        &self,
        index: u64,
        size: TreeSize,
    ) -> Result<InclusionProof, MerkleError> {
        if index >= size.0 {
            return Err(MerkleError::OutOfRange {
                asked: index,
                size: size.0,
            });
        }
        let (mut start, mut end) = (0, size.0);
        let mut path = Vec::new();
        while let Some(middle) = split(start, end) {
            if index < middle {
                path.push(self.range(middle, end)?);
                end = middle;
            } else {
                path.push(self.range(start, middle)?);
                start = middle;
            }
        }
        self.range(start, end)?;
        path.reverse();
        Ok(InclusionProof::of(path))
    }

    /// Proves that the tree of `old` leaves is a prefix of the tree of `new` leaves (RFC 9162, section
    /// 2.1.4.1). From the empty tree, and between equal sizes, the proof is empty.
    ///
    /// # Errors
    /// [`MerkleError::OutOfRange`] unless `old <= new` and `new` is at most the tree's own size.
    pub fn consistency_proof(
        &self,
        old: TreeSize,
        new: TreeSize,
    ) -> Result<ConsistencyProof, MerkleError> {
        if old > new || new > self.size() {
            return Err(MerkleError::OutOfRange {
                asked: old.0.max(new.0),
                size: self.size().0,
            });
        }
        if old.0 == 0 || old == new {
            return Ok(ConsistencyProof::of(Vec::new()));
        }
        let (mut start, mut end) = (0, new.0);
        let mut path = Vec::new();
        while end != old.0 {
            let Some(middle) = split(start, end) else {
                break;
            };
            if old.0 <= middle {
                path.push(self.range(middle, end)?);
                end = middle;
            } else {
                path.push(self.range(start, middle)?);
                start = middle;
            }
        }
        // The old root itself is known to the verifier; any other starting node must be told.
        if start != 0 {
            path.push(self.range(start, end)?);
        }
        path.reverse();
        Ok(ConsistencyProof::of(path))
    }

    /// The hash over the leaves from `start` up to `end`, where `start` is a multiple of the largest
    /// power of two not above `end - start`, as every subtree of a proof is.
    fn range(&self, start: u64, end: u64) -> Result<[u8; 32], MerkleError> {
        let outside = MerkleError::OutOfRange {
            asked: end,
            size: self.size().0,
        };
        // Complete subtrees from left to right, then folded from the right as a frontier is.
        let mut peaks = Vec::new();
        let mut at = start;
        while at < end {
            let height = end.abs_diff(at).ilog2();
            let peak = usize::try_from(height)
                .ok()
                .and_then(|level| self.levels.get(level))
                .zip(usize::try_from(at >> height).ok())
                .and_then(|(level, place)| level.get(place))
                .ok_or(outside)?;
            peaks.push(*peak);
            at = at.checked_add(1 << height).ok_or(outside)?;
        }
        peaks
            .into_iter()
            .rev()
            .reduce(|right, left| node_hash(&left, &right))
            .ok_or(outside)
    }
}

/// Where RFC 9162 splits a list of more than one leaf: at the largest power of two below its length.
fn split(start: u64, end: u64) -> Option<u64> {
    let length = end.checked_sub(start).filter(|length| *length > 1)?;
    start.checked_add(1 << length.saturating_sub(1).ilog2())
}

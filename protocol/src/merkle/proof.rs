//! Proofs as received: their shape is bounded before anything is hashed, and `verify` alone makes
//! them mean something.

use super::{LeafHash, MerkleError, MerkleRoot, TreeSize, node_hash};

/// The most hashes that an inclusion proof can hold: one for each bit of a tree size.
pub const MAX_INCLUSION_HASHES: usize = 64;
/// The most hashes that a consistency proof can hold: an inclusion path and its starting node.
pub const MAX_CONSISTENCY_HASHES: usize = 65;

/// The siblings from a leaf up to the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InclusionProof(Vec<[u8; 32]>);

impl InclusionProof {
    pub(super) const fn of(path: Vec<[u8; 32]>) -> Self {
        Self(path)
    }

    /// A received proof, not yet believed.
    ///
    /// # Errors
    /// [`MerkleError::ProofShape`] if it is longer than any tree's.
    pub fn from_hashes(hashes: Vec<[u8; 32]>) -> Result<Self, MerkleError> {
        if hashes.len() > MAX_INCLUSION_HASHES {
            return Err(MerkleError::ProofShape);
        }
        Ok(Self(hashes))
    }

    /// Its hashes, from the leaf's sibling upwards.
    #[must_use]
    pub fn hashes(&self) -> &[[u8; 32]] {
        &self.0
    }

    /// Checks that `leaf` is at `index` in the tree of this size and root (RFC 9162, section 2.1.3.2).
    ///
    /// # Errors
    /// What is wrong with the position, the proof's length or the root it leads to.
    pub fn verify(
        &self,
        leaf: LeafHash,
        index: u64,
        size: TreeSize,
        root: MerkleRoot,
    ) -> Result<(), MerkleError> {
        let outside = MerkleError::OutOfRange {
            asked: index,
            size: size.0,
        };
        let mut last = size
            .0
            .checked_sub(1)
            .filter(|last| index <= *last)
            .ok_or(outside)?;
        let mut at = index;
        let mut node = leaf.0;
        for sibling in &self.0 {
            if last == 0 {
                return Err(MerkleError::ProofShape);
            }
            if at & 1 == 1 || at == last {
                node = node_hash(sibling, &node);
                // A last node without a right sibling moves up unchanged.
                while at & 1 == 0 && at != 0 {
                    at >>= 1;
                    last >>= 1;
                }
            } else {
                node = node_hash(&node, sibling);
            }
            at >>= 1;
            last >>= 1;
        }
        if last != 0 {
            return Err(MerkleError::ProofShape);
        }
        if node == root.0 {
            Ok(())
        } else {
            Err(MerkleError::RootMismatch)
        }
    }
}

/// What it takes to compute an old and a new root from the same nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsistencyProof(Vec<[u8; 32]>);

impl ConsistencyProof {
    pub(super) const fn of(path: Vec<[u8; 32]>) -> Self {
        Self(path)
    }

    /// A received proof, not yet believed.
    ///
    /// # Errors
    /// [`MerkleError::ProofShape`] if it is longer than any tree's.
    pub fn from_hashes(hashes: Vec<[u8; 32]>) -> Result<Self, MerkleError> {
        if hashes.len() > MAX_CONSISTENCY_HASHES {
            return Err(MerkleError::ProofShape);
        }
        Ok(Self(hashes))
    }

    /// Its hashes, in the order of RFC 9162.
    #[must_use]
    pub fn hashes(&self) -> &[[u8; 32]] {
        &self.0
    }

    /// Checks that the old tree is a prefix of the new one (RFC 9162, section 2.1.4.2).
    ///
    /// # Errors
    /// What is wrong with the sizes, the proof's length or a root it leads to.
    pub fn verify(
        &self,
        old: (TreeSize, MerkleRoot),
        new: (TreeSize, MerkleRoot),
    ) -> Result<(), MerkleError> {
        let ((old_size, old_root), (new_size, new_root)) = (old, new);
        if old_size > new_size {
            return Err(MerkleError::OutOfRange {
                asked: old_size.0,
                size: new_size.0,
            });
        }
        if old_size == new_size || old_size.0 == 0 {
            let same = if old_size == new_size {
                new_root
            } else {
                MerkleRoot::empty()
            };
            // Every tree extends the empty one, so a new root is not tied to anything here.
            return match (self.0.is_empty(), old_root == same) {
                (false, _) => Err(MerkleError::ProofShape),
                (true, false) => Err(MerkleError::RootMismatch),
                (true, true) => Ok(()),
            };
        }
        let (mut at, mut last) = (old_size.0.saturating_sub(1), new_size.0.saturating_sub(1));
        while at & 1 == 1 {
            at >>= 1;
            last >>= 1;
        }
        // An old tree that is one complete subtree starts from its own root, which is not sent.
        let whole = [old_root.0];
        let mut hashes = if old_size.0.is_power_of_two() {
            &whole[..]
        } else {
            &[]
        }
        .iter()
        .chain(&self.0);
        let mut old_node = *hashes.next().ok_or(MerkleError::ProofShape)?;
        let mut new_node = old_node;
        for sibling in hashes {
            if last == 0 {
                return Err(MerkleError::ProofShape);
            }
            if at & 1 == 1 || at == last {
                old_node = node_hash(sibling, &old_node);
                new_node = node_hash(sibling, &new_node);
                while at & 1 == 0 && at != 0 {
                    at >>= 1;
                    last >>= 1;
                }
            } else {
                new_node = node_hash(&new_node, sibling);
            }
            at >>= 1;
            last >>= 1;
        }
        if last != 0 {
            return Err(MerkleError::ProofShape);
        }
        if old_node == old_root.0 && new_node == new_root.0 {
            Ok(())
        } else {
            Err(MerkleError::RootMismatch)
        }
    }
}

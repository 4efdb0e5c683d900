//! The Merkle tree of RFC 6962 (as restated in RFC 9162, section 2.1) over SHA-256: roots, inclusion
//! proofs and consistency proofs. It decides whether a proof holds; it never says who signed a root.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

mod proof;
mod tree;

pub use proof::{ConsistencyProof, InclusionProof, MAX_CONSISTENCY_HASHES, MAX_INCLUSION_HASHES};
pub use tree::{Frontier, MerkleTree};

/// How many leaves a tree has.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct TreeSize(u64);

impl TreeSize {
    /// The tree without leaves.
    pub const EMPTY: Self = Self(0);

    /// A tree of `leaves` leaves.
    #[must_use]
    pub const fn new(leaves: u64) -> Self {
        Self(leaves)
    }

    /// The number of leaves.
    #[must_use]
    pub const fn leaves(self) -> u64 {
        self.0
    }
}

impl std::fmt::Display for TreeSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The hash of one leaf, `SHA256(0x00 || data)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeafHash([u8; 32]);

impl LeafHash {
    /// Hashes the bytes of a leaf.
    #[must_use]
    pub fn of(data: &[u8]) -> Self {
        Self(
            Sha256::new()
                .chain_update([0x00])
                .chain_update(data)
                .finalize()
                .into(),
        )
    }
}

impl std::fmt::Debug for LeafHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LeafHash({})", hex::encode(self.0))
    }
}

crate::byte_string!(
    /// The root of a tree of a size that is said elsewhere; two sizes never share a root by accident.
    MerkleRoot, 32
);

impl MerkleRoot {
    /// The root of the tree without leaves, `SHA256("")`.
    #[must_use]
    pub fn empty() -> Self {
        Self::from_bytes(Sha256::digest([]).into())
    }
}

/// Why a tree operation or a proof was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MerkleError {
    /// A frontier's hashes do not fit its size.
    #[error("a frontier of {size} leaves cannot have {hashes} hashes")]
    FrontierShape {
        /// The claimed number of leaves.
        size: u64,
        /// The number of hashes beside it.
        hashes: usize,
    },
    /// The tree cannot take another leaf, or a size in a question is beyond the tree.
    #[error("{asked} is outside a tree of {size} leaves")]
    OutOfRange {
        /// The position or size asked for.
        asked: u64,
        /// The size of the tree.
        size: u64,
    },
    /// The number of hashes in a proof is not what the sizes ask for.
    #[error("the proof has the wrong number of hashes")]
    ProofShape,
    /// The proof leads to another root.
    #[error("the proof leads to another root")]
    RootMismatch,
}

/// `SHA256(0x01 || left || right)`.
fn node_hash(left: &[u8; 32], right: &[u8; 32]) -> [u8; 32] {
    Sha256::new()
        .chain_update([0x01])
        .chain_update(left)
        .chain_update(right)
        .finalize()
        .into()
}

#[cfg(test)]
#[allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "sizes here are below 200"
)]
mod tests {
    use super::*;

    /// The eight leaves that certificate transparency implementations test with.
    fn known_leaves() -> Vec<LeafHash> {
        [
            "",
            "00",
            "10",
            "2021",
            "3031",
            "40414243",
            "5051525354555657",
            "606162636465666768696a6b6c6d6e6f",
        ]
        .map(|text| LeafHash::of(&hex::decode(text).unwrap()))
        .to_vec()
    }

    fn counted_leaves(count: u64) -> Vec<LeafHash> {
        (0..count)
            .map(|number| LeafHash::of(&number.to_be_bytes()))
            .collect()
    }

    /// The definition in RFC 9162, section 2.1.1, written as it stands there.
    fn root_by_definition(leaves: &[LeafHash]) -> [u8; 32] {
        match leaves {
            [] => Sha256::digest([]).into(),
            [leaf] => leaf.0,
            _ => {
                let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
                node_hash(&root_by_definition(left), &root_by_definition(right))
            }
        }
    }

    /// Every way to change one thing in a list of hashes.
    fn tampered(hashes: &[[u8; 32]]) -> Vec<Vec<[u8; 32]>> {
        let mut all = Vec::new();
        for place in 0..hashes.len() {
            for bit in [0_usize, 77, 255] {
                let mut flipped = hashes.to_vec();
                flipped[place][bit / 8] ^= 1 << (bit % 8);
                all.push(flipped);
            }
            let mut dropped = hashes.to_vec();
            dropped.remove(place);
            all.push(dropped);
            let mut doubled = hashes.to_vec();
            doubled.insert(place, hashes[place]);
            all.push(doubled);
            if place > 0 {
                let mut swapped = hashes.to_vec();
                swapped.swap(place - 1, place);
                all.push(swapped);
            }
        }
        let mut longer = hashes.to_vec();
        longer.push([0; 32]);
        all.push(longer);
        all
    }

    #[test]
    fn equals_the_known_roots_of_certificate_transparency() {
        let roots = [
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
            "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
            "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
            "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
            "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
        ];
        let tree = MerkleTree::from_leaves(&known_leaves());
        let mut frontier = Frontier::default();
        for (size, root) in roots.iter().enumerate() {
            assert_eq!(
                tree.root_at(TreeSize(size as u64)).unwrap().to_string(),
                *root,
                "size {size}"
            );
            assert_eq!(frontier.root().to_string(), *root, "frontier at {size}");
            if let Some(leaf) = known_leaves().get(size) {
                frontier.append(*leaf).unwrap();
            }
        }
    }

    #[test]
    fn frontier_and_tree_follow_the_definition_at_every_size() {
        let leaves = counted_leaves(130);
        let tree = MerkleTree::from_leaves(&leaves);
        let mut frontier = Frontier::default();
        for size in 0..=leaves.len() {
            let wanted = MerkleRoot(root_by_definition(&leaves[..size]));
            assert_eq!(frontier.root(), wanted, "frontier at {size}");
            assert_eq!(
                tree.root_at(TreeSize(size as u64)).unwrap(),
                wanted,
                "tree at {size}"
            );
            let (kept_size, kept) = frontier.parts();
            assert_eq!(
                Frontier::restore(kept_size, kept.to_vec()).unwrap(),
                frontier
            );
            if size < leaves.len() {
                frontier.append(leaves[size]).unwrap();
            }
        }
    }

    #[test]
    fn refuses_a_frontier_whose_hashes_do_not_fit_its_size() {
        for (size, hashes) in [(0, 1), (1, 0), (2, 2), (3, 1), (7, 2), (u64::MAX, 63)] {
            let refused = Frontier::restore(TreeSize(size), vec![[7; 32]; hashes]);
            assert_eq!(refused, Err(MerkleError::FrontierShape { size, hashes }));
        }
        let mut full = Frontier::restore(TreeSize(u64::MAX), vec![[7; 32]; 64]).unwrap();
        assert!(full.append(LeafHash::of(b"one too many")).is_err());
    }

    #[test]
    fn inclusion_holds_for_the_proven_leaf_only() {
        let leaves = counted_leaves(64);
        let tree = MerkleTree::from_leaves(&leaves);
        for size in 1..=64 {
            let root = tree.root_at(TreeSize(size)).unwrap();
            for index in 0..size {
                let leaf = leaves[index as usize];
                let proof = tree.inclusion_proof(index, TreeSize(size)).unwrap();
                assert_eq!(proof.verify(leaf, index, TreeSize(size), root), Ok(()));
                for hashes in tampered(proof.hashes()) {
                    let changed = InclusionProof::from_hashes(hashes).unwrap();
                    assert!(changed.verify(leaf, index, TreeSize(size), root).is_err());
                }
                let other = leaves[(index as usize + 1) % 64];
                assert!(proof.verify(other, index, TreeSize(size), root).is_err());
                assert!(proof.verify(leaf, index ^ 1, TreeSize(size), root).is_err());
                assert!(
                    proof
                        .verify(leaf, index, TreeSize(size), MerkleRoot([9; 32]))
                        .is_err()
                );
            }
            assert!(tree.inclusion_proof(size, TreeSize(size)).is_err());
        }
        assert!(tree.inclusion_proof(0, TreeSize(65)).is_err());
        assert!(tree.inclusion_proof(64, TreeSize(65)).is_err());
    }

    #[test]
    fn consistency_holds_between_true_prefixes_only() {
        let tree = MerkleTree::from_leaves(&counted_leaves(64));
        let at = |size| (TreeSize(size), tree.root_at(TreeSize(size)).unwrap());
        for new in 0..=64 {
            for old in 0..=new {
                let proof = tree
                    .consistency_proof(TreeSize(old), TreeSize(new))
                    .unwrap();
                assert_eq!(proof.verify(at(old), at(new)), Ok(()), "{old} in {new}");
                for hashes in tampered(proof.hashes()) {
                    let changed = ConsistencyProof::from_hashes(hashes).unwrap();
                    assert!(changed.verify(at(old), at(new)).is_err(), "{old} in {new}");
                }
                let forked = MerkleRoot([9; 32]);
                assert!(proof.verify((TreeSize(old), forked), at(new)).is_err());
                if old > 0 {
                    assert!(proof.verify(at(old), (TreeSize(new), forked)).is_err());
                }
                if old < new {
                    assert!(proof.verify(at(new), at(old)).is_err());
                    assert!(
                        tree.consistency_proof(TreeSize(new), TreeSize(old))
                            .is_err()
                    );
                }
            }
        }
        assert!(tree.consistency_proof(TreeSize(1), TreeSize(65)).is_err());
    }

    #[test]
    fn refuses_a_proof_longer_than_any_tree() {
        assert!(InclusionProof::from_hashes(vec![[0; 32]; MAX_INCLUSION_HASHES + 1]).is_err());
        assert!(ConsistencyProof::from_hashes(vec![[0; 32]; MAX_CONSISTENCY_HASHES + 1]).is_err());
    }
}

//! Public child keys of a group key: BIP-328's extended key, BIP-32's unhardened steps, BIP-341's
//! tweak without a script tree. Decides which script a child has; never touches a secret.

use std::sync::LazyLock;

use ::bitcoin::{
    bip32,
    hashes::{Hash, HashEngine, Hmac, HmacEngine, hash160, sha512},
    secp256k1::{Parity, PublicKey, Scalar, Secp256k1, SecretKey, VerifyOnly, XOnlyPublicKey},
};
use thiserror::Error;

use super::{network::Network, transaction::ScriptPubKey};
use crate::{ids::GroupKey, tagged::tagged_hash};

/// The chain code of every extended key that stands for an aggregate key: SHA-256 of
/// `MuSig2MuSig2MuSig2` (BIP-328).
pub const CHAIN_CODE: [u8; 32] = [
    0x86, 0x80, 0x87, 0xca, 0x02, 0xa6, 0xf9, 0x74, 0xc4, 0x59, 0x89, 0x24, 0xc3, 0x6b, 0x57, 0x76,
    0x2d, 0x32, 0xcb, 0x45, 0x71, 0x71, 0x67, 0xe3, 0x00, 0x62, 0x2c, 0x71, 0x67, 0xe3, 0x89, 0x65,
];

/// Indices from here on are hardened (BIP-32); a group key has no such children.
pub const FIRST_HARDENED: u32 = 1 << 31;

/// Verification needs no secret and so no blinding of the context: one serves all.
pub(super) static VERIFIER: LazyLock<Secp256k1<VerifyOnly>> =
    LazyLock::new(Secp256k1::verification_only);

/// Why there is no such key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyError {
    /// The bytes are not a compressed point.
    #[error("the key is not a point of secp256k1 in compressed form")]
    NotAPoint,
    /// The text is not an extended public key.
    #[error("not an extended public key")]
    NotAnExtendedKey,
    /// The branch is neither 0 nor 1, or the index is hardened.
    #[error("no such child: branch {branch}, index {index}")]
    NoSuchChild {
        /// The branch.
        branch: u32,
        /// The index.
        index: u32,
    },
    /// A hash is not a scalar, or the sum is the point at infinity: one in 2^127.
    #[error("this child does not exist; take the next index")]
    NoKeyHere,
}

/// One child of a group key: `/branch/index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Child {
    branch: u32,
    index: u32,
}

impl Child {
    /// A child by its path: branch 0 receives, branch 1 is for change, the index is below 2^31.
    ///
    /// # Errors
    /// For every other branch or index.
    pub const fn new(branch: u32, index: u32) -> Result<Self, KeyError> {
        if branch > 1 || index >= FIRST_HARDENED {
            return Err(KeyError::NoSuchChild { branch, index });
        }
        Ok(Self { branch, index })
    }

    /// 0 or 1.
    #[must_use]
    pub const fn branch(self) -> u32 {
        self.branch
    }

    /// Below 2^31.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Whether the child is on the branch for change.
    #[must_use]
    pub const fn is_change(self) -> bool {
        self.branch == 1
    }
}

impl std::fmt::Display for Child {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "/{}/{}", self.branch, self.index)
    }
}

/// A public key with a chain code (BIP-32), and where PSBTs say that it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtendedKey {
    key: PublicKey,
    chain_code: [u8; 32],
    fingerprint: [u8; 4],
    path: Vec<u32>,
}

impl ExtendedKey {
    /// The extended key of a group key: depth 0, no parent, [`CHAIN_CODE`] (BIP-328).
    ///
    /// # Errors
    /// When the 33 bytes are not a compressed point.
    pub fn of_group(group: &GroupKey) -> Result<Self, KeyError> {
        let key = PublicKey::from_slice(group.as_bytes()).map_err(|_| KeyError::NotAPoint)?;
        let fingerprint = fingerprint_of(&key);
        Ok(Self {
            key,
            chain_code: CHAIN_CODE,
            fingerprint,
            path: Vec::new(),
        })
    }

    /// Any extended public key, with the origin (fingerprint and path) that wallets state for it.
    ///
    /// # Errors
    /// When the text is not one.
    pub fn from_xpub(xpub: &str, fingerprint: [u8; 4], path: Vec<u32>) -> Result<Self, KeyError> {
        let xpub: bip32::Xpub = xpub.parse().map_err(|_| KeyError::NotAnExtendedKey)?;
        let chain_code = xpub.chain_code.to_bytes();
        Ok(Self {
            key: xpub.public_key,
            chain_code,
            fingerprint,
            path,
        })
    }

    /// The fingerprint that key origins start with.
    #[must_use]
    pub const fn fingerprint(&self) -> [u8; 4] {
        self.fingerprint
    }

    /// The path from the fingerprint's key to this one.
    #[must_use]
    pub fn path(&self) -> &[u32] {
        &self.path
    }

    /// The base58 form for a network, as a master key: depth 0, no parent.
    #[must_use]
    pub fn to_xpub(&self, network: Network) -> String {
        let xpub = bip32::Xpub {
            network: network.kind(),
            depth: 0,
            parent_fingerprint: bip32::Fingerprint::default(),
            child_number: bip32::ChildNumber::Normal { index: 0 },
            public_key: self.key,
            chain_code: self.chain_code.into(),
        };
        xpub.to_string()
    }

    /// The key of a child, through both steps of its path.
    ///
    /// # Errors
    /// [`KeyError::NoKeyHere`] with negligible probability.
    pub fn derive(&self, child: Child) -> Result<DerivedKey, KeyError> {
        self.step(child.branch)?.leaf(child)
    }

    /// The key one unhardened step further, with the scalar that led there.
    pub(super) fn step(&self, index: u32) -> Result<Step, KeyError> {
        let mut engine = HmacEngine::<sha512::Hash>::new(&self.chain_code);
        engine.input(&self.key.serialize());
        engine.input(&index.to_be_bytes());
        let hash = Hmac::<sha512::Hash>::from_engine(engine).to_byte_array();
        let (left, right) = hash.split_first_chunk::<32>().ok_or(KeyError::NoKeyHere)?;
        let tweak = Scalar::from_be_bytes(*left).map_err(|_| KeyError::NoKeyHere)?;
        let key = self
            .key
            .add_exp_tweak(&VERIFIER, &tweak)
            .map_err(|_| KeyError::NoKeyHere)?;
        let chain_code = right.try_into().map_err(|_| KeyError::NoKeyHere)?;
        let (fingerprint, path) = (self.fingerprint, Vec::new());
        Ok(Step {
            tweak,
            key: Self {
                key,
                chain_code,
                fingerprint,
                path,
            },
        })
    }
}

/// One step down and the scalar that was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    tweak: Scalar,
    key: ExtendedKey,
}

impl Step {
    /// The last step to a child whose branch this is.
    pub(super) fn leaf(&self, child: Child) -> Result<DerivedKey, KeyError> {
        let last = self.key.step(child.index)?;
        // Addition modulo the group order is what libsecp256k1 offers for secret keys only; these
        // two numbers are as public as the extended key.
        let sum = SecretKey::from_slice(&self.tweak.to_be_bytes())
            .and_then(|first| first.add_tweak(&last.tweak))
            .map_err(|_| KeyError::NoKeyHere)?;
        let internal = last.key.key;
        let (x_only, _) = internal.x_only_public_key();
        let tweaked = taproot_tweak(&x_only.serialize()).ok_or(KeyError::NoKeyHere)?;
        Ok(DerivedKey {
            child,
            additive_tweak: sum.secret_bytes(),
            internal_key: internal.serialize(),
            taproot_tweak: tweaked.tweak,
            output_key: tweaked.output_key,
            is_output_key_odd: tweaked.is_odd,
        })
    }
}

/// Everything that a child's signature and script need, all of it public.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DerivedKey {
    child: Child,
    additive_tweak: [u8; 32],
    internal_key: [u8; 33],
    taproot_tweak: [u8; 32],
    output_key: [u8; 32],
    is_output_key_odd: bool,
}

impl DerivedKey {
    /// The child whose key this is.
    #[must_use]
    pub const fn child(&self) -> Child {
        self.child
    }

    /// The sum of the scalars of both steps, big endian: a share of the group key plus this is a
    /// share of the child's key, before any change of sign.
    #[must_use]
    pub const fn additive_tweak(&self) -> &[u8; 32] {
        &self.additive_tweak
    }

    /// The child's key with its true parity, compressed.
    #[must_use]
    pub const fn internal_key(&self) -> &[u8; 33] {
        &self.internal_key
    }

    /// The x coordinate of the internal key: what Taproot calls the internal key.
    #[must_use]
    pub fn x_only_internal_key(&self) -> [u8; 32] {
        let [_, x @ ..] = self.internal_key;
        x
    }

    /// BIP-341's tweak without a script tree, big endian; it is added to the internal key with even
    /// y.
    #[must_use]
    pub const fn taproot_tweak(&self) -> &[u8; 32] {
        &self.taproot_tweak
    }

    /// The x coordinate of the key in the script, which signatures verify against.
    #[must_use]
    pub const fn output_key(&self) -> &[u8; 32] {
        &self.output_key
    }

    /// Whether the output key's point has an odd y.
    #[must_use]
    pub const fn is_output_key_odd(&self) -> bool {
        self.is_output_key_odd
    }

    /// The script, 34 bytes.
    #[must_use]
    pub fn script(&self) -> ScriptPubKey {
        ScriptPubKey::taproot(&self.output_key)
    }
}

/// A key tweaked as BIP-341 does without a script tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaprootTweaked {
    /// The tweak, big endian.
    pub tweak: [u8; 32],
    /// The x coordinate of the output key.
    pub output_key: [u8; 32],
    /// Whether its y is odd.
    pub is_odd: bool,
}

/// Tweaks an x-only internal key with the hash of itself alone: no script tree (BIP-341). `None`
/// when it is no x coordinate of a point.
#[must_use]
pub fn taproot_tweak(internal_key: &[u8; 32]) -> Option<TaprootTweaked> {
    let tweak = tagged_hash("TapTweak", &[internal_key]);
    let scalar = Scalar::from_be_bytes(tweak).ok()?;
    let key = XOnlyPublicKey::from_slice(internal_key).ok()?;
    let (output_key, parity) = key.add_tweak(&VERIFIER, &scalar).ok()?;
    let is_odd = parity == Parity::Odd;
    Some(TaprootTweaked {
        tweak,
        output_key: output_key.serialize(),
        is_odd,
    })
}

fn fingerprint_of(key: &PublicKey) -> [u8; 4] {
    let [a, b, c, d, ..] = hash160::Hash::hash(&key.serialize()).to_byte_array();
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::{CHAIN_CODE, Child, ExtendedKey, KeyError};
    use crate::ids::GroupKey;

    #[test]
    fn chain_code_is_the_hash_that_bip328_names() {
        assert_eq!(Sha256::digest(b"MuSig2MuSig2MuSig2")[..], CHAIN_CODE);
    }

    #[test]
    fn refuses_children_that_need_a_secret_and_unknown_branches() {
        for (branch, index, good) in [
            (0, 0, true),
            (1, (1 << 31) - 1, true),
            (2, 0, false),
            (0, 1 << 31, false),
            (1 << 31, 0, false),
        ] {
            assert_eq!(Child::new(branch, index).is_ok(), good, "{branch}/{index}");
        }
    }

    #[test]
    fn refuses_bytes_that_are_no_point() {
        for bytes in [[0; 33], [2; 33], [0xff; 33], [4; 33]] {
            let group = GroupKey::from_bytes(bytes);
            let is_point = ::bitcoin::secp256k1::PublicKey::from_slice(&bytes).is_ok();
            assert_eq!(ExtendedKey::of_group(&group).is_ok(), is_point);
        }
        assert_eq!(
            ExtendedKey::of_group(&GroupKey::from_bytes([0; 33])),
            Err(KeyError::NotAPoint)
        );
    }
}

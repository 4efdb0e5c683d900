//! Ed25519 identities: who speaks. A TLS certificate only says who carries.

use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use zeroize::Zeroizing;

use crate::byte_string;

byte_string!(
    /// An Ed25519 public key, pinned in the Authorities or in a roster.
    IdentityKey, 32
);

impl IdentityKey {
    /// Strict verification (no small-order keys, canonical encodings), as RFC 8032 allows and
    /// `verify_strict` does.
    #[must_use]
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let Ok(key) = VerifyingKey::from_bytes(self.as_bytes()) else {
            return false;
        };
        let Ok(signature) = ed25519_dalek::Signature::from_slice(signature) else {
            return false;
        };
        key.verify_strict(message, &signature).is_ok()
    }
}

/// An Ed25519 private key. It is not cloned, printed or serialised, and is wiped when dropped.
pub struct IdentitySecret(SigningKey);

impl IdentitySecret {
    /// The key with this RFC 8032 seed.
    #[must_use]
    pub fn from_seed(seed: &Zeroizing<[u8; 32]>) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// A fresh key.
    pub fn generate<R: rand_core::CryptoRng>(rng: &mut R) -> Self {
        let mut seed = Zeroizing::new([0; 32]);
        rng.fill_bytes(&mut *seed);
        Self::from_seed(&seed)
    }

    /// The seed, for the one file that keeps it.
    #[must_use]
    pub fn seed(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_bytes())
    }

    /// The public half.
    #[must_use]
    pub fn identity(&self) -> IdentityKey {
        IdentityKey::from_bytes(self.0.verifying_key().to_bytes())
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.0.sign(message).to_bytes().to_vec()
    }
}

impl std::fmt::Debug for IdentitySecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "IdentitySecret({})", self.identity())
    }
}

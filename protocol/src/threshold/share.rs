//! One signing share, in a type that is not cloned, printed or serialised.

use frost_core::Ciphersuite;
use frost_secp256k1_tr::{
    Field, Group, Secp256K1Group, Secp256K1ScalarField, Secp256K1Sha256TR,
    keys::{KeyPackage, SigningShare as FrostShare, Tweak, VerifyingShare as FrostVerifying},
};
use zeroize::Zeroizing;

use super::{AddressKey, PublicShares, ThresholdError, frost_identifier};
use crate::{bitcoin::DerivedKey, ids::Identifier};

type Scalar = <Secp256K1ScalarField as Field>::Scalar;

/// One member's signing share of the group key. frost wipes its own copy when dropped.
pub struct SigningShare {
    identifier: Identifier,
    package: KeyPackage,
}

impl SigningShare {
    /// Takes over what a ceremony made.
    ///
    /// # Errors
    /// When the share is not the one that `public` commits `identifier` to.
    pub fn new(
        identifier: Identifier,
        share: FrostShare,
        public: &PublicShares,
    ) -> Result<Self, ThresholdError> {
        let verifying = FrostVerifying::from(share);
        if public.frost_verifying_share(identifier)? != verifying {
            return Err(ThresholdError::WrongMembers);
        }
        let package = KeyPackage::new(
            frost_identifier(identifier)?,
            share,
            verifying,
            *public.frost_package().verifying_key(),
            public.threshold().value(),
        );
        Ok(Self {
            identifier,
            package,
        })
    }

    /// Takes a share out of its sealed bytes.
    ///
    /// # Errors
    /// As [`SigningShare::new`], or when the bytes are not a scalar.
    pub fn from_bytes(
        identifier: Identifier,
        bytes: &Zeroizing<[u8; 32]>,
        public: &PublicShares,
    ) -> Result<Self, ThresholdError> {
        let share =
            FrostShare::deserialize(bytes.as_slice()).map_err(|_| ThresholdError::BadEncoding)?;
        Self::new(identifier, share, public)
    }

    /// The bytes, for sealing.
    ///
    /// # Errors
    /// Never: a share has 32 bytes.
    pub fn to_bytes(&self) -> Result<Zeroizing<[u8; 32]>, ThresholdError> {
        let bytes = Zeroizing::new(self.package.signing_share().serialize());
        <[u8; 32]>::try_from(bytes.as_slice())
            .map(Zeroizing::new)
            .map_err(|_| ThresholdError::BadEncoding)
    }

    /// Whose share.
    #[must_use]
    pub const fn identifier(&self) -> Identifier {
        self.identifier
    }

    /// The share for signing with the group key itself.
    pub(super) const fn package(&self) -> &KeyPackage {
        &self.package
    }

    /// The share of one address: the child's additive tweak with true parity, then the Taproot
    /// tweak (BIP-341) last.
    ///
    /// # Errors
    /// [`ThresholdError::WrongKey`] when the result is not the address's output key.
    pub(super) fn at(&self, derived: &DerivedKey) -> Result<KeyPackage, ThresholdError> {
        let tweak = scalar(derived.additive_tweak())?;
        let point = Secp256K1Group::generator() * tweak;
        let child = KeyPackage::new(
            *self.package.identifier(),
            FrostShare::new(self.package.signing_share().to_scalar() + tweak),
            FrostVerifying::new(self.package.verifying_share().to_element() + point),
            frost_secp256k1_tr::VerifyingKey::new(
                self.package.verifying_key().to_element() + point,
            ),
            *self.package.min_signers(),
        );
        let tweaked = child.tweak::<&[u8]>(None);
        AddressKey::check(tweaked.verifying_key(), derived)?;
        Ok(tweaked)
    }
}

impl std::fmt::Debug for SigningShare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SigningShare(of member {})", self.identifier)
    }
}

pub(super) fn scalar(bytes: &[u8; 32]) -> Result<Scalar, ThresholdError> {
    <<Secp256K1Sha256TR as Ciphersuite>::Group as Group>::Field::deserialize(bytes)
        .map_err(|_| ThresholdError::BadEncoding)
}

//! The public side of a sharing: group key, verifying shares, threshold; and the same for one
//! address of the group.

use std::collections::BTreeMap;

use frost_secp256k1_tr::{
    Group, Secp256K1Group, VerifyingKey,
    keys::{PublicKeyPackage, Tweak, VerifyingShare as FrostVerifying},
};

use super::{ThresholdError, frost_identifier, share::scalar};
use crate::{
    bitcoin::DerivedKey,
    documents::{Certificate, Plan},
    ids::{GroupKey, Identifier, Threshold, VerifyingShare},
};

/// What everybody may know of a sharing.
#[derive(Debug, Clone, PartialEq)]
pub struct PublicShares {
    threshold: Threshold,
    group_key: GroupKey,
    members: Vec<Identifier>,
    package: PublicKeyPackage,
}

impl PublicShares {
    /// Reads points and checks that they are what they say.
    ///
    /// # Errors
    /// When a key is not a point.
    pub fn new(
        threshold: Threshold,
        group_key: GroupKey,
        shares: &[(Identifier, VerifyingShare)],
    ) -> Result<Self, ThresholdError> {
        let key = VerifyingKey::deserialize(compressed(group_key.as_bytes())?)
            .map_err(|_| ThresholdError::BadEncoding)?;
        let mut members = Vec::new();
        let mut verifying = BTreeMap::new();
        for (identifier, share) in shares {
            let share = FrostVerifying::deserialize(compressed(share.as_bytes())?)
                .map_err(|_| ThresholdError::BadEncoding)?;
            members.push(*identifier);
            if verifying
                .insert(frost_identifier(*identifier)?, share)
                .is_some()
            {
                return Err(ThresholdError::WrongMembers);
            }
        }
        let package = PublicKeyPackage::new(verifying, key, Some(threshold.value()));
        Ok(Self {
            threshold,
            group_key,
            members,
            package,
        })
    }

    /// The public side of what a certificate says of a plan's key.
    ///
    /// # Errors
    /// When a key is not a point, or the certificate names other members than the plan.
    pub fn of(plan: &Plan, certificate: &Certificate) -> Result<Self, ThresholdError> {
        let certified = certificate
            .verifying_shares
            .iter()
            .map(|(identifier, _)| *identifier);
        if !certified.eq(plan.roster.iter().map(|member| member.identifier)) {
            return Err(ThresholdError::WrongMembers);
        }
        Self::new(
            plan.threshold,
            certificate.group_key,
            &certificate.verifying_shares,
        )
    }

    /// What a ceremony made.
    ///
    /// # Errors
    /// When a member is missing.
    pub fn from_frost(
        threshold: Threshold,
        members: &[Identifier],
        package: &PublicKeyPackage,
    ) -> Result<Self, ThresholdError> {
        let group_key = point(&package.verifying_key().serialize()?)?;
        let shares = members
            .iter()
            .map(|identifier| {
                let share = package
                    .verifying_shares()
                    .get(&frost_identifier(*identifier)?)
                    .ok_or(ThresholdError::WrongMembers)?;
                Ok((
                    *identifier,
                    VerifyingShare::from_bytes(point(&share.serialize()?)?),
                ))
            })
            .collect::<Result<Vec<_>, ThresholdError>>()?;
        Self::new(threshold, GroupKey::from_bytes(group_key), &shares)
    }

    /// How many members sign.
    #[must_use]
    pub const fn threshold(&self) -> Threshold {
        self.threshold
    }

    /// The group key with its true parity.
    #[must_use]
    pub const fn group_key(&self) -> &GroupKey {
        &self.group_key
    }

    /// All members, ascending.
    #[must_use]
    pub fn members(&self) -> &[Identifier] {
        &self.members
    }

    /// The verifying shares, ascending by member.
    ///
    /// # Errors
    /// Never for a sharing that was read.
    pub fn verifying_shares(&self) -> Result<Vec<(Identifier, VerifyingShare)>, ThresholdError> {
        self.members
            .iter()
            .map(|identifier| {
                let share = self.frost_verifying_share(*identifier)?.serialize()?;
                Ok((*identifier, VerifyingShare::from_bytes(point(&share)?)))
            })
            .collect()
    }

    /// The sharing seen as the key of one address.
    ///
    /// # Errors
    /// [`ThresholdError::WrongKey`] when the derivation does not lead to the output key.
    pub fn at(&self, derived: &DerivedKey) -> Result<AddressKey, ThresholdError> {
        let tweak = Secp256K1Group::generator() * scalar(derived.additive_tweak())?;
        let shares = self
            .package
            .verifying_shares()
            .iter()
            .map(|(identifier, share)| {
                (*identifier, FrostVerifying::new(share.to_element() + tweak))
            })
            .collect();
        let key = VerifyingKey::new(self.package.verifying_key().to_element() + tweak);
        let child = PublicKeyPackage::new(shares, key, Some(self.threshold.value()));
        let package = child.tweak::<&[u8]>(None);
        AddressKey::check(package.verifying_key(), derived)?;
        Ok(AddressKey {
            package,
            output_key: *derived.output_key(),
        })
    }

    /// The sharing as the group key itself, without any tweak: what proofs of life are made with.
    #[must_use]
    pub fn untweaked(&self) -> AddressKey {
        let (_, x) = self.group_key.as_bytes().split_first().unwrap_or((&0, &[]));
        let output_key = <[u8; 32]>::try_from(x).unwrap_or_default();
        AddressKey {
            package: self.package.clone(),
            output_key,
        }
    }

    pub(super) const fn frost_package(&self) -> &PublicKeyPackage {
        &self.package
    }

    pub(super) fn frost_verifying_share(
        &self,
        identifier: Identifier,
    ) -> Result<FrostVerifying, ThresholdError> {
        self.package
            .verifying_shares()
            .get(&frost_identifier(identifier)?)
            .copied()
            .ok_or(ThresholdError::WrongMembers)
    }
}

/// The public side of a sharing, tweaked to one address.
#[derive(Debug, Clone)]
pub struct AddressKey {
    pub(super) package: PublicKeyPackage,
    output_key: [u8; 32],
}

impl AddressKey {
    /// The x-only key that signatures verify against.
    #[must_use]
    pub const fn output_key(&self) -> &[u8; 32] {
        &self.output_key
    }

    pub(super) fn check(key: &VerifyingKey, derived: &DerivedKey) -> Result<(), ThresholdError> {
        let bytes = key.serialize()?;
        if bytes.get(1..) == Some(derived.output_key().as_slice()) {
            Ok(())
        } else {
            Err(ThresholdError::WrongKey)
        }
    }
}

pub(super) fn point(bytes: &[u8]) -> Result<[u8; 33], ThresholdError> {
    <[u8; 33]>::try_from(bytes).map_err(|_| ThresholdError::BadEncoding)
}

/// The one encoding of a point that the wire has: k256 would read SEC 1's compact form (tag 5) too,
/// and so two byte strings as one point.
pub(super) fn compressed(bytes: &[u8; 33]) -> Result<&[u8; 33], ThresholdError> {
    match bytes {
        [0x02 | 0x03, ..] => Ok(bytes),
        _ => Err(ThresholdError::BadEncoding),
    }
}

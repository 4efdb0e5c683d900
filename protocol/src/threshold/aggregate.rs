//! From signature shares to a signature, and to the names of all who sent a bad share.

use std::collections::BTreeMap;

use frost_core::CheaterDetection;
use frost_secp256k1_tr::round2;

use super::{AddressKey, SigningList, ThresholdError, frost_identifier};
use crate::{
    bitcoin::verify_bip340,
    ids::{Identifier, Signature, SignatureShare},
};

/// The members whose shares do not verify; empty where the list itself is at fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Culprits(pub Vec<Identifier>);

/// Makes the signature over the list's message, and verifies it with libsecp256k1.
///
/// # Errors
/// All members whose shares are bad.
pub fn aggregate(
    list: &SigningList,
    shares: &[(Identifier, SignatureShare)],
    key: &AddressKey,
) -> Result<Signature, Culprits> {
    let mut frost_shares = BTreeMap::new();
    let mut unreadable = Vec::new();
    for (identifier, share) in shares {
        match (
            round2::SignatureShare::deserialize(share.as_bytes()),
            frost_identifier(*identifier),
        ) {
            (Ok(share), Ok(frost)) => {
                frost_shares.insert(frost, share);
            }
            _ => unreadable.push(*identifier),
        }
    }
    if !unreadable.is_empty() {
        return Err(Culprits(unreadable));
    }
    let signature = frost_core::aggregate_custom(
        &list.0,
        &frost_shares,
        &key.package,
        CheaterDetection::AllCheaters,
    )
    .map_err(|error| {
        let named = error.culprits();
        let culprits = shares
            .iter()
            .map(|(identifier, _)| *identifier)
            .filter(|identifier| {
                frost_identifier(*identifier).is_ok_and(|frost| named.contains(&frost))
            })
            .collect();
        Culprits(culprits)
    })?;
    let bytes = signature.serialize().map_err(|_| Culprits(Vec::new()))?;
    let bytes = <[u8; 64]>::try_from(bytes.as_slice()).map_err(|_| Culprits(Vec::new()))?;
    if !verify_bip340(key.output_key(), list.0.message(), &bytes) {
        return Err(Culprits(Vec::new()));
    }
    Ok(Signature::from_bytes(bytes))
}

/// Whether one member's share is good for the list: what evidence is checked with.
///
/// # Errors
/// [`ThresholdError`] when it is not.
pub fn verify_share(
    list: &SigningList,
    identifier: Identifier,
    share: &SignatureShare,
    key: &AddressKey,
) -> Result<(), ThresholdError> {
    let frost = frost_identifier(identifier)?;
    let share = round2::SignatureShare::deserialize(share.as_bytes())
        .map_err(|_| ThresholdError::BadEncoding)?;
    let verifying = key
        .package
        .verifying_shares()
        .get(&frost)
        .ok_or(ThresholdError::WrongMembers)?;
    frost_core::verify_signature_share(
        frost,
        verifying,
        &share,
        &list.0,
        key.package.verifying_key(),
    )?;
    Ok(())
}

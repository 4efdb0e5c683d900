//! The key that a DKG's commitments make. It decides what everybody can work out of round one alone, and
//! needs nobody's share for it.

use std::collections::BTreeMap;

use frost_secp256k1_tr::keys::{PublicKeyPackage, Tweak, VerifiableSecretSharingCommitment};

use super::{PublicShares, ThresholdError, frost_identifier, public::compressed};
use crate::ids::{Identifier, Point, Threshold};

/// Group key and verifying shares of the DKG in which each of these members committed to these
/// coefficients: the sums of the commitments, with the tweak that FROST's DKG over Taproot adds
/// (BIP-341: an output key commits to an unspendable script path).
///
/// # Errors
/// A coefficient that is no point; a member twice; commitments that are not of `threshold` coefficients.
pub fn dealt_key(
    threshold: Threshold,
    commitments: &[(Identifier, &[Point])],
) -> Result<PublicShares, ThresholdError> {
    let degree = usize::from(threshold.value());
    let mut of_members = BTreeMap::new();
    let mut members = Vec::new();
    for (member, coefficients) in commitments {
        if coefficients.len() != degree {
            return Err(ThresholdError::WrongMembers);
        }
        let points = coefficients
            .iter()
            .map(|point| compressed(point.as_bytes()))
            .collect::<Result<Vec<_>, _>>()?;
        let commitment = VerifiableSecretSharingCommitment::deserialize(points)?;
        members.push(*member);
        if of_members
            .insert(frost_identifier(*member)?, commitment)
            .is_some()
        {
            return Err(ThresholdError::WrongMembers);
        }
    }
    let borrowed = of_members.iter().map(|(id, word)| (*id, word)).collect();
    let package = PublicKeyPackage::from_dkg_commitments(&borrowed)?;
    PublicShares::from_frost(threshold, &members, &package.tweak::<&[u8]>(None))
}

#[cfg(test)]
mod tests {
    use frost_secp256k1_tr::keys::dkg;
    use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

    use super::*;
    use crate::threshold::FrostRng;

    #[test]
    fn the_key_of_a_dkg_follows_from_its_commitments() {
        // Enough seeds that both parities of the untweaked key come up.
        for seed in 0..4 {
            let mut rng = ChaCha20Rng::from_seed([seed; 32]);
            let members = [1, 2, 3].map(|number| Identifier::new(number).unwrap());
            let threshold = Threshold::new(2, 3).unwrap();
            let mut secrets = Vec::new();
            let mut round1 = BTreeMap::new();
            let mut points: Vec<Vec<Point>> = Vec::new();
            for member in members {
                let id = frost_identifier(member).unwrap();
                let (secret, package) = dkg::part1(id, 3, 2, FrostRng::new(&mut rng)).unwrap();
                let coefficients = package.commitment().serialize().unwrap();
                points.push(
                    coefficients
                        .iter()
                        .map(|point| Point::from_bytes(point.as_slice().try_into().unwrap()))
                        .collect(),
                );
                secrets.push((id, secret));
                round1.insert(id, package);
            }
            let mut round2: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
            let mut second = Vec::new();
            for (id, secret) in secrets {
                let mut others = round1.clone();
                others.remove(&id);
                let (secret, dealt) = dkg::part2(secret, &others).unwrap();
                for (recipient, package) in dealt {
                    round2.entry(recipient).or_default().insert(id, package);
                }
                second.push((id, secret));
            }
            let (id, secret) = &second[0];
            let mut others = round1.clone();
            others.remove(id);
            let (_, package) = dkg::part3(secret, &others, &round2[id]).unwrap();
            let made = PublicShares::from_frost(threshold, &members, &package).unwrap();

            let commitments: Vec<_> = members
                .iter()
                .zip(&points)
                .map(|(member, points)| (*member, points.as_slice()))
                .collect();
            assert_eq!(dealt_key(threshold, &commitments).unwrap(), made);
            assert!(dealt_key(threshold, &commitments[..2]).unwrap() != made);
            assert!(dealt_key(Threshold::new(3, 3).unwrap(), &commitments).is_err());
        }
    }
}

use frost_secp256k1_tr::keys::dkg;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use zeroize::Zeroizing;

use super::*;
use crate::{
    bitcoin::{Child, ExtendedKey},
    ids::{Identifier, MessageDigest, PlanDigest, SessionId, Threshold},
    messages::Commitment,
};

struct Group {
    public: PublicShares,
    shares: Vec<SigningShare>,
}

fn members(count: u16) -> Vec<Identifier> {
    (1..=count)
        .map(|number| Identifier::new(number).unwrap())
        .collect()
}

/// A group as three-part DKG makes it, unspendable tweak included.
fn make_group(threshold: u16, count: u16, rng: &mut ChaCha20Rng) -> Group {
    let members = members(count);
    let mut round1 = std::collections::BTreeMap::new();
    let mut secrets1 = Vec::new();
    for member in &members {
        let id = frost_identifier(*member).unwrap();
        let (secret, package) = dkg::part1(id, count, threshold, FrostRng::new(rng)).unwrap();
        round1.insert(id, package);
        secrets1.push((id, secret));
    }
    let mut secrets2 = Vec::new();
    let mut dealt = std::collections::BTreeMap::new();
    for (id, secret) in secrets1 {
        let mut others = round1.clone();
        others.remove(&id);
        let (secret, packages) = dkg::part2(secret, &others).unwrap();
        dealt.insert(id, packages);
        secrets2.push((id, secret, others));
    }
    let threshold = Threshold::new(threshold, members.len()).unwrap();
    let mut public = None;
    let mut shares = Vec::new();
    for ((id, secret, others), member) in secrets2.iter().zip(&members) {
        let mine = dealt
            .iter()
            .filter(|(sender, _)| *sender != id)
            .map(|(sender, packages)| (*sender, packages[id].clone()))
            .collect();
        let (key, package) = dkg::part3(secret, others, &mine).unwrap();
        let package = PublicShares::from_frost(threshold, &members, &package).unwrap();
        shares.push(SigningShare::new(*member, *key.signing_share(), &package).unwrap());
        public = Some(package);
    }
    Group {
        public: public.unwrap(),
        shares,
    }
}

fn quorum<'a>(group: &'a Group, chosen: &[usize]) -> Vec<&'a SigningShare> {
    chosen.iter().map(|place| &group.shares[*place]).collect()
}

fn sign(
    group: &Group,
    signers: &[&SigningShare],
    message: &[u8; 32],
    address: Option<&crate::bitcoin::DerivedKey>,
    rng: &mut ChaCha20Rng,
) -> Result<crate::ids::Signature, Culprits> {
    let made: Vec<(NoncePair, Commitment)> = signers
        .iter()
        .map(|share| NoncePair::commit(share, rng).unwrap())
        .collect();
    let chosen: Vec<_> = signers.iter().map(|share| share.identifier()).collect();
    let commitments: Vec<_> = chosen
        .iter()
        .copied()
        .zip(made.iter().map(|(_, commitment)| *commitment))
        .collect();
    let list = SigningList::new(&chosen, &commitments, message).unwrap();
    let shares: Vec<_> = made
        .into_iter()
        .zip(signers)
        .map(|((nonces, _), share)| {
            (
                share.identifier(),
                nonces.sign(&list, share, address).unwrap(),
            )
        })
        .collect();
    let key = match address {
        Some(derived) => group.public.at(derived).unwrap(),
        None => group.public.untweaked(),
    };
    aggregate(&list, &shares, &key)
}

#[test]
fn twenty_groups_of_either_parity_sign_for_their_addresses_and_for_themselves() {
    let mut odd_group_keys = 0;
    let mut odd_children = 0;
    for seed in 0..20_u8 {
        let mut rng = ChaCha20Rng::seed_from_u64(seed.into());
        let (threshold, count) = [(2, 3), (3, 5), (5, 7)][usize::from(seed % 3)];
        let group = make_group(threshold, count, &mut rng);
        odd_group_keys += usize::from(group.public.group_key().as_bytes()[0] == 3);
        let key = ExtendedKey::of_group(group.public.group_key()).unwrap();
        let chosen: Vec<usize> = (0..usize::from(threshold))
            .map(|i| usize::from(count) - 1 - i)
            .rev()
            .collect();
        let signers = quorum(&group, &chosen);
        for branch in 0..2 {
            let derived = key
                .derive(Child::new(branch, seed.into()).unwrap())
                .unwrap();
            odd_children += usize::from(derived.internal_key()[0] == 3);
            let signature = sign(&group, &signers, &[seed; 32], Some(&derived), &mut rng);
            let signature = signature.expect("verified against the address's output key");
            assert!(crate::bitcoin::verify_bip340(
                derived.output_key(),
                &[seed; 32],
                signature.as_bytes()
            ));
        }
        sign(&group, &signers, &[7; 32], None, &mut rng).expect("verified against the group key");
    }
    assert!(
        (1..20).contains(&odd_group_keys),
        "{odd_group_keys} of 20 group keys are odd"
    );
    assert!(
        (1..40).contains(&odd_children),
        "{odd_children} of 40 children are odd"
    );
}

#[test]
fn names_every_member_that_sent_a_bad_share() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let group = make_group(3, 5, &mut rng);
    let signers = quorum(&group, &[0, 2, 4]);
    let made: Vec<_> = signers
        .iter()
        .map(|share| NoncePair::commit(share, &mut rng).unwrap())
        .collect();
    let chosen: Vec<_> = signers.iter().map(|share| share.identifier()).collect();
    let commitments: Vec<_> = chosen
        .iter()
        .copied()
        .zip(made.iter().map(|(_, commitment)| *commitment))
        .collect();
    let list = SigningList::new(&chosen, &commitments, &[1; 32]).unwrap();
    let mut shares: Vec<_> = made
        .into_iter()
        .zip(&signers)
        .map(|((nonces, _), share)| (share.identifier(), nonces.sign(&list, share, None).unwrap()))
        .collect();
    let key = group.public.untweaked();
    assert!(aggregate(&list, &shares, &key).is_ok());
    for bad in [1, 2] {
        let mut bytes = *shares[bad].1.as_bytes();
        bytes[31] ^= 1;
        shares[bad].1 = crate::ids::SignatureShare::from_bytes(bytes);
        assert!(verify_share(&list, shares[bad].0, &shares[bad].1, &key).is_err());
    }
    assert!(verify_share(&list, shares[0].0, &shares[0].1, &key).is_ok());
    assert_eq!(
        aggregate(&list, &shares, &key),
        Err(Culprits(vec![chosen[1], chosen[2]]))
    );
}

#[test]
fn refuses_lists_of_more_members_of_strangers_and_of_one_member_twice() {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let group = make_group(2, 3, &mut rng);
    let entry = |place: usize, rng: &mut ChaCha20Rng| {
        let share = &group.shares[place];
        (share.identifier(), NoncePair::commit(share, rng).unwrap().1)
    };
    let all = [entry(0, &mut rng), entry(1, &mut rng), entry(2, &mut rng)];
    let session = members(2);
    let refused = |list: &[_]| SigningList::new(&session, list, &[0; 32]).unwrap_err();
    assert_eq!(refused(&all), ThresholdError::WrongMembers);
    assert_eq!(refused(&all[1..]), ThresholdError::WrongMembers);
    assert_eq!(refused(&all[..1]), ThresholdError::WrongMembers);
    assert_eq!(refused(&[all[0], all[0]]), ThresholdError::WrongMembers);
    assert_eq!(refused(&[all[1], all[0]]), ThresholdError::WrongMembers);
    assert!(SigningList::new(&session, &all[..2], &[0; 32]).is_ok());
    let twice = [session[0], session[0]];
    let doubled = SigningList::new(&twice, &[all[0], all[0]], &[0; 32]);
    assert_eq!(doubled.unwrap_err(), ThresholdError::WrongMembers);
}

#[test]
fn a_share_signs_only_with_its_own_commitment_in_the_list() {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let group = make_group(2, 3, &mut rng);
    let session = members(2);
    let (nonces, _) = NoncePair::commit(&group.shares[0], &mut rng).unwrap();
    let (_, other) = NoncePair::commit(&group.shares[0], &mut rng).unwrap();
    let (_, second) = NoncePair::commit(&group.shares[1], &mut rng).unwrap();
    let list = SigningList::new(
        &session,
        &[(session[0], other), (session[1], second)],
        &[0; 32],
    )
    .unwrap();
    assert_eq!(
        nonces.sign(&list, &group.shares[0], None).unwrap_err(),
        ThresholdError::Frost
    );
}

#[test]
fn a_sealed_package_opens_only_for_its_key_and_in_its_context() {
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    let (secret, public) = sealing_pair(&mut rng).unwrap();
    assert_eq!(sealing_key_of(&secret).unwrap(), public);
    let (stranger, _) = sealing_pair(&mut rng).unwrap();
    let [one, two] = [Identifier::new(1).unwrap(), Identifier::new(2).unwrap()];
    let context = SealingContext {
        plan: PlanDigest::from_bytes([1; 32]),
        attempt: SessionId::from_bytes([2; 32]),
        sender: one,
        recipient: two,
        sender_round1: MessageDigest::from_bytes([3; 32]),
    };
    let share = Zeroizing::new([9; 32]);
    let package = seal(&context, &public, &share, &mut rng).unwrap();
    assert_eq!(open(&context, &secret, &package).unwrap(), share);
    assert!(open(&context, &stranger, &package).is_err());
    let others = [
        SealingContext {
            plan: PlanDigest::from_bytes([0; 32]),
            ..context
        },
        SealingContext {
            attempt: SessionId::from_bytes([0; 32]),
            ..context
        },
        SealingContext {
            sender: two,
            ..context
        },
        SealingContext {
            recipient: one,
            ..context
        },
        SealingContext {
            sender_round1: MessageDigest::from_bytes([0; 32]),
            ..context
        },
    ];
    for other in others {
        assert!(open(&other, &secret, &package).is_err(), "{other:?}");
    }
}

/// SEC 1 has tag 5 for a point by its x coordinate alone, and k256 reads it.
#[test]
fn refuses_points_in_the_compact_form() {
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let group = make_group(2, 3, &mut rng);
    let chosen = members(2);
    let made = [0, 1].map(|place| NoncePair::commit(&group.shares[place], &mut rng).unwrap().1);
    let list = |first: Commitment| {
        let commitments = [(chosen[0], first), (chosen[1], made[1])];
        SigningList::new(&chosen, &commitments, &[9; 32]).map(|_| ())
    };
    assert_eq!(list(made[0]), Ok(()));
    for tag in [0, 1, 4, 5, 6, 7, 0x82] {
        let tagged = |bytes: &[u8; 33]| {
            let mut bytes = *bytes;
            bytes[0] = tag;
            bytes
        };
        let [mut hiding, mut binding] = [made[0]; 2];
        hiding.hiding = crate::ids::Point::from_bytes(tagged(made[0].hiding.as_bytes()));
        binding.binding = crate::ids::Point::from_bytes(tagged(made[0].binding.as_bytes()));
        assert_eq!(list(hiding), Err(ThresholdError::BadEncoding), "{tag}");
        assert_eq!(list(binding), Err(ThresholdError::BadEncoding), "{tag}");

        let key = *group.public.group_key();
        let shares = group.public.verifying_shares().unwrap();
        let other_key = crate::ids::GroupKey::from_bytes(tagged(key.as_bytes()));
        let mut other_shares = shares.clone();
        other_shares[1].1 = crate::ids::VerifyingShare::from_bytes(tagged(shares[1].1.as_bytes()));
        for (key, shares) in [(other_key, shares), (key, other_shares)] {
            let read = PublicShares::new(group.public.threshold(), key, &shares);
            assert_eq!(read, Err(ThresholdError::BadEncoding), "{tag}");
        }
    }
}

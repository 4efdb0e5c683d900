//! Attacks on a ceremony's rounds: it ends with a name where one is at fault, and without a share.

use firn_participant::session::{
    Refusing,
    dkg::{AwaitDelivery, DeliveryError},
};
use firn_protocol::{
    codec::List,
    envelope::Envelope,
    ids::{MessageDigest, Point, SealingKey, SessionId},
    messages::{Delivery, DkgManifest, DkgRound1, DkgRound2},
    reject::Reject,
    threshold::{SealingContext, dealt_share_matches, open, seal, sealing_key_of},
};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use zeroize::Zeroizing;

use super::{
    dealing::{begin, deal, delivery, round1, round1_set, sealed_again},
    people::{MEMBERS, Person, STRANGER, number},
    world::{NOW, World},
};

fn bent(
    envelope: &Envelope<DkgRound1>,
    signer: &Person,
    change: impl FnOnce(&mut DkgRound1),
) -> Envelope<DkgRound1> {
    let mut said = (*envelope
        .clone()
        .verify(&envelope.claimed_signer().unwrap())
        .unwrap())
    .clone();
    change(&mut said);
    signer.sign(&said)
}

type Round1Attack = (&'static str, Refusing, fn(&mut Vec<Envelope<DkgRound1>>));

#[test]
fn a_round_one_that_is_not_everybodys_own_for_this_attempt_is_answered_by_nothing() {
    let third = |code| Refusing::of(code, number(3));
    let nobody = |code: Reject| Refusing::from(code);
    let attacks: &[Round1Attack] = &[
        (
            "a commitment of degree t",
            third(Reject::DkgCommitment),
            |all| {
                all[2] = bent(&all[2], &MEMBERS[2], |said| {
                    let mut points = said.commitment.to_vec();
                    points.push(points[1]);
                    said.commitment = List::new(points).unwrap();
                });
            },
        ),
        (
            "a commitment too short",
            third(Reject::DkgCommitment),
            |all| {
                all[2] = bent(&all[2], &MEMBERS[2], |said| {
                    said.commitment = List::new(said.commitment[..1].to_vec()).unwrap();
                });
            },
        ),
        (
            "a commitment that is no point",
            third(Reject::DkgCommitment),
            |all| {
                all[2] = bent(&all[2], &MEMBERS[2], |said| {
                    let first = said.commitment[0];
                    said.commitment = List::new(vec![first, Point::from_bytes([0; 33])]).unwrap();
                });
            },
        ),
        (
            "somebody else's commitment and proof",
            third(Reject::DkgCommitment),
            |all| {
                let first = (*all[1].clone().verify(&MEMBERS[1].key()).unwrap()).clone();
                all[2] = bent(&all[2], &MEMBERS[2], |said| {
                    said.commitment = first.commitment;
                    said.proof = first.proof;
                });
            },
        ),
        (
            "a commitment without its proof",
            third(Reject::DkgCommitment),
            |all| {
                all[2] = bent(&all[2], &MEMBERS[2], |said| {
                    let points: Vec<_> = said.commitment.iter().rev().copied().collect();
                    said.commitment = List::new(points).unwrap();
                });
            },
        ),
        (
            "a sealing key missing",
            third(Reject::DkgCommitment),
            |all| {
                all[2] = bent(&all[2], &MEMBERS[2], |said| {
                    said.sealing_keys = List::new(said.sealing_keys[1..].to_vec()).unwrap();
                });
            },
        ),
        (
            "a sealing key that seals nothing",
            third(Reject::DkgCommitment),
            |all| {
                all[2] = bent(&all[2], &MEMBERS[2], |said| {
                    let mut keys = said.sealing_keys.to_vec();
                    keys[0].1 = SealingKey::from_bytes([0; 32]);
                    said.sealing_keys = List::new(keys).unwrap();
                });
            },
        ),
        (
            "replayed from another attempt",
            nobody(Reject::SessionMismatch),
            |all| {
                all[2] = bent(&all[2], &MEMBERS[2], |said| {
                    said.attempt = SessionId::from_bytes([9; 32]);
                });
            },
        ),
        (
            "signed by a stranger",
            nobody(Reject::UnknownSigner),
            |all| {
                all[2] = bent(&all[2], &STRANGER, |_| {});
            },
        ),
        (
            "this member's altered",
            nobody(Reject::PackageAltered),
            |all| {
                all[0] = bent(&all[0], &MEMBERS[0], |said| {
                    said.sealing_keys = List::empty()
                });
            },
        ),
        ("one missing", nobody(Reject::SessionMembers), |all| {
            drop(all.pop())
        }),
        ("out of order", nobody(Reject::UnknownSigner), |all| {
            all.swap(1, 2)
        }),
    ];
    let mut world = World::without_key();
    for (nonce, (name, refusing, bend)) in (1..).zip(attacks) {
        let mut machines = begin(&mut world, nonce);
        let mut messages = round1(&machines);
        bend(&mut messages);
        let set = round1_set(messages);
        let refused = world.members[0]
            .deal(&world.domain, machines.remove(0), &set)
            .err();
        assert_eq!(refused, Some(*refusing), "{name}");
        let sent = usize::from(nonce);
        assert_eq!(
            world.members[0].count("CeremonySent"),
            sent,
            "{name}: round one only"
        );
    }
}

/// A ceremony up to everybody's round two.
fn dealt(
    world: &mut World,
    nonce: u8,
) -> (Vec<Envelope<DkgRound1>>, Vec<DkgRound2>, AwaitDelivery) {
    let machines = begin(world, nonce);
    let messages = round1(&machines);
    let set = round1_set(messages.clone());
    let (round2, mut machines) = deal(world, machines, &set);
    (messages, round2, machines.remove(0))
}

pub fn refusing(error: DeliveryError) -> Refusing {
    match error {
        DeliveryError::Refused(refusing) => refusing,
        DeliveryError::BadShare(_) => panic!("a complaint"),
    }
}

fn said_again(
    dealt: &DkgRound2,
    signer: &Person,
    change: impl FnOnce(&mut DkgManifest),
) -> Envelope<DkgManifest> {
    let key = dealt.manifest.claimed_signer().unwrap();
    let mut manifest = (*dealt.manifest.clone().verify(&key).unwrap()).clone();
    change(&mut manifest);
    signer.sign(&manifest)
}

type DeliveryAttack = (
    &'static str,
    Refusing,
    fn(&mut Vec<DkgRound2>, &mut Delivery),
);

#[test]
fn a_delivery_that_is_not_what_the_senders_signed_makes_no_share() {
    let nobody = |code: Reject| Refusing::from(code);
    let attacks: &[DeliveryAttack] = &[
        (
            "a manifest of another root",
            nobody(Reject::PackageDigest),
            |round2, bad| {
                round2[2] = sealed_again(&round2[2], vec![round2[1].packages[0].clone()]);
                let mut manifests = bad.manifests.to_vec();
                manifests[2] = round2[2].manifest.clone();
                bad.manifests = List::new(manifests).unwrap();
            },
        ),
        (
            "a package altered on its way",
            nobody(Reject::PackageDigest),
            |_, bad| {
                let mut packages = bad.packages.to_vec();
                packages[1].package.encapsulated = packages[0].package.encapsulated;
                bad.packages = List::new(packages).unwrap();
            },
        ),
        (
            "a package for somebody else",
            nobody(Reject::SessionMembers),
            |round2, bad| {
                let mut packages = bad.packages.to_vec();
                packages[1] = delivery(number(2), round2).packages[1].clone();
                bad.packages = List::new(packages).unwrap();
            },
        ),
        (
            "a package for somebody else under this one's name",
            nobody(Reject::PackageDigest),
            |round2, bad| {
                let mut packages = bad.packages.to_vec();
                packages[1] = delivery(number(2), round2).packages[1].clone();
                packages[1].package.recipient = number(1);
                bad.packages = List::new(packages).unwrap();
            },
        ),
        (
            "one sender's package twice",
            nobody(Reject::SessionMembers),
            |_, bad| {
                let first = bad.packages[0].clone();
                bad.packages = List::new(vec![first.clone(), first]).unwrap();
            },
        ),
        (
            "a package missing",
            nobody(Reject::SessionMembers),
            |_, bad| {
                bad.packages = List::new(bad.packages[..1].to_vec()).unwrap();
            },
        ),
        (
            "a manifest missing",
            nobody(Reject::SessionMembers),
            |_, bad| {
                bad.manifests = List::new(bad.manifests[..2].to_vec()).unwrap();
            },
        ),
        (
            "a manifest by a stranger",
            nobody(Reject::UnknownSigner),
            |round2, bad| {
                let mut manifests = bad.manifests.to_vec();
                manifests[2] = said_again(&round2[2], &STRANGER, |_| {});
                bad.manifests = List::new(manifests).unwrap();
            },
        ),
        (
            "a manifest of another attempt",
            nobody(Reject::SessionMismatch),
            |round2, bad| {
                let mut manifests = bad.manifests.to_vec();
                manifests[2] = said_again(&round2[2], &MEMBERS[2], |said| {
                    said.attempt = SessionId::from_bytes([9; 32]);
                });
                bad.manifests = List::new(manifests).unwrap();
            },
        ),
        (
            "this member's manifest altered",
            nobody(Reject::PackageAltered),
            |round2, bad| {
                let mut manifests = bad.manifests.to_vec();
                manifests[0] = said_again(&round2[0], &MEMBERS[0], |said| {
                    said.round1 = List::new(vec![MessageDigest::from_bytes([9; 32])]).unwrap();
                });
                bad.manifests = List::new(manifests).unwrap();
            },
        ),
        (
            "a manifest about another round one",
            nobody(Reject::DkgEquivocation),
            |round2, bad| {
                let mut manifests = bad.manifests.to_vec();
                manifests[1] = said_again(&round2[1], &MEMBERS[1], |said| {
                    let mut digests = said.round1.to_vec();
                    digests[2] = MessageDigest::from_bytes([9; 32]);
                    said.round1 = List::new(digests).unwrap();
                });
                bad.manifests = List::new(manifests).unwrap();
            },
        ),
    ];
    let mut world = World::without_key();
    for (nonce, (name, expected, bend)) in (1..).zip(attacks) {
        let (_, mut round2, machine) = dealt(&mut world, nonce);
        let mut bad = delivery(number(1), &round2);
        bend(&mut round2, &mut bad);
        let refused = world.members[0].certify(&world.domain, machine, &bad).err();
        assert_eq!(refused.map(refusing), Some(*expected), "{name}");
        assert_eq!(world.members[0].count("SharePending"), 0, "{name}");
    }
}

#[test]
fn two_words_of_one_member_are_found_out_by_those_who_heard_them() {
    let mut world = World::without_key();
    let machines = begin(&mut world, 1);
    let first = round1(&machines);
    let mut second = first.clone();
    second[2] = bent(&first[2], &MEMBERS[2], |said| {
        said.standing.time = NOW.plus(1)
    });
    let mut machines = machines.into_iter();
    let mut hear = |place: usize, messages: &[Envelope<DkgRound1>]| {
        let set = round1_set(messages.to_vec());
        let member = &mut world.members[place];
        member
            .deal(&world.domain, machines.next().unwrap(), &set)
            .unwrap()
    };
    let (one, machine) = hear(0, &first);
    let (two, _) = hear(1, &second);
    // The third goes along with either.
    let three = sealed_again(&one, one.packages.to_vec());
    let three = DkgRound2 {
        manifest: said_again(&three, &MEMBERS[2], |said| said.member = number(3)),
        ..three
    };
    let bad = Delivery {
        manifests: List::new(vec![one.manifest, two.manifest, three.manifest]).unwrap(),
        packages: List::empty(),
    };
    let refused = world.members[0].certify(&world.domain, machine, &bad).err();
    assert_eq!(refused.map(refusing), Some(Reject::DkgEquivocation.into()));
}

#[test]
fn a_bad_dealt_share_makes_a_complaint_that_convicts_its_dealer_and_nobody_else() {
    let mut world = World::without_key();
    let (messages, mut round2, machine) = dealt(&mut world, 1);
    let said: Vec<_> = messages
        .iter()
        .zip(&MEMBERS)
        .map(|(message, member)| message.clone().verify(&member.key()).unwrap())
        .collect();
    let context = SealingContext {
        plan: world.domain.plan_digest(),
        attempt: said[2].attempt,
        sender: number(3),
        recipient: number(1),
        sender_round1: MessageDigest::from_bytes(said[2].digest()),
    };
    let announced = said[0]
        .sealing_keys
        .iter()
        .find(|(from, _)| *from == number(3))
        .unwrap()
        .1;
    let mut rng = ChaCha20Rng::from_seed([9; 32]);
    let lie = seal(&context, &announced, &Zeroizing::new([1; 32]), &mut rng).unwrap();
    let mut packages = round2[2].packages.to_vec();
    packages[0] = lie;
    round2[2] = sealed_again(&round2[2], packages);
    let bad = delivery(number(1), &round2);
    let refused = world.members[0]
        .certify(&world.domain, machine, &bad)
        .err()
        .unwrap();
    let DeliveryError::BadShare(complaint) = refused else {
        panic!("no complaint");
    };
    let complaint = complaint.verify(&MEMBERS[0].key()).unwrap();
    assert_eq!(
        (complaint.member, complaint.package.sender),
        (number(1), number(3))
    );
    assert_eq!(sealing_key_of(&complaint.secret).unwrap(), announced);
    let share = open(&context, &complaint.secret, &complaint.package.package).unwrap();
    assert!(!dealt_share_matches(&said[2].commitment, number(1), &share));
    // What member 2 sealed to member 1 stays closed: the key is for one sender.
    let honest = SealingContext {
        sender: number(2),
        sender_round1: MessageDigest::from_bytes(said[1].digest()),
        ..context
    };
    assert!(open(&honest, &complaint.secret, &bad.packages[0].package).is_err());
    assert_eq!(world.members[0].count("SharePending"), 0);
}

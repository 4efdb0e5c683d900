//! Attacks on a ceremony's end: certificates, and what a coordinator may do by beginning again.

use firn_participant::session::Refusing;
use firn_protocol::{
    documents::Certificate,
    envelope::Envelope,
    ids::{BuildDigest, GroupKey, TranscriptDigest},
    reject::Reject,
};

use super::{
    dealing::{begin, certificate_set, deal, delivery, round1, round1_set, until_certificates},
    people::{MEMBERS, STRANGER, number},
    rounds::refusing,
    world::World,
};

#[test]
fn certificates_that_disagree_or_lack_one_are_held_by_nobody() {
    type Bend = fn(&mut Vec<Envelope<Certificate>>);
    fn said(all: &[Envelope<Certificate>], place: usize) -> Certificate {
        (*all[place].clone().verify(&MEMBERS[place].key()).unwrap()).clone()
    }
    let attacks: [(&str, Reject, Bend); 6] = [
        ("another transcript", Reject::CertificateMismatch, |all| {
            let mut other = said(all, 2);
            other.transcript = TranscriptDigest::from_bytes([9; 32]);
            all[2] = MEMBERS[2].sign(&other);
        }),
        ("another group key", Reject::CertificateMismatch, |all| {
            let mut other = said(all, 2);
            other.group_key = GroupKey::from_bytes(*other.verifying_shares[0].1.as_bytes());
            all[2] = MEMBERS[2].sign(&other);
        }),
        (
            "this one's in other words",
            Reject::CertificateMismatch,
            |all| {
                let mut other = said(all, 0);
                other.build = BuildDigest::from_bytes([9; 32]);
                all[0] = MEMBERS[0].sign(&other);
            },
        ),
        ("one missing", Reject::CertificateMismatch, |all| {
            drop(all.pop())
        }),
        ("one by a stranger", Reject::UnknownSigner, |all| {
            all[2] = STRANGER.sign(&said(all, 2));
        }),
        (
            "one in another's name",
            Reject::CertificateMismatch,
            |all| {
                let mut other = said(all, 2);
                other.member = number(2);
                all[2] = MEMBERS[2].sign(&other);
            },
        ),
    ];
    let mut world = World::without_key();
    for (nonce, (name, code, bend)) in (1..).zip(attacks) {
        let (set, mut machines) = until_certificates(&mut world, nonce);
        let mut certificates = set.certificates.to_vec();
        bend(&mut certificates);
        let bad = certificate_set(certificates);
        let refused = world.members[0]
            .hold(&world.domain, machines.remove(0), &bad)
            .err();
        assert_eq!(refused, Some(code), "{name}");
        assert_eq!(world.members[0].count("ShareCertified"), 0, "{name}");
    }
}

#[test]
fn a_coordinator_that_begins_again_takes_no_finished_share_away() {
    // Everybody has certified the first attempt; only member 3 is shown that.
    let mut world = World::without_key();
    let (first, mut machines) = until_certificates(&mut world, 1);
    world.members[2]
        .hold(&world.domain, machines.remove(2), &first)
        .unwrap();
    // Everybody certifies a second attempt too, also member 3, which a crash may have parted from the rest.
    let machines = begin(&mut world, 2);
    let set = round1_set(round1(&machines));
    let (round2, machines) = deal(&mut world, machines, &set);
    for (place, machine) in machines.into_iter().enumerate() {
        let delivery = delivery(number(u16::try_from(place).unwrap() + 1), &round2);
        let certified = world.members[place].certify(&world.domain, machine, &delivery);
        assert!(certified.is_ok());
    }
    // The operators have seen all certificates of the first, and activate it.
    let documents = world.domain.documents(&first);
    for member in &mut world.members {
        assert_eq!(member.activate(&world.domain, &documents), Ok(()));
    }
}

#[test]
fn what_the_operators_activate_is_used_also_where_another_attempt_was_certified() {
    let mut world = World::without_key();
    let (first, _) = until_certificates(&mut world, 1);
    let (second, mut machines) = until_certificates(&mut world, 2);
    world.members[0]
        .hold(&world.domain, machines.remove(0), &second)
        .unwrap();
    let documents = world.domain.documents(&first);
    for member in &mut world.members {
        assert_eq!(member.activate(&world.domain, &documents), Ok(()));
    }
    // And from then on no other.
    let other = world.domain.documents(&second);
    let refused = world.members[0].activate(&world.domain, &other);
    assert_eq!(refused, Err(Reject::CertificateMismatch));
}

#[test]
fn a_key_in_use_is_not_made_again() {
    let mut world = World::new();
    let machines = begin(&mut world, 2);
    let set = round1_set(round1(&machines));
    let (round2, mut machines) = deal(&mut world, machines, &set);
    let bad = delivery(number(1), &round2);
    let refused = world.members[0]
        .certify(&world.domain, machines.remove(0), &bad)
        .err();
    assert_eq!(
        refused.map(refusing),
        Some(Refusing::from(Reject::AttemptAbandoned))
    );
    assert_eq!(world.members[0].count("SharePending"), 1);
}

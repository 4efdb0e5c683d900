//! Attacks on the opening of a ceremony: nothing begins that an operator did not accept.

use firn_participant::session::Refusing;
use firn_protocol::{
    codec::List,
    documents::Plan,
    envelope::Endorsed,
    ids::{AuthoritiesDigest, CeremonyId, Epoch, Flow, KeyId, PlanDigest, SessionId, ShareVersion},
    messages::DkgOpen,
    reject::Reject,
    session::Subject,
};

use super::{
    dealing::{header, make_key, opening, round1, round1_set},
    people::{ADA, DESK, OTHER_CARRIER, STRANGER, endorse, number},
    world::{Domain, NOW, World, plan},
};

type Opening = (
    &'static str,
    Reject,
    fn(&Domain) -> (DkgOpen, Option<Endorsed>),
);

/// An opening whose header is changed before it is signed.
fn with(
    domain: &Domain,
    change: impl FnOnce(&mut firn_protocol::session::SessionHeader),
) -> (DkgOpen, Option<Endorsed>) {
    let mut header = header(domain, 1);
    change(&mut header);
    (opening(domain, &header), Some(domain.plan.clone()))
}

/// A whole opening of another plan.
fn of_plan(plan: Endorsed, accepted: bool) -> (DkgOpen, Option<Endorsed>) {
    let domain = Domain {
        plan: plan.clone(),
        ..Domain::new()
    };
    let open = opening(&domain, &header(&domain, 1));
    (open, accepted.then_some(plan))
}

#[test]
fn an_opening_that_its_operator_did_not_accept_or_that_is_for_others_begins_nothing() {
    let attacks: &[Opening] = &[
        ("plan not accepted", Reject::PlanNotAccepted, |domain| {
            of_plan(domain.plan.clone(), false)
        }),
        ("another plan accepted", Reject::PlanNotAccepted, |domain| {
            let mut other = plan(domain.authorities_digest);
            other.ceremony_id = CeremonyId::from_bytes([9; 16]);
            (opening(domain, &header(domain, 1)), Some(endorse(&other)))
        }),
        ("signed by one operator", Reject::QuorumNotMet, |domain| {
            let plan = plan(domain.authorities_digest);
            let one = Endorsed::unsigned(&plan)
                .unwrap()
                .endorse::<Plan>(&ADA.secret())
                .unwrap();
            of_plan(one, true)
        }),
        ("signed by a stranger", Reject::UnknownSigner, |domain| {
            let two = domain
                .plan
                .clone()
                .endorse::<Plan>(&STRANGER.secret())
                .unwrap();
            of_plan(two, true)
        }),
        ("expired", Reject::PlanExpired, |domain| {
            let mut over = plan(domain.authorities_digest);
            over.expires = NOW;
            of_plan(endorse(&over), true)
        }),
        (
            "under other authorities",
            Reject::AuthoritiesMismatch,
            |_| of_plan(endorse(&plan(AuthoritiesDigest::from_bytes([9; 32]))), true),
        ),
        (
            "with a roster out of order",
            Reject::UnsoundDocument,
            |domain| {
                let mut unsound = plan(domain.authorities_digest);
                let mut roster = unsound.roster.to_vec();
                roster.swap(0, 1);
                unsound.roster = List::new(roster).unwrap();
                of_plan(endorse(&unsound), true)
            },
        ),
        ("without this member", Reject::NotAMember, |domain| {
            let mut others = plan(domain.authorities_digest);
            let mut roster = others.roster.to_vec();
            roster[0].identity = STRANGER.key();
            others.roster = List::new(roster).unwrap();
            of_plan(endorse(&others), true)
        }),
        ("a member missing", Reject::SessionMembers, |domain| {
            with(domain, |h| {
                h.members = List::new(vec![number(1), number(2)]).unwrap()
            })
        }),
        ("members out of order", Reject::SessionMembers, |domain| {
            with(domain, |h| {
                h.members = List::new([2, 1, 3].map(number).to_vec()).unwrap()
            })
        }),
        ("another flow", Reject::SessionMismatch, |d| {
            with(d, |h| h.flow = Flow::ProofOfLife)
        }),
        ("another key", Reject::SessionMismatch, |domain| {
            with(domain, |h| h.key_id = KeyId::from_bytes([9; 32]))
        }),
        ("another sharing", Reject::SessionMismatch, |domain| {
            with(domain, |h| h.share_version = ShareVersion::new(2))
        }),
        ("another epoch", Reject::SessionMismatch, |d| {
            with(d, |h| h.epoch = Epoch::new(6))
        }),
        (
            "another plan in the header",
            Reject::SessionMismatch,
            |domain| {
                with(domain, |header| match &mut header.subject {
                    Subject::Ceremony(subject) => subject.plan = PlanDigest::from_bytes([9; 32]),
                    Subject::Request(_) => panic!("a ceremony"),
                })
            },
        ),
        (
            "in another coordinator's name",
            Reject::UnknownCoordinator,
            |domain| with(domain, |h| h.coordinator = OTHER_CARRIER.id("coordinator")),
        ),
        (
            "signed by a requester",
            Reject::UnknownCoordinator,
            |domain| {
                let open = DkgOpen {
                    header: DESK.sign(&header(domain, 1)),
                    plan: domain.plan.clone(),
                };
                (open, Some(domain.plan.clone()))
            },
        ),
    ];
    let mut world = World::without_key();
    for (name, code, make) in attacks {
        let (open, accepted) = make(&world.domain);
        let begun = world.members[0].begin(&world.domain, &open, accepted.as_ref());
        assert_eq!(begun.err(), Some(*code), "{name}");
        assert_eq!(world.members[0].count("AttemptOpened"), 0, "{name}");
        assert_eq!(world.members[0].count("CeremonySent"), 0, "{name}");
    }
}

#[test]
fn an_attempt_begins_once_and_ends_with_its_process() {
    let mut world = World::without_key();
    let open = opening(&world.domain, &header(&world.domain, 1));
    let plan = world.domain.plan.clone();
    let machine = world.members[0]
        .begin(&world.domain, &open, Some(&plan))
        .unwrap();
    let again = world.members[0].begin(&world.domain, &open, Some(&plan));
    assert_eq!(again.err(), Some(Reject::SessionSeen));
    // Its machine lives on, as in a copied memory; the ledger of the next run lets nothing out.
    let mut machines = vec![machine];
    for place in [1, 2] {
        let member = &mut world.members[place];
        machines.push(member.begin(&world.domain, &open, Some(&plan)).unwrap());
    }
    let set = round1_set(round1(&machines));
    world.members[0].start(world.domain.now);
    let refused = world.members[0]
        .deal(&world.domain, machines.remove(0), &set)
        .err();
    assert_eq!(refused, Some(Refusing::from(Reject::AttemptAbandoned)));
}

#[test]
fn a_coordinator_gets_a_bounded_number_of_attempts_out_of_a_plan() {
    let mut world = World::without_key();
    make_key(&mut world, 0xd0);
    let mut opened = 1;
    for number in 0..100 {
        let attempt = SessionId::from_bytes([number; 32]);
        match world.members[0].open_attempt(&world.domain, attempt) {
            Ok(()) => opened += 1,
            Err(code) => assert_eq!(code, Reject::AttemptsExhausted),
        }
    }
    assert_eq!(opened, 64);
}

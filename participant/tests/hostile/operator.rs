//! What the operators are told of a member, and which plans one of them can have accepted on a machine.

use firn_ledger::rules::{Command, PlanAccepted};
use firn_participant::{
    accept::{AcceptError, Acceptor},
    session::judge_status_query,
};
use firn_protocol::{
    codec::Maybe,
    documents::Plan,
    envelope::{Document, Endorsed, digest_of},
    ids::{AuthoritiesDigest, Nonce, PlanDigest, PolicyVersion, UnixMillis},
    messages::{AcceptPlan, MAX_ACCEPTED, ShareStage, StatusQuery},
    reject::Reject,
};

use super::{
    people::{ADA, BEA, CARRIER, DESK, GRANTS, MEMBERS, Person, STRANGER, endorse},
    world::{Domain, FIRST_EPOCH, NOW, World, plan},
};

const NONCE: Nonce = Nonce::from_bytes([7; 32]);

#[test]
fn only_an_operator_of_the_authorities_is_told_how_a_member_is() {
    let domain = Domain::new();
    let query = StatusQuery {
        nonce: NONCE,
        time: UnixMillis::new(0),
    };
    let asked = |by: &Person| judge_status_query(&by.sign(&query), &domain.authorities);
    for by in [&ADA, &BEA] {
        assert_eq!(asked(by), Ok(NONCE));
    }
    for by in [&STRANGER, &DESK, &CARRIER, &GRANTS, &MEMBERS[0]] {
        assert_eq!(asked(by), Err(Reject::UnknownSigner));
    }
}

#[test]
fn a_member_says_how_far_each_key_has_come_and_who_owns_it() {
    let mut world = World::new();
    let said = world.members[0].status(&world.domain, NONCE, None);
    assert_eq!(said.nonce, NONCE);
    assert_eq!(said.stopped, Maybe(None));
    assert_eq!(said.certificate_expires, UnixMillis::new(77));
    assert_eq!(said.authorities, world.domain.authorities_digest);
    let head = world.members[0].ledger.head();
    let checkpoint = said.checkpoint.verify(&MEMBERS[0].key()).unwrap();
    assert_eq!((checkpoint.size, checkpoint.root), (head.size, head.root));
    assert_eq!(said.keys.len(), 1);
    let key = &said.keys[0];
    assert_eq!(key.key_id, world.domain.key_id());
    assert_eq!(key.stage, ShareStage::Active);
    assert_eq!(key.policy_version, Maybe(Some(PolicyVersion::new(1))));
    assert_eq!(key.epoch, Maybe(Some(FIRST_EPOCH)));
    assert_eq!(key.owner, Maybe(None), "nobody has shown a grant");
    world.open(&world.draft(1, 60_000).signed());
    let said = world.members[0].status(&world.domain, NONCE, None);
    assert_eq!(said.keys[0].owner, Maybe(Some(DESK.id("requester"))));
}

#[test]
fn a_member_says_why_it_would_sign_nothing() {
    let mut world = World::new();
    let frozen = Some(Reject::Frozen);
    let said = world.members[0].status(&world.domain, NONCE, frozen);
    assert_eq!(said.stopped, Maybe(frozen));
    world.domain.now = UnixMillis::new(NOW.value() - 1);
    let said = world.members[0].status(&world.domain, NONCE, None);
    assert_eq!(said.stopped, Maybe(Some(Reject::ClockRewound)));
    assert_eq!(said.time, world.domain.now);
    let said = world.members[0].status(&world.domain, NONCE, frozen);
    assert_eq!(
        said.stopped,
        Maybe(frozen),
        "what does not pass by itself comes first"
    );
}

#[test]
fn plans_that_wait_are_named_and_those_that_made_a_key_are_not() {
    let mut world = World::new();
    let accepted = |world: &World| world.members[0].status(&world.domain, NONCE, None).accepted;
    assert!(accepted(&world).is_empty(), "the plan of the key in use");
    for number in (0..=u8::try_from(MAX_ACCEPTED).unwrap()).rev() {
        let plan = PlanDigest::from_bytes([number; 32]);
        let accept = Command::AcceptPlan(PlanAccepted { plan });
        world.members[0].write(accept, world.domain.now).unwrap();
    }
    let waiting = accepted(&world);
    assert_eq!(waiting.len(), MAX_ACCEPTED);
    assert!(waiting.is_sorted());
    let without_key = World::without_key();
    assert_eq!(
        without_key.members[0]
            .status(&without_key.domain, NONCE, None)
            .keys
            .len(),
        0
    );
}

fn digest(plan: &Endorsed) -> PlanDigest {
    PlanDigest::from_bytes(plan.read::<Plan>().unwrap().1)
}

fn judge(domain: &Domain, plan: Endorsed, fingerprint: PlanDigest) -> Result<String, String> {
    let name = MEMBERS[0].id("participant");
    let acceptor = Acceptor {
        authorities: &domain.authorities,
        authorities_digest: domain.authorities_digest,
        identity: MEMBERS[0].key(),
        name: &name,
    };
    let judged = acceptor.judge(&AcceptPlan { plan, fingerprint }, NOW);
    judged
        .map(|(_, accepted)| accepted.member.to_string())
        .map_err(|error: AcceptError| error.code().to_owned())
}

#[test]
fn a_plan_is_accepted_by_its_fingerprint_and_only_where_it_counts() {
    type Bend = fn(&mut Plan);
    let domain = Domain::new();
    let good = plan(domain.authorities_digest);
    assert_eq!(
        judge(&domain, endorse(&good), digest(&endorse(&good))),
        Ok("m1".into())
    );
    let bends: [(&str, Bend, &str); 5] = [
        ("expired", |plan| plan.expires = NOW, "plan_expired"),
        (
            "under other Authorities",
            |plan| plan.authorities = AuthoritiesDigest::from_bytes([9; 32]),
            "authorities_mismatch",
        ),
        (
            "without this member's key",
            |plan| with_roster(plan, |entry| entry.identity = STRANGER.key()),
            "not_a_member",
        ),
        (
            "with this member's key under another name",
            |plan| with_roster(plan, |entry| entry.tls_name = STRANGER.id("participant")),
            "not_a_member",
        ),
        (
            "that contradicts itself",
            |plan| with_roster(plan, |entry| entry.identity = MEMBERS[1].key()),
            "unsound_document",
        ),
    ];
    for (name, bend, code) in bends {
        let mut bent = good.clone();
        bend(&mut bent);
        let bent = endorse(&bent);
        let fingerprint = digest(&bent);
        assert_eq!(
            judge(&domain, bent, fingerprint),
            Err(code.into()),
            "{name}"
        );
    }
    // As the operator heard it, this is another plan: who signed it does not matter.
    let other = digest_of::<Plan>(&good.to_payload().unwrap()).map(|byte| byte ^ 1);
    let other = PlanDigest::from_bytes(other);
    assert_eq!(
        judge(&domain, endorse(&good), other),
        Err("plan_fingerprint".into())
    );
    let unsigned = Endorsed::unsigned(&good).unwrap();
    let fingerprint = digest(&unsigned);
    assert_eq!(
        judge(&domain, unsigned.clone(), fingerprint),
        Err("quorum_not_met".into())
    );
    let one = unsigned.clone().endorse::<Plan>(&ADA.secret()).unwrap();
    assert_eq!(
        judge(&domain, one.clone(), fingerprint),
        Err("quorum_not_met".into())
    );
    let stranger = one.endorse::<Plan>(&STRANGER.secret()).unwrap();
    assert_eq!(
        judge(&domain, stranger, fingerprint),
        Err("unknown_signer".into())
    );
}

fn with_roster(plan: &mut Plan, change: impl FnOnce(&mut firn_protocol::documents::RosterEntry)) {
    let mut roster = plan.roster.to_vec();
    change(&mut roster[0]);
    plan.roster = firn_protocol::codec::List::new(roster).unwrap();
}

//! What became of a request: its owner is told, always and the same; nobody else is told anything.

use firn_ledger::rules::{Command, SessionEnded};
use firn_protocol::{
    codec::Maybe,
    envelope::Envelope,
    ids::{Epoch, KeyId, Nonce, RequestId, UnixMillis},
    messages::{KnownRequest, OutcomeQuery, OutcomeStatement, RequestProgress},
    reject::Reject,
};

use super::{
    people::{ADA, CARRIER, DESK, GRANTS, OTHER_DESK, Person, STRANGER, number, person},
    signing::{package, released, sent},
    world::{FIRST_EPOCH, NOW, World},
};

fn query(world: &World, request: u8) -> OutcomeQuery {
    OutcomeQuery {
        key_id: world.domain.key_id(),
        request_id: RequestId::from_bytes([request; 32]),
        nonce: Nonce::from_bytes([0x4e; 32]),
        time: world.domain.now,
    }
}

fn asked(world: &World, request: u8, by: &Person) -> Result<OutcomeStatement, Reject> {
    let query = by.sign(&query(world, request));
    world.members[0].ask(&world.domain, &query)
}

fn known(world: &World, request: u8) -> Option<KnownRequest> {
    asked(world, request, &DESK).unwrap().known.0
}

fn restart(world: &mut World) {
    let (disk, now) = (world.members[0].disk(), world.domain.now);
    world.members[0].restore(disk, now);
}

fn raise(world: &mut World, owner: &Person, epoch: Epoch) {
    let raise = Command::RaiseEpoch {
        key_id: world.domain.key_id(),
        epoch,
        owner: owner.id("requester"),
    };
    world.members[0].write(raise, world.domain.now).unwrap();
}

#[test]
fn an_answer_that_was_lost_comes_back_byte_for_byte_after_restart_and_expiry() {
    let mut world = World::new();
    let (draft, mut shared, made) = released(&mut world);
    let receipt = world.members[0]
        .finish(&world.domain, shared.remove(0), &made)
        .unwrap();
    for round in ["at once", "after a restart", "after years"] {
        let size = world.members[0].ledger.head().size;
        let said = asked(&world, 1, &DESK).unwrap();
        assert_eq!(said.member, number(1), "{round}");
        assert_eq!(said.nonce, Nonce::from_bytes([0x4e; 32]), "{round}");
        assert_eq!(said.time, world.domain.now, "{round}");
        let checkpoint = said.checkpoint.verify(&person(number(1)).key()).unwrap();
        let head = world.members[0].ledger.head();
        assert_eq!((checkpoint.size, checkpoint.root), (head.size, head.root));
        let known = said.known.0.unwrap();
        assert_eq!(known.progress, RequestProgress::Completed, "{round}");
        assert_eq!(known.intent, draft.grant.intent, "{round}");
        assert_eq!(known.policy, draft.grant.policy, "{round}");
        assert_eq!(known.epoch, FIRST_EPOCH, "{round}");
        assert_eq!(known.open_attempts, 0, "{round}");
        let stored = known.receipt.0.unwrap();
        assert_eq!(stored.as_bytes(), receipt.as_bytes(), "{round}");
        assert_eq!(head.size, size, "asking leaves no record");
        restart(&mut world);
        world.domain.now = world.domain.now.plus(100_000_000_000);
    }
}

#[test]
fn an_attempt_counts_as_open_only_in_the_run_that_can_still_sign() {
    let mut world = World::new();
    let draft = world.draft(1, 60_000);
    world.open(&draft.signed());
    world.members[0]
        .open(&world.domain, &draft.again(2).signed())
        .unwrap();
    let open = known(&world, 1).unwrap();
    assert_eq!(
        (open.progress, open.open_attempts),
        (RequestProgress::Open, 2)
    );
    assert_eq!(open.receipt, Maybe(None));
    let ended = SessionEnded {
        session: draft.session(),
        code: Reject::Deadline,
    };
    let now = world.domain.now;
    world.members[0].write(Command::End(ended), now).unwrap();
    assert_eq!(known(&world, 1).unwrap().open_attempts, 1);
    restart(&mut world);
    let dead = known(&world, 1).unwrap();
    assert_eq!(
        (dead.progress, dead.open_attempts),
        (RequestProgress::Open, 0)
    );
}

#[test]
fn a_share_that_has_left_is_never_said_not_to_have() {
    let mut world = World::new();
    let draft = world.draft(1, 60_000);
    let mut sessions = world.open(&draft.signed());
    let good = package(&draft, &sent(&sessions));
    let session = sessions.remove(0);
    let shared = world.members[0].release(&world.domain, session, &good);
    let progress = |world: &World| {
        let known = known(world, 1).unwrap();
        (known.progress, known.open_attempts, known.receipt)
    };
    assert!(shared.is_ok());
    assert_eq!(
        progress(&world),
        (RequestProgress::Released, 1, Maybe(None))
    );
    restart(&mut world);
    assert_eq!(
        progress(&world),
        (RequestProgress::Released, 0, Maybe(None))
    );
    let again = draft.again(3);
    world.members[0]
        .open(&world.domain, &again.signed())
        .unwrap();
    assert_eq!(
        progress(&world),
        (RequestProgress::Released, 1, Maybe(None))
    );
}

#[test]
fn unknown_is_an_answer() {
    let mut world = World::new();
    let said = asked(&world, 1, &DESK).unwrap();
    assert_eq!(said.known, Maybe(None));
    // Nobody owns the key yet: every requester may be told that there is nothing.
    assert_eq!(asked(&world, 1, &OTHER_DESK).unwrap().known, Maybe(None));
    world.open(&world.draft(1, 60_000).signed());
    assert_eq!(known(&world, 2), None);
    assert!(known(&world, 1).is_some());
}

#[test]
fn another_requester_than_the_owner_is_told_nothing_of_what_is_stored() {
    let mut world = World::new();
    world.open(&world.draft(1, 60_000).signed());
    let conflict = Err(Reject::EpochOwnerConflict);
    for request in [1, 2] {
        assert_eq!(asked(&world, request, &OTHER_DESK), conflict);
    }
    raise(&mut world, &OTHER_DESK, Epoch::new(6));
    for request in [1, 2] {
        assert_eq!(asked(&world, request, &DESK), conflict, "a fenced owner");
    }
    let inherited = asked(&world, 1, &OTHER_DESK).unwrap().known.0.unwrap();
    assert_eq!(
        inherited.epoch, FIRST_EPOCH,
        "the key's requests go with it"
    );
}

#[test]
fn only_a_requester_of_the_authorities_is_told_anything() {
    let mut world = World::new();
    world.open(&world.draft(1, 60_000).signed());
    for by in [&STRANGER, &CARRIER, &GRANTS, &ADA] {
        assert_eq!(asked(&world, 1, by), Err(Reject::UnknownRequester));
    }
    let mut bytes = DESK.sign(&query(&world, 1)).as_bytes().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    let damaged = Envelope::from_bytes(bytes).unwrap();
    let said = world.members[0].ask(&world.domain, &damaged);
    assert_eq!(said, Err(Reject::BadSignature));
    let mut other = query(&world, 1);
    other.key_id = KeyId::from_bytes([9; 32]);
    for by in [&DESK, &STRANGER] {
        let said = world.members[0].ask(&world.domain, &by.sign(&other));
        assert_eq!(said, Err(Reject::KeyUnknown));
    }
}

#[test]
fn a_clock_that_stands_wrong_keeps_no_answer_back() {
    let mut world = World::new();
    world.open(&world.draft(1, 60_000).signed());
    world.domain.now = UnixMillis::new(NOW.value() - 86_400_000);
    assert!(known(&world, 1).is_some());
    let mut old = query(&world, 1);
    old.time = UnixMillis::new(0);
    let said = world.members[0].ask(&world.domain, &DESK.sign(&old));
    assert!(said.unwrap().known.0.is_some());
}

//! Attacks over more than one session: replays, conflicts, floods, restored disks.

use firn_ledger::rules::{Command, RefusalsCounted, SessionEnded};
use firn_participant::session::Refusing;
use firn_protocol::{
    ids::{Epoch, SessionId, UnixMillis},
    reject::Reject,
};

use super::{
    member::Opening,
    people::{CARRIER, DESK, GRANTS, OTHER_CARRIER, OTHER_DESK, number},
    signing::{package, released, said, sent},
    world::{Draft, World},
};

fn refused(world: &mut World, draft: &Draft) -> Option<Reject> {
    world.members[0].open(&world.domain, &draft.signed()).err()
}

fn end(world: &mut World, session: SessionId) {
    let ended = SessionEnded {
        session,
        code: Reject::SessionFailed,
    };
    world.members[0]
        .write(Command::End(ended), world.domain.now)
        .unwrap();
}

#[test]
fn the_same_header_opens_one_session() {
    let mut world = World::new();
    let draft = world.draft(1, 60_000);
    assert_eq!(refused(&mut world, &draft), None);
    assert_eq!(refused(&mut world, &draft), Some(Reject::SessionSeen));
    end(&mut world, draft.session());
    assert_eq!(refused(&mut world, &draft), Some(Reject::SessionSeen));
    world.members[0].start(world.domain.now);
    assert_eq!(refused(&mut world, &draft), Some(Reject::SessionSeen));
}

#[test]
fn a_completed_request_gives_its_stored_receipt_through_any_coordinator() {
    let mut world = World::new();
    let (draft, mut shared, made) = released(&mut world);
    let receipt = world.members[0]
        .finish(&world.domain, shared.remove(0), &made)
        .unwrap();
    let mut again = draft.again(0xaa);
    again.header.coordinator = OTHER_CARRIER.id("coordinator");
    let mut open = again.signed();
    open.header = OTHER_CARRIER.sign(&again.header);
    let size = world.members[0].ledger.head().size;
    match world.members[0].open(&world.domain, &open) {
        Ok(Opening::Stored(stored)) => assert_eq!(stored.as_bytes(), receipt.as_bytes()),
        Ok(Opening::Session(_)) => panic!("a second effect"),
        Err(code) => panic!("{code}"),
    }
    assert_eq!(world.members[0].ledger.head().size, size);
    assert_eq!(world.members[0].count("Released"), 1);
}

#[test]
fn a_fenced_owner_gets_nothing_not_even_what_is_stored() {
    let mut world = World::new();
    let (draft, mut shared, made) = released(&mut world);
    world.members[0]
        .finish(&world.domain, shared.remove(0), &made)
        .unwrap();
    let mut next = world.draft(2, 61_000);
    next.grant.owner = OTHER_DESK.id("requester");
    next.grant.epoch = Epoch::new(6);
    next.header.epoch = Epoch::new(6);
    let mut open = next.signed();
    open.intent = OTHER_DESK.sign(&next.intent);
    assert!(world.members[0].open(&world.domain, &open).is_ok());
    assert_eq!(
        refused(&mut world, &draft.again(0xaa)),
        Some(Reject::StaleEpoch)
    );
    // The old owner at the new epoch.
    let mut usurper = world.draft(3, 62_000);
    usurper.grant.epoch = Epoch::new(6);
    usurper.header.epoch = Epoch::new(6);
    assert_eq!(
        refused(&mut world, &usurper),
        Some(Reject::EpochOwnerConflict)
    );
    // An owner that would lock everybody out.
    let far = Epoch::new(6 + 1_001);
    usurper.grant.epoch = far;
    usurper.header.epoch = far;
    assert_eq!(refused(&mut world, &usurper), Some(Reject::EpochJump));
}

#[test]
fn one_request_id_for_two_intents_and_one_intent_under_two_requests_are_refused() {
    let mut world = World::new();
    let first = world.draft(1, 60_000);
    assert_eq!(refused(&mut world, &first), None);
    let other_intent = world.draft(1, 61_000).again(2);
    assert_eq!(
        refused(&mut world, &other_intent),
        Some(Reject::RequestConflict)
    );
    assert_eq!(world.members[0].count("Conflicted"), 1);
    let other_request = world.draft(2, 60_000);
    assert_eq!(
        refused(&mut world, &other_request),
        Some(Reject::IntentAlreadySigned)
    );
    assert_eq!(world.members[0].count("RequestOpened"), 1);
}

#[test]
fn a_conflict_is_on_record_once_however_often_it_is_sent() {
    let mut world = World::new();
    let first = world.draft(1, 60_000);
    assert_eq!(refused(&mut world, &first), None);
    let other = world.draft(1, 61_000);
    for nonce in 100..120 {
        let again = other.again(nonce);
        assert_eq!(refused(&mut world, &again), Some(Reject::RequestConflict));
    }
    assert_eq!(world.members[0].count("Conflicted"), 1);
    let third = world.draft(1, 62_000).again(3);
    assert_eq!(refused(&mut world, &third), Some(Reject::RequestConflict));
    assert_eq!(world.members[0].count("Conflicted"), 2);
}

#[test]
fn attempts_are_capped_at_once_and_by_grant_also_when_grants_take_turns() {
    let mut world = World::new();
    let first = world.draft(1, 60_000);
    let mut other_grant = first.clone();
    other_grant.grant.expires = other_grant.grant.expires.plus(1);
    assert_eq!(refused(&mut world, &first), None);
    assert_eq!(refused(&mut world, &first.again(2)), None);
    let third = first.again(3);
    assert_eq!(
        refused(&mut world, &third),
        Some(Reject::AttemptsExhausted),
        "n - t + 1 at once"
    );
    end(&mut world, first.session());
    end(&mut world, first.again(2).session());
    let mut opened = 2;
    for nonce in 10..40 {
        let draft = [&first, &other_grant][usize::from(nonce % 2)].again(nonce);
        match refused(&mut world, &draft) {
            None => {
                opened += 1;
                end(&mut world, draft.session());
            }
            Some(code) => assert_eq!(code, Reject::AttemptsExhausted),
        }
    }
    assert_eq!(opened, 2 * 4, "four for each of two grants");
}

#[test]
fn a_coordinator_that_opens_and_abandons_takes_no_attempt_from_another() {
    let mut world = World::new();
    let draft = world.draft(1, 60_000);
    for nonce in [1, 2] {
        assert_eq!(refused(&mut world, &draft.again(nonce)), None);
    }
    assert_eq!(
        refused(&mut world, &draft.again(3)),
        Some(Reject::AttemptsExhausted)
    );
    let mut other = draft.again(4);
    other.header.coordinator = OTHER_CARRIER.id("coordinator");
    let mut open = other.signed();
    open.header = OTHER_CARRIER.sign(&other.header);
    assert!(world.members[0].open(&world.domain, &open).is_ok());
}

#[test]
fn a_restored_disk_is_found_out_by_a_peer_and_releases_nothing() {
    let mut world = World::new();
    let disk = world.members[0].disk();
    let (draft, ..) = released(&mut world);
    assert!(world.members[0].count("Released") == 1);
    let newest = world.members[0].disk();
    let now = world.domain.now;
    world.members[0].restore(disk, now);
    world.assert_nothing_left(1);
    let again = draft.again(0xaa);
    let mut sessions = world.open(&again.signed());
    let good = package(&again, &sent(&sessions));
    let session = sessions.remove(0);
    let refused = world.members[0]
        .release(&world.domain, session, &good)
        .err();
    assert_eq!(refused, Some(Refusing::from(Reject::WitnessConflict)));
    world.assert_nothing_left(1);
    // From then on it signs nothing, also after a restart, until its newest disk is back.
    assert_eq!(world.members[0].count("Frozen"), 1);
    for nonce in [0xac, 0xad] {
        let refused = self::refused(&mut world, &draft.again(nonce));
        assert_eq!(refused, Some(Reject::Frozen));
        let frozen = world.members[0].disk();
        world.members[0].restore(frozen, now);
    }
    world.members[0].restore(newest, now);
    assert_eq!(self::refused(&mut world, &draft.again(0xae)), None);
}

#[test]
fn a_restored_disk_cannot_make_a_peer_forget_what_it_has_seen() {
    let mut world = World::new();
    let disk = world.members[0].disk();
    // What happens afterwards: the old ledger will say smaller heads for a while.
    for _ in 0..8 {
        let counted = RefusalsCounted {
            peer: CARRIER.id("coordinator"),
            code: Reject::Busy,
            count: 1,
        };
        world.members[0]
            .write(Command::CountRefusals(counted), world.domain.now)
            .unwrap();
    }
    let (draft, ..) = released(&mut world);
    let now = world.domain.now;
    world.members[0].restore(disk, now);
    // The peer alone gets the package of a first session: it sees the old head after the later one.
    let hidden = draft.again(0xaa);
    let mut sessions = world.open(&hidden.signed());
    let good = package(&hidden, &sent(&sessions));
    let peers = sessions.remove(1);
    assert!(
        world.members[1]
            .release(&world.domain, peers, &good)
            .is_ok()
    );
    // In the next one it still says the later head.
    let next = draft.again(0xab);
    end(&mut world, hidden.session());
    let ended = SessionEnded {
        session: draft.session(),
        code: Reject::SessionFailed,
    };
    world.members[1].write(Command::End(ended), now).unwrap();
    let mut sessions = world.open(&next.signed());
    let good = package(&next, &sent(&sessions));
    let session = sessions.remove(0);
    let refused = world.members[0]
        .release(&world.domain, session, &good)
        .err();
    assert_eq!(refused, Some(Refusing::from(Reject::WitnessConflict)));
    world.assert_nothing_left(1);
}

#[test]
fn nobody_can_freeze_a_member_with_a_head_that_it_never_signed() {
    let mut world = World::new();
    let draft = world.draft(1, 60_000);
    let mut sessions = world.open(&draft.signed());
    let mut envelopes = sent(&sessions);
    // Member 2 says that it has witnessed a head of member 1 that it made itself.
    let mut lie = (*said(&envelopes[1])).clone();
    let checkpoint = lie.standing.checkpoint.clone();
    lie.standing.witnessed = firn_protocol::codec::List::new(vec![checkpoint]).unwrap();
    envelopes[1] = super::people::MEMBERS[1].sign(&lie);
    let good = package(&draft, &envelopes);
    let session = sessions.remove(0);
    assert!(
        world.members[0]
            .release(&world.domain, session, &good)
            .is_ok()
    );
    // The same with a signature that is not member 1's under its name: its fault, and no freeze.
    let draft = world.draft(2, 61_000);
    let mut sessions = world.open(&draft.signed());
    let mut envelopes = sent(&sessions);
    let mut lie = (*said(&envelopes[1])).clone();
    let own = said(&envelopes[0]).standing.checkpoint.clone();
    let mut bytes = own.as_bytes().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    let forged = firn_protocol::envelope::Envelope::from_bytes(bytes).unwrap();
    lie.standing.witnessed = firn_protocol::codec::List::new(vec![forged]).unwrap();
    envelopes[1] = super::people::MEMBERS[1].sign(&lie);
    let session = sessions.remove(0);
    let bad = package(&draft, &envelopes);
    let refused = world.members[0].release(&world.domain, session, &bad).err();
    assert_eq!(refused, Some(Refusing::of(Reject::BadSignature, number(2))));
}

#[test]
fn a_clock_behind_the_ledger_opens_nothing() {
    let mut world = World::new();
    world.domain.now = UnixMillis::new(world.domain.now.value() - 1);
    let draft = world.draft(1, 60_000);
    assert_eq!(refused(&mut world, &draft), Some(Reject::ClockRewound));
}

#[test]
fn one_session_takes_different_valid_grants_at_different_members() {
    // Not an attack: the session binds the request, and each grant permits it.
    let mut world = World::new();
    let draft = world.draft(1, 60_000);
    let mut other = draft.clone();
    other.grant.expires = other.grant.expires.plus(1);
    let mut open = draft.signed();
    assert!(world.members[0].open(&world.domain, &open).is_ok());
    open.grant = GRANTS.sign(&other.grant);
    open.header = CARRIER.sign(&draft.header);
    open.intent = DESK.sign(&draft.intent);
    assert!(world.members[1].open(&world.domain, &open).is_ok());
}

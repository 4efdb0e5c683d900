//! What requesters are told when members or the coordinator fail in the middle of something.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "only what a test is about is told apart"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Instant,
};

use firn_protocol::{codec, limits, messages::*, reject::Reject};
use tokio::sync::{Notify, Semaphore, oneshot};

use super::{
    GUARD, Running,
    house::{AT_ONCE, Doing, House, IMPATIENT, Reply, ask, no, now, requester},
};
use crate::state::now as clock;

/// Members that sign, but not before `open` has a permit for each package; who comes to it is counted.
struct Gate {
    reached: Notify,
    open: Semaphore,
}

impl Gate {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            reached: Notify::new(),
            open: Semaphore::new(0),
        })
    }

    fn script(
        self: &Arc<Self>,
        house: &Arc<House>,
    ) -> impl Fn(firn_protocol::ids::Identifier, ToMember) -> Doing + use<> {
        let (gate, house) = (Arc::clone(self), Arc::clone(house));
        move |member, message| {
            let (gate, house) = (Arc::clone(&gate), Arc::clone(&house));
            Box::pin(async move {
                if matches!(message, ToMember::Package(_)) {
                    gate.reached.notify_one();
                    drop(gate.open.acquire().await.unwrap());
                }
                house.says(member, message)
            })
        }
    }
}

#[tokio::test]
async fn who_is_known_to_be_away_is_named_at_once_and_since_when() {
    let running = Running::start_within(IMPATIENT).await;
    let house = House::new();
    let began = clock();
    house.join_honest(&running, 1).await;
    let second = house.join_honest(&running, 2).await;
    let requester = requester(&running).await;
    house.assert_signed(ask(&requester, &house.sign_request()).await);
    second.close(0);
    let asked = Instant::now();
    // Until the coordinator has noticed.
    let missing = loop {
        let answer = ask(&requester, &house.sign_request()).await;
        if !matches!(answer, FromRequests::Signed(_)) {
            let (code, missing) = no(answer);
            assert_eq!(code, Reject::QuorumUnavailable);
            break missing;
        }
    };
    assert!(asked.elapsed() < AT_ONCE);
    let names: Vec<_> = missing.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["m-2", "m-3"]);
    let (second, third) = (missing[0].1.unwrap(), missing[1].1);
    assert!(second >= began && second <= clock());
    assert_eq!(third, None, "never seen");
    running.stop().await;
}

#[tokio::test]
async fn who_is_dead_and_not_noticed_is_missing_after_the_first_patience() {
    let running = Running::start_within(IMPATIENT).await;
    let house = House::new();
    house.join_honest(&running, 1).await;
    for member in [2, 3] {
        house
            .join(&running, member, |_, _| now(Reply::IsSilent))
            .await;
    }
    let (asked, began) = (Instant::now(), clock());
    let requester = requester(&running).await;
    let (code, missing) = no(ask(&requester, &house.sign_request()).await);
    assert_eq!(code, Reject::QuorumUnavailable);
    assert!(asked.elapsed() < AT_ONCE, "a step was waited for");
    assert_eq!(missing.len(), 2);
    for (name, since) in missing {
        let since = since.unwrap();
        assert!(since <= clock() && since.plus(20_000) > began, "{name}");
    }
    running.stop().await;
}

#[tokio::test]
async fn a_member_that_dies_after_its_commitments_costs_one_retry() {
    let running = Running::start_within(IMPATIENT).await;
    let house = House::new();
    let (somebody_died, packages) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    for member in 1..=3 {
        let (world, died, packages) = (
            Arc::clone(&house),
            Arc::clone(&somebody_died),
            Arc::clone(&packages),
        );
        let script = move |member, message: ToMember| {
            if matches!(message, ToMember::Package(_)) {
                packages.fetch_add(1, Ordering::SeqCst);
                if !died.swap(true, Ordering::SeqCst) {
                    return now(Reply::Dies);
                }
            }
            now(world.says(member, message))
        };
        house.join(&running, member, script).await;
    }
    let requester = requester(&running).await;
    let asked = Instant::now();
    let signed = house.assert_signed(ask(&requester, &house.sign_request()).await);
    assert!(
        asked.elapsed() < AT_ONCE,
        "a lost connection was waited for"
    );
    assert!(somebody_died.load(Ordering::SeqCst));
    assert!(packages.load(Ordering::SeqCst) <= 4, "more than one retry");
    assert!(signed.evidence.0.is_some());
    running.stop().await;
}

#[tokio::test]
async fn a_restarted_coordinator_signs_what_was_in_flight_at_once() {
    let house = House::new();
    let gate = Gate::new();
    let killed = Running::start_within(IMPATIENT).await;
    for member in [1, 2] {
        house.join(&killed, member, gate.script(&house)).await;
    }
    let asking = requester(&killed).await;
    let question = codec::encode(&house.sign_request()).unwrap();
    let (mut sender, mut receiver) = asking.open_stream().await.unwrap();
    sender.send(&question).await.unwrap();
    gate.reached.notified().await;
    killed.daemon.abort();
    drop(killed.daemon.await);
    asking.close(0);
    let lost = receiver.receive(limits::MAX_FRAME).await;
    assert!(!matches!(lost, Ok(Some(_))), "{lost:?}");

    let restarted = Running::start_within(IMPATIENT).await;
    for member in [1, 2] {
        house.join_honest(&restarted, member).await;
    }
    let asked = Instant::now();
    let requester = requester(&restarted).await;
    house.assert_signed(ask(&requester, &house.sign_request()).await);
    assert!(asked.elapsed() < AT_ONCE);
    restarted.stop().await;
}

#[tokio::test]
async fn what_is_in_flight_ends_and_new_requests_are_told_to_come_back() {
    let running = Running::start_within(IMPATIENT).await;
    let house = House::new();
    let gate = Gate::new();
    for member in [1, 2] {
        house.join(&running, member, gate.script(&house)).await;
    }
    let first = requester(&running).await;
    let (question, connection) = (house.sign_request(), first.clone());
    let in_flight = tokio::spawn(async move { ask(&connection, &question).await });
    gate.reached.notified().await;

    let Running {
        ca,
        address,
        stop,
        daemon,
        _folder,
    } = running;
    stop.send(()).unwrap();
    let (unsent, _) = oneshot::channel();
    let draining = Running {
        ca,
        address,
        stop: unsent,
        daemon,
        _folder,
    };
    // The signal is on its way; from then on nobody new is served, on old lines and on new ones.
    loop {
        let answer = ask(&first, &house.outcome_query(3)).await;
        if let FromRequests::Failed(failed) = &answer {
            assert_eq!(failed.code, Reject::Busy);
            break;
        }
    }
    let late = requester(&draining).await;
    assert_eq!(no(ask(&late, &house.sign_request()).await).0, Reject::Busy);
    assert!(!in_flight.is_finished());

    gate.open.add_permits(2);
    let answer = tokio::time::timeout(GUARD, in_flight).await.unwrap();
    house.assert_signed(answer.unwrap());
    let ended = tokio::time::timeout(AT_ONCE, draining.daemon).await;
    ended.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn the_second_asker_does_not_wait_for_one_that_has_gone() {
    let running = Running::start_within(IMPATIENT).await;
    let house = House::new();
    let gate = Gate::new();
    for member in [1, 2] {
        house.join(&running, member, gate.script(&house)).await;
    }
    let first = requester(&running).await;
    let question = codec::encode(&house.sign_request()).unwrap();
    let (mut sender, _receiver) = first.open_stream().await.unwrap();
    sender.send(&question).await.unwrap();
    gate.reached.notified().await;
    first.close(0);

    let second = requester(&running).await;
    let (question, connection) = (house.sign_request(), second.clone());
    let waiting = tokio::spawn(async move { ask(&connection, &question).await });
    gate.open.add_permits(2);
    let asked = Instant::now();
    let answer = tokio::time::timeout(GUARD, waiting).await.unwrap();
    house.assert_signed(answer.unwrap());
    assert!(asked.elapsed() < AT_ONCE);
    running.stop().await;
}

#[tokio::test]
async fn who_waits_for_a_turn_is_told_to_come_back_in_the_end() {
    let bounds = crate::config::Bounds {
        step_ms: 300,
        ..IMPATIENT
    };
    let running = Running::start_within(bounds).await;
    let house = House::new();
    // Each of them takes the first patience, one after the other.
    let slow = Arc::clone(&house);
    for member in [1, 2, 3] {
        let slow = Arc::clone(&slow);
        let script = move |member, message: ToMember| {
            now(match message {
                ToMember::SignOpen(_) => Reply::IsSilent,
                message => slow.says(member, message),
            })
        };
        house.join(&running, member, script).await;
    }
    let requester = requester(&running).await;
    let questions = (0..5).map(|_| {
        let (question, connection) = (house.sign_request(), requester.clone());
        tokio::spawn(async move { ask(&connection, &question).await })
    });
    let mut codes = Vec::new();
    for question in questions.collect::<Vec<_>>() {
        let answer = tokio::time::timeout(GUARD, question).await.unwrap();
        codes.push(no(answer.unwrap()).0);
    }
    assert!(codes.contains(&Reject::QuorumUnavailable), "{codes:?}");
    assert!(codes.contains(&Reject::Busy), "{codes:?}");
    running.stop().await;
}

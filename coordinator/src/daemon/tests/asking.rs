//! Questions that change nothing: outcomes, keys, how everybody is.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "only what a test is about is told apart"
)]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use firn_protocol::{
    codec::Maybe,
    envelope::Envelope,
    ids::{Nonce, UnixMillis},
    messages::*,
    reject::Reject,
};
use tokio::sync::Barrier;

use super::{
    Running,
    house::{AT_ONCE, House, IMPATIENT, Reply, ask, member_name, no, now, operator, requester},
    name, operate, secret,
};
use crate::{session::fake::id, state::now as clock};

fn report(answer: FromRequests) -> OutcomeReport {
    let FromRequests::Outcome(report) = answer else {
        panic!("{answer:?}")
    };
    report
}

#[tokio::test]
async fn members_are_asked_at_once_and_a_dead_one_is_not_waited_for() {
    let running = Running::start_within(IMPATIENT).await;
    let house = House::new();
    // Each says what it knows only when the other has been asked too.
    let both = Arc::new(Barrier::new(2));
    for member in [1, 2] {
        let (world, both) = (Arc::clone(&house), Arc::clone(&both));
        let script = move |member, message: ToMember| {
            let (world, both) = (Arc::clone(&world), Arc::clone(&both));
            Box::pin(async move {
                if matches!(message, ToMember::OutcomeQuery(_)) {
                    both.wait().await;
                }
                world.says(member, message)
            }) as super::house::Doing
        };
        house.join(&running, member, script).await;
    }
    house.join(&running, 3, |_, _| now(Reply::IsSilent)).await;
    let began = (clock(), Instant::now());
    let requester = requester(&running).await;
    let report = report(ask(&requester, &house.outcome_query(3)).await);
    assert!(began.1.elapsed() < AT_ONCE, "a dead member was waited for");
    assert_eq!((report.statements.len(), report.refusals.len()), (2, 0));
    assert_eq!(report.missing.len(), 1);
    assert_eq!(report.missing[0].name.to_string(), "m-3");
    let since = report.missing[0].since.0.unwrap();
    assert!(since <= clock() && since.plus(20_000) > began.0, "{since}");
    running.stop().await;
}

#[tokio::test]
async fn a_slow_member_is_waited_for_while_too_few_have_answered() {
    let running = Running::start_within(IMPATIENT).await;
    let house = House::new();
    house.join_honest(&running, 1).await;
    let world = Arc::clone(&house);
    let slow = move |member, message: ToMember| {
        let world = Arc::clone(&world);
        Box::pin(async move {
            if matches!(message, ToMember::OutcomeQuery(_)) {
                let patience = Duration::from_millis(IMPATIENT.open_ms.into());
                tokio::time::sleep(patience * 2).await;
            }
            world.says(member, message)
        }) as super::house::Doing
    };
    house.join(&running, 2, slow).await;
    let requester = requester(&running).await;
    let report = report(ask(&requester, &house.outcome_query(3)).await);
    assert_eq!(report.statements.len(), 2);
    assert_eq!(report.missing[0].since, Maybe(None), "m-3 was never there");
    running.stop().await;
}

#[tokio::test]
async fn not_knowing_the_key_says_nothing_about_a_request() {
    let running = Running::start_within(IMPATIENT).await;
    let house = House::new();
    let requester = requester(&running).await;
    for there in 0..2 {
        for question in [house.outcome_query(3), house.sign_request()] {
            let (code, _) = no(ask(&requester, &question).await);
            assert_eq!(code, Reject::QuorumUnavailable, "{there}");
        }
        let world = Arc::clone(&house);
        let ignorant = move |member, _| now(world.refuses(member, Reject::KeyUnknown));
        house.join(&running, 1, ignorant).await;
    }
    running.stop().await;
}

#[tokio::test]
async fn a_refusal_to_say_is_passed_on() {
    let running = Running::start_within(IMPATIENT).await;
    let house = House::new();
    house.join_honest(&running, 1).await;
    let world = Arc::clone(&house);
    let refuses = move |member, message: ToMember| {
        now(match message {
            ToMember::OutcomeQuery(_) => world.refuses(member, Reject::EpochOwnerConflict),
            message => world.says(member, message),
        })
    };
    house.join(&running, 2, refuses).await;
    let requester = requester(&running).await;
    let report = report(ask(&requester, &house.outcome_query(3)).await);
    assert_eq!((report.statements.len(), report.missing.len()), (1, 1));
    assert_eq!(report.refusals[0].0, id(2));
    running.stop().await;
}

#[tokio::test]
async fn questions_count_only_in_ones_own_name() {
    let running = Running::start_within(IMPATIENT).await;
    let house = House::new();
    house.join_honest(&running, 1).await;
    let requester = requester(&running).await;
    for question in [
        house.outcome_query(9),
        ToRequests::Key(house.key_query(9)),
        // An operator's, carried by the requester.
        ToRequests::Key(house.key_query(2)),
    ] {
        let (code, missing) = no(ask(&requester, &question).await);
        assert_eq!((code, missing.len()), (Reject::UnknownSigner, 0));
    }
    let operator = operator(&running).await;
    let status = StatusQuery {
        nonce: Nonce::from_bytes([1; 32]),
        time: UnixMillis::new(1),
    };
    for question in [
        ToCeremony::Key(house.key_query(3)),
        ToCeremony::Status(Envelope::sign(&status, &secret(3)).unwrap()),
    ] {
        let FromCeremony::Failed(failed) = operate(&operator, question).await.0 else {
            panic!("answered")
        };
        assert_eq!(failed.code, Reject::UnknownSigner);
    }
    running.stop().await;
}

#[tokio::test]
async fn requesters_and_operators_are_told_what_a_key_is() {
    let running = Running::start_within(IMPATIENT).await;
    let house = House::new();
    let world = Arc::clone(&house);
    let ignorant = move |member, _| now(world.refuses(member, Reject::KeyUnknown));
    let first = house.join(&running, 1, ignorant).await;
    let requester = requester(&running).await;
    let question = ToRequests::Key(house.key_query(3));
    assert_eq!(no(ask(&requester, &question).await).0, Reject::KeyUnknown);

    let holder = house.join_honest(&running, 2).await;
    let FromRequests::Key(documents) = ask(&requester, &question).await else {
        panic!("somebody has it")
    };
    assert_eq!(documents, house.documents);
    // What was found is remembered when nobody is there any more.
    for gone in [first, holder] {
        gone.close(0);
    }
    let operator = operator(&running).await;
    let question = ToCeremony::Key(house.key_query(2));
    let FromCeremony::Key(documents) = operate(&operator, question).await.0 else {
        panic!("it was known a moment ago")
    };
    assert_eq!(documents, house.documents);
    running.stop().await;
}

#[tokio::test]
async fn an_operator_is_told_how_everybody_is_by_their_own_words() {
    let running = Running::start_within(IMPATIENT).await;
    let house = House::new();
    let began = clock();
    house.join_honest(&running, 1).await;
    let world = Arc::clone(&house);
    let speaks_for_another = move |member, message: ToMember| {
        now(match message {
            ToMember::StatusQuery(query) => {
                let query = query.verify(&secret(2).identity()).unwrap();
                let status = world.status(id(1), query.nonce);
                Reply::Says(FromMember::Status(world.sign(member, &status)))
            }
            message => world.says(member, message),
        })
    };
    house.join(&running, 2, speaks_for_another).await;
    let third = house.join_honest(&running, 3).await;
    third.close(0);

    let operator = operator(&running).await;
    let ask = || async {
        let query = StatusQuery {
            nonce: Nonce::from_bytes([6; 32]),
            time: UnixMillis::new(1),
        };
        let query = Envelope::sign(&query, &secret(2)).unwrap();
        let (answer, _) = operate(&operator, ToCeremony::Status(query)).await;
        let FromCeremony::Status(report) = answer else {
            panic!("{answer:?}")
        };
        report
    };
    // Until the coordinator has noticed that the third has gone.
    let report = loop {
        let report = ask().await;
        if report.members.len() == 3 && report.members[2].connected.0.is_none() {
            break report;
        }
    };
    assert_eq!(report.coordinator, name(super::COORDINATOR));
    assert!(report.since <= clock() && report.since.plus(60_000) > began);
    let names: Vec<_> = report.members.iter().map(|m| m.id.to_string()).collect();
    assert_eq!(names, [1, 2, 3].map(|number| member_name(id(number))));
    let [one, two, three] = &report.members[..] else {
        panic!("three")
    };
    let word = one.status.0.clone().unwrap();
    let word = word.verify(&house.identity(id(1)).identity()).unwrap();
    assert_eq!(word.nonce, Nonce::from_bytes([6; 32]));
    assert!(one.connected.0.unwrap() >= began);
    assert_eq!(two.status, Maybe(None), "it spoke in another's name");
    assert!(two.connected.0.is_some());
    assert_eq!(
        (&three.status, &three.connected),
        (&Maybe(None), &Maybe(None))
    );
    assert!(three.last_seen.0.unwrap() >= began);
    running.stop().await;
}

//! Epochs, requests, attempts and releases.

use super::*;

#[test]
fn epochs_only_rise_and_have_one_owner() {
    let mut ledger = Ledger::active();
    let at = |session, epoch, name: &str| {
        let owner = owner(name);
        open_with(session, move |open| {
            open.opened.epoch = Epoch::new(epoch);
            open.opened.owner = owner;
        })
    };
    assert_eq!(ledger.ask(at(20, 0, "a")), Err(Reject::StaleEpoch));
    assert_eq!(ledger.ask(at(20, 1, "a")), Ok(Answer::Written));
    assert_eq!(ledger.written(), ["EpochRaised", "RequestOpened"]);
    assert_eq!(ledger.ask(at(21, 1, "b")), Err(Reject::EpochOwnerConflict));
    assert_eq!(ledger.ask(at(21, 1_002, "b")), Err(Reject::EpochJump));
    assert_eq!(ledger.ask(at(21, 1_001, "b")), Ok(Answer::Written));
    assert_eq!(ledger.ask(at(22, 1, "a")), Err(Reject::StaleEpoch));
    assert_eq!(ledger.epoch(), 1_001);
}

#[test]
fn a_higher_epoch_stays_also_when_its_request_is_refused() {
    let mut ledger = Ledger::active();
    let denied = open_with(20, |open| {
        open.opened.epoch = Epoch::new(5);
        open.denied = Some(Reject::PolicyFee);
    });
    assert_eq!(ledger.ask(denied), Ok(Answer::Denied(Reject::PolicyFee)));
    assert_eq!(ledger.written(), ["EpochRaised"]);
    assert_eq!(ledger.epoch(), 5);
    assert_eq!(ledger.ask(open(21)), Err(Reject::StaleEpoch));
}

#[test]
fn a_release_is_judged_by_the_epoch_of_its_own_moment() {
    let mut ledger = Ledger::active();
    ledger.ask(open(20)).unwrap();
    let raise = Command::RaiseEpoch {
        key_id: KEY,
        epoch: Epoch::new(2),
        owner: owner("b"),
    };
    ledger.ask(raise).unwrap();
    assert_eq!(ledger.ask(release(20)), Err(Reject::StaleEpoch));
}

#[test]
fn a_session_releases_once_and_never_after_a_restart() {
    let mut ledger = Ledger::active();
    ledger.ask(open(20)).unwrap();
    assert_eq!(ledger.ask(open(20)), Err(Reject::SessionSeen));
    ledger.ask(release(20)).unwrap();
    assert_eq!(ledger.ask(release(20)), Err(Reject::UnexpectedMessage));
    ledger.ask(open(21)).unwrap();
    ledger.start();
    assert_eq!(ledger.ask(release(21)), Err(Reject::SessionMismatch));
    assert_eq!(ledger.ask(release(99)), Err(Reject::SessionMismatch));
}

#[test]
fn the_same_request_gives_the_receipt_that_was_stored() {
    let mut ledger = Ledger::active();
    let stored = ledger.complete(20);
    for denied in [None, Some(Reject::PolicyFee)] {
        let again = open_with(21, |open| open.denied = denied);
        assert_eq!(
            ledger.ask(again),
            Ok(Answer::AlreadyCompleted(stored.clone()))
        );
        assert!(ledger.written().is_empty());
    }
    let stale = open_with(22, |open| open.opened.epoch = Epoch::new(0));
    assert_eq!(
        ledger.ask(stale),
        Err(Reject::StaleEpoch),
        "a fenced owner learns nothing"
    );
}

#[test]
fn the_same_request_id_for_another_intent_is_a_conflict_on_record() {
    let mut ledger = Ledger::active();
    ledger.ask(open(20)).unwrap();
    let other = open_with(21, |open| {
        open.opened.intent = IntentDigest::from_bytes([88; 32])
    });
    assert_eq!(
        ledger.ask(other),
        Ok(Answer::Denied(Reject::RequestConflict))
    );
    assert_eq!(ledger.written(), ["Conflicted"]);
    let request = ledger
        .view()
        .request(KEY, RequestId::from_bytes([9; 32]))
        .unwrap()
        .unwrap();
    assert_eq!(request.intent, IntentDigest::from_bytes([8; 32]));
}

#[test]
fn the_same_intent_under_another_request_id_is_refused() {
    let mut ledger = Ledger::active();
    ledger.ask(open(20)).unwrap();
    let other = open_with(21, |open| {
        open.opened.request_id = RequestId::from_bytes([99; 32])
    });
    assert_eq!(
        ledger.ask(other),
        Ok(Answer::Denied(Reject::IntentAlreadySigned))
    );
}

#[test]
fn attempts_are_capped_at_once_and_under_one_grant() {
    let mut ledger = Ledger::active();
    ledger.ask(open(20)).unwrap();
    ledger.ask(open(21)).unwrap();
    let exhausted = Ok(Answer::Denied(Reject::AttemptsExhausted));
    assert_eq!(ledger.ask(open(22)), exhausted);
    ledger.ask(end(20)).unwrap();
    assert_eq!(ledger.ask(open(22)), Ok(Answer::Written));
    // A restart ends what was open.
    ledger.start();
    ledger.limits.max_attempts_per_grant = 4;
    assert_eq!(ledger.ask(open(23)), Ok(Answer::Written));
    assert_eq!(ledger.ask(open(24)), exhausted);
    let fresh = open_with(24, |open| {
        open.opened.grant = MessageDigest::from_bytes([77; 32])
    });
    assert_eq!(ledger.ask(fresh), Ok(Answer::Written));
}

#[test]
fn released_counts_as_signed_and_one_receipt_stands() {
    let mut ledger = Ledger::active();
    let request = |ledger: &Ledger| {
        ledger
            .view()
            .request(KEY, RequestId::from_bytes([9; 32]))
            .unwrap()
            .unwrap()
            .progress
    };
    ledger.ask(open(20)).unwrap();
    ledger.ask(open(21)).unwrap();
    ledger.ask(release(20)).unwrap();
    ledger.ask(end(20)).unwrap();
    assert_eq!(request(&ledger), RequestProgress::Released);
    ledger.ask(release(21)).unwrap();
    let complete = |session: u8| {
        Command::Complete(Completed {
            session: SessionId::from_bytes([session; 32]),
            receipt: receipt(session),
        })
    };
    assert_eq!(
        ledger.ask(complete(20)),
        Err(Reject::UnexpectedMessage),
        "it has ended"
    );
    assert_eq!(ledger.ask(complete(21)), Ok(Answer::Written));
    assert_eq!(request(&ledger), RequestProgress::Completed);
    assert_eq!(
        ledger.view().receipt(KEY, RequestId::from_bytes([9; 32])),
        Ok(Some(receipt(21)))
    );
}

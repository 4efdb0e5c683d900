//! Ceremonies, heads, and what no rule wrote.

use super::*;

#[test]
fn nothing_is_written_when_the_clock_is_behind_the_ledger() {
    let mut ledger = Ledger::active();
    ledger.now -= 1;
    assert_eq!(ledger.ask(open(20)), Err(Reject::ClockRewound));
    ledger.now += 1;
    assert_eq!(ledger.ask(open(20)), Ok(Answer::Written));
}

#[test]
fn a_share_signs_only_after_pending_certified_and_active_in_this_order() {
    let mut ledger = Ledger::begun();
    assert_eq!(ledger.ask(open(20)), Err(Reject::KeyUnknown));
    let attempt = AttemptOpened {
        attempt: ATTEMPT,
        plan: PLAN,
        coordinator: coordinator(),
    };
    assert_eq!(
        ledger.ask(Command::OpenAttempt(attempt.clone())),
        Err(Reject::PlanNotAccepted)
    );
    ledger
        .ask(Command::AcceptPlan(PlanAccepted { plan: PLAN }))
        .unwrap();
    assert_eq!(
        ledger.ask(Command::Pend(pending())),
        Err(Reject::SessionMismatch)
    );
    ledger.ask(Command::OpenAttempt(attempt.clone())).unwrap();
    assert_eq!(
        ledger.ask(Command::OpenAttempt(attempt)),
        Err(Reject::SessionSeen)
    );
    ledger.ask(Command::Pend(pending())).unwrap();
    assert_eq!(
        ledger.ask(Command::Activate(activated())),
        Err(Reject::ActivationMismatch)
    );
    assert_eq!(ledger.ask(open(20)), Err(Reject::ShareNotActive));
    let mut other = certified();
    other.attempt = SessionId::from_bytes([99; 32]);
    assert_eq!(
        ledger.ask(Command::Certify(other)),
        Err(Reject::CertificateMismatch)
    );
    ledger.ask(Command::Certify(certified())).unwrap();
    assert_eq!(
        ledger.ask(Command::Pend(pending())),
        Err(Reject::AttemptAbandoned)
    );
    assert_eq!(ledger.ask(open(20)), Err(Reject::ShareNotActive));
    let mut other = activated();
    other.certificates = CertificateSetDigest::from_bytes([99; 32]);
    assert_eq!(
        ledger.ask(Command::Activate(other)),
        Err(Reject::ActivationMismatch)
    );
    ledger.ask(Command::Activate(activated())).unwrap();
    assert_eq!(ledger.ask(open(20)), Ok(Answer::Written));
    // Again changes nothing.
    ledger.ask(Command::Activate(activated())).unwrap();
    assert!(ledger.written().is_empty());
}

#[test]
fn an_attempt_that_only_some_have_certified_is_followed_by_another_and_takes_nothing_away() {
    let mut ledger = Ledger::begun();
    ledger
        .ask(Command::AcceptPlan(PlanAccepted { plan: PLAN }))
        .unwrap();
    let again = SessionId::from_bytes([30; 32]);
    for attempt in [ATTEMPT, again] {
        let opened = AttemptOpened {
            attempt,
            plan: PLAN,
            coordinator: coordinator(),
        };
        ledger.ask(Command::OpenAttempt(opened)).unwrap();
    }
    ledger.ask(Command::Pend(pending())).unwrap();
    ledger.ask(Command::Certify(certified())).unwrap();
    let mut second = pending();
    second.attempt = again;
    ledger.ask(Command::Pend(second.clone())).unwrap();
    // Whichever all have certified may be activated, and then no other.
    ledger.ask(Command::Certify(certified())).unwrap();
    ledger.ask(Command::Activate(activated())).unwrap();
    let active = ledger.view().key(KEY).unwrap().unwrap();
    assert_eq!(
        (active.attempt, active.stage),
        (ATTEMPT, ShareStage::Active)
    );
    assert_eq!(
        ledger.ask(Command::Pend(second)),
        Err(Reject::AttemptAbandoned)
    );
}

#[test]
fn ceremony_messages_leave_once_in_order_and_only_in_the_run_that_opened() {
    let mut ledger = Ledger::begun();
    ledger
        .ask(Command::AcceptPlan(PlanAccepted { plan: PLAN }))
        .unwrap();
    let attempt = AttemptOpened {
        attempt: ATTEMPT,
        plan: PLAN,
        coordinator: coordinator(),
    };
    ledger.ask(Command::OpenAttempt(attempt)).unwrap();
    let send = |step| Command::Send {
        attempt: ATTEMPT,
        step,
        digest: MessageDigest::from_bytes([1; 32]),
    };
    let refused = Err(Reject::UnexpectedMessage);
    assert_eq!(ledger.ask(send(CeremonyStep::Round2)), refused);
    ledger.ask(send(CeremonyStep::Round1)).unwrap();
    assert_eq!(ledger.ask(send(CeremonyStep::Round1)), refused);
    ledger.start();
    assert_eq!(
        ledger.ask(send(CeremonyStep::Round2)),
        Err(Reject::AttemptAbandoned)
    );
}

#[test]
fn a_coordinator_cannot_fill_the_disk_with_ceremonies_or_proofs() {
    let mut ledger = Ledger::active();
    ledger.limits.max_attempts_per_plan = 2;
    let attempt = |number| {
        Command::OpenAttempt(AttemptOpened {
            attempt: SessionId::from_bytes([number; 32]),
            plan: PLAN,
            coordinator: coordinator(),
        })
    };
    ledger.ask(attempt(30)).unwrap();
    assert_eq!(ledger.ask(attempt(31)), Err(Reject::AttemptsExhausted));
    ledger.limits.max_proofs_per_sharing = 1;
    let proof = |number| {
        Command::OpenProof(ProofOpened {
            session: SessionId::from_bytes([number; 32]),
            key_id: KEY,
            share_version: ShareVersion::new(1),
            attempt: ATTEMPT,
            coordinator: coordinator(),
            members: List::empty(),
        })
    };
    ledger.ask(proof(40)).unwrap();
    assert_eq!(ledger.ask(proof(41)), Err(Reject::AttemptsExhausted));
}

#[test]
fn only_newer_heads_with_their_owners_signature_are_witnessed() {
    let mut ledger = Ledger::begun();
    let head = |size| Witnessed {
        identity: secret().identity(),
        checkpoint: checkpoint(size),
    };
    ledger.ask(Command::Witness(vec![head(5)])).unwrap();
    assert_eq!(ledger.written(), ["Witnessed"]);
    for old in [5, 4] {
        ledger.ask(Command::Witness(vec![head(old)])).unwrap();
        assert!(ledger.written().is_empty(), "size {old}");
    }
    let stranger = IdentitySecret::from_seed(&Zeroizing::new([8; 32])).identity();
    let forged = Witnessed {
        identity: stranger,
        checkpoint: checkpoint(9),
    };
    assert_eq!(
        ledger.ask(Command::Witness(vec![forged])),
        Err(Reject::BadSignature)
    );
}

#[test]
fn a_journal_that_the_rules_never_wrote_does_not_apply() {
    let mut table = MemoryTable::default();
    let started = Body::Started(Started {
        software: Text::new("test").unwrap(),
        build: BuildDigest::from_bytes([0; 32]),
    });
    let entry = Tip::genesis()
        .next_entry(started.to_record().unwrap(), UnixMillis::new(1))
        .unwrap();
    assert_eq!(
        apply(&mut table, entry.record()),
        Err(Unlawful::Order("Started"))
    );
    let mut ledger = Ledger::active();
    let released = Body::Released(Released {
        session: SessionId::from_bytes([99; 32]),
        package: PackageDigest::from_bytes([0; 32]),
    });
    let entry = ledger
        .tip
        .next_entry(released.to_record().unwrap(), UnixMillis::new(1_000))
        .unwrap();
    assert_eq!(
        apply(&mut ledger.table, entry.record()),
        Err(Unlawful::Order("Released"))
    );
}

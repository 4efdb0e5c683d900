//! The rules over a table in memory: what is admitted is applied, as the store does it.

use firn_protocol::{
    bitcoin::{Network, Sats},
    codec::{List, Text},
    documents::{Checkpoint, Completed as CompletedOutcome, Outcome, Receipt},
    envelope::Envelope,
    ids::{
        ActivationDigest, AuthoritiesDigest, BuildDigest, CertificateSetDigest, Epoch, Identifier,
        IntentDigest, KeyId, MessageDigest, Nonce, PackageDigest, PlanDigest, PolicyDigest,
        PolicyVersion, RequestId, SessionId, ShareVersion, UnixMillis,
    },
    keys::IdentitySecret,
    merkle::{MerkleRoot, TreeSize},
    messages::RequestProgress,
    names::SpiffeId,
    reject::Reject,
};
use zeroize::Zeroizing;

use super::*;
use crate::{journal::Tip, table::MemoryTable};

struct Ledger {
    table: MemoryTable,
    tip: Tip,
    now: u64,
    limits: Limits,
    bodies: Vec<Body>,
}

fn secret() -> IdentitySecret {
    IdentitySecret::from_seed(&Zeroizing::new([7; 32]))
}

fn owner(name: &str) -> SpiffeId {
    format!("spiffe://firn.test/requester/{name}")
        .parse()
        .unwrap()
}

fn coordinator() -> SpiffeId {
    "spiffe://firn.test/coordinator/c1".parse().unwrap()
}

const KEY: KeyId = KeyId::from_bytes([1; 32]);
const PLAN: PlanDigest = PlanDigest::from_bytes([1; 32]);
const ATTEMPT: SessionId = SessionId::from_bytes([2; 32]);
const ACTIVATION: ActivationDigest = ActivationDigest::from_bytes([3; 32]);
const POLICY: PolicyDigest = PolicyDigest::from_bytes([4; 32]);
const CERTIFICATES: CertificateSetDigest = CertificateSetDigest::from_bytes([5; 32]);

fn member(number: u16) -> Identifier {
    Identifier::new(number).unwrap()
}

impl Ledger {
    fn begun() -> Self {
        let mut ledger = Self {
            table: MemoryTable::default(),
            tip: Tip::genesis(),
            now: 1_000,
            limits: Limits::default(),
            bodies: Vec::new(),
        };
        let genesis = Genesis {
            identity: secret().identity(),
            nonce: Nonce::from_bytes([0; 32]),
        };
        ledger.ask(Command::Begin(genesis)).unwrap();
        ledger.start();
        ledger
    }

    fn active() -> Self {
        let mut ledger = Self::begun();
        ledger
            .ask(Command::AcceptPlan(PlanAccepted { plan: PLAN }))
            .unwrap();
        let opened = AttemptOpened {
            attempt: ATTEMPT,
            plan: PLAN,
            coordinator: coordinator(),
        };
        ledger.ask(Command::OpenAttempt(opened)).unwrap();
        ledger.ask(Command::Pend(pending())).unwrap();
        ledger.ask(Command::Certify(certified())).unwrap();
        ledger.ask(Command::Activate(activated())).unwrap();
        ledger
    }

    fn start(&mut self) {
        let started = Started {
            software: Text::new("test").unwrap(),
            build: BuildDigest::from_bytes([0; 32]),
        };
        self.ask(Command::Start(started)).unwrap();
    }

    fn view(&self) -> View<'_> {
        View(&self.table)
    }

    fn ask(&mut self, command: Command) -> Result<Answer, Reject> {
        let now = UnixMillis::new(self.now);
        let admitted = admit(
            &self.view(),
            self.limits,
            command,
            now,
            self.tip.last_time(),
        );
        let (bodies, answer) = match admitted {
            Ok(admitted) => admitted,
            Err(Refused::Rule(code)) => return Err(code),
            Err(Refused::State(error)) => panic!("{error}"),
        };
        self.bodies.clone_from(&bodies);
        for body in bodies {
            let entry = self.tip.next_entry(body.to_record().unwrap(), now).unwrap();
            apply(&mut self.table, entry.record()).unwrap();
            self.tip.advance(&entry).unwrap();
        }
        Ok(answer)
    }

    fn written(&self) -> Vec<&'static str> {
        self.bodies.iter().map(Body::kind).collect()
    }

    fn epoch(&self) -> u64 {
        self.view().epoch(KEY).unwrap().unwrap().epoch.value()
    }

    /// Opens, releases and completes a request.
    fn complete(&mut self, session: u8) -> Envelope<Receipt> {
        self.ask(open(session)).unwrap();
        self.ask(release(session)).unwrap();
        let receipt = receipt(session);
        let completed = Completed {
            session: SessionId::from_bytes([session; 32]),
            receipt: receipt.clone(),
        };
        assert_eq!(self.ask(Command::Complete(completed)), Ok(Answer::Written));
        receipt
    }
}

fn pending() -> SharePending {
    SharePending {
        key_id: KEY,
        share_version: ShareVersion::new(1),
        attempt: ATTEMPT,
        plan: PLAN,
        member: member(1),
        certificate: MessageDigest::from_bytes([0; 32]),
    }
}

fn certified() -> ShareCertified {
    ShareCertified {
        key_id: KEY,
        share_version: ShareVersion::new(1),
        attempt: ATTEMPT,
        certificates: CERTIFICATES,
    }
}

fn activated() -> ShareActivated {
    ShareActivated {
        key_id: KEY,
        share_version: ShareVersion::new(1),
        activation: ACTIVATION,
        certificates: CERTIFICATES,
        policy: POLICY,
        policy_version: PolicyVersion::new(1),
        authorities: AuthoritiesDigest::from_bytes([6; 32]),
        network: Network::Regtest,
        first_epoch: Epoch::new(1),
    }
}

/// An attempt of request 9 for intent 8 by owner a at epoch 1; sessions are told apart by a byte.
fn opened(session: u8) -> OpenRequest {
    let opened = RequestOpened {
        session: SessionId::from_bytes([session; 32]),
        key_id: KEY,
        share_version: ShareVersion::new(1),
        activation: ACTIVATION,
        epoch: Epoch::new(1),
        owner: owner("a"),
        request_id: RequestId::from_bytes([9; 32]),
        intent: IntentDigest::from_bytes([8; 32]),
        policy: POLICY,
        grant: MessageDigest::from_bytes([7; 32]),
        outflow: Sats::new(5).unwrap(),
        inputs: 1,
        coordinator: coordinator(),
        members: List::new(vec![member(1), member(2)]).unwrap(),
    };
    OpenRequest {
        opened,
        at_once: 2,
        denied: None,
    }
}

fn open(session: u8) -> Command {
    Command::OpenRequest(Box::new(opened(session)))
}

fn open_with(session: u8, change: impl FnOnce(&mut OpenRequest)) -> Command {
    let mut open = opened(session);
    change(&mut open);
    Command::OpenRequest(Box::new(open))
}

fn release(session: u8) -> Command {
    Command::Release {
        session: SessionId::from_bytes([session; 32]),
        package: PackageDigest::from_bytes([1; 32]),
        witnessed: Vec::new(),
    }
}

fn end(session: u8) -> Command {
    let session = SessionId::from_bytes([session; 32]);
    Command::End(SessionEnded {
        session,
        code: Reject::Deadline,
    })
}

fn checkpoint(size: u64) -> Envelope<Checkpoint> {
    let checkpoint = Checkpoint {
        size: TreeSize::new(size),
        root: MerkleRoot::from_bytes([1; 32]),
        time: UnixMillis::new(1),
    };
    Envelope::sign(&checkpoint, &secret()).unwrap()
}

fn receipt(session: u8) -> Envelope<Receipt> {
    let receipt = Receipt {
        key_id: KEY,
        request_id: RequestId::from_bytes([9; 32]),
        intent: IntentDigest::from_bytes([8; 32]),
        policy: POLICY,
        epoch: Epoch::new(1),
        session: SessionId::from_bytes([session; 32]),
        outcome: Outcome::Completed(CompletedOutcome {
            signatures: List::empty(),
        }),
        position: 1,
        checkpoint: checkpoint(2),
        time: UnixMillis::new(1_000),
    };
    Envelope::sign(&receipt, &secret()).unwrap()
}

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

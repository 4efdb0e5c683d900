//! The rules over a table in memory: what is admitted is applied, as the store does it.

mod ceremonies;
mod freezing;
mod outcome;
mod requests;

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
        ledger.activate(KEY);
        ledger
    }

    /// Makes a key and uses it; its plan and attempt are told apart by its id.
    fn activate(&mut self, key_id: KeyId) {
        let plan = PlanDigest::from_bytes(*key_id.as_bytes());
        let attempt = match key_id {
            KEY => ATTEMPT,
            _ => SessionId::from_bytes(*key_id.as_bytes()),
        };
        self.ask(Command::AcceptPlan(PlanAccepted { plan }))
            .unwrap();
        let opened = AttemptOpened {
            attempt,
            plan,
            coordinator: coordinator(),
        };
        self.ask(Command::OpenAttempt(opened)).unwrap();
        let pending = SharePending {
            key_id,
            plan,
            attempt,
            ..pending()
        };
        self.ask(Command::Pend(pending)).unwrap();
        let certified = ShareCertified {
            key_id,
            attempt,
            ..certified()
        };
        self.ask(Command::Certify(certified)).unwrap();
        let activated = ShareActivated {
            key_id,
            ..activated()
        };
        self.ask(Command::Activate(activated)).unwrap();
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

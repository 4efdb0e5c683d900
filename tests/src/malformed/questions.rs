//! Questions by people who may not ask, answers that are no answers, and what a machine says of itself:
//! outcomes, status, enrolment, the socket of a daemon.

use firn_protocol::{
    codec::{self, Blob, List, Maybe},
    documents::{Receipt, SignedCheckpoint},
    envelope::Envelope,
    ids::{Identifier, IntentDigest, KeyId, Nonce, RequestId, ShareVersion},
    messages::{
        FromMember, FromRequests, KeyQuery, KnownRequest, OutcomeReport, OutcomeStatement,
        RequestProgress, ToCeremony, ToMember, ToRequests,
    },
    reject::Reject,
};

use super::{Case, Cases};
use crate::{
    rewriting::{payload, sign},
    samples::{Person, World, head, id, member},
};

pub(super) fn cases(world: &World) -> Vec<Case> {
    let mut all = who_asks(world);
    all.extend(other_questions(world));
    all.extend(statements(world));
    all.extend(reports());
    all.extend(statuses(world));
    all.extend(enrollments(world));
    all.extend(sockets(world));
    all
}

fn who_asks(world: &World) -> Vec<Case> {
    let people = &world.people;
    let asked = world.outcome_query();
    let message = |query| codec::encode(&ToMember::OutcomeQuery(query)).unwrap();
    let mut cases = Cases::of("to-member-outcome-query");
    for (name, code, person) in [
        (
            "a stranger's question",
            Reject::UnknownRequester,
            &people.stranger,
        ),
        (
            "an operator's question",
            Reject::UnknownRequester,
            &people.operators[0],
        ),
        (
            "the coordinator's own question",
            Reject::UnknownRequester,
            &people.coordinator,
        ),
        (
            "the grant authority's question",
            Reject::UnknownRequester,
            &people.grant_authority,
        ),
        (
            "another member's question",
            Reject::UnknownRequester,
            &people.members[1],
        ),
        (
            "a question of one who owns the key no more",
            Reject::EpochOwnerConflict,
            &people.other_requester,
        ),
    ] {
        cases.add(name, code, message(person.sign(&asked)));
    }
    let mut other = asked.clone();
    other.key_id = KeyId::from_bytes([1; 32]);
    cases.add(
        "a question about a key that is not here",
        Reject::KeyUnknown,
        message(people.requester.sign(&other)),
    );
    let mut document = Cases::of("document-outcome-query");
    let body = codec::encode(&asked).unwrap();
    for kind in ["outcome", "key-query", "intent"] {
        document.add(
            format!("a question signed as {kind}"),
            Reject::BadSignature,
            sign(kind, people.requester.secret(), &body),
        );
    }
    // The request id in the place of the key's is a value, not a form; a field less is.
    let short = codec::encode(&(asked.key_id, asked.request_id, asked.nonce)).unwrap();
    document.add(
        "a question without a time",
        Reject::Schema,
        sign("outcome-query", people.requester.secret(), &short),
    );
    [cases.cases, document.cases].concat()
}

/// Each of these is a good question of somebody else.
fn other_questions(world: &World) -> Vec<Case> {
    let people = &world.people;
    let status = world.status_query();
    let key = KeyQuery {
        key_id: world.key_id(),
        nonce: Nonce::from_bytes([0x52; 32]),
    };
    let mut requests = Cases::of("to-requests-outcome");
    let outcome = people.other_requester.sign(&world.outcome_query());
    requests.add(
        "a question of another requester",
        Reject::UnknownSigner,
        codec::encode(&ToRequests::Outcome(outcome)).unwrap(),
    );
    let mut keys = Cases::of("to-requests-key");
    for (name, person) in [
        (
            "a requester carries an operator's question",
            &people.operators[0],
        ),
        (
            "a requester carries a coordinator's question",
            &people.coordinator,
        ),
    ] {
        let query = ToRequests::Key(person.sign(&key));
        keys.add(name, Reject::UnknownSigner, codec::encode(&query).unwrap());
    }
    let mut operators = Cases::of("to-ceremony-key");
    let query = ToCeremony::Key(people.requester.sign(&key));
    operators.add(
        "an operator carries a requester's question",
        Reject::UnknownSigner,
        codec::encode(&query).unwrap(),
    );
    let mut members = Cases::of("to-member-status-query");
    for (name, person) in [
        ("a requester asks how a member is", &people.requester),
        (
            "the coordinator itself asks how a member is",
            &people.coordinator,
        ),
        ("a stranger asks how a member is", &people.stranger),
    ] {
        let query = ToMember::StatusQuery(person.sign(&status));
        members.add(name, Reject::UnknownSigner, codec::encode(&query).unwrap());
    }
    [requests.cases, keys.cases, operators.cases, members.cases].concat()
}

fn statements(world: &World) -> Vec<Case> {
    let [m1, m2, _] = &world.people.members;
    let stranger = &world.people.stranger;
    let message = |said| codec::encode(&FromMember::Outcome(said)).unwrap();
    let with = |alter: &dyn Fn(&mut OutcomeStatement)| {
        let mut said = world.outcome(1);
        alter(&mut said);
        message(m1.sign(&said))
    };
    let mut cases = Cases::of("from-member-outcome");
    cases.add(
        "an answer to another question",
        Reject::UnexpectedMessage,
        with(&|said| said.nonce = Nonce::from_bytes([1; 32])),
    );
    cases.add(
        "an answer about another request",
        Reject::UnexpectedMessage,
        with(&|said| said.request_id = RequestId::from_bytes([2; 32])),
    );
    cases.add("an answer about another key", Reject::UnexpectedMessage, {
        with(&|said| said.key_id = KeyId::from_bytes([3; 32]))
    });
    cases.add("an answer in member 2's name", Reject::NotAMember, {
        with(&|said| said.member = member(2))
    });
    let whole = world.outcome(1);
    for (name, person) in [
        ("member 2 in member 1's name", m2),
        ("a stranger's answer", stranger),
    ] {
        cases.add(name, Reject::NotAMember, message(person.sign(&whole)));
    }
    cases.add("another member's head", Reject::UnknownSigner, {
        with(&|said| said.checkpoint = head(&world.people, member(2)))
    });
    let known = |alter: &dyn Fn(&mut KnownRequest)| {
        with(&|said| {
            if let Some(known) = &mut said.known.0 {
                alter(known);
            }
        })
    };
    let receipt = |alter: &dyn Fn(&mut Receipt)| {
        let receipt = world.receipts[0].clone().verify(&m1.key()).unwrap();
        let mut receipt: Receipt = (*receipt).clone();
        alter(&mut receipt);
        Maybe(Some(m1.sign(&receipt)))
    };
    cases.add("another member's receipt", Reject::UnknownSigner, {
        known(&|known| known.receipt = Maybe(Some(world.receipts[1].clone())))
    });
    cases.add(
        "a receipt of another request",
        Reject::GrantRequestMismatch,
        {
            let other = receipt(&|receipt| receipt.request_id = RequestId::from_bytes([4; 32]));
            known(&|known| known.receipt = other.clone())
        },
    );
    cases.add("a receipt of another key", Reject::GrantKeyMismatch, {
        let other = receipt(&|receipt| receipt.key_id = KeyId::from_bytes([5; 32]));
        known(&|known| known.receipt = other.clone())
    });
    let other = IntentDigest::from_bytes([6; 32]);
    cases.add(
        "an intent that is not its receipt's",
        Reject::GrantIntentMismatch,
        known(&|known| known.intent = other),
    );
    cases.add(
        "a request id that stands for another intent",
        Reject::RequestConflict,
        known(&|known| {
            known.intent = other;
            known.progress = RequestProgress::Open;
            known.receipt = Maybe(None);
        }),
    );
    let raw = |known: &[RawKnown]| {
        let said: RawOutcome<'_> = (
            whole.key_id,
            whole.request_id,
            whole.nonce,
            whole.member,
            known,
            whole.checkpoint.clone(),
            whole.time,
        );
        let envelope = sign("outcome", m1.secret(), &codec::encode(&said).unwrap());
        let envelope: Envelope<OutcomeStatement> = Envelope::from_bytes(envelope).unwrap();
        message(envelope)
    };
    let grant = &world.opening.grant;
    let progress = |number| {
        let receipt: [Envelope<Receipt>; 0] = [];
        (grant.intent, grant.policy, grant.epoch, number, 0, receipt)
    };
    let open = raw(&[progress(1)]);
    assert_eq!(
        open,
        known(&|known| {
            known.progress = RequestProgress::Open;
            known.receipt = Maybe(None);
        })
    );
    cases.add(
        "a progress that is none",
        Reject::Schema,
        raw(&[progress(5)]),
    );
    cases.add("progress zero", Reject::Schema, raw(&[progress(0)]));
    cases.add(
        "one request known twice",
        Reject::Schema,
        raw(&[progress(1), progress(1)]),
    );
    cases.cases
}

type RawKnown = (
    IntentDigest,
    firn_protocol::ids::PolicyDigest,
    firn_protocol::ids::Epoch,
    u16,
    u32,
    [Envelope<Receipt>; 0],
);

type RawOutcome<'a> = (
    KeyId,
    RequestId,
    Nonce,
    Identifier,
    &'a [RawKnown],
    SignedCheckpoint,
    firn_protocol::ids::UnixMillis,
);

fn reports() -> Vec<Case> {
    let world = World::fixed();
    let mut cases = Cases::of("from-requests-outcome");
    let with = |people: &[&Person]| {
        let statements = people.iter().map(|person| person.sign(&world.outcome(1)));
        let report = OutcomeReport {
            statements: List::new(statements.collect()).unwrap(),
            refusals: List::empty(),
            missing: List::empty(),
        };
        codec::encode(&FromRequests::Outcome(report)).unwrap()
    };
    let [m1, _, _] = &world.people.members;
    cases.add(
        "a stranger's statement beside a member's",
        Reject::NotAMember,
        with(&[m1, &world.people.stranger]),
    );
    cases.add(
        "the coordinator's own statement",
        Reject::NotAMember,
        with(&[&world.people.coordinator]),
    );
    // [3, [statements, refusals, missing]]
    let missing = [0x82, 0x61, b'a', 0x80];
    let list = [&[0x98, 33], missing.repeat(33).as_slice()].concat();
    cases.add(
        "33 members that are missing",
        Reject::Schema,
        [&[0x82, 0x03, 0x83, 0x80, 0x80], list.as_slice()].concat(),
    );
    cases.cases
}

fn statuses(world: &World) -> Vec<Case> {
    let [m1, m2, _] = &world.people.members;
    let mut cases = Cases::of("document-status");
    let status = world.status();
    let envelope = |envelope: Envelope<_>| envelope.as_bytes().to_vec();
    cases.add(
        "another member's status",
        Reject::UnknownSigner,
        envelope(m2.sign(&status)),
    );
    let mut other = status.clone();
    other.nonce = Nonce::from_bytes([1; 32]);
    cases.add(
        "a status for another question",
        Reject::SessionMismatch,
        envelope(m1.sign(&other)),
    );
    let mut other = status.clone();
    other.checkpoint = head(&world.people, member(2));
    cases.add(
        "a status over another member's head",
        Reject::UnknownSigner,
        envelope(m1.sign(&other)),
    );
    let mut other = status.clone();
    other.name = id("participant", "m2");
    cases.add(
        "a status in another member's name",
        Reject::NotAMember,
        envelope(m1.sign(&other)),
    );
    let whole = m1.sign(&status);
    let body = payload(whole.as_bytes());
    // Of the one key: its id, share version 1, active.
    let stage = |number| {
        let stage = (status.keys[0].key_id, ShareVersion::new(1), 3_u16);
        let from = codec::encode(&stage).unwrap().split_off(1);
        let to = [&from[..from.len() - 1], &[number]].concat();
        sign(
            "status",
            m1.secret(),
            &super::values::exchanged(body, &from, &to),
        )
    };
    assert_eq!(stage(3), whole.as_bytes());
    cases.add("a stage that is none", Reject::Schema, stage(4));
    cases.add("stage zero", Reject::Schema, stage(0));
    cases.cases
}

fn enrollments(world: &World) -> Vec<Case> {
    let [m1, m2, _] = &world.people.members;
    let mut cases = Cases::of("document-enrollment");
    let enrollment = world.enrollment();
    cases.add(
        "an enrolment that another key signed",
        Reject::UnknownSigner,
        m2.sign(&enrollment).as_bytes().to_vec(),
    );
    let mut other = enrollment.clone();
    other.identity = m2.key();
    cases.add(
        "an enrolment of another key",
        Reject::UnknownSigner,
        m1.sign(&other).as_bytes().to_vec(),
    );
    let csr = |length: usize| {
        let csr = Blob::<4096>::new(vec![0x30; length]).unwrap();
        let (name, software) = (enrollment.name.clone(), enrollment.software.clone());
        let fields = (name, enrollment.identity, csr, software, enrollment.time);
        sign("enrollment", m1.secret(), &codec::encode(&fields).unwrap())
    };
    cases.add("a request of 2049 bytes", Reject::Schema, csr(2049));
    cases.cases
}

fn sockets(world: &World) -> Vec<Case> {
    let mut accept = Cases::of("to-daemon-accept-plan");
    let plan = world.accept_plan();
    let with = |endorsed| codec::encode(&(1_u16, (endorsed, plan.fingerprint))).unwrap();
    let unsigned = firn_protocol::envelope::Endorsed::unsigned(&*world.plan).unwrap();
    accept.add(
        "a plan that nobody has signed",
        Reject::QuorumNotMet,
        with(&unsigned),
    );
    let alone = codec::encode(&(1_u16, (&plan.plan,))).unwrap();
    accept.add("a plan without a fingerprint", Reject::Schema, alone);

    let mut status = Cases::of("to-daemon-status");
    // [2, nonce]
    status.add(
        "a nonce of 31 bytes",
        Reject::Schema,
        [&[0x82, 0x02, 0x58, 31][..], &[0x4f; 31]].concat(),
    );
    status.add(
        "a question that is none",
        Reject::Schema,
        [0x82, 0x03, 0x40],
    );

    let mut failed = Cases::of("from-daemon-failed");
    // [3, [code, message, advice]]
    let text = |length: u16| {
        let head = [&[0x79][..], &length.to_be_bytes()].concat();
        [head, vec![b'a'; length.into()]].concat()
    };
    let with =
        |code: &[u8], message: &[u8]| [&[0x82, 0x03, 0x83], code, message, &[0x61, b'a']].concat();
    failed.add(
        "a code with a line break",
        Reject::Schema,
        with(b"\x63a\nb", &[0x61, b'a']),
    );
    failed.add(
        "a message of 1025 bytes",
        Reject::Schema,
        with(&[0x61, b'a'], &text(1025)),
    );
    failed.add(
        "a message in Latin-1",
        Reject::InvalidUtf8,
        with(&[0x61, b'a'], b"\x63a\xe4b"),
    );
    [accept.cases, status.cases, failed.cases].concat()
}

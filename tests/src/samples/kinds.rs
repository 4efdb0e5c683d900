//! The list of kinds, tied to the protocol: a message that is added to one of its sums does not
//! compile here until it has a sample, and a test compares the documents with the sources.

use firn_protocol::{
    codec::{self, List, Maybe, Text},
    documents::{
        Activation, Authorities, Certificate, Checkpoint, Enrollment, Grant, Intent, Plan, Policy,
        Receipt,
    },
    envelope::{Document, Endorsed, Envelope, digest_of},
    limits,
    messages::{
        Acknowledgement, ActivationResult, CeremonyFailed, CeremonyRecord, CertificateSet,
        Commitments, Complaint, DkgManifest, DkgOpen, DkgRound1, Final, FromCeremony, FromDaemon,
        FromMember, FromRequests, Hello, KeyQuery, MAX_LOCAL_MESSAGE, MemberPresence, MemberStatus,
        MissingMember, OutcomeQuery, OutcomeStatement, PackageBody, Presence, PresenceQuery,
        Progress, ProofOpen, Refusal, RequestFailed, RequestSigned, RunCeremony, ShareList,
        SignRequest, StatusQuery, ToCeremony, ToDaemon, ToMember, ToRequests, Welcome,
    },
    reject::Reject,
    session::SessionHeader,
};
use serde::Serialize;

mod words;

use super::{
    Carried, NOW, Sample, Signer, World, asked, digest_of_message, judge,
    people::{id, member},
};
pub(super) use words::news;
use words::{acknowledgement, deliver, hello, key_query, presence_query, refusal, welcome};

/// What a sample is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A document, by the word in its signatures.
    Document(&'static str),
    /// A message, by its sum and its number.
    Message(&'static str, u16),
}

/// Names every variant of a sum of messages once: as a list, and in a match that must be complete.
macro_rules! messages {
    ($($sum:ident $place:literal { $($number:literal $variant:ident $name:literal $rule:literal,)+ })+) => {
        /// Every message: its sum, its number, its name.
        pub const MESSAGES: &[(&str, u16, &str)] =
            &[$($((stringify!($sum), $number, concat!($place, "-", $name)),)+)+];

        $(impl Named for $sum {
            const SUM: &'static str = stringify!($sum);

            fn name_and_rule(&self) -> (&'static str, &'static str) {
                match self { $(Self::$variant(_) => (concat!($place, "-", $name), $rule),)+ }
            }

            fn wire_number(&self) -> u16 {
                self.number()
            }
        })+
    };
}

trait Named: Serialize {
    const SUM: &'static str;
    fn name_and_rule(&self) -> (&'static str, &'static str);
    fn wire_number(&self) -> u16;
}

messages! {
    ToMember "to-member" {
        1 SignOpen "sign-open" "sign-open-message",
        2 Package "package" "package-message",
        3 Final "final" "final-message",
        4 KeyQuery "key-query" "key-query-message",
        5 Deliver "deliver" "deliver-message",
        6 OutcomeQuery "outcome-query" "outcome-query-message",
        7 StatusQuery "status-query" "status-query-message",
        10 DkgOpen "dkg-open" "dkg-open-message",
        11 DkgRound1Set "dkg-round1-set" "dkg-round1-set-message",
        12 Delivery "delivery" "delivery-message",
        13 CertificateSet "certificate-set" "certificate-set-message",
        14 ProofOpen "proof-open" "proof-open-message",
    }
    FromMember "from-member" {
        1 Commitments "commitments" "commitments-message",
        2 Shares "shares" "shares-message",
        3 Receipt "receipt" "receipt-message",
        4 Refusal "refusal" "refusal-message",
        5 KeyDocuments "key-documents" "key-documents-message",
        6 Acknowledgement "acknowledgement" "acknowledgement-message",
        7 Outcome "outcome" "outcome-message",
        8 Status "status" "status-message",
        10 DkgRound1 "dkg-round1" "dkg-round1-message",
        11 DkgRound2 "dkg-round2" "dkg-round2-message",
        12 Certificate "certificate" "certificate-message",
        13 Complaint "complaint" "complaint-message",
    }
    ToRequests "to-requests" {
        1 Sign "sign" "sign-request-message",
        2 Outcome "outcome" "outcome-request-message",
        3 Key "key" "key-request-message",
    }
    FromRequests "from-requests" {
        1 Signed "signed" "request-signed-message",
        2 Failed "failed" "request-failed-message",
        3 Outcome "outcome" "outcome-report-message",
        4 Key "key" "key-answer-message",
    }
    ToCeremony "to-ceremony" {
        1 Run "run" "run-ceremony-message",
        2 Deliver "deliver" "deliver-documents-message",
        3 Presence "presence" "presence-query-message",
        4 Status "status" "status-request-message",
        5 Key "key" "operator-key-request-message",
    }
    FromCeremony "from-ceremony" {
        1 Progress "progress" "progress-message",
        2 Certified "certified" "ceremony-record-message",
        3 Failed "failed" "ceremony-failed-message",
        4 Delivered "delivered" "activation-result-message",
        5 Presence "presence" "presence-message",
        6 Status "status" "status-report-message",
        7 Key "key" "operator-key-answer-message",
    }
    ToDaemon "to-daemon" {
        1 AcceptPlan "accept-plan" "accept-plan-message",
        2 Status "status" "local-status-query-message",
    }
    FromDaemon "from-daemon" {
        1 Accepted "accepted" "plan-accepted-message",
        2 Status "status" "local-status-message",
        3 Failed "failed" "local-failure-message",
    }
}

/// Every document, by the word in its signatures.
pub const DOCUMENTS: &[&str] = &[
    Authorities::KIND,
    Plan::KIND,
    Policy::KIND,
    Activation::KIND,
    Certificate::KIND,
    Checkpoint::KIND,
    Grant::KIND,
    Intent::KIND,
    Receipt::KIND,
    SessionHeader::KIND,
    Hello::KIND,
    Welcome::KIND,
    Commitments::KIND,
    PackageBody::KIND,
    ShareList::KIND,
    Refusal::KIND,
    KeyQuery::KIND,
    Acknowledgement::KIND,
    PresenceQuery::KIND,
    DkgRound1::KIND,
    DkgManifest::KIND,
    Complaint::KIND,
    OutcomeQuery::KIND,
    OutcomeStatement::KIND,
    StatusQuery::KIND,
    MemberStatus::KIND,
    Enrollment::KIND,
];

type Judge = fn(&World, &[u8]) -> Result<(), Reject>;

/// All samples.
#[must_use]
pub fn all() -> Vec<Sample> {
    let world = World::fixed();
    let mut samples = documents(world);
    samples.extend(
        to_members(world)
            .into_iter()
            .map(|m| message(&m, judge::to_member)),
    );
    samples.extend(
        from_members(world)
            .into_iter()
            .map(|m| message(&m, judge::from_member)),
    );
    samples.extend(
        to_requests(world)
            .into_iter()
            .map(|m| message(&m, judge::to_requests)),
    );
    samples.extend(
        from_requests(world)
            .into_iter()
            .map(|m| message(&m, judge::from_requests)),
    );
    samples.extend(
        to_ceremony(world)
            .into_iter()
            .map(|m| message(&m, judge::to_ceremony)),
    );
    samples.extend(
        from_ceremony(world)
            .into_iter()
            .map(|m| message(&m, judge::from_ceremony)),
    );
    let to_daemon = asked::to_daemon(world);
    samples.extend(to_daemon.iter().map(|m| message(m, judge::to_daemon)));
    let from_daemon = asked::from_daemon(world);
    samples.extend(from_daemon.iter().map(|m| message(m, judge::from_daemon)));
    samples
}

fn documents(world: &World) -> Vec<Sample> {
    let people = &world.people;
    let dealing = &world.dealing;
    let [m1, _, _] = &people.members;
    let coordinator: fn(&World) -> &_ = |world| &world.people.coordinator;
    let first: fn(&World) -> &_ = |world| &world.people.members[0];
    let third: fn(&World) -> &_ = |world| &world.people.members[2];
    let certificate = world.certified.certificates()[0].envelope();
    let broken = m1.sign(&world.broken.complaint(member(1), member(2)));
    let manifest = &dealing.round2[0].manifest;
    let shares = world.request.shares[0].envelope();
    let header = world.request.header.envelope();
    let body = world.request.body.envelope();
    vec![
        endorsed::<Authorities>(
            "authorities",
            &world.authorities_endorsed,
            judge::authorities,
        ),
        endorsed::<Plan>("plan", &world.plan_endorsed, judge::plan),
        endorsed::<Activation>("activation", &world.documents.activation, judge::activation),
        envelope(
            "policy",
            &world.documents.policy,
            |w| &w.people.policy_authority,
            judge::policy,
        ),
        envelope("certificate", certificate, first, judge::certificate),
        envelope(
            "checkpoint",
            &super::head(people, member(1)),
            first,
            judge::checkpoint,
        ),
        envelope(
            "grant",
            &world.open.grant,
            |w| &w.people.grant_authority,
            judge::grant,
        ),
        envelope(
            "intent",
            &world.open.intent,
            |w| &w.people.requester,
            judge::intent,
        ),
        envelope("receipt", &world.receipts[0], first, judge::receipt),
        envelope("session-header", header, coordinator, judge::session),
        envelope(
            "hello",
            &hello(world),
            |w| &w.people.requester,
            judge::hello,
        ),
        envelope("welcome", &welcome(world), coordinator, judge::welcome),
        envelope(
            "commitments",
            world.request.commitments[0].envelope(),
            first,
            judge::commitments,
        ),
        envelope("package-body", body, coordinator, judge::package),
        envelope("share-list", shares, first, judge::shares),
        envelope("refusal", &refusal(world), third, judge::refusal),
        envelope(
            "key-query",
            &key_query(world),
            coordinator,
            judge::key_query,
        ),
        envelope(
            "acknowledgement",
            &acknowledgement(world, 1),
            first,
            judge::acknowledgement,
        ),
        envelope(
            "presence-query",
            &presence_query(world),
            |w| &w.people.operators[0],
            judge::presence_query,
        ),
        envelope(
            "dkg-round1",
            dealing.round1[0].envelope(),
            first,
            judge::dkg_round1,
        ),
        envelope("dkg-manifest", manifest, first, judge::dkg_manifest),
        envelope("complaint", &broken, first, judge::complaint),
        envelope(
            "outcome-query",
            &people.requester.sign(&world.outcome_query()),
            |w| &w.people.requester,
            judge::outcome_query,
        ),
        envelope(
            "outcome",
            &m1.sign(&world.outcome(1)),
            first,
            judge::outcome_statement,
        ),
        envelope(
            "status-query",
            &people.operators[0].sign(&world.status_query()),
            |w| &w.people.operators[0],
            judge::status_query,
        ),
        envelope(
            "status",
            &m1.sign(&world.status()),
            first,
            judge::member_status,
        ),
        envelope(
            "enrollment",
            &m1.sign(&world.enrollment()),
            first,
            judge::enrollment,
        ),
    ]
}

fn to_members(world: &World) -> Vec<ToMember> {
    let dealing = &world.dealing;
    let certificates = world.documents.certificates.clone();
    vec![
        ToMember::SignOpen(world.open.clone()),
        ToMember::Package(world.request.package()),
        ToMember::Final(Final {
            session: world.request.id(),
            signatures: List::new(world.request.signatures.clone()).unwrap(),
        }),
        ToMember::KeyQuery(key_query(world)),
        ToMember::Deliver(deliver(world)),
        ToMember::OutcomeQuery(world.people.requester.sign(&world.outcome_query())),
        ToMember::StatusQuery(world.people.operators[0].sign(&world.status_query())),
        ToMember::DkgOpen(DkgOpen {
            header: dealing.header.envelope().clone(),
            plan: world.plan_endorsed.clone(),
        }),
        ToMember::DkgRound1Set(dealing.round1_set()),
        ToMember::Delivery(dealing.delivery(member(1))),
        ToMember::CertificateSet(CertificateSet { certificates }),
        ToMember::ProofOpen(ProofOpen {
            header: world.proofs[0].header.envelope().clone(),
        }),
    ]
}

fn from_members(world: &World) -> Vec<FromMember> {
    let [m1, _, _] = &world.people.members;
    let complaint = m1.sign(&world.broken.complaint(member(1), member(2)));
    vec![
        FromMember::Commitments(world.request.commitments[0].envelope().clone()),
        FromMember::Shares(world.request.shares[0].envelope().clone()),
        FromMember::Receipt(world.receipts[0].clone()),
        FromMember::Refusal(refusal(world)),
        FromMember::KeyDocuments(world.documents.clone()),
        FromMember::Acknowledgement(acknowledgement(world, 1)),
        FromMember::Outcome(m1.sign(&world.outcome(1))),
        FromMember::Status(m1.sign(&world.status())),
        FromMember::DkgRound1(world.dealing.round1[0].envelope().clone()),
        FromMember::DkgRound2(world.dealing.round2[0].clone()),
        FromMember::Certificate(world.documents.certificates[0].clone()),
        FromMember::Complaint(complaint),
    ]
}

fn to_requests(world: &World) -> [ToRequests; 3] {
    let requester = &world.people.requester;
    [
        ToRequests::Sign(SignRequest {
            intent: world.open.intent.clone(),
            grant: world.open.grant.clone(),
            approvals: List::empty(),
        }),
        ToRequests::Outcome(requester.sign(&world.outcome_query())),
        ToRequests::Key(asked::key_query_of(world, requester, 0x50)),
    ]
}

fn from_requests(world: &World) -> Vec<FromRequests> {
    let receipts = [1, 2].map(member).into_iter().zip(world.receipts.clone());
    vec![
        FromRequests::Signed(RequestSigned {
            session: world.request.id(),
            signatures: List::new(world.request.signatures.clone()).unwrap(),
            receipts: List::new(receipts.collect()).unwrap(),
            evidence: Maybe(Some(world.request.signing_record())),
        }),
        FromRequests::Failed(RequestFailed {
            code: Reject::QuorumUnavailable,
            refusals: List::new(vec![(member(3), refusal(world))]).unwrap(),
            missing: List::new(vec![MissingMember {
                name: "m2".parse().unwrap(),
                since: Maybe(Some(NOW)),
            }])
            .unwrap(),
            detail: Text::new("m2 is not connected").unwrap(),
        }),
        asked::outcome_report(world),
        FromRequests::Key(world.documents.clone()),
    ]
}

fn to_ceremony(world: &World) -> Vec<ToCeremony> {
    vec![
        ToCeremony::Run(RunCeremony {
            plan: world.plan_endorsed.clone(),
        }),
        ToCeremony::Deliver(deliver(world)),
        ToCeremony::Presence(presence_query(world)),
        ToCeremony::Status(world.people.operators[0].sign(&world.status_query())),
        ToCeremony::Key(asked::key_query_of(world, &world.people.operators[0], 0x51)),
    ]
}

fn from_ceremony(world: &World) -> Vec<FromCeremony> {
    let dealing = &world.dealing;
    let round1 = dealing.round1.iter().map(|word| word.envelope().clone());
    let deliveries = [1, 2, 3].map(|number| dealing.delivery(member(number)));
    let proofs = world.proofs.iter().map(super::Round::proof_record);
    vec![
        FromCeremony::Progress(Progress {
            step: Text::new("round one").unwrap(),
            done: 2,
            of: 3,
        }),
        FromCeremony::Certified(CeremonyRecord {
            header: dealing.header.envelope().clone(),
            round1: List::new(round1.collect()).unwrap(),
            manifests: List::new(dealing.manifests()).unwrap(),
            deliveries: List::new(deliveries.to_vec()).unwrap(),
            certificates: world.documents.certificates.clone(),
            proofs: List::new(proofs.collect()).unwrap(),
        }),
        FromCeremony::Failed(CeremonyFailed {
            code: Reject::DkgShare,
            culprit: Maybe(Some(member(2))),
            step: Text::new("certificates").unwrap(),
        }),
        FromCeremony::Delivered(ActivationResult {
            acknowledgements: List::new(vec![acknowledgement(world, 1), acknowledgement(world, 2)])
                .unwrap(),
            missing: List::new(vec![(member(3), Reject::QuorumUnavailable)]).unwrap(),
        }),
        FromCeremony::Presence(Presence {
            members: List::new(vec![MemberPresence {
                id: id("participant", "m1"),
                software: Text::new("firn 0.1.0").unwrap(),
                since: NOW,
            }])
            .unwrap(),
            ceremonies: List::new(vec![world.plan.ceremony_id]).unwrap(),
        }),
        FromCeremony::Status(asked::status_report(world)),
        FromCeremony::Key(world.documents.clone()),
    ]
}

fn envelope<T: Document>(
    rule: &'static str,
    envelope: &Envelope<T>,
    signer: fn(&World) -> &super::Person,
    judge: Judge,
) -> Sample {
    let world = World::fixed();
    let verified = envelope.clone().verify(&signer(world).key()).unwrap();
    Sample {
        name: format!("document-{}", T::KIND),
        kind: Kind::Document(T::KIND),
        rule,
        bytes: envelope.as_bytes().to_vec(),
        limit: Envelope::<T>::LIMIT,
        carried: Carried::EndToEnd,
        signer: Some(Signer::One(signer)),
        judge,
        digest: verified.digest(),
    }
}

fn endorsed<T: Document>(rule: &'static str, document: &Endorsed, judge: Judge) -> Sample {
    let (document_read, digest) = document.read::<T>().unwrap();
    assert_eq!(digest, digest_of::<T>(&document_read.to_payload().unwrap()));
    Sample {
        name: format!("document-{}", T::KIND),
        kind: Kind::Document(T::KIND),
        rule,
        bytes: codec::encode(document).unwrap(),
        limit: Endorsed::LIMIT,
        carried: Carried::EndToEnd,
        signer: Some(Signer::Operators),
        judge,
        digest,
    }
}

fn message<M: Named>(message: &M, judge: Judge) -> Sample {
    let (name, rule) = message.name_and_rule();
    let on_its_word = [
        "from-requests-failed",
        "from-ceremony-progress",
        "from-ceremony-failed",
        "from-ceremony-delivered",
        "from-ceremony-presence",
        "from-requests-outcome",
        "from-ceremony-status",
        "to-daemon-status",
        "from-daemon-status",
        "from-daemon-failed",
    ];
    let bytes = codec::encode(message).unwrap();
    Sample {
        name: name.to_owned(),
        kind: Kind::Message(M::SUM, message.wire_number()),
        rule,
        digest: digest_of_message(&bytes),
        bytes,
        limit: limit_of(M::SUM, message.wire_number()),
        carried: if on_its_word.contains(&name) {
            Carried::OnItsWord
        } else {
            Carried::EndToEnd
        },
        signer: None,
        judge,
    }
}

/// As the receivers have it.
fn limit_of(sum: &str, number: u16) -> usize {
    match (sum, number) {
        ("ToMember", 2) | ("FromRequests" | "FromCeremony", _) => limits::MAX_FRAME,
        ("ToMember", 3) => limits::MAX_SHARES * 2,
        ("ToMember", 11) => limits::MAX_CEREMONY_MESSAGE * 2,
        ("FromMember", 1..=4) => limits::MAX_COMMITMENTS + limits::SMALL_DOCUMENT,
        ("FromMember", 6) => limits::ROSTER_DOCUMENT + limits::SMALL_DOCUMENT,
        ("FromMember", 7) => Envelope::<OutcomeStatement>::LIMIT + limits::SMALL_DOCUMENT,
        ("FromMember", 8) => Envelope::<MemberStatus>::LIMIT + limits::SMALL_DOCUMENT,
        ("ToDaemon" | "FromDaemon", _) => MAX_LOCAL_MESSAGE,
        ("ToMember", 12 | 13) | ("FromMember" | "ToCeremony", _) => limits::MAX_CEREMONY_MESSAGE,
        _ => limits::MAX_OPEN,
    }
}

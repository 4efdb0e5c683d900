//! What is asked outside of sessions and ceremonies, and what is answered: outcomes, status, what a
//! machine's daemon and its operator say to each other, and what a new machine says of itself.

use firn_protocol::{
    codec::{Blob, List, Maybe, Text},
    documents::Enrollment,
    envelope::Envelope,
    ids::{BuildDigest, KeyId, Nonce, PlanDigest, PolicyVersion},
    messages::{
        AcceptPlan, FromDaemon, FromRequests, KeyQuery, KeyStatus, KnownRequest, LinkStatus,
        LocalFailure, LocalStatus, MemberReport, MemberStatus, MissingMember, OutcomeQuery,
        OutcomeReport, OutcomeStatement, PlanAccepted, RequestProgress, ShareStage, StatusQuery,
        StatusReport, ToDaemon,
    },
};

use super::{
    NOW, Person, World,
    domain::FIRST_EPOCH,
    head,
    people::{id, member},
};

/// A plan that member 1's operator has accepted and that has not made a key yet.
pub const ACCEPTED: PlanDigest = PlanDigest::from_bytes([0xac; 32]);

/// A certificate request for member 1's name, by a key that nobody has any more: signatures of this
/// kind are never the same twice, so it is written down.
const CSR: &str = "\
    3081f430819a02010030003059301306072a8648ce3d020106082a8648ce3d03010703420004231e790a14a9fbb1\
    064c9fa234dfcdd70e54f1c50b7e8b29a2c5c7031efad874b584a29e9eb78a8329fbc456e0bd3dc4d4295d2880c7\
    570857b1919ed11fff7ea038303606092a864886f70d01090e3129302730250603551d11041e301c861a73706966\
    66653a2f2f74642f7061727469636970616e742f6d31300a06082a8648ce3d040302034900304602210080883cc5\
    ba8fba5d36265d2a338b396f8a289e551de5a55b8a33e1c5680835eb022100cbab386bae2fdf168a37f94818f7ce\
    89d0e42acafd40f178ce69bbf878913795";

impl World {
    /// The requester's question about its request.
    #[must_use]
    pub fn outcome_query(&self) -> OutcomeQuery {
        OutcomeQuery {
            key_id: self.key_id(),
            request_id: self.opening.grant.request_id,
            nonce: Nonce::from_bytes([0x4d; 32]),
            time: NOW,
        }
    }

    /// What a member that has the receipt says to it.
    #[must_use]
    pub fn outcome(&self, number: u16) -> OutcomeStatement {
        let asked = self.outcome_query();
        let grant = &self.opening.grant;
        OutcomeStatement {
            key_id: asked.key_id,
            request_id: asked.request_id,
            nonce: asked.nonce,
            member: member(number),
            known: Maybe(Some(KnownRequest {
                intent: grant.intent,
                policy: grant.policy,
                epoch: grant.epoch,
                progress: RequestProgress::Completed,
                open_attempts: 0,
                receipt: Maybe(Some(self.receipts[usize::from(number) - 1].clone())),
            })),
            checkpoint: head(&self.people, member(number)),
            time: NOW,
        }
    }

    /// What a member says that has let its shares go and never heard of the end.
    #[must_use]
    pub fn outcome_released(&self, number: u16) -> OutcomeStatement {
        let mut said = self.outcome(number);
        if let Some(known) = &mut said.known.0 {
            known.progress = RequestProgress::Released;
            known.receipt = Maybe(None);
        }
        said
    }

    /// An operator's question how everybody is.
    #[must_use]
    pub fn status_query(&self) -> StatusQuery {
        StatusQuery {
            nonce: Nonce::from_bytes([0x4f; 32]),
            time: NOW,
        }
    }

    /// Member 1's answer.
    #[must_use]
    pub fn status(&self) -> MemberStatus {
        MemberStatus {
            nonce: self.status_query().nonce,
            name: id("participant", "m1"),
            software: Text::new("firn 0.1.0").unwrap(),
            build: BuildDigest::from_bytes([0xb1; 32]),
            authorities: self.authorities_digest,
            checkpoint: head(&self.people, member(1)),
            stopped: Maybe(None),
            certificate_expires: NOW.plus(30 * 86_400_000),
            accepted: List::new(vec![ACCEPTED]).unwrap(),
            keys: List::new(vec![KeyStatus {
                key_id: self.key_id(),
                share_version: self.certified.share_version(),
                stage: ShareStage::Active,
                activation: Maybe(Some(self.activation_digest())),
                policy_version: Maybe(Some(PolicyVersion::new(1))),
                epoch: Maybe(Some(FIRST_EPOCH)),
                owner: Maybe(Some(self.people.requester_id())),
            }])
            .unwrap(),
            time: NOW,
        }
    }

    /// What member 1's machine gave the operators before there was a key.
    #[must_use]
    pub fn enrollment(&self) -> Enrollment {
        Enrollment {
            name: id("participant", "m1"),
            identity: self.people.members[0].key(),
            csr: Blob::new(hex::decode(CSR).unwrap()).unwrap(),
            software: Text::new("firn 0.1.0").unwrap(),
            time: NOW,
        }
    }

    /// Member 1's operator accepts the plan.
    #[must_use]
    pub fn accept_plan(&self) -> AcceptPlan {
        AcceptPlan {
            plan: self.plan_endorsed.clone(),
            fingerprint: PlanDigest::from_bytes(self.plan.digest()),
        }
    }
}

/// Member 2 died before the end: its own word says so, and member 1's has the signatures. The one
/// that was not in the session is away.
pub(super) fn outcome_report(world: &World) -> FromRequests {
    let [first, second, _] = &world.people.members;
    let statements = vec![
        first.sign(&world.outcome(1)),
        second.sign(&world.outcome_released(2)),
    ];
    FromRequests::Outcome(OutcomeReport {
        statements: List::new(statements).unwrap(),
        refusals: List::empty(),
        missing: List::new(vec![MissingMember {
            name: "m3".parse().unwrap(),
            since: Maybe(Some(NOW)),
        }])
        .unwrap(),
    })
}

/// Member 1 answers, member 2 does not, member 3 is away.
pub(super) fn status_report(world: &World) -> StatusReport {
    let member = |name, connected, last_seen, status| MemberReport {
        id: id("participant", name),
        connected: Maybe(connected),
        last_seen: Maybe(last_seen),
        status: Maybe(status),
    };
    let said = world.people.members[0].sign(&world.status());
    StatusReport {
        coordinator: world.people.coordinator_id(),
        software: Text::new("firn 0.1.0").unwrap(),
        since: NOW,
        members: List::new(vec![
            member("m1", Some(NOW), None, Some(said)),
            member("m2", Some(NOW), None, None),
            member("m3", None, Some(NOW), None),
        ])
        .unwrap(),
    }
}

/// What somebody asks a coordinator about the samples' key.
pub(super) fn key_query_of(world: &World, person: &Person, nonce: u8) -> Envelope<KeyQuery> {
    let key_id: KeyId = world.key_id();
    let nonce = Nonce::from_bytes([nonce; 32]);
    person.sign(&KeyQuery { key_id, nonce })
}

pub(super) fn to_daemon(world: &World) -> [ToDaemon; 2] {
    [
        ToDaemon::AcceptPlan(world.accept_plan()),
        ToDaemon::Status(world.status_query().nonce),
    ]
}

pub(super) fn from_daemon(world: &World) -> [FromDaemon; 3] {
    [
        FromDaemon::Accepted(PlanAccepted {
            plan: PlanDigest::from_bytes(world.plan.digest()),
            member: "m1".parse().unwrap(),
        }),
        FromDaemon::Status(LocalStatus {
            status: world.people.members[0].sign(&world.status()),
            links: List::new(vec![
                LinkStatus {
                    coordinator: world.people.coordinator_id(),
                    since: Maybe(Some(NOW)),
                    code: Maybe(None),
                },
                LinkStatus {
                    coordinator: id("coordinator", "c2"),
                    since: Maybe(None),
                    code: Maybe(Some(Text::new("tls_expired").unwrap())),
                },
            ])
            .unwrap(),
        }),
        FromDaemon::Failed(LocalFailure {
            code: Text::new("plan_fingerprint").unwrap(),
            message: Text::new("the plan is not the one whose fingerprint was given").unwrap(),
            advice: Text::new("Compare the fingerprint with the operators again.").unwrap(),
        }),
    ]
}

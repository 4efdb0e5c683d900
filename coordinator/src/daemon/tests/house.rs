//! Three members that hold an active key, dial in and do as they are told; and a requester.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "only what a test is about is told apart"
)]

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use firn_protocol::{
    bitcoin::{Network, verify_bip340},
    codec::{self, List, Maybe, Text},
    documents::{Activation, Content, Grant, Intent, Policy, ProofOfLife},
    envelope::{Endorsed, Envelope},
    ids::*,
    keys::IdentitySecret,
    limits,
    messages::*,
    reject::Reject,
    session::RequestSubject,
    sharing::ActiveSharing,
    signable::Signable,
};
use firn_transport::Connection;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

use super::{GUARD, Running, asked, authorities, name, secret};
use crate::{
    config::Bounds,
    session::{
        dkg,
        fake::{FakeMember, dkg::Ceremonial, id, standing},
        request::RequestTerms,
        round::Item,
    },
};

/// Little patience for the first answer, much for everything else: what should not wait is found out.
pub(super) const IMPATIENT: Bounds = Bounds {
    requests: 8,
    open_ms: 400,
    step_ms: 20_000,
    drain_ms: 20_000,
};
/// Longer than the first patience, far shorter than a step.
pub(super) const AT_ONCE: Duration = Duration::from_secs(10);

/// What a member does when it is asked.
pub(super) enum Reply {
    Says(FromMember),
    /// Takes the question and says nothing, like a machine that has just died.
    IsSilent,
    /// Its process ends: the connection with it.
    Dies,
}

pub(super) type Doing = Pin<Box<dyn Future<Output = Reply> + std::marker::Send>>;

/// Does this now.
pub(super) fn now(reply: Reply) -> Doing {
    Box::pin(async { reply })
}

/// A key, its members' shares and one request for it.
pub(super) struct House {
    pub(super) documents: KeyDocuments,
    pub(super) request: SignRequest,
    terms: RequestTerms,
    identities: BTreeMap<Identifier, [u8; 32]>,
    signers: Mutex<(BTreeMap<Identifier, FakeMember>, ChaCha20Rng)>,
}

impl House {
    pub(super) fn new() -> Arc<Self> {
        let mut ceremony = Ceremonial::under(2, 3, &secret(2), authorities().1);
        let (attempt, opening) =
            dkg::open(ceremony.plan.clone(), &ceremony.voice, &mut ceremony.rng).unwrap();
        let certified = ceremony.run(attempt, opening).unwrap().sharing;
        let policy = Policy {
            key_id: certified.key_id(),
            // The second, so that the plan need not name its rules.
            version: PolicyVersion::new(2),
            rules: List::empty(),
        };
        let policy = Envelope::sign(&policy, &secret(5)).unwrap();
        let verified = policy.clone().verify(&secret(5).identity()).unwrap();
        let activation = Activation {
            key_id: certified.key_id(),
            share_version: certified.share_version(),
            certificates: certified.set_digest(),
            policy: PolicyDigest::from_bytes(verified.digest()),
            policy_version: verified.version,
            authorities: authorities().1,
            first_epoch: Epoch::new(1),
            freeze_receipts: List::empty(),
        };
        let activation = Endorsed::unsigned(&activation).unwrap();
        let documents = KeyDocuments {
            plan: ceremony.plan.endorsed().clone(),
            certificates: certified.certificate_set().unwrap().certificates,
            policy,
            activation: activation.endorse::<Activation>(&secret(2)).unwrap(),
        };
        let (endorsed, digest) = authorities();
        let keys = [secret(2).identity()];
        let read = endorsed.verify(&keys, 1).unwrap();
        let sharing = ActiveSharing::verify(&documents, &read, digest).unwrap();
        let (request, terms) = request(&sharing);
        let identities = (1..=3).map(|n| (id(n), *ceremony.secret(id(n)).seed()));
        let rng = ChaCha20Rng::seed_from_u64(5);
        Arc::new(Self {
            identities: identities.collect(),
            documents,
            request,
            terms,
            signers: Mutex::new((ceremony.signers(), rng)),
        })
    }

    pub(super) fn identity(&self, member: Identifier) -> IdentitySecret {
        IdentitySecret::from_seed(&zeroize::Zeroizing::new(self.identities[&member]))
    }

    /// What an honest member says.
    pub(super) fn says(&self, member: Identifier, message: ToMember) -> Reply {
        Reply::Says(match message {
            ToMember::KeyQuery(_) => FromMember::KeyDocuments(self.documents.clone()),
            ToMember::OutcomeQuery(query) => {
                let query = query.verify(&secret(3).identity()).unwrap();
                FromMember::Outcome(self.sign(member, &self.statement(member, &query)))
            }
            ToMember::StatusQuery(query) => {
                let query = query.verify(&secret(2).identity()).unwrap();
                FromMember::Status(self.sign(member, &self.status(member, query.nonce)))
            }
            message => {
                let mut signers = self.signers.lock().unwrap();
                let (signers, rng) = &mut *signers;
                let signer = signers.get_mut(&member).unwrap();
                signer.answer(message, &self.terms, &[], rng).unwrap()
            }
        })
    }

    pub(super) fn sign<T: firn_protocol::envelope::Document>(
        &self,
        member: Identifier,
        document: &T,
    ) -> Envelope<T> {
        Envelope::sign(document, &self.identity(member)).unwrap()
    }

    fn statement(&self, member: Identifier, query: &OutcomeQuery) -> OutcomeStatement {
        OutcomeStatement {
            key_id: query.key_id,
            request_id: query.request_id,
            nonce: query.nonce,
            member,
            known: Maybe(None),
            checkpoint: standing(&self.identity(member)).checkpoint,
            time: UnixMillis::new(5),
        }
    }

    pub(super) fn status(&self, member: Identifier, nonce: Nonce) -> MemberStatus {
        MemberStatus {
            nonce,
            name: name(&member_name(member)),
            software: Text::new("test").unwrap(),
            build: BuildDigest::from_bytes([0; 32]),
            authorities: authorities().1,
            checkpoint: standing(&self.identity(member)).checkpoint,
            stopped: Maybe(None),
            certificate_expires: UnixMillis::new(9),
            accepted: List::empty(),
            keys: List::empty(),
            time: UnixMillis::new(5),
        }
    }

    pub(super) fn refuses(&self, member: Identifier, code: Reject) -> Reply {
        let refusal = Refusal {
            about: message_digest(b"question"),
            session: Maybe(None),
            request_id: Maybe(None),
            code,
            culprit: Maybe(None),
            retry_after_ms: Maybe(None),
            time: UnixMillis::new(1),
        };
        Reply::Says(FromMember::Refusal(self.sign(member, &refusal)))
    }

    /// A member dials in and does whatever `script` says, until its connection ends.
    pub(super) async fn join(
        &self,
        running: &Running,
        member: u16,
        script: impl Fn(Identifier, ToMember) -> Doing + std::marker::Send + Sync + 'static,
    ) -> Connection {
        let member = id(member);
        let identity = self.identity(member);
        let connection = running.dial(&member_name(member), &identity).await.unwrap();
        let (streams, script) = (connection.clone(), Arc::new(script));
        tokio::spawn(async move {
            while let Ok((mut sender, mut receiver)) = streams.accept_stream().await {
                let (script, connection) = (Arc::clone(&script), streams.clone());
                tokio::spawn(async move {
                    while let Ok(Some(frame)) = receiver.receive(limits::MAX_FRAME).await {
                        let message = codec::decode(&frame, limits::MAX_FRAME).unwrap();
                        match script(member, message).await {
                            Reply::Says(answer) => {
                                let answer = codec::encode(&answer).unwrap();
                                let _ = sender.send(&answer).await;
                            }
                            Reply::IsSilent => std::future::pending().await,
                            Reply::Dies => connection.close(0),
                        }
                    }
                });
            }
        });
        connection
    }

    /// Joins as an honest member.
    pub(super) async fn join_honest(
        self: &Arc<Self>,
        running: &Running,
        member: u16,
    ) -> Connection {
        let house = Arc::clone(self);
        let honest = move |member, message| now(house.says(member, message));
        self.join(running, member, honest).await
    }

    pub(super) fn assert_signed(&self, answer: FromRequests) -> RequestSigned {
        let FromRequests::Signed(signed) = answer else {
            panic!("{answer:?}")
        };
        let item = &self.terms.items[0];
        let signature = signed.signatures[0].signature.as_bytes();
        assert!(verify_bip340(
            item.key.output_key(),
            &item.message,
            signature
        ));
        assert!(!signed.receipts.is_empty());
        signed
    }

    pub(super) fn sign_request(&self) -> ToRequests {
        ToRequests::Sign(self.request.clone())
    }

    pub(super) fn outcome_query(&self, signer: u8) -> ToRequests {
        let query = OutcomeQuery {
            key_id: self.terms.key_id,
            request_id: self.terms.subject.request_id,
            nonce: Nonce::from_bytes([7; 32]),
            time: UnixMillis::new(1),
        };
        ToRequests::Outcome(Envelope::sign(&query, &secret(signer)).unwrap())
    }

    pub(super) fn key_query(&self, signer: u8) -> Envelope<KeyQuery> {
        let query = KeyQuery {
            key_id: self.terms.key_id,
            nonce: Nonce::from_bytes([7; 32]),
        };
        Envelope::sign(&query, &secret(signer)).unwrap()
    }
}

pub(super) fn member_name(member: Identifier) -> String {
    format!("spiffe://td/participant/m-{member}")
}

fn request(sharing: &ActiveSharing) -> (SignRequest, RequestTerms) {
    let certified = sharing.certified();
    let (key_id, plan) = (certified.key_id(), certified.plan());
    let intent = Intent {
        network: Network::Regtest,
        key_id,
        content: Content::ProofOfLife(ProofOfLife {
            nonce: Nonce::from_bytes([8; 32]),
        }),
    };
    let public = certified.public();
    let signable = Signable::of_intent(&intent, key_id, plan.network, public.group_key()).unwrap();
    let subject = RequestSubject {
        activation: sharing.activation_digest(),
        request_id: RequestId::from_bytes([5; 32]),
        intent: signable.intent_digest(),
        policy: sharing.policy_digest(),
    };
    let grant = Grant {
        key_id,
        activation: subject.activation,
        owner: name("spiffe://td/requester/r-1"),
        epoch: Epoch::new(1),
        least_policy_version: PolicyVersion::new(1),
        least_revocation_version: RevocationVersion::new(0),
        policy: subject.policy,
        intent: subject.intent,
        request_id: subject.request_id,
        not_before: UnixMillis::new(0),
        expires: UnixMillis::new(u64::MAX),
    };
    let request = SignRequest {
        intent: Envelope::sign(&intent, &secret(3)).unwrap(),
        grant: Envelope::sign(&grant, &secret(4)).unwrap(),
        approvals: List::empty(),
    };
    let items = signable.items().iter();
    let terms = RequestTerms {
        request: request.clone(),
        subject,
        key_id,
        share_version: certified.share_version(),
        epoch: Epoch::new(1),
        threshold: plan.threshold,
        roster: plan.roster.to_vec(),
        items: items.map(|item| Item::of(item, public).unwrap()).collect(),
    };
    (request, terms)
}

pub(super) async fn requester(running: &Running) -> Connection {
    let key = secret(3);
    let requester = running.dial("spiffe://td/requester/r-1", &key);
    requester.await.unwrap()
}

pub(super) async fn operator(running: &Running) -> Connection {
    let key = secret(2);
    let operator = running.dial("spiffe://td/operator/o-1", &key);
    operator.await.unwrap()
}

/// The answer to a requester's question.
pub(super) async fn ask(connection: &Connection, question: &ToRequests) -> FromRequests {
    let answers = tokio::time::timeout(GUARD, asked(connection, question));
    let answers = answers.await.unwrap();
    codec::decode(&answers[0], limits::MAX_FRAME).unwrap()
}

/// A no, and who is missing.
pub(super) fn no(answer: FromRequests) -> (Reject, Vec<(String, Option<UnixMillis>)>) {
    let FromRequests::Failed(failed) = answer else {
        panic!("{answer:?}")
    };
    let missing = failed.missing.iter();
    let missing = missing.map(|missing| (missing.name.to_string(), missing.since.0));
    (failed.code, missing.collect())
}

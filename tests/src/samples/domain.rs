//! The samples' key: Authorities, plan, ceremony, policy, activation; and openings of sessions with it.

use std::sync::Arc;

use firn_participant::session::KeyInUse;
use firn_protocol::{
    bitcoin::{
        Child, ChildRange, ExtendedKey, Network, OutPoint, OwnScripts, Sats, ScriptPubKey, TxIn,
        TxOut, Txid,
        psbt::{NewInput, NewOutput, build_v2},
    },
    codec::{Blob, List, Text},
    documents::{
        Activation, Authorities, Ceremony, Certificate, Content, DestinationRule, DkgTerms,
        FeeRule, Grant, Intent, NetworkRule, OutflowRule, Plan, Policy, RosterEntry, Rule, Rules,
        Sealing, SighashRule,
    },
    envelope::{Approved, Document, Endorsed, Envelope, Verified, digest_of},
    ids::{
        ActivationDigest, AuthoritiesDigest, BuildDigest, CeremonyId, Epoch, Flow, Identifier,
        IntentDigest, KeyId, MessageDigest, Nonce, PlanDigest, PolicyDigest, PolicyVersion,
        RequestId, RevocationVersion, ShareVersion, Threshold, UnixMillis,
    },
    messages::{KeyDocuments, SignOpen, transcript_digest},
    session::{CeremonySubject, RequestSubject, SessionHeader, Subject},
    sharing::{ActiveSharing, CertifiedSharing, verify_plan},
    signable::{Item, Signable},
    threshold::SigningShare,
};
use rand_chacha::ChaCha20Rng;

use super::{
    NOW,
    dealing::Dealing,
    people::{People, id, member},
};

/// The epoch that the key starts at.
pub const FIRST_EPOCH: Epoch = Epoch::new(5);

/// The script that the policy lets money go to.
pub const DESTINATION: [u8; 32] = [0x11; 32];

/// Everything that is the same in all sessions.
pub struct Domain {
    /// Everybody.
    pub people: People,
    /// The Authorities.
    pub authorities: Authorities,
    /// They, signed.
    pub authorities_endorsed: Endorsed,
    /// Their digest.
    pub authorities_digest: AuthoritiesDigest,
    /// The plan, signed.
    pub plan_endorsed: Endorsed,
    /// The plan, verified.
    pub plan: Approved<Plan>,
    /// The attempt that made the key.
    pub dealing: Dealing,
    /// Another attempt, in which member 2 dealt member 1 a bad share.
    pub broken: Dealing,
    /// The sharing.
    pub certified: CertifiedSharing,
    /// The sharing, in use by member 1.
    pub key: Arc<KeyInUse>,
    /// What says so.
    pub documents: KeyDocuments,
    /// The members' shares.
    pub(super) shares: Vec<SigningShare>,
}

/// A signing session about to be opened, before anybody signs its parts.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The intent.
    pub intent: Intent,
    /// The grant.
    pub grant: Grant,
    /// The header.
    pub header: SessionHeader,
}

impl Domain {
    pub(super) fn new(rng: &mut ChaCha20Rng) -> Self {
        let people = People::new();
        let authorities = people.authorities();
        let authorities_endorsed = people.endorse(&authorities);
        let payload = authorities.to_payload().unwrap();
        let authorities_digest = AuthoritiesDigest::from_bytes(digest_of::<Authorities>(&payload));
        let plan = plan(&people, authorities_digest);
        let plan_endorsed = people.endorse(&plan);
        let plan = verify_plan(plan_endorsed.clone(), &authorities, authorities_digest).unwrap();

        let attempt = |nonce: u8| {
            let header = ceremony_header(&people, &plan, Flow::Dkg, &[1, 2, 3], nonce);
            people
                .coordinator
                .sign(&header)
                .verify(&people.coordinator.key())
                .unwrap()
        };
        let (dealing, dealt) = Dealing::run(&people, &plan, attempt(0xd0), None, rng);
        let (broken, _) = Dealing::run(&people, &plan, attempt(0xd1), Some(member(2)), rng);
        let certificates = certificates(&people, &plan, &dealing, &dealt.public);
        let certified = CertifiedSharing::verify(plan.clone(), &certificates).unwrap();

        let policy = people.policy_authority.sign(&Policy {
            key_id: certified.key_id(),
            version: PolicyVersion::new(1),
            rules: rules(),
        });
        let verified = policy
            .clone()
            .verify(&people.policy_authority.key())
            .unwrap();
        let activation = people.endorse(&Activation {
            key_id: certified.key_id(),
            share_version: certified.share_version(),
            certificates: certified.set_digest(),
            policy: PolicyDigest::from_bytes(verified.digest()),
            policy_version: verified.version,
            authorities: authorities_digest,
            first_epoch: FIRST_EPOCH,
            freeze_receipts: List::empty(),
        });
        let documents = KeyDocuments {
            plan: plan_endorsed.clone(),
            certificates: List::new(certificates).unwrap(),
            policy,
            activation,
        };
        let sharing = ActiveSharing::verify(&documents, &authorities, authorities_digest).unwrap();
        let key = Arc::new(KeyInUse {
            sharing,
            member: member(1),
        });
        Self {
            people,
            authorities,
            authorities_endorsed,
            authorities_digest,
            plan_endorsed,
            plan,
            dealing,
            broken,
            certified,
            key,
            documents,
            shares: dealt.shares,
        }
    }

    /// The key's id.
    #[must_use]
    pub fn key_id(&self) -> KeyId {
        self.certified.key_id()
    }

    /// The policy's digest.
    #[must_use]
    pub fn policy_digest(&self) -> PolicyDigest {
        self.key.sharing.policy_digest()
    }

    /// The activation's digest.
    #[must_use]
    pub fn activation_digest(&self) -> ActivationDigest {
        self.key.sharing.activation_digest()
    }

    /// The header of a ceremony's session.
    #[must_use]
    pub fn ceremony_header(&self, flow: Flow, members: &[u16], nonce: u8) -> SessionHeader {
        ceremony_header(&self.people, &self.plan, flow, members, nonce)
    }

    /// Which scripts are the key's.
    #[must_use]
    pub fn own(&self) -> OwnScripts {
        let key = ExtendedKey::of_group(self.certified.public().group_key()).unwrap();
        OwnScripts::new(key, ChildRange::new(1, 1_000).unwrap()).unwrap()
    }

    /// Two own inputs of 50,000 and a fee of 1,000; what is not paid to the destination comes back.
    #[must_use]
    pub fn payment(&self, sats: u64) -> (Vec<NewInput>, Vec<NewOutput>) {
        let own = self.own();
        let inputs = (0..2_u32).map(|number| {
            let child = Child::new(0, number).unwrap();
            let (txid, vout) = (Txid::new([0x0e; 32]), number);
            NewInput {
                txin: TxIn {
                    outpoint: OutPoint { txid, vout },
                    sequence: 0xffff_fffd,
                },
                spent: output(50_000, own.derive(child).unwrap().script()),
                origin: Some(own.origin(child).unwrap()),
                sighash_type: None,
            }
        });
        let change = Child::new(1, 0).unwrap();
        let outputs = vec![
            NewOutput {
                output: output(sats, ScriptPubKey::taproot(&DESTINATION)),
                origin: None,
            },
            NewOutput {
                output: output(99_000 - sats, own.derive(change).unwrap().script()),
                origin: Some(own.origin(change).unwrap()),
            },
        ];
        (inputs.collect(), outputs)
    }

    /// A PSBT of version 2 that pays this much.
    #[must_use]
    pub fn psbt(&self, sats: u64) -> Vec<u8> {
        let (inputs, outputs) = self.payment(sats);
        build_v2(2, 0, &inputs, &outputs).unwrap()
    }

    /// An intent with this PSBT.
    #[must_use]
    pub fn intent(&self, psbt: Vec<u8>) -> Intent {
        Intent {
            network: Network::Regtest,
            key_id: self.key_id(),
            content: Content::Psbt(Blob::new(psbt).unwrap()),
        }
    }

    /// What an intent means.
    #[must_use]
    pub fn understand(&self, intent: &Intent) -> Signable {
        let group_key = self.certified.public().group_key();
        Signable::of_intent(intent, self.key_id(), Network::Regtest, group_key).unwrap()
    }

    /// A session of members 1 and 2 for an intent, good in every respect.
    #[must_use]
    pub fn opening(&self, intent: Intent, request: u8) -> Opening {
        let digest = self.understand(&intent).intent_digest();
        self.opening_for(intent, digest, request)
    }

    /// The same for an intent that cannot be understood.
    #[must_use]
    pub fn opening_for(&self, intent: Intent, digest: IntentDigest, request: u8) -> Opening {
        let request_id = RequestId::from_bytes([request; 32]);
        let grant = Grant {
            key_id: self.key_id(),
            activation: self.activation_digest(),
            owner: self.people.requester_id(),
            epoch: FIRST_EPOCH,
            least_policy_version: PolicyVersion::new(1),
            least_revocation_version: RevocationVersion::new(0),
            policy: self.policy_digest(),
            intent: digest,
            request_id,
            not_before: UnixMillis::new(NOW.value() - 60_000),
            expires: NOW.plus(60_000),
        };
        let header = SessionHeader {
            flow: Flow::Sign,
            subject: Subject::Request(RequestSubject {
                activation: self.activation_digest(),
                request_id,
                intent: digest,
                policy: self.policy_digest(),
            }),
            key_id: self.key_id(),
            share_version: ShareVersion::new(1),
            epoch: FIRST_EPOCH,
            coordinator: self.people.coordinator_id(),
            nonce: Nonce::from_bytes([request ^ 0x5a; 32]),
            members: List::new([1, 2].map(member).to_vec()).unwrap(),
        };
        Opening {
            intent,
            grant,
            header,
        }
    }

    /// An opening with everybody's signature.
    #[must_use]
    pub fn signed(&self, opening: &Opening) -> SignOpen {
        SignOpen {
            header: self.people.coordinator.sign(&opening.header),
            intent: self.people.requester.sign(&opening.intent),
            grant: self.people.grant_authority.sign(&opening.grant),
            approvals: List::empty(),
        }
    }

    /// What a proof of life signs.
    #[must_use]
    pub fn challenge(&self, header: &SessionHeader) -> Item {
        let version = self.certified.share_version();
        let plan = self.certified.plan_digest();
        Item::proof_of_life(plan, version, &header.members, &header.nonce).unwrap()
    }
}

/// The rules of the samples' policy.
#[must_use]
pub fn rules() -> Rules {
    let sats = |number| Sats::new(number).unwrap();
    let script = ScriptPubKey::taproot(&DESTINATION);
    List::new(vec![
        Rule::Network(NetworkRule {
            network: Network::Regtest,
        }),
        Rule::Destination(DestinationRule {
            allow: List::new(vec![Blob::new(script.as_bytes().to_vec()).unwrap()]).unwrap(),
        }),
        Rule::Outflow(OutflowRule {
            per_transaction: sats(80_000),
            per_output: sats(70_000),
        }),
        Rule::Fee(FeeRule {
            absolute: sats(10_000),
            per_kvb: sats(20_000),
        }),
        Rule::Sighash(SighashRule { allow_all: false }),
    ])
    .unwrap()
}

/// An output.
#[must_use]
pub fn output(sats: u64, script: ScriptPubKey) -> TxOut {
    TxOut {
        value: Sats::new(sats).unwrap(),
        script,
    }
}

fn plan(people: &People, authorities: AuthoritiesDigest) -> Plan {
    let roster = (1..)
        .zip(&people.members)
        .map(|(number, person)| RosterEntry {
            name: person.name.parse().unwrap(),
            identifier: member(number),
            identity: person.key(),
            tls_name: id("participant", person.name),
        });
    Plan {
        ceremony_id: CeremonyId::from_bytes([0xce; 16]),
        ceremony: Ceremony::Dkg(DkgTerms {
            first_epoch: FIRST_EPOCH,
        }),
        network: Network::Regtest,
        purpose: Text::new("samples").unwrap(),
        threshold: Threshold::new(2, 3).unwrap(),
        roster: List::new(roster.collect()).unwrap(),
        authorities,
        rules: Policy::rules_digest(&rules()).unwrap(),
        expires: NOW.plus(3_600_000),
    }
}

fn ceremony_header(
    people: &People,
    plan: &Approved<Plan>,
    flow: Flow,
    members: &[u16],
    nonce: u8,
) -> SessionHeader {
    let digest = PlanDigest::from_bytes(plan.digest());
    SessionHeader {
        flow,
        subject: Subject::Ceremony(CeremonySubject {
            plan: digest,
            ceremony_id: plan.ceremony_id,
            rules: plan.rules,
        }),
        key_id: plan.key_id(digest),
        share_version: plan.share_version(),
        epoch: FIRST_EPOCH,
        coordinator: people.coordinator_id(),
        nonce: Nonce::from_bytes([nonce; 32]),
        members: List::new(members.iter().map(|number| member(*number)).collect()).unwrap(),
    }
}

fn certificates(
    people: &People,
    plan: &Approved<Plan>,
    dealing: &Dealing,
    public: &firn_protocol::threshold::PublicShares,
) -> Vec<Envelope<Certificate>> {
    let plan_digest = PlanDigest::from_bytes(plan.digest());
    let attempt = dealing.header.session_id();
    let manifests: Vec<_> = (1..)
        .zip(dealing.manifests())
        .map(|(number, manifest): (u16, _)| {
            let key = people.member(member(number)).key();
            let manifest: Verified<_> = manifest.verify(&key).unwrap();
            MessageDigest::from_bytes(manifest.digest())
        })
        .collect();
    let transcript =
        transcript_digest(plan_digest, attempt, &dealing.round1_digests(), &manifests).unwrap();
    [1, 2, 3]
        .map(member)
        .map(|own: Identifier| {
            people.member(own).sign(&Certificate {
                member: own,
                plan: plan_digest,
                attempt,
                transcript,
                group_key: *public.group_key(),
                verifying_shares: List::new(public.verifying_shares().unwrap()).unwrap(),
                share_version: plan.share_version(),
                sealing: Sealing::KeyFile,
                software: Text::new("firn 0.1.0").unwrap(),
                build: BuildDigest::from_bytes([0xb1; 32]),
            })
        })
        .to_vec()
}

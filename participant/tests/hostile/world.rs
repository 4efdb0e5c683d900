//! The world: three members with a key that they made, and the words of everybody outside of them.

use firn_ledger::rules::SessionStage;
use firn_participant::session::GrantTime;
use firn_protocol::{
    bitcoin::{
        Child, ChildRange, ExtendedKey, Network, OutPoint, OwnScripts, Sats, ScriptPubKey,
        SighashType, TxIn, TxOut, Txid,
        psbt::{NewInput, NewOutput, build_v2},
    },
    codec::{Blob, List, Text},
    documents::{
        Activation, Authorities, Ceremony, Content, DestinationRule, DkgTerms, FeeRule, Grant,
        Intent, NetworkRule, OutflowRule, Plan, Policy, RosterEntry, Rule, Rules, SighashRule,
    },
    envelope::{Document, Endorsed, digest_of},
    ids::{
        AuthoritiesDigest, CeremonyId, Epoch, Flow, KeyId, Nonce, PlanDigest, PolicyDigest,
        PolicyVersion, RequestId, RevocationVersion, SessionId, ShareVersion, Threshold,
        UnixMillis,
    },
    messages::{CertificateSet, KeyDocuments, SignOpen},
    reject::Reject,
    session::{RequestSubject, SessionHeader, Subject},
    sharing::{ActiveSharing, CertifiedSharing, verify_plan},
    signable::Signable,
};

use super::{
    dealing,
    member::{Member, Opening, Session},
    people::{CARRIER, DESK, GRANTS, MEMBERS, POLICIES, authorities, endorse, number},
};

pub const NOW: UnixMillis = UnixMillis::new(1_800_000_000_000);
pub const SKEW_MS: u64 = 2_000;
pub const STEP_MS: u64 = 10_000;
pub const MAX_GRANT_LIFE_MS: u64 = 3_600_000;
pub const FIRST_EPOCH: Epoch = Epoch::new(5);
pub const PAYEE: [u8; 32] = [0x11; 32];

/// What everybody knows.
pub struct Domain {
    pub authorities: Authorities,
    pub authorities_digest: AuthoritiesDigest,
    pub plan: Endorsed,
    pub now: UnixMillis,
}

pub struct World {
    pub domain: Domain,
    pub members: [Member; 3],
    pub sharing: Option<ActiveSharing>,
}

/// A request, before anybody signs its parts.
#[derive(Clone)]
pub struct Draft {
    pub intent: Intent,
    pub grant: Grant,
    pub header: SessionHeader,
}

impl Domain {
    pub fn new() -> Self {
        let authorities = authorities();
        let payload = authorities.to_payload().unwrap();
        let digest = AuthoritiesDigest::from_bytes(digest_of::<Authorities>(&payload));
        Self {
            plan: endorse(&plan(digest)),
            authorities,
            authorities_digest: digest,
            now: NOW,
        }
    }

    /// How members judge a grant's time.
    pub fn time(&self) -> GrantTime {
        GrantTime {
            now: self.now,
            skew_ms: SKEW_MS,
            max_life_ms: MAX_GRANT_LIFE_MS,
        }
    }

    pub fn plan_digest(&self) -> PlanDigest {
        PlanDigest::from_bytes(self.plan.read::<Plan>().unwrap().1)
    }

    pub fn key_id(&self) -> KeyId {
        KeyId::from_bytes(*self.plan_digest().as_bytes())
    }

    pub fn certified(&self, set: &CertificateSet) -> Result<CertifiedSharing, Reject> {
        let plan = verify_plan(
            self.plan.clone(),
            &self.authorities,
            self.authorities_digest,
        )?;
        CertifiedSharing::verify(plan, &set.certificates)
    }

    /// What the operators deliver for these certificates.
    pub fn documents(&self, set: &CertificateSet) -> KeyDocuments {
        let certified = self.certified(set).unwrap();
        let policy = POLICIES.sign(&Policy {
            key_id: certified.key_id(),
            version: PolicyVersion::new(1),
            rules: policy_rules(),
        });
        let verified = policy.clone().verify(&POLICIES.key()).unwrap();
        KeyDocuments {
            plan: self.plan.clone(),
            certificates: set.certificates.clone(),
            policy,
            activation: endorse(&Activation {
                key_id: certified.key_id(),
                share_version: certified.share_version(),
                certificates: certified.set_digest(),
                policy: PolicyDigest::from_bytes(verified.digest()),
                policy_version: verified.version,
                authorities: self.authorities_digest,
                first_epoch: FIRST_EPOCH,
                freeze_receipts: List::empty(),
            }),
        }
    }
}

impl World {
    /// Members without a key.
    pub fn without_key() -> Self {
        Self {
            domain: Domain::new(),
            members: [1, 2, 3].map(Member::new),
            sharing: None,
        }
    }

    /// Members with a key in use.
    pub fn new() -> Self {
        let mut world = Self::without_key();
        let set = dealing::make_key(&mut world, 0xd0);
        let documents = world.domain.documents(&set);
        for member in &mut world.members {
            member.activate(&world.domain, &documents).unwrap();
        }
        let (authorities, digest) = (&world.domain.authorities, world.domain.authorities_digest);
        world.sharing = Some(ActiveSharing::verify(&documents, authorities, digest).unwrap());
        world
    }

    fn sharing(&self) -> &ActiveSharing {
        self.sharing.as_ref().unwrap()
    }

    /// A payment of this many satoshi to the payee, from two inputs of 50,000, with a fee of 1,000.
    pub fn payment(&self, sats: u64) -> (Vec<NewInput>, Vec<NewOutput>) {
        let key = ExtendedKey::of_group(self.sharing().certified().public().group_key()).unwrap();
        let own = OwnScripts::new(key, ChildRange::new(1, 9).unwrap()).unwrap();
        let paid = |value, script| TxOut {
            value: Sats::new(value).unwrap(),
            script,
        };
        let inputs = (0..2_u32).map(|vout| {
            let child = Child::new(0, vout).unwrap();
            let outpoint = OutPoint {
                txid: Txid::new([0x0e; 32]),
                vout,
            };
            NewInput {
                txin: TxIn {
                    outpoint,
                    sequence: 0xffff_fffd,
                },
                spent: paid(50_000, own.derive(child).unwrap().script()),
                origin: Some(own.origin(child).unwrap()),
                sighash_type: None,
            }
        });
        let change = Child::new(1, 0).unwrap();
        let outputs = vec![
            NewOutput {
                output: paid(sats, ScriptPubKey::taproot(&PAYEE)),
                origin: None,
            },
            NewOutput {
                output: paid(99_000 - sats, own.derive(change).unwrap().script()),
                origin: Some(own.origin(change).unwrap()),
            },
        ];
        (inputs.collect(), outputs)
    }

    pub fn intent(&self, (inputs, outputs): (Vec<NewInput>, Vec<NewOutput>)) -> Intent {
        let psbt = build_v2(2, 0, &inputs, &outputs).unwrap();
        Intent {
            network: Network::Regtest,
            key_id: self.domain.key_id(),
            content: Content::Psbt(Blob::new(psbt).unwrap()),
        }
    }

    /// A request by its number, for what it pays, good in every respect; members 1 and 2 sign.
    pub fn draft(&self, request: u8, sats: u64) -> Draft {
        self.draft_of(request, self.intent(self.payment(sats)))
    }

    pub fn draft_of(&self, request: u8, intent: Intent) -> Draft {
        let sharing = self.sharing();
        let (key_id, activation) = (self.domain.key_id(), sharing.activation_digest());
        let (policy, request_id) = (
            sharing.policy_digest(),
            RequestId::from_bytes([request; 32]),
        );
        let group_key = sharing.certified().public().group_key();
        let signable = Signable::of_intent(&intent, key_id, Network::Regtest, group_key).unwrap();
        let digest = signable.intent_digest();
        let grant = Grant {
            key_id,
            activation,
            owner: DESK.id("requester"),
            epoch: FIRST_EPOCH,
            least_policy_version: PolicyVersion::new(1),
            least_revocation_version: RevocationVersion::new(0),
            policy,
            intent: digest,
            request_id,
            not_before: NOW,
            expires: NOW.plus(60_000),
        };
        let header = SessionHeader {
            flow: Flow::Sign,
            subject: Subject::Request(RequestSubject {
                activation,
                request_id,
                intent: digest,
                policy,
            }),
            key_id,
            share_version: ShareVersion::new(1),
            epoch: FIRST_EPOCH,
            coordinator: CARRIER.id("coordinator"),
            nonce: Nonce::from_bytes([request; 32]),
            members: List::new(vec![number(1), number(2)]).unwrap(),
        };
        Draft {
            intent,
            grant,
            header,
        }
    }

    /// Opens a session at the members that it names.
    pub fn open(&mut self, open: &SignOpen) -> Vec<Session> {
        let header = open
            .header
            .clone()
            .verify(&open.header.claimed_signer().unwrap())
            .unwrap();
        let mut sessions = Vec::new();
        for member in &header.members {
            let member = &mut self.members[usize::from(member.value()) - 1];
            match member.open(&self.domain, open).unwrap() {
                Opening::Session(session) => sessions.push(*session),
                Opening::Stored(_) => panic!("answered from the ledger"),
            }
        }
        sessions
    }

    /// No share of this member is on record.
    pub fn assert_nothing_left(&self, member: usize) {
        assert_eq!(self.members[member - 1].count("Released"), 0);
    }

    pub fn stage(&self, member: usize, session: SessionId) -> SessionStage {
        self.members[member - 1]
            .state()
            .session(session)
            .unwrap()
            .unwrap()
            .stage
    }
}

impl Draft {
    /// The same request in another session.
    pub fn again(&self, nonce: u8) -> Self {
        let mut again = self.clone();
        again.header.nonce = Nonce::from_bytes([nonce; 32]);
        again
    }

    pub fn subject(&mut self) -> &mut RequestSubject {
        match &mut self.header.subject {
            Subject::Request(subject) => subject,
            Subject::Ceremony(_) => panic!("a request"),
        }
    }

    pub fn among(mut self, members: &[u16]) -> Self {
        self.header.members = List::new(members.iter().copied().map(number).collect()).unwrap();
        self
    }

    /// Signed by those who should.
    pub fn signed(&self) -> SignOpen {
        SignOpen {
            header: CARRIER.sign(&self.header),
            intent: DESK.sign(&self.intent),
            grant: GRANTS.sign(&self.grant),
            approvals: List::empty(),
        }
    }

    pub fn session(&self) -> SessionId {
        SessionId::from_bytes(digest_of::<SessionHeader>(
            &self.header.to_payload().unwrap(),
        ))
    }
}

fn policy_rules() -> Rules {
    let sats = |number| Sats::new(number).unwrap();
    let script = Blob::new(ScriptPubKey::taproot(&PAYEE).as_bytes().to_vec()).unwrap();
    List::new(vec![
        Rule::Network(NetworkRule {
            network: Network::Regtest,
        }),
        Rule::Destination(DestinationRule {
            allow: List::new(vec![script]).unwrap(),
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

pub fn plan(authorities: AuthoritiesDigest) -> Plan {
    let roster = (1..).zip(&MEMBERS).map(|(place, person)| RosterEntry {
        name: person.name().parse().unwrap(),
        identifier: number(place),
        identity: person.key(),
        tls_name: person.id("participant"),
    });
    Plan {
        ceremony_id: CeremonyId::from_bytes([0xce; 16]),
        ceremony: Ceremony::Dkg(DkgTerms {
            first_epoch: FIRST_EPOCH,
        }),
        network: Network::Regtest,
        purpose: Text::new("hostile").unwrap(),
        threshold: Threshold::new(2, 3).unwrap(),
        roster: List::new(roster.collect()).unwrap(),
        authorities,
        rules: Policy::rules_digest(&policy_rules()).unwrap(),
        expires: NOW.plus(3_600_000),
    }
}

/// The same inputs, asked to be signed with SIGHASH_ALL.
pub fn with_sighash_all(
    (mut inputs, outputs): (Vec<NewInput>, Vec<NewOutput>),
) -> (Vec<NewInput>, Vec<NewOutput>) {
    inputs[0].sighash_type = Some(SighashType::All);
    (inputs, outputs)
}

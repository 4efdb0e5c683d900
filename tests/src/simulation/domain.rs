//! What is the same in every run: Authorities, plan, policy, and the documents of the key once one is
//! made; and the requests that a service sends.

use std::sync::Arc;

use firn_coordinator::session::{request::RequestTerms, round::Item};
use firn_protocol::{
    bitcoin::{
        Child, ChildRange, ExtendedKey, Network, OutPoint, OwnScripts, ScriptPubKey, TxIn, Txid,
        psbt::{NewInput, NewOutput, build_v2},
    },
    codec::{Blob, List, Text},
    documents::{
        Activation, Authorities, Ceremony, Content, DkgTerms, Grant, Intent, Plan, Policy,
        RosterEntry,
    },
    envelope::{Approved, Document, Endorsed, digest_of},
    ids::{
        AuthoritiesDigest, CeremonyId, Epoch, Identifier, IntentDigest, PolicyDigest,
        PolicyVersion, RequestId, RevocationVersion, Threshold, UnixMillis,
    },
    messages::{KeyDocuments, SignRequest},
    session::RequestSubject,
    sharing::{ActiveSharing, CertifiedSharing, verify_plan},
    signable::Signable,
};

use super::people::{self, GRANTS, MEMBERS, POLICIES, Person, REQUESTERS, endorse};
use crate::samples::{DESTINATION, output, rules};

/// When every run begins.
pub const START: UnixMillis = UnixMillis::new(1_800_000_000_000);
/// The epoch that the key starts at.
pub const FIRST_EPOCH: Epoch = Epoch::new(5);
/// How long a grant is good for.
const GRANT_LIFE_MS: u64 = 60_000;

/// Authorities and plan.
pub struct Domain {
    /// The keys that count.
    pub authorities: Approved<Authorities>,
    /// Their digest.
    pub authorities_digest: AuthoritiesDigest,
    /// The plan, as endorsed.
    pub plan_endorsed: Endorsed,
    /// The plan.
    pub plan: Approved<Plan>,
}

/// The members of the plan, by place.
#[must_use]
pub(super) fn place(number: usize) -> Identifier {
    Identifier::new(u16::try_from(number + 1).unwrap()).unwrap()
}

/// The place of a member, from 0.
#[must_use]
pub(super) fn place_of(member: Identifier) -> usize {
    usize::from(member.value()) - 1
}

impl Domain {
    /// The one world.
    #[must_use]
    pub fn new() -> Self {
        let authorities = people::authorities();
        let payload = authorities.to_payload().unwrap();
        let authorities_digest = AuthoritiesDigest::from_bytes(digest_of::<Authorities>(&payload));
        let approved = endorse(&authorities)
            .verify::<Authorities>(&authorities.operators.identities(), 2)
            .unwrap();
        let plan_endorsed = endorse(&plan(authorities_digest));
        let plan = verify_plan(plan_endorsed.clone(), &authorities, authorities_digest).unwrap();
        Self {
            authorities: approved,
            authorities_digest,
            plan_endorsed,
            plan,
        }
    }

    /// What the operators deliver for a certified sharing.
    #[must_use]
    pub fn documents(&self, certified: &CertifiedSharing) -> KeyDocuments {
        let policy = POLICIES.sign(&Policy {
            key_id: certified.key_id(),
            version: PolicyVersion::new(1),
            rules: rules(),
        });
        let verified = policy.clone().verify(&POLICIES.key()).unwrap();
        KeyDocuments {
            plan: self.plan_endorsed.clone(),
            certificates: certified.certificate_set().unwrap().certificates,
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

impl Default for Domain {
    fn default() -> Self {
        Self::new()
    }
}

fn plan(authorities: AuthoritiesDigest) -> Plan {
    let roster = MEMBERS
        .iter()
        .enumerate()
        .map(|(number, person)| RosterEntry {
            name: person.name().parse().unwrap(),
            identifier: place(number),
            identity: person.key(),
            tls_name: person.id("participant"),
        });
    Plan {
        ceremony_id: CeremonyId::from_bytes([0xce; 16]),
        ceremony: Ceremony::Dkg(DkgTerms {
            first_epoch: FIRST_EPOCH,
        }),
        network: Network::Regtest,
        purpose: Text::new("simulation").unwrap(),
        threshold: Threshold::new(2, 3).unwrap(),
        roster: List::new(roster.collect()).unwrap(),
        authorities,
        rules: Policy::rules_digest(&rules()).unwrap(),
        expires: START.plus(86_400_000),
    }
}

/// What a service wants signed: the same content for as long as it asks, under fresh grants.
#[derive(Clone)]
pub struct Wanted {
    /// Under which id.
    pub request_id: RequestId,
    /// Who asks.
    pub owner: Person,
    /// At which epoch.
    pub epoch: Epoch,
    intent: Intent,
    signable: Arc<Signable>,
    items: Vec<Item>,
    sharing: Arc<ActiveSharing>,
}

impl Wanted {
    /// A payment of this many satoshi from two own inputs, by the key's first owner.
    #[must_use]
    pub fn payment(sharing: &Arc<ActiveSharing>, request: u8, sats: u64) -> Self {
        let certified = sharing.certified();
        let key = ExtendedKey::of_group(certified.public().group_key()).unwrap();
        let own = OwnScripts::new(key, ChildRange::new(1, 1_000).unwrap()).unwrap();
        let inputs: Vec<_> = (0..2_u32)
            .map(|vout| {
                let child = Child::new(0, vout).unwrap();
                let txid = Txid::new([0x0e; 32]);
                NewInput {
                    txin: TxIn {
                        outpoint: OutPoint { txid, vout },
                        sequence: 0xffff_fffd,
                    },
                    spent: output(50_000, own.derive(child).unwrap().script()),
                    origin: Some(own.origin(child).unwrap()),
                    sighash_type: None,
                }
            })
            .collect();
        let change = Child::new(1, 0).unwrap();
        let outputs = [
            NewOutput {
                output: output(sats, ScriptPubKey::taproot(&DESTINATION)),
                origin: None,
            },
            NewOutput {
                output: output(99_000 - sats, own.derive(change).unwrap().script()),
                origin: Some(own.origin(change).unwrap()),
            },
        ];
        let psbt = build_v2(2, 0, &inputs, &outputs).unwrap();
        let intent = Intent {
            network: Network::Regtest,
            key_id: certified.key_id(),
            content: Content::Psbt(Blob::new(psbt).unwrap()),
        };
        let group_key = certified.public().group_key();
        let signable =
            Signable::of_intent(&intent, certified.key_id(), Network::Regtest, group_key).unwrap();
        let items = signable.items().iter();
        let items = items.map(|item| Item::of(item, certified.public()).unwrap());
        Self {
            items: items.collect(),
            signable: Arc::new(signable),
            request_id: RequestId::from_bytes([request; 32]),
            owner: REQUESTERS[0],
            epoch: FIRST_EPOCH,
            intent,
            sharing: Arc::clone(sharing),
        }
    }

    /// The same at another epoch, by another owner.
    #[must_use]
    pub fn by(mut self, owner: Person, epoch: Epoch) -> Self {
        (self.owner, self.epoch) = (owner, epoch);
        self
    }

    /// The key's sharing.
    #[must_use]
    pub const fn sharing(&self) -> &Arc<ActiveSharing> {
        &self.sharing
    }

    /// What the intent means.
    #[must_use]
    pub fn signable(&self) -> &Signable {
        &self.signable
    }

    /// The digest that everybody means by the intent.
    #[must_use]
    pub fn intent_digest(&self) -> IntentDigest {
        self.signable.intent_digest()
    }

    /// What is sent to a coordinator now, with a fresh grant.
    #[must_use]
    pub fn request(&self, now: UnixMillis) -> SignRequest {
        let sharing = &self.sharing;
        let grant = Grant {
            key_id: sharing.certified().key_id(),
            activation: sharing.activation_digest(),
            owner: self.owner.id("requester"),
            epoch: self.epoch,
            least_policy_version: PolicyVersion::new(1),
            least_revocation_version: RevocationVersion::new(0),
            policy: sharing.policy_digest(),
            intent: self.intent_digest(),
            request_id: self.request_id,
            not_before: now,
            expires: now.plus(GRANT_LIFE_MS),
        };
        SignRequest {
            intent: self.owner.sign(&self.intent),
            grant: GRANTS.sign(&grant),
            approvals: List::empty(),
        }
    }

    /// What a coordinator makes of a request.
    #[must_use]
    pub fn terms(&self, request: SignRequest) -> RequestTerms {
        let (sharing, certified) = (&self.sharing, self.sharing.certified());
        let plan = certified.plan();
        RequestTerms {
            request,
            subject: RequestSubject {
                activation: sharing.activation_digest(),
                request_id: self.request_id,
                intent: self.intent_digest(),
                policy: sharing.policy_digest(),
            },
            key_id: certified.key_id(),
            share_version: certified.share_version(),
            epoch: self.epoch,
            threshold: plan.threshold,
            roster: plan.roster.to_vec(),
            items: self.items.clone(),
        }
    }
}

//! t of n members with everything that a request needs, made without any process.

use std::{collections::BTreeMap, sync::Mutex, time::Duration};

use firn_protocol::{
    bitcoin::{
        Child, Network, Sats,
        psbt::{NewInput, NewOutput, build_v2},
        transaction::{OutPoint, ScriptPubKey, TxIn, TxOut, Txid},
    },
    codec::{List, Maybe, Text},
    documents::{
        Activation, Authorities, Ceremony, Certificate, Checkpoint, Completed, DkgTerms, Grant,
        InputSignature, KeyHolder, NamedKey, NetworkRule, Outcome, Plan, Policy, Quorum, Receipt,
        RosterEntry, Rule, Sealing, SignedCheckpoint,
    },
    envelope::{Document, Endorsed, Envelope},
    ids::{
        AuthoritiesVersion, BuildDigest, CeremonyId, Epoch, Identifier, IntentDigest,
        MessageDigest, Nonce, PlanDigest, PolicyDigest, PolicyVersion, RequestId,
        RevocationVersion, SessionId, ShareVersion, Threshold, TranscriptDigest, UnixMillis,
    },
    keys::IdentitySecret,
    merkle::{MerkleRoot, TreeSize},
    messages::{
        FromRequests, KeyDocuments, KnownRequest, OutcomeQuery, OutcomeReport, OutcomeStatement,
        Refusal, RequestFailed, RequestProgress, RequestSigned,
    },
    names::SpiffeId,
    reject::Reject,
    sharing::{CertifiedSharing, verify_plan},
    signable::Signable,
    threshold::{
        FrostRng, NoncePair, PublicShares, SigningList, SigningShare, aggregate, frost_identifier,
    },
};
use frost_secp256k1_tr::keys::{IdentifierList, KeyPackage, generate_with_dealer};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use zeroize::Zeroizing;

use super::{Ca, Relay};
use crate::{Address, Caller, Client, Coordinator, Key, PinnedAuthorities, Proposal, Settings};

pub(crate) const NETWORK: Network = Network::Regtest;
const OPERATOR: u8 = 1;
const GRANTS: u8 = 2;
const POLICIES: u8 = 3;
const REQUESTER: u8 = 4;
const RELAYS: [u8; 2] = [5, 6];
const MEMBERS: u8 = 100;

/// The same key for the same number.
pub(crate) fn secret(seed: u8) -> IdentitySecret {
    IdentitySecret::from_seed(&Zeroizing::new([seed; 32]))
}

pub(crate) struct World {
    pub(crate) ca: Ca,
    pub(crate) authorities: PinnedAuthorities,
    pub(crate) documents: KeyDocuments,
    pub(crate) key: Key,
    shares: Vec<SigningShare>,
    rng: Mutex<ChaCha20Rng>,
}

/// What a member knows of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Knows {
    Nothing,
    Open(u32),
    Released,
    Completed,
}

impl World {
    pub(crate) fn new(n: u16, t: u16) -> Self {
        let mut rng = ChaCha20Rng::from_seed([7; 32]);
        let authorities = authorities();
        let digest = authorities.digest();
        let roster = (1..=n).map(|number| RosterEntry {
            name: format!("member-{number}").parse().unwrap(),
            identifier: Identifier::new(number).unwrap(),
            identity: member_secret(number).identity(),
            tls_name: id(&format!("participant/member-{number}")),
        });
        let rules = List::new(vec![Rule::Network(NetworkRule { network: NETWORK })]).unwrap();
        let threshold = Threshold::new(t, n.into()).unwrap();
        let plan = Plan {
            ceremony_id: CeremonyId::from_bytes([9; 16]),
            ceremony: Ceremony::Dkg(DkgTerms {
                first_epoch: Epoch::new(1),
            }),
            network: NETWORK,
            purpose: Text::new("a test").unwrap(),
            threshold,
            roster: List::new(roster.collect()).unwrap(),
            authorities: digest,
            rules: Policy::rules_digest(&rules).unwrap(),
            expires: UnixMillis::new(u64::MAX),
        };
        let plan = verify_plan(endorse(&plan), &authorities, digest).unwrap();
        let (dealt, package) =
            generate_with_dealer(n, t, IdentifierList::Default, FrostRng::new(&mut rng)).unwrap();
        let identifiers: Vec<_> = plan.roster.iter().map(|entry| entry.identifier).collect();
        let public = PublicShares::from_frost(threshold, &identifiers, &package).unwrap();
        let keys: BTreeMap<_, _> = dealt
            .into_iter()
            .map(|(id, share)| (id, KeyPackage::try_from(share).unwrap()))
            .collect();
        let shares = identifiers.iter().map(|member| {
            let id = frost_identifier(*member).unwrap();
            SigningShare::new(*member, *keys[&id].signing_share(), &public).unwrap()
        });
        let shares = shares.collect();
        let certificates: Vec<_> = identifiers
            .iter()
            .map(|member| {
                let certificate = Certificate {
                    member: *member,
                    plan: PlanDigest::from_bytes(plan.digest()),
                    attempt: SessionId::from_bytes([1; 32]),
                    transcript: TranscriptDigest::from_bytes([2; 32]),
                    group_key: *public.group_key(),
                    verifying_shares: List::new(public.verifying_shares().unwrap()).unwrap(),
                    share_version: ShareVersion::new(1),
                    sealing: Sealing::KeyFile,
                    software: Text::new("test").unwrap(),
                    build: BuildDigest::from_bytes([3; 32]),
                };
                Envelope::sign(&certificate, &member_secret(member.value())).unwrap()
            })
            .collect();
        let sharing = CertifiedSharing::verify(plan, &certificates).unwrap();
        let policy = Policy {
            key_id: sharing.key_id(),
            version: PolicyVersion::new(1),
            rules,
        };
        let policy = Envelope::sign(&policy, &secret(POLICIES)).unwrap();
        let signed = policy.clone().verify(&secret(POLICIES).identity()).unwrap();
        let activation = Activation {
            key_id: sharing.key_id(),
            share_version: sharing.share_version(),
            certificates: sharing.set_digest(),
            policy: PolicyDigest::from_bytes(signed.digest()),
            policy_version: signed.version,
            authorities: digest,
            first_epoch: Epoch::new(1),
            freeze_receipts: List::empty(),
        };
        let documents = KeyDocuments {
            plan: sharing.plan().endorsed().clone(),
            certificates: sharing.certificate_set().unwrap().certificates,
            policy,
            activation: endorse(&activation),
        };
        Self {
            ca: Ca::new(),
            key: Key::verify(&documents, &authorities).unwrap(),
            authorities,
            documents,
            shares,
            rng: Mutex::new(rng),
        }
    }

    pub(crate) fn caller(&self) -> Caller {
        let identity = self.ca.identity(&requester());
        Caller::new(secret(REQUESTER), identity, self.ca.trust()).unwrap()
    }

    /// A client of these coordinators, which does not wait long.
    pub(crate) fn client(&self, relays: &[&Relay]) -> Client {
        let coordinators: Vec<_> = relays
            .iter()
            .map(|relay| Coordinator {
                name: relay.id.clone(),
                address: Address::from(relay.address),
            })
            .collect();
        let settings = Settings {
            patience: Duration::from_secs(10),
            answer: Duration::from_secs(5),
            question: Duration::from_secs(5),
            first_pause: Duration::from_millis(1),
            longest_pause: Duration::from_millis(4),
        };
        self.client_with(&coordinators, settings)
    }

    pub(crate) fn client_with(&self, coordinators: &[Coordinator], settings: Settings) -> Client {
        Client::new(
            self.caller(),
            self.authorities.clone(),
            coordinators,
            settings,
        )
        .unwrap()
    }

    /// A coordinator of the Authorities, from 1 on.
    pub(crate) fn relay(
        &self,
        number: usize,
        react: impl Fn(usize, &firn_protocol::messages::ToRequests) -> super::Reaction
        + Send
        + Sync
        + 'static,
    ) -> Relay {
        Relay::start(&self.ca, &relay_id(number), RELAYS[number - 1], react)
    }

    /// A payment with two own inputs and change.
    pub(crate) fn proposal(&self) -> Proposal {
        Proposal::payment(&self.caller(), &self.key, &self.psbt(70_000)).unwrap()
    }

    pub(crate) fn psbt(&self, amount: u64) -> Vec<u8> {
        let own = self.key.own_scripts();
        let sats = |value| Sats::new(value).unwrap();
        let child = |branch, index| Child::new(branch, index).unwrap();
        let inputs = [0_u8, 1].map(|index| NewInput {
            txin: TxIn {
                outpoint: OutPoint {
                    txid: Txid::new([index; 32]),
                    vout: 0,
                },
                sequence: 0xffff_fffd,
            },
            spent: TxOut {
                value: sats(60_000),
                script: own.derive(child(0, index.into())).unwrap().script(),
            },
            origin: Some(own.origin(child(0, index.into())).unwrap()),
            sighash_type: None,
        });
        let outputs = [
            NewOutput {
                output: TxOut {
                    value: sats(amount),
                    script: ScriptPubKey::new([&[0x00, 0x14][..], &[7; 20]].concat()),
                },
                origin: None,
            },
            NewOutput {
                output: TxOut {
                    value: sats(120_000 - amount - 500),
                    script: own.derive(child(1, 0)).unwrap().script(),
                },
                origin: Some(own.origin(child(1, 0)).unwrap()),
            },
        ];
        build_v2(2, 0, &inputs, &outputs).unwrap()
    }

    pub(crate) fn grant(
        &self,
        intent: IntentDigest,
        change: impl FnOnce(&mut Grant),
    ) -> Envelope<Grant> {
        let sharing = self.key.sharing();
        let mut grant = Grant {
            key_id: self.key.key_id(),
            activation: sharing.activation_digest(),
            owner: requester(),
            epoch: Epoch::new(1),
            least_policy_version: PolicyVersion::new(1),
            least_revocation_version: RevocationVersion::new(0),
            policy: sharing.policy_digest(),
            intent,
            request_id: request_id(),
            not_before: UnixMillis::new(0),
            expires: UnixMillis::new(u64::MAX),
        };
        change(&mut grant);
        Envelope::sign(&grant, &secret(GRANTS)).unwrap()
    }

    /// Signatures of the first t members.
    pub(crate) fn signatures(&self, signable: &Signable) -> Vec<InputSignature> {
        let t = self.key.threshold();
        let public = self.key.sharing().certified().public();
        let chosen: Vec<_> = public.members()[..t].to_vec();
        let mut made = Vec::new();
        for item in signable.items() {
            let (pairs, commitments): (Vec<_>, Vec<_>) = self.shares[..t]
                .iter()
                .map(|share| NoncePair::commit(share, &mut *self.rng.lock().unwrap()).unwrap())
                .unzip();
            let list: Vec<_> = chosen.iter().copied().zip(commitments).collect();
            let list = SigningList::new(&chosen, &list, &item.message).unwrap();
            let shares: Vec<_> = pairs
                .into_iter()
                .zip(&self.shares[..t])
                .zip(&chosen)
                .map(|((pair, share), member)| {
                    (
                        *member,
                        pair.sign(&list, share, item.address.as_ref()).unwrap(),
                    )
                })
                .collect();
            made.push(InputSignature {
                input: item.input,
                signature: aggregate(&list, &shares, &item.key(public).unwrap()).unwrap(),
            });
        }
        made
    }

    pub(crate) fn receipt(
        &self,
        member: u16,
        intent: IntentDigest,
        signatures: &[InputSignature],
        change: impl FnOnce(&mut Receipt),
    ) -> Envelope<Receipt> {
        let mut receipt = Receipt {
            key_id: self.key.key_id(),
            request_id: request_id(),
            intent,
            policy: self.key.sharing().policy_digest(),
            epoch: Epoch::new(1),
            session: SessionId::from_bytes([8; 32]),
            outcome: Outcome::Completed(Completed {
                signatures: List::new(signatures.to_vec()).unwrap(),
            }),
            position: 1,
            checkpoint: checkpoint(member),
            time: UnixMillis::new(1),
        };
        change(&mut receipt);
        Envelope::sign(&receipt, &member_secret(member)).unwrap()
    }

    /// A stored answer with the receipts of the first t members.
    pub(crate) fn answer(&self, proposal: &Proposal) -> RequestSigned {
        let signatures = self.signatures(proposal.signable());
        let t = u16::try_from(self.key.threshold()).unwrap();
        let receipts = (1..=t).map(|member| {
            let receipt = self.receipt(member, proposal.digest(), &signatures, |_| {});
            (Identifier::new(member).unwrap(), receipt)
        });
        let receipts = List::new(receipts.collect()).unwrap();
        RequestSigned {
            session: SessionId::from_bytes([8; 32]),
            signatures: List::new(signatures).unwrap(),
            receipts,
            evidence: Maybe(None),
        }
    }

    /// A member's word on the request, as `change` leaves it.
    pub(crate) fn statement(
        &self,
        member: u16,
        nonce: Nonce,
        knows: Knows,
        intent: IntentDigest,
        signatures: &[InputSignature],
        change: impl FnOnce(&mut OutcomeStatement),
    ) -> Envelope<OutcomeStatement> {
        let (progress, open_attempts) = match knows {
            Knows::Nothing => (None, 0),
            Knows::Open(attempts) => (Some(RequestProgress::Open), attempts),
            Knows::Released => (Some(RequestProgress::Released), 0),
            Knows::Completed => (Some(RequestProgress::Completed), 0),
        };
        let known = progress.map(|progress| KnownRequest {
            intent,
            policy: self.key.sharing().policy_digest(),
            epoch: Epoch::new(1),
            progress,
            open_attempts,
            receipt: Maybe(
                (knows == Knows::Completed)
                    .then(|| self.receipt(member, intent, signatures, |_| {})),
            ),
        });
        let mut statement = OutcomeStatement {
            key_id: self.key.key_id(),
            request_id: request_id(),
            nonce,
            member: Identifier::new(member).unwrap(),
            known: Maybe(known),
            checkpoint: checkpoint(member),
            time: UnixMillis::new(1_000_000),
        };
        change(&mut statement);
        Envelope::sign(&statement, &member_secret(member)).unwrap()
    }
}

pub(crate) fn report(statements: Vec<Envelope<OutcomeStatement>>) -> OutcomeReport {
    OutcomeReport {
        statements: List::new(statements).unwrap(),
        refusals: List::empty(),
        missing: List::empty(),
    }
}

/// The nonce of an outcome query, verified as a coordinator would.
pub(crate) fn nonce_of(query: &Envelope<OutcomeQuery>) -> Nonce {
    let query = query.clone().verify(&secret(REQUESTER).identity()).unwrap();
    query.nonce
}

pub(crate) fn refusal(
    member: u16,
    code: Reject,
    retry_after_ms: Option<u32>,
) -> (Identifier, Envelope<Refusal>) {
    let refusal = Refusal {
        about: MessageDigest::from_bytes([0; 32]),
        session: Maybe(None),
        request_id: Maybe(Some(request_id())),
        code,
        culprit: Maybe(None),
        retry_after_ms: Maybe(retry_after_ms),
        time: UnixMillis::new(1),
    };
    let word = Envelope::sign(&refusal, &member_secret(member)).unwrap();
    (Identifier::new(member).unwrap(), word)
}

/// A coordinator's no, with the words of these members.
pub(crate) fn failed(code: Reject, members: &[u16]) -> FromRequests {
    let refusals = members.iter().map(|member| refusal(*member, code, None));
    FromRequests::Failed(RequestFailed {
        code,
        refusals: List::new(refusals.collect()).unwrap(),
        missing: List::empty(),
        detail: Text::new("").unwrap(),
    })
}

pub(crate) fn request_id() -> RequestId {
    RequestId::from_bytes([5; 32])
}

pub(crate) fn requester() -> SpiffeId {
    id("requester/treasury")
}

pub(crate) fn relay_id(number: usize) -> SpiffeId {
    id(&format!("coordinator/relay-{number}"))
}

pub(crate) fn member_secret(number: u16) -> IdentitySecret {
    secret(MEMBERS + u8::try_from(number).unwrap())
}

fn id(path: &str) -> SpiffeId {
    format!("spiffe://test.firn/{path}").parse().unwrap()
}

fn checkpoint(member: u16) -> SignedCheckpoint {
    let checkpoint = Checkpoint {
        size: TreeSize::new(1),
        root: MerkleRoot::empty(),
        time: UnixMillis::new(1),
    };
    Envelope::sign(&checkpoint, &member_secret(member)).unwrap()
}

fn endorse<T: Document>(document: &T) -> Endorsed {
    let unsigned = Endorsed::unsigned(document).unwrap();
    unsigned.endorse::<T>(&secret(OPERATOR)).unwrap()
}

fn authorities() -> PinnedAuthorities {
    let coordinators = [1, 2].map(|number| KeyHolder {
        id: relay_id(number),
        key: secret(RELAYS[number - 1]).identity(),
    });
    let authorities = Authorities {
        version: AuthoritiesVersion::new(1),
        previous: Maybe(None),
        trust_domain: "test.firn".parse().unwrap(),
        grant_authority: secret(GRANTS).identity(),
        policy_authority: secret(POLICIES).identity(),
        operators: Quorum {
            needed: 1,
            keys: List::new(vec![NamedKey {
                name: Text::new("ada").unwrap(),
                key: secret(OPERATOR).identity(),
            }])
            .unwrap(),
        },
        approvers: List::empty(),
        requesters: List::new(vec![KeyHolder {
            id: requester(),
            key: secret(REQUESTER).identity(),
        }])
        .unwrap(),
        coordinators: List::new(coordinators.to_vec()).unwrap(),
    };
    let endorsed = endorse(&authorities);
    let (_, digest) = endorsed.read::<Authorities>().unwrap();
    let digest = firn_protocol::ids::AuthoritiesDigest::from_bytes(digest);
    PinnedAuthorities::verify(endorsed, digest).unwrap()
}

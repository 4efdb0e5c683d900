//! Members in memory, as the machines' tests talk with them: they really sign, and can be told to
//! misbehave in one way. They keep no ledger and check nothing.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "only tests use it"
)]

pub(crate) mod dkg;
mod maker;
mod member;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use firn_protocol::{
    bitcoin::Network,
    codec::List,
    documents::{Content, Grant, InputSignature, Intent, ProofOfLife, RosterEntry},
    envelope::Envelope,
    ids::*,
    keys::IdentitySecret,
    messages::*,
    reject::Reject,
    session::RequestSubject,
    threshold::{FrostRng, NoncePair, PublicShares, SigningList, SigningShare, frost_identifier},
};
use frost_secp256k1_tr::keys::{IdentifierList, generate_with_dealer};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

pub(crate) use member::{FakeMember, Habit, standing};

use super::{
    Conversation, Fault, Send, Turn,
    request::{Candidate, RequestTerms},
    round::Item,
};
use crate::voice::Voice;

pub(crate) fn id(number: u16) -> Identifier {
    Identifier::new(number).unwrap()
}

/// A key, its members, and a request for it.
pub(crate) struct World {
    pub(crate) members: BTreeMap<Identifier, FakeMember>,
    pub(crate) terms: Arc<RequestTerms>,
    pub(crate) voice: Arc<Voice>,
    pub(crate) rng: ChaCha20Rng,
    stored: Vec<InputSignature>,
}

fn voice(rng: &mut ChaCha20Rng) -> Arc<Voice> {
    let id = "spiffe://td/coordinator/c-1".parse().unwrap();
    Arc::new(Voice::new(id, IdentitySecret::generate(rng)))
}

impl World {
    pub(crate) fn new(threshold: u16, count: u16, inputs: u32) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        let members: Vec<_> = (1..=count).map(id).collect();
        let frost: Vec<_> = members
            .iter()
            .map(|m| frost_identifier(*m).unwrap())
            .collect();
        let list = IdentifierList::Custom(&frost);
        let (shares, package) =
            generate_with_dealer(count, threshold, list, FrostRng::new(&mut rng)).unwrap();
        let threshold = Threshold::new(threshold, members.len()).unwrap();
        let public = PublicShares::from_frost(threshold, &members, &package).unwrap();
        let members: BTreeMap<_, _> = members
            .into_iter()
            .zip(frost)
            .map(|(member, frost)| {
                let share = *shares[&frost].signing_share();
                let share = SigningShare::new(member, share, &public).unwrap();
                (member, FakeMember::new(member, share, &mut rng))
            })
            .collect();
        let roster = members
            .values()
            .map(|member| member.entry.clone())
            .collect();
        let terms = request_terms(threshold, roster, &public, inputs, &mut rng);
        let mut world = Self {
            members,
            terms,
            voice: voice(&mut rng),
            rng,
            stored: Vec::new(),
        };
        world.stored = world.sign_beforehand();
        world
    }

    /// Signatures of an earlier session.
    fn sign_beforehand(&mut self) -> Vec<InputSignature> {
        let chosen: Vec<_> = self
            .members
            .keys()
            .copied()
            .take(self.terms.threshold.value().into())
            .collect();
        let items = self.terms.items.clone();
        items
            .iter()
            .map(|item| {
                let (mut pairs, mut list) = (Vec::new(), Vec::new());
                for member in &chosen {
                    let share = &self.members[member].share;
                    let (pair, commitment) = NoncePair::commit(share, &mut self.rng).unwrap();
                    pairs.push(pair);
                    list.push((*member, commitment));
                }
                let signing = SigningList::new(&chosen, &list, &item.message).unwrap();
                let shares: Vec<_> = chosen
                    .iter()
                    .zip(pairs)
                    .map(|(member, pair)| {
                        let share = &self.members[member].share;
                        (*member, pair.sign(&signing, share, None).unwrap())
                    })
                    .collect();
                let signature =
                    firn_protocol::threshold::aggregate(&signing, &shares, &item.key).unwrap();
                InputSignature {
                    input: item.input,
                    signature,
                }
            })
            .collect()
    }

    pub(crate) fn with(mut self, member: u16, habit: Habit) -> Self {
        self.members.get_mut(&id(member)).unwrap().habit = habit;
        self
    }

    pub(crate) fn everybody(&self) -> Vec<Candidate> {
        self.members
            .keys()
            .map(|member| Candidate {
                member: *member,
                suspect: false,
            })
            .collect()
    }

    /// Runs a conversation with these members; whoever is silent lets the step expire.
    pub(crate) fn run<C: Conversation>(
        &mut self,
        conversation: C,
        opening: Vec<Send>,
    ) -> C::Outcome {
        let (terms, stored) = (Arc::clone(&self.terms), self.stored.clone());
        let (members, rng) = (&mut self.members, &mut self.rng);
        run(conversation, opening, |send| {
            members
                .get_mut(&send.to)
                .unwrap()
                .answer(send.message, &terms, &stored, rng)
        })
    }
}

/// Passes messages to members and their answers to the machine, in order.
pub(crate) fn run<C: Conversation>(
    conversation: C,
    opening: Vec<Send>,
    mut answer: impl FnMut(Send) -> Option<FromMember>,
) -> C::Outcome {
    let mut queue: VecDeque<_> = opening.into();
    let mut arrivals = VecDeque::new();
    let mut conversation = conversation;
    loop {
        while let Some(send) = queue.pop_front() {
            let from = send.to;
            arrivals.extend(answer(send).map(|message| (from, message)));
        }
        let turn = match arrivals.pop_front() {
            Some((from, message)) => conversation.handle(from, message),
            None => conversation.expire(),
        };
        match turn {
            Turn::Goes(next, send) => {
                conversation = next;
                queue.extend(send);
            }
            Turn::Ended(outcome) => return outcome,
        }
    }
}

fn request_terms(
    threshold: Threshold,
    roster: Vec<RosterEntry>,
    public: &PublicShares,
    inputs: u32,
    rng: &mut ChaCha20Rng,
) -> Arc<RequestTerms> {
    let key_id = KeyId::from_bytes([3; 32]);
    let subject = RequestSubject {
        activation: ActivationDigest::from_bytes([4; 32]),
        request_id: RequestId::from_bytes([5; 32]),
        intent: IntentDigest::from_bytes([6; 32]),
        policy: PolicyDigest::from_bytes([7; 32]),
    };
    let content = Content::ProofOfLife(ProofOfLife {
        nonce: Nonce::from_bytes([8; 32]),
    });
    let intent = Intent {
        network: Network::Regtest,
        key_id,
        content,
    };
    let grant = Grant {
        key_id,
        activation: subject.activation,
        owner: "spiffe://td/requester/r-1".parse().unwrap(),
        epoch: Epoch::new(1),
        least_policy_version: PolicyVersion::new(1),
        least_revocation_version: RevocationVersion::new(0),
        policy: subject.policy,
        intent: subject.intent,
        request_id: subject.request_id,
        not_before: UnixMillis::new(0),
        expires: UnixMillis::new(1_000),
    };
    let secret = IdentitySecret::generate(rng);
    let request = SignRequest {
        intent: Envelope::sign(&intent, &secret).unwrap(),
        grant: Envelope::sign(&grant, &secret).unwrap(),
        approvals: List::empty(),
    };
    let items = (0..inputs)
        .map(|input| Item {
            // Own inputs need not be the first ones.
            input: input * 2 + 1,
            message: [u8::try_from(input).unwrap(); 32],
            key: public.untweaked(),
        })
        .collect();
    Arc::new(RequestTerms {
        request,
        subject,
        key_id,
        share_version: ShareVersion::new(1),
        epoch: Epoch::new(1),
        threshold,
        roster,
        items,
    })
}

/// Members and codes of faults, for comparing.
pub(crate) fn named(faults: &[Fault]) -> Vec<(u16, Reject)> {
    faults
        .iter()
        .map(|fault| (fault.member.value(), fault.failing.code()))
        .collect()
}

//! A DKG of three members, as they would run it, from fixed randomness.

use std::collections::BTreeMap;

use firn_protocol::{
    codec::List,
    documents::{Checkpoint, Plan, SignedCheckpoint},
    envelope::{Approved, Envelope, Verified},
    ids::{Identifier, MessageDigest, PlanDigest, Point, SealingKey, Signature},
    merkle::{MerkleRoot, TreeSize},
    messages::{
        Complaint, Delivery, DkgManifest, DkgRound1, DkgRound1Set, DkgRound2, ProvenPackage,
        SealedPackage, SealingSecret, Standing, package_tree,
    },
    session::SessionHeader,
    threshold::{
        FrostRng, PublicShares, SealingContext, SigningShare, frost_identifier, seal, sealing_pair,
    },
};
use frost_secp256k1_tr::keys::dkg;
use rand_chacha::ChaCha20Rng;
use zeroize::Zeroizing;

use super::{
    NOW,
    people::{People, member},
};

/// One attempt and everything that was said in it.
#[derive(Debug)]
pub struct Dealing {
    /// The attempt.
    pub header: Verified<SessionHeader>,
    /// Everybody's round one.
    pub round1: Vec<Verified<DkgRound1>>,
    /// Everybody's round two.
    pub round2: Vec<DkgRound2>,
    sealing: BTreeMap<(u16, u16), SealingSecret>,
}

/// What only the members know of it.
pub(super) struct Dealt {
    /// The public side.
    pub(super) public: PublicShares,
    /// Everybody's share.
    pub(super) shares: Vec<SigningShare>,
}

/// The head that a member shows in all samples.
#[must_use]
pub fn head(people: &People, identifier: Identifier) -> SignedCheckpoint {
    let number = u8::try_from(identifier.value()).unwrap();
    people.member(identifier).sign(&Checkpoint {
        size: TreeSize::new(20 + u64::from(number)),
        root: MerkleRoot::from_bytes([0xa0 | number; 32]),
        time: NOW,
    })
}

/// Where a member stands: member 1 has witnessed the heads of the two others, which it names
/// ascending by signer; the others are new to the world, which keeps the samples small.
#[must_use]
pub fn standing(people: &People, identifier: Identifier) -> Standing {
    let mut witnessed: Vec<_> = [1, 2, 3]
        .map(member)
        .into_iter()
        .filter(|other| *other != identifier && identifier == member(1))
        .map(|other| (people.member(other).key(), head(people, other)))
        .collect();
    witnessed.sort_by_key(|(key, _)| *key);
    Standing {
        checkpoint: head(people, identifier),
        witnessed: List::new(witnessed.into_iter().map(|(_, head)| head).collect()).unwrap(),
        time: NOW,
    }
}

impl Dealing {
    /// Runs the attempt. A `liar` seals the share of member 3 to member 1 as well.
    pub(super) fn run(
        people: &People,
        plan: &Approved<Plan>,
        header: Verified<SessionHeader>,
        liar: Option<Identifier>,
        rng: &mut ChaCha20Rng,
    ) -> (Self, Dealt) {
        let everybody = [1, 2, 3].map(member);
        let attempt = header.session_id();
        let plan_digest = PlanDigest::from_bytes(plan.digest());
        let mut secrets = BTreeMap::new();
        let mut frost_round1 = BTreeMap::new();
        let mut sealing = BTreeMap::new();
        let mut round1 = Vec::new();
        for own in everybody {
            let frost = frost_identifier(own).unwrap();
            let (secret, package) =
                dkg::part1(frost, 3, plan.threshold.value(), FrostRng::new(rng)).unwrap();
            let mut keys: Vec<(Identifier, SealingKey)> = Vec::new();
            for sender in everybody.into_iter().filter(|sender| *sender != own) {
                let (secret, key) = sealing_pair(rng).unwrap();
                sealing.insert((own.value(), sender.value()), secret);
                keys.push((sender, key));
            }
            let commitment = package.commitment().serialize().unwrap();
            let commitment = commitment
                .iter()
                .map(|point| Point::from_bytes(point.as_slice().try_into().unwrap()))
                .collect();
            let proof = package.proof_of_knowledge().serialize().unwrap();
            let envelope = people.member(own).sign(&DkgRound1 {
                attempt,
                plan: plan_digest,
                member: own,
                commitment: List::new(commitment).unwrap(),
                proof: Signature::from_bytes(proof.as_slice().try_into().unwrap()),
                sealing_keys: List::new(keys).unwrap(),
                standing: standing(people, own),
            });
            round1.push(envelope.verify(&people.member(own).key()).unwrap());
            secrets.insert(own, secret);
            frost_round1.insert(frost, package);
        }
        let digests: Vec<_> = round1.iter().map(digest).collect();
        let mut round2 = Vec::new();
        let mut frost_round2: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        let mut second = BTreeMap::new();
        for own in everybody {
            let frost = frost_identifier(own).unwrap();
            let mut others = frost_round1.clone();
            others.remove(&frost);
            let (secret, dealt) = dkg::part2(secrets.remove(&own).unwrap(), &others).unwrap();
            let mut packages = Vec::new();
            for recipient in everybody.into_iter().filter(|other| *other != own) {
                let lied = liar == Some(own) && recipient == member(1);
                let meant = if lied { member(3) } else { recipient };
                let share = dealt[&frost_identifier(meant).unwrap()].signing_share();
                let share = Zeroizing::new(share.serialize().try_into().unwrap());
                let context = SealingContext {
                    plan: plan_digest,
                    attempt,
                    sender: own,
                    recipient,
                    sender_round1: digests[usize::from(own.value()) - 1],
                };
                let keys = &round1[usize::from(recipient.value()) - 1].sealing_keys;
                let (_, key) = keys.iter().find(|(sender, _)| *sender == own).unwrap();
                packages.push(seal(&context, key, &share, rng).unwrap());
            }
            for (recipient, package) in &dealt {
                frost_round2
                    .entry(*recipient)
                    .or_default()
                    .insert(frost, package.clone());
            }
            second.insert(frost, secret);
            let tree = package_tree(&packages).unwrap();
            round2.push(DkgRound2 {
                manifest: people.member(own).sign(&DkgManifest {
                    attempt,
                    member: own,
                    round1: List::new(digests.clone()).unwrap(),
                    packages: tree.root_at(tree.size()).unwrap(),
                }),
                packages: List::new(packages).unwrap(),
            });
        }
        let mut public = None;
        let mut shares = Vec::new();
        for own in everybody {
            let frost = frost_identifier(own).unwrap();
            let mut others = frost_round1.clone();
            others.remove(&frost);
            let (key, package) =
                dkg::part3(&second[&frost], &others, &frost_round2[&frost]).unwrap();
            let known = PublicShares::from_frost(plan.threshold, &everybody, &package).unwrap();
            shares.push(SigningShare::new(own, *key.signing_share(), &known).unwrap());
            public = Some(known);
        }
        let dealing = Self {
            header,
            round1,
            round2,
            sealing,
        };
        let public = public.unwrap();
        (dealing, Dealt { public, shares })
    }

    /// Everybody's round one, as the coordinator sends it on.
    #[must_use]
    pub fn round1_set(&self) -> DkgRound1Set {
        let messages = self.round1.iter().map(|word| word.envelope().clone());
        DkgRound1Set {
            messages: List::new(messages.collect()).unwrap(),
        }
    }

    /// Digests of everybody's round one.
    #[must_use]
    pub fn round1_digests(&self) -> Vec<MessageDigest> {
        self.round1.iter().map(digest).collect()
    }

    /// Everybody's manifest.
    #[must_use]
    pub fn manifests(&self) -> Vec<Envelope<DkgManifest>> {
        self.round2
            .iter()
            .map(|dealt| dealt.manifest.clone())
            .collect()
    }

    /// What is sealed to one member.
    #[must_use]
    pub fn delivery(&self, recipient: Identifier) -> Delivery {
        let mut packages = Vec::new();
        for (sender, dealt) in (1..).zip(&self.round2) {
            let found = dealt.packages.iter().position(|p| p.recipient == recipient);
            if let Some(place) = found {
                packages.push(ProvenPackage {
                    sender: member(sender),
                    package: dealt.packages[place].clone(),
                    path: path(&dealt.packages, place),
                });
            }
        }
        Delivery {
            manifests: List::new(self.manifests()).unwrap(),
            packages: List::new(packages).unwrap(),
        }
    }

    /// What `recipient` would say about what `sender` sealed to it.
    #[must_use]
    pub fn complaint(&self, recipient: Identifier, sender: Identifier) -> Complaint {
        let delivery = self.delivery(recipient);
        let found = delivery.packages.iter().find(|p| p.sender == sender);
        Complaint {
            attempt: self.header.session_id(),
            member: recipient,
            package: found.unwrap().clone(),
            secret: self.sealing[&(recipient.value(), sender.value())].clone(),
        }
    }
}

fn path(packages: &[SealedPackage], place: usize) -> firn_protocol::messages::InclusionPath {
    let tree = package_tree(packages).unwrap();
    let proof = tree
        .inclusion_proof(place.try_into().unwrap(), tree.size())
        .unwrap();
    let hashes = proof
        .hashes()
        .iter()
        .map(|hash| MessageDigest::from_bytes(*hash));
    List::new(hashes.collect()).unwrap()
}

fn digest(word: &Verified<DkgRound1>) -> MessageDigest {
    MessageDigest::from_bytes(word.digest())
}

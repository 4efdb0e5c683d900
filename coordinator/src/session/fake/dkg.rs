//! Members that make a key: frost's own DKG, with its packages really sealed, and handed to frost
//! beside the messages.

use std::collections::BTreeMap;

use firn_protocol::{
    bitcoin::Network,
    codec::{Blob, List, Text},
    documents::{Ceremony, Certificate, DkgTerms, Plan, Sealing},
    envelope::{Approved, Endorsed},
    ids::*,
    keys::IdentitySecret,
    messages::*,
    signable::Item,
    threshold::{
        FrostRng, PublicShares, SealingContext, SigningShare, frost_identifier, seal, sealing_pair,
    },
};
use frost_secp256k1_tr::keys::dkg;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use zeroize::Zeroizing;

pub(crate) use super::maker::DkgHabit;
use super::maker::Maker;
use super::{FakeMember, id, standing, voice};
use crate::{
    session::{Conversation, Send},
    voice::Voice,
};

/// A plan and those who carry it out.
pub(crate) struct Ceremonial {
    pub(crate) plan: Approved<Plan>,
    pub(crate) voice: std::sync::Arc<Voice>,
    pub(crate) rng: ChaCha20Rng,
    makers: BTreeMap<Identifier, Maker>,
    attempt: SessionId,
    round1: BTreeMap<frost_secp256k1_tr::Identifier, dkg::round1::Package>,
    round2: BTreeMap<Identifier, BTreeMap<frost_secp256k1_tr::Identifier, dkg::round2::Package>>,
    public: Option<PublicShares>,
}

fn frost(member: Identifier) -> frost_secp256k1_tr::Identifier {
    frost_identifier(member).unwrap()
}

impl Ceremonial {
    pub(crate) fn new(threshold: u16, count: u16) -> Self {
        let operator = IdentitySecret::from_seed(&Zeroizing::new([9; 32]));
        let authorities = AuthoritiesDigest::from_bytes([2; 32]);
        Self::under(threshold, count, &operator, authorities)
    }

    /// A plan of this operator under these Authorities, which never expires.
    pub(crate) fn under(
        threshold: u16,
        count: u16,
        operator: &IdentitySecret,
        authorities: AuthoritiesDigest,
    ) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(11);
        let mut makers = BTreeMap::new();
        let mut roster = Vec::new();
        for member in (1..=count).map(id) {
            let secret = IdentitySecret::generate(&mut rng);
            roster.push(firn_protocol::documents::RosterEntry {
                name: format!("m-{member}").parse().unwrap(),
                identifier: member,
                identity: secret.identity(),
                tls_name: format!("spiffe://td/participant/m-{member}")
                    .parse()
                    .unwrap(),
            });
            let maker = Maker {
                secret,
                identifier: member,
                habit: DkgHabit::Honest,
                round1: None,
                round2: None,
                seen: Vec::new(),
                delivery: None,
                signer: None,
                announced: BTreeMap::new(),
                opening: BTreeMap::new(),
            };
            makers.insert(member, maker);
        }
        let plan = Plan {
            ceremony_id: CeremonyId::from_bytes([1; 16]),
            ceremony: Ceremony::Dkg(DkgTerms {
                first_epoch: Epoch::new(1),
            }),
            network: Network::Regtest,
            purpose: Text::new("test").unwrap(),
            threshold: Threshold::new(threshold, usize::from(count)).unwrap(),
            roster: List::new(roster).unwrap(),
            authorities,
            rules: RulesDigest::from_bytes([3; 32]),
            expires: UnixMillis::new(u64::MAX),
        };
        let endorsed = Endorsed::unsigned(&plan)
            .unwrap()
            .endorse::<Plan>(operator)
            .unwrap();
        Self {
            plan: endorsed.verify(&[operator.identity()], 1).unwrap(),
            voice: voice(&mut rng),
            rng,
            makers,
            attempt: SessionId::from_bytes([0; 32]),
            round1: BTreeMap::new(),
            round2: BTreeMap::new(),
            public: None,
        }
    }

    pub(crate) fn with(mut self, member: u16, habit: DkgHabit) -> Self {
        self.makers.get_mut(&id(member)).unwrap().habit = habit;
        self
    }

    pub(crate) fn run<C: Conversation>(&mut self, attempt: C, opening: Vec<Send>) -> C::Outcome {
        super::run(attempt, opening, |send| self.answer(send))
    }

    fn others(&self, member: Identifier) -> Vec<Identifier> {
        self.makers
            .keys()
            .copied()
            .filter(|other| *other != member)
            .collect()
    }

    fn round1_of_others(
        &self,
        member: Identifier,
    ) -> BTreeMap<frost_secp256k1_tr::Identifier, dkg::round1::Package> {
        let mut others = self.round1.clone();
        others.remove(&frost(member));
        others
    }

    pub(crate) fn secret(&self, member: Identifier) -> IdentitySecret {
        IdentitySecret::from_seed(&self.makers[&member].secret.seed())
    }

    /// The members with the shares that they have made.
    pub(crate) fn signers(&mut self) -> BTreeMap<Identifier, FakeMember> {
        let makers = self.makers.iter_mut();
        makers
            .map(|(member, maker)| (*member, maker.signer.take().unwrap()))
            .collect()
    }

    pub(crate) fn answer(&mut self, Send { to, message }: Send) -> Option<FromMember> {
        let habit = self.makers[&to].habit;
        match message {
            ToMember::DkgOpen(open) => Some(self.on_open(to, habit, &open)),
            ToMember::DkgRound1Set(set) => {
                (habit != DkgHabit::SilentInRound2).then(|| self.on_round1(to, habit, &set))
            }
            ToMember::Delivery(delivery) => Some(self.on_delivery(to, habit, delivery)),
            ToMember::CertificateSet(set) => {
                let verified: Vec<_> = set
                    .certificates
                    .iter()
                    .map(|c| c.clone().verify(&c.claimed_signer().unwrap()).unwrap())
                    .collect();
                let digest = firn_protocol::documents::certificate_set_digest(&verified);
                let mut what = MessageDigest::from_bytes(*digest.as_bytes());
                if habit == DkgHabit::AcknowledgesAnotherSet {
                    what = MessageDigest::from_bytes([0; 32]);
                }
                Some(self.acknowledge(to, what))
            }
            ToMember::ProofOpen(open) => {
                let rng = &mut self.rng;
                let signer = self.makers.get_mut(&to).unwrap().signer.as_mut().unwrap();
                signer.open(&open.header);
                if habit == DkgHabit::BadProofShare {
                    signer.habit = super::Habit::BadShare;
                }
                Some(signer.commitments(1, rng))
            }
            ToMember::Package(package) => {
                let plan = PlanDigest::from_bytes(self.plan.digest());
                let signer = self.makers.get_mut(&to).unwrap().signer.as_mut().unwrap();
                let header = signer.header.clone().unwrap();
                let item =
                    Item::proof_of_life(plan, header.share_version, &header.members, &header.nonce);
                Some(signer.shares(&package, &[item.unwrap().message]))
            }
            ToMember::Final(last) => {
                let what = message_digest(last.signatures[0].signature.as_bytes());
                Some(self.acknowledge(to, what))
            }
            _ => panic!("not a message of a ceremony"),
        }
    }

    fn acknowledge(&self, member: Identifier, what: MessageDigest) -> FromMember {
        let secret = &self.makers[&member].secret;
        let word = Acknowledgement {
            member,
            what,
            standing: standing(secret),
        };
        FromMember::Acknowledgement(sign(&word, secret))
    }

    fn on_open(&mut self, member: Identifier, habit: DkgHabit, open: &DkgOpen) -> FromMember {
        let header = open.header.clone();
        let header = header
            .clone()
            .verify(&header.claimed_signer().unwrap())
            .unwrap();
        self.attempt = header.session_id();
        let threshold = self.plan.threshold.value();
        let count = u16::try_from(self.makers.len()).unwrap();
        let (secret, package) = dkg::part1(
            frost(member),
            count,
            threshold,
            FrostRng::new(&mut self.rng),
        )
        .unwrap();
        let points = package.commitment().serialize().unwrap();
        let mut commitment: Vec<_> = points
            .iter()
            .map(|p| Point::from_bytes(p.as_slice().try_into().unwrap()))
            .collect();
        self.round1.insert(frost(member), package);
        let mut others = self.others(member);
        let mut plan = PlanDigest::from_bytes(self.plan.digest());
        match habit {
            DkgHabit::ShortCommitment => drop(commitment.pop()),
            DkgHabit::TooFewSealingKeys => drop(others.pop()),
            DkgHabit::AnotherPlan => plan = PlanDigest::from_bytes([0; 32]),
            _ => {}
        }
        let mut keys = Vec::new();
        for other in others {
            let (secret, key) = sealing_pair(&mut self.rng).unwrap();
            let maker = self.makers.get_mut(&member).unwrap();
            maker.opening.insert(other, secret);
            maker.announced.insert(other, key);
            keys.push((other, key));
        }
        let attempt = self.attempt;
        let maker = self.makers.get_mut(&member).unwrap();
        maker.round1 = Some(secret);
        if let DkgHabit::Refuses(code) | DkgHabit::Accuses(code) = habit {
            let accused = matches!(habit, DkgHabit::Accuses(_)).then(|| id(1));
            let refusal = Refusal {
                about: message_digest(b"open"),
                session: firn_protocol::codec::Maybe(Some(attempt)),
                request_id: firn_protocol::codec::Maybe(None),
                code,
                culprit: firn_protocol::codec::Maybe(accused),
                retry_after_ms: firn_protocol::codec::Maybe(None),
                time: UnixMillis::new(1),
            };
            return FromMember::Refusal(sign(&refusal, &maker.secret));
        }
        let round1 = DkgRound1 {
            attempt,
            plan,
            member,
            commitment: List::new(commitment).unwrap(),
            proof: Signature::from_bytes([0; 64]),
            sealing_keys: List::new(keys).unwrap(),
            standing: standing(&maker.secret),
        };
        FromMember::DkgRound1(sign(&round1, &maker.secret))
    }

    fn on_round1(&mut self, member: Identifier, habit: DkgHabit, set: &DkgRound1Set) -> FromMember {
        let mut seen: Vec<_> = set
            .messages
            .iter()
            .map(|m| {
                m.clone()
                    .verify(&m.claimed_signer().unwrap())
                    .unwrap()
                    .digest()
            })
            .map(MessageDigest::from_bytes)
            .collect();
        let packages = self.round1_of_others(member);
        let mut others = self.others(member);
        if habit == DkgHabit::PackageForItself {
            others.push(member);
            others.sort();
        }
        let secret = self.makers.get_mut(&member).unwrap().round1.take().unwrap();
        let (secret, dealt) = dkg::part2(secret, &packages).unwrap();
        self.round2.insert(member, dealt);
        let own = self
            .makers
            .keys()
            .position(|maker| *maker == member)
            .unwrap();
        let mut sealed: Vec<_> = others
            .into_iter()
            .map(|recipient| self.seal(member, recipient, seen[own], habit))
            .collect();
        let maker = self.makers.get_mut(&member).unwrap();
        maker.round2 = Some(secret);
        maker.seen = seen.clone();
        let tree = package_tree(&sealed).unwrap();
        match habit {
            DkgHabit::RootOfOtherPackages => {
                sealed[0].ciphertext = Blob::new(vec![4; 48]).unwrap();
            }
            DkgHabit::AnotherRound1 => seen.reverse(),
            _ => {}
        }
        let manifest = DkgManifest {
            attempt: self.attempt,
            member,
            round1: List::new(seen).unwrap(),
            packages: tree.root_at(tree.size()).unwrap(),
        };
        FromMember::DkgRound2(DkgRound2 {
            manifest: sign(&manifest, &maker.secret),
            packages: List::new(sealed).unwrap(),
        })
    }

    fn seal(
        &mut self,
        sender: Identifier,
        recipient: Identifier,
        sender_round1: MessageDigest,
        habit: DkgHabit,
    ) -> SealedPackage {
        let garbage = SealedPackage {
            recipient,
            encapsulated: SealingKey::from_bytes([2; 32]),
            ciphertext: Blob::new(vec![3; 48]).unwrap(),
        };
        let key = self.makers[&recipient].announced.get(&sender).copied();
        let Some(key) = key.filter(|_| habit != DkgHabit::SealsGarbage) else {
            return garbage;
        };
        let context = SealingContext {
            plan: PlanDigest::from_bytes(self.plan.digest()),
            attempt: self.attempt,
            sender,
            recipient,
            sender_round1,
        };
        let share = self.round2[&sender][&frost(recipient)]
            .signing_share()
            .serialize();
        let mut share = Zeroizing::new(<[u8; 32]>::try_from(share.as_slice()).unwrap());
        if habit == DkgHabit::SealsAnotherShare {
            share[31] ^= 1;
        }
        seal(&context, &key, &share, &mut self.rng).unwrap()
    }

    fn on_delivery(&mut self, member: Identifier, habit: DkgHabit, got: Delivery) -> FromMember {
        let members: Vec<_> = self.makers.keys().copied().collect();
        let mine = self
            .others(member)
            .into_iter()
            .map(|sender| (frost(sender), self.round2[&sender][&frost(member)].clone()));
        let round2 = self.makers[&member].round2.as_ref().unwrap();
        let (key, package) =
            dkg::part3(round2, &self.round1_of_others(member), &mine.collect()).unwrap();
        let public = PublicShares::from_frost(self.plan.threshold, &members, &package).unwrap();
        let manifests: Vec<_> = got
            .manifests
            .iter()
            .map(|m| {
                m.clone()
                    .verify(&m.claimed_signer().unwrap())
                    .unwrap()
                    .digest()
            })
            .map(MessageDigest::from_bytes)
            .collect();
        let plan = PlanDigest::from_bytes(self.plan.digest());
        let maker = self.makers.get_mut(&member).unwrap();
        let mut transcript =
            transcript_digest(plan, self.attempt, &maker.seen, &manifests).unwrap();
        let mut group_key = *public.group_key();
        match habit {
            DkgHabit::AnotherTranscript => transcript = TranscriptDigest::from_bytes([0; 32]),
            DkgHabit::AnotherGroupKey => group_key = GroupKey::from_bytes([2; 33]),
            DkgHabit::Complains
            | DkgHabit::ComplainsWithAnotherKey
            | DkgHabit::ComplainsOfWhatWasNotSent => {
                let mut package = got.packages[0].clone();
                if habit == DkgHabit::ComplainsOfWhatWasNotSent {
                    package.package.ciphertext = Blob::new(vec![9; 48]).unwrap();
                }
                let mut secret = maker.opening[&package.sender].clone();
                if habit == DkgHabit::ComplainsWithAnotherKey {
                    secret = SealingSecret::from_bytes([1; 32]);
                }
                let complaint = Complaint {
                    attempt: self.attempt,
                    member,
                    package,
                    secret,
                };
                return FromMember::Complaint(sign(&complaint, &maker.secret));
            }
            _ => {}
        }
        let certificate = Certificate {
            member,
            plan,
            attempt: self.attempt,
            transcript,
            group_key,
            verifying_shares: List::new(public.verifying_shares().unwrap()).unwrap(),
            share_version: ShareVersion::new(1),
            sealing: Sealing::KeyFile,
            software: Text::new("test").unwrap(),
            build: BuildDigest::from_bytes([0; 32]),
        };
        let share = SigningShare::new(maker.identifier, *key.signing_share(), &public).unwrap();
        let mut signer = FakeMember::new(member, share, &mut self.rng);
        signer.secret = IdentitySecret::from_seed(&maker.secret.seed());
        maker.signer = Some(signer);
        maker.delivery = Some(got);
        self.public = Some(public);
        FromMember::Certificate(sign(&certificate, &maker.secret))
    }
}

fn sign<T: firn_protocol::envelope::Document>(
    document: &T,
    secret: &IdentitySecret,
) -> firn_protocol::envelope::Envelope<T> {
    firn_protocol::envelope::Envelope::sign(document, secret).unwrap()
}

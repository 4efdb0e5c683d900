//! Round two: judging everybody's round one, dealing, sealing.

use std::collections::BTreeMap;

use firn_protocol::{
    codec::List,
    envelope::{Envelope, Verified},
    ids::{Identifier, MessageDigest, Point},
    merkle::TreeSize,
    messages::{DkgManifest, DkgRound1, DkgRound1Set, DkgRound2, SealedPackage, package_tree},
    reject::Reject,
    threshold::{SealingContext, ThresholdError, frost_identifier, seal},
};
use frost_secp256k1_tr::{
    Signature,
    keys::{VerifiableSecretSharingCommitment, dkg},
};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::{Attempt, AwaitRound1Set, Dealer, SealingSecrets};
use crate::session::{Refusing, Speaker};

/// FROST's round one packages of everybody else.
pub(super) type FrostRound1 = BTreeMap<frost_secp256k1_tr::Identifier, dkg::round1::Package>;

/// The dealt shares are sealed; the message may leave once its digest is on record.
pub struct Dealt {
    message: DkgRound2,
    next: AwaitDelivery,
}

/// Waits for what the others sealed to this participant.
pub struct AwaitDelivery {
    pub(super) attempt: Attempt,
    pub(super) secret: dkg::round2::SecretPackage,
    pub(super) sealing: SealingSecrets,
    pub(super) round1: FrostRound1,
    /// Digests of everybody's round one, ascending by member.
    pub(super) round1_digests: Vec<MessageDigest>,
    pub(super) commitments: BTreeMap<Identifier, Vec<Point>>,
    pub(super) own_manifest: Envelope<DkgManifest>,
}

impl AwaitRound1Set {
    /// Judges everybody's round one, and deals: FROST's part two, each share sealed to the key that
    /// its recipient made for this attempt and this sender.
    ///
    /// # Errors
    /// What is wrong, and who said it.
    pub fn deal<R: CryptoRng>(
        self,
        set: &DkgRound1Set,
        speaker: &Speaker,
        rng: &mut R,
    ) -> Result<Dealt, Refusing> {
        let messages = self.verify(set)?;
        let mut round1 = FrostRound1::new();
        let mut commitments = BTreeMap::new();
        let mut dealers = BTreeMap::new();
        for message in &messages {
            let digest = MessageDigest::from_bytes(message.digest());
            let sealing_key_for_us = message
                .sealing_keys
                .iter()
                .find(|(sender, _)| *sender == self.attempt.member)
                .map(|(_, key)| *key);
            dealers.insert(
                message.member,
                Dealer {
                    digest,
                    sealing_key_for_us,
                },
            );
            if message.member != self.attempt.member {
                let blame = |_| Refusing::of(Reject::DkgCommitment, message.member);
                let package = frost_package(message).map_err(blame)?;
                round1.insert(frost_identifier(message.member).map_err(blame)?, package);
                commitments.insert(message.member, message.commitment.to_vec());
            }
        }
        let (secret, dealt) =
            dkg::part2(self.secret, &round1).map_err(|error| blame(&error, &messages))?;
        let own_digest = dealers
            .get(&self.attempt.member)
            .ok_or(Reject::Internal)?
            .digest;
        let mut packages = Vec::new();
        for recipient in self.attempt.others() {
            let context = SealingContext {
                plan: self.attempt.plan_digest(),
                attempt: self.attempt.id,
                sender: self.attempt.member,
                recipient,
                sender_round1: own_digest,
            };
            let seal_one = |rng: &mut R| -> Result<SealedPackage, ThresholdError> {
                let share = dealt
                    .get(&frost_identifier(recipient)?)
                    .ok_or(ThresholdError::WrongMembers)?
                    .signing_share();
                let bytes = Zeroizing::new(share.serialize());
                let bytes = <[u8; 32]>::try_from(bytes.as_slice())
                    .map(Zeroizing::new)
                    .map_err(|_| ThresholdError::BadEncoding)?;
                let key = dealers
                    .get(&recipient)
                    .and_then(|dealer| dealer.sealing_key_for_us)
                    .ok_or(ThresholdError::WrongMembers)?;
                seal(&context, &key, &bytes, rng)
            };
            let blame = |_| Refusing::of(Reject::DkgCommitment, recipient);
            packages.push(seal_one(rng).map_err(blame)?);
        }
        let round1_digests: Vec<_> = dealers.values().map(|dealer| dealer.digest).collect();
        let tree = package_tree(&packages)?;
        let leaves = u64::try_from(packages.len()).map_err(|_| Reject::Internal)?;
        let manifest = speaker.sign(&DkgManifest {
            attempt: self.attempt.id,
            member: self.attempt.member,
            round1: List::new(round1_digests.clone()).ok_or(Reject::Internal)?,
            packages: tree
                .root_at(TreeSize::new(leaves))
                .map_err(|_| Reject::Internal)?,
        })?;
        let message = DkgRound2 {
            manifest: manifest.clone(),
            packages: List::new(packages).ok_or(Reject::Internal)?,
        };
        let next = AwaitDelivery {
            attempt: self.attempt,
            secret,
            sealing: self.sealing,
            round1,
            round1_digests,
            commitments,
            own_manifest: manifest,
        };
        Ok(Dealt { message, next })
    }

    /// One message of each member, each its own word for this attempt, this one's byte for byte.
    fn verify(&self, set: &DkgRound1Set) -> Result<Vec<Verified<DkgRound1>>, Refusing> {
        let attempt = &self.attempt;
        if set.messages.len() != attempt.plan.roster.len() {
            return Err(Reject::SessionMembers.into());
        }
        attempt
            .plan
            .roster
            .iter()
            .zip(&set.messages)
            .map(|(entry, envelope)| {
                let member = entry.identifier;
                if member == attempt.member && *envelope != self.own {
                    return Err(Reject::PackageAltered.into());
                }
                // What its carrier may have damaged or replayed is nobody else's fault.
                let message = envelope.clone().verify(&entry.identity)?;
                if message.attempt != attempt.id {
                    return Err(Reject::SessionMismatch.into());
                }
                if message.plan != attempt.plan_digest() || message.member != member {
                    return Err(Refusing::of(Reject::SessionMismatch, member));
                }
                let senders = message.sealing_keys.iter().map(|(sender, _)| *sender);
                let expected = attempt
                    .members()
                    .into_iter()
                    .filter(|sender| *sender != member);
                // frost does not check the degree: a longer commitment is a higher threshold.
                let degree = usize::from(attempt.plan.threshold.value());
                if message.commitment.len() != degree || !senders.eq(expected) {
                    return Err(Refusing::of(Reject::DkgCommitment, member));
                }
                Ok(message)
            })
            .collect()
    }
}

impl Dealt {
    /// The digest that must be on record before the message leaves: the manifest binds all of it.
    #[must_use]
    pub fn digest(&self) -> MessageDigest {
        firn_protocol::messages::message_digest(self.message.manifest.as_bytes())
    }

    /// The attempt.
    #[must_use]
    pub const fn attempt(&self) -> &Attempt {
        &self.next.attempt
    }

    /// The message and what follows. The token says that its digest is on disk.
    #[must_use]
    pub fn sent(self, _recorded: &crate::store::Durable) -> (DkgRound2, AwaitDelivery) {
        (self.message, self.next)
    }
}

fn frost_package(message: &DkgRound1) -> Result<dkg::round1::Package, ThresholdError> {
    let points = message.commitment.iter().map(Point::as_bytes);
    let commitment = VerifiableSecretSharingCommitment::deserialize(points)?;
    let proof = Signature::deserialize(message.proof.as_bytes())?;
    Ok(dkg::round1::Package::new(commitment, proof))
}

/// The member that FROST names.
fn blame(error: &frost_secp256k1_tr::Error, messages: &[Verified<DkgRound1>]) -> Refusing {
    let named = error.culprits();
    let culprit = messages
        .iter()
        .map(|message| message.member)
        .find(|member| {
            frost_identifier(*member).is_ok_and(|identifier| named.contains(&identifier))
        });
    Refusing {
        code: Reject::DkgCommitment,
        culprit,
    }
}

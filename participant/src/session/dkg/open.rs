//! Opening an attempt and round one.

use std::collections::BTreeMap;

use firn_ledger::rules::{AttemptOpened, Command};
use firn_protocol::{
    codec::List,
    documents::{Authorities, Ceremony},
    envelope::{Endorsed, Envelope},
    ids::{AuthoritiesDigest, Flow, PlanDigest, Point, Signature, UnixMillis},
    keys::IdentityKey,
    messages::{DkgOpen, DkgRound1},
    reject::Reject,
    session::{CeremonySubject, Subject},
    sharing::verify_plan,
    threshold::{FrostRng, ThresholdError, frost_identifier, sealing_pair},
};
use frost_secp256k1_tr::keys::dkg;
use rand_core::CryptoRng;

use super::{Attempt, SealingSecrets};
use crate::{
    session::{Peers, Speaker, gate::verify_header},
    store::Durable,
};

/// An attempt that may begin once it is on record.
#[derive(Debug)]
pub struct Opened {
    attempt: Attempt,
}

/// Waits for everybody's round one. It holds the polynomial and the sealing keys.
pub struct AwaitRound1Set {
    pub(super) attempt: Attempt,
    pub(super) secret: dkg::round1::SecretPackage,
    pub(super) sealing: SealingSecrets,
    pub(super) own: Envelope<DkgRound1>,
}

impl Opened {
    /// Judges the opening: the coordinator, the plan that was accepted on this machine, its time,
    /// and this participant's place in it. `accepted` is that plan, if the operator accepted one
    /// with the header's digest.
    ///
    /// # Errors
    /// The first gate that is shut.
    pub fn judge(
        open: &DkgOpen,
        accepted: Option<&Endorsed>,
        authorities: &Authorities,
        authorities_digest: AuthoritiesDigest,
        identity: &IdentityKey,
        now: UnixMillis,
    ) -> Result<Self, Reject> {
        let (header, _) = verify_header(&open.header, authorities)?;
        let plan = verify_plan(open.plan.clone(), authorities, authorities_digest)?;
        let digest = PlanDigest::from_bytes(plan.digest());
        if accepted != Some(&open.plan) {
            return Err(Reject::PlanNotAccepted);
        }
        let Ceremony::Dkg(terms) = &plan.ceremony else {
            return Err(Reject::UnexpectedMessage);
        };
        let subject = Subject::Ceremony(CeremonySubject {
            plan: digest,
            ceremony_id: plan.ceremony_id,
            rules: plan.rules,
        });
        let bound = header.flow == Flow::Dkg
            && header.subject == subject
            && header.key_id == plan.key_id(digest)
            && header.share_version == plan.share_version()
            && header.epoch == terms.first_epoch;
        if !bound {
            return Err(Reject::SessionMismatch);
        }
        if !header
            .members
            .iter()
            .copied()
            .eq(plan.roster.iter().map(|entry| entry.identifier))
        {
            return Err(Reject::SessionMembers);
        }
        if plan.expires <= now {
            return Err(Reject::PlanExpired);
        }
        let member = plan.member(identity).ok_or(Reject::NotAMember)?.identifier;
        let attempt = Attempt {
            id: header.session_id(),
            coordinator: header.coordinator.clone(),
            member,
            plan,
        };
        Ok(Self { attempt })
    }

    /// The attempt.
    #[must_use]
    pub const fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    /// What is to be written.
    #[must_use]
    pub fn command(&self) -> Command {
        Command::OpenAttempt(AttemptOpened {
            attempt: self.attempt.id,
            plan: self.attempt.plan_digest(),
            coordinator: self.attempt.coordinator.clone(),
        })
    }

    /// FROST's part one, and a sealing key for each sender. The token says that the attempt is on
    /// disk; the message may leave only when its digest is, too.
    ///
    /// # Errors
    /// [`Reject::Internal`] for what the plan's checks rule out.
    pub fn round1<R: CryptoRng>(
        self,
        durable: &Durable,
        speaker: &Speaker,
        peers: &Peers,
        now: UnixMillis,
        rng: &mut R,
    ) -> Result<AwaitRound1Set, Reject> {
        let attempt = self.attempt;
        let members = u16::try_from(attempt.plan.roster.len()).map_err(|_| Reject::Internal)?;
        let make = |rng: &mut R| -> Result<_, ThresholdError> {
            let (secret, package) = dkg::part1(
                frost_identifier(attempt.member)?,
                members,
                attempt.plan.threshold.value(),
                FrostRng::new(rng),
            )?;
            let mut sealing = BTreeMap::new();
            let mut public = Vec::new();
            for sender in attempt.others() {
                let (secret, key) = sealing_pair(rng)?;
                sealing.insert(sender, secret);
                public.push((sender, key));
            }
            let commitment = package
                .commitment()
                .serialize()?
                .iter()
                .map(|bytes| point(bytes))
                .collect::<Result<Vec<_>, _>>()?;
            let proof = package.proof_of_knowledge().serialize()?;
            let proof =
                <[u8; 64]>::try_from(proof.as_slice()).map_err(|_| ThresholdError::BadEncoding)?;
            Ok((
                secret,
                sealing,
                public,
                commitment,
                Signature::from_bytes(proof),
            ))
        };
        let (secret, sealing, public, commitment, proof) =
            make(rng).map_err(|_| Reject::Internal)?;
        let own = speaker.sign(&DkgRound1 {
            attempt: attempt.id,
            plan: attempt.plan_digest(),
            member: attempt.member,
            commitment: List::new(commitment).ok_or(Reject::Internal)?,
            proof,
            sealing_keys: List::new(public).ok_or(Reject::Internal)?,
            standing: speaker.standing(durable, peers, now)?,
        })?;
        Ok(AwaitRound1Set {
            attempt,
            secret,
            sealing,
            own,
        })
    }
}

impl AwaitRound1Set {
    /// The message, whose digest must be on record before it leaves.
    #[must_use]
    pub const fn message(&self) -> &Envelope<DkgRound1> {
        &self.own
    }

    /// The attempt.
    #[must_use]
    pub const fn attempt(&self) -> &Attempt {
        &self.attempt
    }
}

fn point(bytes: &[u8]) -> Result<Point, ThresholdError> {
    <[u8; 33]>::try_from(bytes)
        .map(Point::from_bytes)
        .map_err(|_| ThresholdError::BadEncoding)
}

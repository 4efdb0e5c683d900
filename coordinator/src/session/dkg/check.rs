//! What each message of a DKG must be, whoever sent it. It decides form and binding; whether a
//! share is good only its recipient can see.

use firn_protocol::{
    codec::List,
    documents::Certificate,
    envelope::{Envelope, Verified},
    ids::{Identifier, MessageDigest, PlanDigest, TranscriptDigest},
    merkle::MerkleTree,
    messages::{
        Acknowledgement, Delivery, DkgManifest, DkgRound1, DkgRound2, ProvenPackage, SealedPackage,
        package_tree,
    },
    reject::Reject,
};

use super::Context;
use crate::session::{Fault, word_of};

/// A member's round two that holds together.
#[derive(Debug)]
pub(super) struct Dealt {
    pub(super) manifest: Verified<DkgManifest>,
    packages: Vec<SealedPackage>,
    tree: MerkleTree,
}

impl Context {
    /// Everybody but `member`, ascending.
    pub(super) fn others(&self, member: Identifier) -> impl Iterator<Item = Identifier> {
        self.identifiers().filter(move |other| *other != member)
    }

    pub(super) fn round1(
        &self,
        from: Identifier,
        envelope: Envelope<DkgRound1>,
    ) -> Result<Verified<DkgRound1>, Fault> {
        let round1 = word_of(&self.members, from, envelope)?;
        let recipients = round1.sealing_keys.iter().map(|(sender, _)| *sender);
        let code = if round1.attempt != self.session() || round1.plan != self.plan_digest() {
            Reject::SessionMismatch
        } else if round1.member != from || !recipients.eq(self.others(from)) {
            Reject::SessionMembers
        } else if round1.commitment.len() != usize::from(self.plan.threshold.value()) {
            Reject::DkgCommitment
        } else {
            return Ok(round1);
        };
        Err(Fault::misbehaved(from, code))
    }

    /// `round1` are the digests of what everybody was sent.
    pub(super) fn round2(
        &self,
        from: Identifier,
        round2: DkgRound2,
        round1: &[MessageDigest],
    ) -> Result<Dealt, Fault> {
        let manifest = word_of(&self.members, from, round2.manifest)?;
        let packages = round2.packages.into_vec();
        let recipients = packages.iter().map(|package| package.recipient);
        let tree = package_tree(&packages).map_err(|m| Fault::misbehaved(from, m.into()))?;
        let code = if manifest.attempt != self.session() {
            Reject::SessionMismatch
        } else if manifest.member != from || !recipients.eq(self.others(from)) {
            Reject::SessionMembers
        } else if *manifest.round1 != *round1 || tree.root_at(tree.size()) != Ok(manifest.packages)
        {
            // It has signed one thing and sent another.
            Reject::DkgEquivocation
        } else {
            return Ok(Dealt {
                manifest,
                packages,
                tree,
            });
        };
        Err(Fault::misbehaved(from, code))
    }

    pub(super) fn certificate(
        &self,
        from: Identifier,
        envelope: Envelope<Certificate>,
        transcript: TranscriptDigest,
    ) -> Result<Verified<Certificate>, Fault> {
        let certificate = word_of(&self.members, from, envelope)?;
        let fits = certificate.member == from
            && certificate.plan == PlanDigest::from_bytes(self.plan.digest())
            && certificate.attempt == self.session()
            && certificate.transcript == transcript
            && certificate.share_version == self.plan.share_version();
        if fits {
            Ok(certificate)
        } else {
            Err(Fault::misbehaved(from, Reject::CertificateMismatch))
        }
    }

    pub(super) fn acknowledgement(
        &self,
        from: Identifier,
        envelope: Envelope<Acknowledgement>,
        what: MessageDigest,
    ) -> Result<(), Fault> {
        let word = word_of(&self.members, from, envelope)?;
        if word.member == from && word.what == what {
            Ok(())
        } else {
            Err(Fault::misbehaved(from, Reject::UnexpectedMessage))
        }
    }
}

/// Everybody's manifest and what is sealed to `recipient`, with the proofs.
///
/// # Errors
/// Never for round twos that were checked.
pub(super) fn delivery(dealt: &[Dealt], recipient: Identifier) -> Result<Delivery, Reject> {
    let manifests = dealt
        .iter()
        .map(|dealt| dealt.manifest.envelope().clone())
        .collect();
    let mut packages = Vec::new();
    for dealt in dealt {
        let found = dealt
            .packages
            .iter()
            .enumerate()
            .find(|(_, package)| package.recipient == recipient);
        let Some((place, package)) = found else {
            continue;
        };
        let place = u64::try_from(place).map_err(|_| Reject::Internal)?;
        let proof = dealt
            .tree
            .inclusion_proof(place, dealt.tree.size())
            .map_err(|_| Reject::Internal)?;
        let hashes = proof
            .hashes()
            .iter()
            .map(|hash| MessageDigest::from_bytes(*hash))
            .collect();
        packages.push(ProvenPackage {
            sender: dealt.manifest.member,
            package: package.clone(),
            path: List::new(hashes).ok_or(Reject::TooLarge)?,
        });
    }
    Ok(Delivery {
        manifests: List::new(manifests).ok_or(Reject::TooLarge)?,
        packages: List::new(packages).ok_or(Reject::TooLarge)?,
    })
}

/// The one member whose certificate differs from what most members say, if it is exactly one.
pub(super) fn odd_one_out(certificates: &[Verified<Certificate>]) -> Option<Identifier> {
    let half = certificates.len() / 2;
    let agreeing = |one: &Certificate| {
        certificates
            .iter()
            .filter(|other| one.agrees_with(other))
            .count()
    };
    let mut odd = certificates.iter().filter(|one| agreeing(one) <= half);
    match (odd.next(), odd.next()) {
        (Some(one), None) => Some(one.member),
        (Some(_), Some(_)) | (None, _) => None,
    }
}

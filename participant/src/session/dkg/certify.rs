//! The end: opening what was dealt, FROST's part three, the certificate, and the certificates of
//! everybody else.

use std::collections::BTreeMap;

use firn_ledger::rules::{Command, ShareCertified, SharePending};
use firn_protocol::{
    codec::{List, Text},
    documents::{Certificate, Sealing},
    envelope::Envelope,
    ids::{BuildDigest, Identifier, MessageDigest, TranscriptDigest},
    limits,
    merkle::{InclusionProof, LeafHash, MerkleRoot, TreeSize},
    messages::{
        CertificateSet, Complaint, Delivery, ProvenPackage, package_leaf, transcript_digest,
    },
    reject::Reject,
    sharing::CertifiedSharing,
    threshold::{
        PublicShares, SealingContext, SigningShare, dealt_share_matches, frost_identifier, open,
    },
};
use frost_secp256k1_tr::keys::{SigningShare as FrostShare, dkg};

use super::{Attempt, AwaitDelivery};
use crate::{
    session::{Refusing, Speaker},
    store::Durable,
};

/// What a member says of itself in its certificate.
#[derive(Debug, Clone)]
pub struct OwnSoftware {
    /// How it keeps shares.
    pub sealing: Sealing,
    /// Its name and version.
    pub software: Text<{ limits::MAX_NAME }>,
    /// Its binary.
    pub build: BuildDigest,
}

/// Part three succeeded. The share is to be sealed on disk, then its record and the certificate's
/// digest written; only then may the certificate leave.
pub struct NewShare {
    attempt: Attempt,
    share: SigningShare,
    certificate: Envelope<Certificate>,
}

/// Why a delivery is refused.
pub enum DeliveryError {
    /// With a name, where there is one.
    Refused(Refusing),
    /// A dealt share is bad, and this proves who dealt it. The attempt is over.
    BadShare(Envelope<Complaint>),
}

impl<E: Into<Refusing>> From<E> for DeliveryError {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

/// Waits for everybody's certificate. It holds no secret any more.
#[derive(Debug)]
pub struct AwaitCertificates {
    attempt: Attempt,
    own: Envelope<Certificate>,
}

impl AwaitDelivery {
    /// The attempt.
    #[must_use]
    pub const fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    /// Opens what was dealt and computes the share.
    ///
    /// # Errors
    /// What is wrong and who said it; for a bad share the proof.
    pub fn finish(
        self,
        delivery: &Delivery,
        speaker: &Speaker,
        own: &OwnSoftware,
    ) -> Result<NewShare, DeliveryError> {
        let manifests = self.verify_manifests(delivery)?;
        let mut dealt = BTreeMap::new();
        let senders = self.attempt.others();
        if delivery.packages.len() != senders.len() {
            return Err(Reject::SessionMembers.into());
        }
        for (sender, proven) in senders.into_iter().zip(&delivery.packages) {
            let (root, _) = manifests.get(&sender).ok_or(Reject::SessionMembers)?;
            self.verify_package(sender, proven, root)?;
            let share = self.open_package(sender, proven, speaker)?;
            let identifier = frost_identifier(sender).map_err(|_| Reject::Internal)?;
            dealt.insert(identifier, dkg::round2::Package::new(share));
        }
        let manifest_digests: Vec<_> = manifests.values().map(|(_, digest)| *digest).collect();
        let transcript = transcript_digest(
            self.attempt.plan_digest(),
            self.attempt.id,
            &self.round1_digests,
            &manifest_digests,
        )?;
        let (key, public) = dkg::part3(&self.secret, &self.round1, &dealt)
            .map_err(|_| Refusing::from(Reject::DkgShare))?;
        let members = self.attempt.members();
        let public = PublicShares::from_frost(self.attempt.plan.threshold, &members, &public)
            .map_err(|_| Reject::Internal)?;
        let share = SigningShare::new(self.attempt.member, *key.signing_share(), &public)
            .map_err(|_| Reject::Internal)?;
        let certificate = certificate(&self.attempt, transcript, &public, own)?;
        let certificate = speaker.sign(&certificate)?;
        Ok(NewShare {
            attempt: self.attempt,
            share,
            certificate,
        })
    }

    /// Everybody's manifest: for this attempt, with round one as this participant saw it, this one's
    /// own byte for byte.
    fn verify_manifests(
        &self,
        delivery: &Delivery,
    ) -> Result<BTreeMap<Identifier, (MerkleRoot, MessageDigest)>, Refusing> {
        let attempt = &self.attempt;
        if delivery.manifests.len() != attempt.plan.roster.len() {
            return Err(Reject::SessionMembers.into());
        }
        let mut manifests = BTreeMap::new();
        for (entry, envelope) in attempt.plan.roster.iter().zip(&delivery.manifests) {
            let member = entry.identifier;
            if member == attempt.member && *envelope != self.own_manifest {
                return Err(Reject::PackageAltered.into());
            }
            // What its carrier may have damaged or replayed is nobody else's fault.
            let manifest = envelope.clone().verify(&entry.identity)?;
            if manifest.attempt != attempt.id {
                return Err(Reject::SessionMismatch.into());
            }
            if manifest.member != member {
                return Err(Refusing::of(Reject::SessionMismatch, member));
            }
            // Somebody was shown another round one: two words of one member, or of the coordinator.
            if manifest.round1.to_vec() != self.round1_digests {
                return Err(Reject::DkgEquivocation.into());
            }
            let digest = MessageDigest::from_bytes(manifest.digest());
            manifests.insert(member, (manifest.packages, digest));
        }
        Ok(manifests)
    }

    fn verify_package(
        &self,
        sender: Identifier,
        proven: &ProvenPackage,
        root: &MerkleRoot,
    ) -> Result<(), Refusing> {
        if proven.sender != sender || proven.package.recipient != self.attempt.member {
            return Err(Reject::SessionMembers.into());
        }
        let leaves = self.attempt.plan.roster.len().saturating_sub(1);
        let place = self
            .attempt
            .members()
            .into_iter()
            .filter(|member| *member != sender)
            .position(|member| member == self.attempt.member)
            .ok_or(Reject::Internal)?;
        let hashes = proven.path.iter().map(|hash| *hash.as_bytes()).collect();
        let leaf = LeafHash::of(&package_leaf(&proven.package)?);
        let size = TreeSize::new(u64::try_from(leaves).map_err(|_| Reject::Internal)?);
        let place = u64::try_from(place).map_err(|_| Reject::Internal)?;
        // Who carried it may have changed it: nobody is to blame but the carrier.
        InclusionProof::from_hashes(hashes)
            .and_then(|proof| proof.verify(leaf, place, size, *root))
            .map_err(|_| Reject::PackageDigest.into())
    }

    fn open_package(
        &self,
        sender: Identifier,
        proven: &ProvenPackage,
        speaker: &Speaker,
    ) -> Result<FrostShare, DeliveryError> {
        let place = self
            .attempt
            .members()
            .iter()
            .position(|member| *member == sender);
        let sender_round1 = place
            .and_then(|place| self.round1_digests.get(place))
            .ok_or(Reject::Internal)?;
        let context = SealingContext {
            plan: self.attempt.plan_digest(),
            attempt: self.attempt.id,
            sender,
            recipient: self.attempt.member,
            sender_round1: *sender_round1,
        };
        let secret = self.sealing.get(&sender).ok_or(Reject::Internal)?;
        let commitment = self.commitments.get(&sender).ok_or(Reject::Internal)?;
        let share = open(&context, secret, &proven.package)
            .ok()
            .filter(|share| dealt_share_matches(commitment, self.attempt.member, share))
            .and_then(|share| FrostShare::deserialize(share.as_slice()).ok());
        match share {
            Some(share) => Ok(share),
            None => {
                let complaint = Complaint {
                    attempt: self.attempt.id,
                    member: self.attempt.member,
                    package: proven.clone(),
                    secret: secret.clone(),
                };
                Err(DeliveryError::BadShare(speaker.sign(&complaint)?))
            }
        }
    }
}

fn certificate(
    attempt: &Attempt,
    transcript: TranscriptDigest,
    public: &PublicShares,
    own: &OwnSoftware,
) -> Result<Certificate, Reject> {
    let shares = public.verifying_shares().map_err(|_| Reject::Internal)?;
    Ok(Certificate {
        member: attempt.member,
        plan: attempt.plan_digest(),
        attempt: attempt.id,
        transcript,
        group_key: *public.group_key(),
        verifying_shares: List::new(shares).ok_or(Reject::Internal)?,
        share_version: attempt.plan.share_version(),
        sealing: own.sealing,
        software: own.software.clone(),
        build: own.build,
    })
}

impl NewShare {
    /// The attempt.
    #[must_use]
    pub const fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    /// The share, for the vault.
    #[must_use]
    pub const fn share(&self) -> &SigningShare {
        &self.share
    }

    /// The certificate's digest, to be on record before it leaves.
    #[must_use]
    pub fn digest(&self) -> MessageDigest {
        firn_protocol::messages::message_digest(self.certificate.as_bytes())
    }

    /// What is to be written once the share is sealed on disk.
    #[must_use]
    pub fn command(&self) -> Command {
        let plan = self.attempt.plan_digest();
        Command::Pend(SharePending {
            key_id: self.attempt.plan.key_id(plan),
            share_version: self.attempt.plan.share_version(),
            attempt: self.attempt.id,
            plan,
            member: self.attempt.member,
            certificate: self.digest(),
        })
    }

    /// The certificate and what follows. The token says that share and digest are on record; the
    /// share itself is dropped, and comes back from the vault when it is needed.
    #[must_use]
    pub fn sent(self, _recorded: &Durable) -> (Envelope<Certificate>, AwaitCertificates) {
        let next = AwaitCertificates {
            attempt: self.attempt,
            own: self.certificate.clone(),
        };
        (self.certificate, next)
    }
}

impl AwaitCertificates {
    /// Judges everybody's certificate: they agree, and this one's is as it was sent.
    ///
    /// # Errors
    /// [`Reject::CertificateMismatch`]: the key is not to be used by anybody.
    pub fn finish(self, set: &CertificateSet) -> Result<(CertifiedSharing, Command), Reject> {
        if !set.certificates.contains(&self.own) {
            return Err(Reject::CertificateMismatch);
        }
        let attempt = self.attempt.id;
        let sharing = CertifiedSharing::verify(self.attempt.plan, &set.certificates)?;
        if sharing.attempt()? != attempt {
            return Err(Reject::CertificateMismatch);
        }
        let command = certify_command(&sharing)?;
        Ok((sharing, command))
    }
}

/// What is to be written when all certificates of a sharing are here.
///
/// # Errors
/// Never for a verified sharing.
pub fn certify_command(sharing: &CertifiedSharing) -> Result<Command, Reject> {
    Ok(Command::Certify(ShareCertified {
        key_id: sharing.key_id(),
        share_version: sharing.share_version(),
        attempt: sharing.attempt()?,
        certificates: sharing.set_digest(),
    }))
}

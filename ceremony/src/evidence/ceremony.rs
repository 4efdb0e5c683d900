//! The record of a DKG. It decides whether every member said what the certificates bind, and whether
//! every share has proved that it signs.

use std::collections::BTreeSet;

use firn_client::evidence::{Round, header_of};
use firn_protocol::{
    documents::{Ceremony, Plan},
    envelope::{Approved, Envelope, Verified},
    ids::{Flow, Identifier, MessageDigest, PlanDigest, SessionId},
    keys::IdentityKey,
    merkle::{InclusionProof, LeafHash, TreeSize},
    messages::{
        CeremonyRecord, Delivery, DkgManifest, DkgRound1, ProofRecord, ProvenPackage, package_leaf,
        transcript_digest,
    },
    reject::Reject,
    session::{SessionHeader, Subject},
    sharing::CertifiedSharing,
    signable::Item,
};

/// A DKG that proves itself.
#[derive(Debug, Clone)]
pub struct CheckedCeremony {
    /// The key, not usable yet.
    pub sharing: CertifiedSharing,
    /// The attempt that made it.
    pub attempt: SessionId,
    /// The members that signed together for each proof of life.
    pub proofs: Vec<Vec<Identifier>>,
}

/// Checks the record of a DKG under a plan that the operators have signed.
///
/// # Errors
/// The first rule that is broken.
pub fn check_ceremony(
    record: &CeremonyRecord,
    plan: Approved<Plan>,
    coordinators: &[IdentityKey],
) -> Result<CheckedCeremony, Reject> {
    let header = header_of(&record.header, coordinators)?;
    check_header(&header, &plan, Flow::Dkg)?;
    if !header
        .members
        .iter()
        .eq(plan.roster.iter().map(|m| &m.identifier))
    {
        return Err(Reject::SessionMembers);
    }
    let attempt = header.session_id();
    let round1 = round1(record, &plan, attempt)?;
    let manifests = manifests(record, &plan, attempt, &round1)?;
    check_deliveries(record, &plan, &manifests)?;
    let transcript = transcript_digest(
        PlanDigest::from_bytes(plan.digest()),
        attempt,
        &round1,
        &digests(&manifests),
    )?;
    let sharing = CertifiedSharing::verify(plan, &record.certificates)?;
    let bound = sharing
        .certificates()
        .iter()
        .all(|certificate| certificate.attempt == attempt && certificate.transcript == transcript);
    if !bound {
        return Err(Reject::CertificateMismatch);
    }
    let proofs = record
        .proofs
        .iter()
        .map(|proof| check_proof(proof, &sharing, coordinators))
        .collect::<Result<Vec<_>, Reject>>()?;
    let proved: BTreeSet<_> = proofs.iter().flatten().collect();
    let distinct: BTreeSet<_> = proofs.iter().collect();
    if proved.len() != sharing.plan().roster.len() || distinct.len() != proofs.len() {
        return Err(Reject::SessionMembers);
    }
    Ok(CheckedCeremony {
        sharing,
        attempt,
        proofs,
    })
}

fn check_header(header: &SessionHeader, plan: &Approved<Plan>, flow: Flow) -> Result<(), Reject> {
    let digest = PlanDigest::from_bytes(plan.digest());
    let (Subject::Ceremony(subject), Ceremony::Dkg(terms)) = (&header.subject, &plan.ceremony)
    else {
        return Err(Reject::SessionMismatch);
    };
    let is_this = header.flow == flow
        && subject.plan == digest
        && subject.ceremony_id == plan.ceremony_id
        && subject.rules == plan.rules
        && header.key_id == plan.key_id(digest)
        && header.share_version == plan.share_version()
        && header.epoch == terms.first_epoch;
    if is_this {
        Ok(())
    } else {
        Err(Reject::SessionMismatch)
    }
}

/// The digests of everybody's round one.
fn round1(
    record: &CeremonyRecord,
    plan: &Approved<Plan>,
    attempt: SessionId,
) -> Result<Vec<MessageDigest>, Reject> {
    let words = words_of_all(&record.round1, plan)?;
    let threshold = usize::from(plan.threshold.value());
    for (word, member) in words.iter().zip(&plan.roster) {
        let word: &DkgRound1 = word;
        if word.attempt != attempt || word.plan != PlanDigest::from_bytes(plan.digest()) {
            return Err(Reject::SessionMismatch);
        }
        if word.member != member.identifier {
            return Err(Reject::SessionMembers);
        }
        if word.commitment.len() != threshold {
            return Err(Reject::DkgCommitment);
        }
    }
    Ok(digests(&words))
}

fn manifests(
    record: &CeremonyRecord,
    plan: &Plan,
    attempt: SessionId,
    round1: &[MessageDigest],
) -> Result<Vec<Verified<DkgManifest>>, Reject> {
    let words = words_of_all(&record.manifests, plan)?;
    for (word, member) in words.iter().zip(&plan.roster) {
        if word.attempt != attempt || word.member != member.identifier {
            return Err(Reject::SessionMismatch);
        }
        if *word.round1 != *round1 {
            return Err(Reject::DkgEquivocation);
        }
    }
    Ok(words)
}

/// Everybody was delivered everybody's manifest, and of each other member what it had signed.
fn check_deliveries(
    record: &CeremonyRecord,
    plan: &Plan,
    manifests: &[Verified<DkgManifest>],
) -> Result<(), Reject> {
    if record.deliveries.len() != plan.roster.len() {
        return Err(Reject::PackageMembers);
    }
    for (delivery, recipient) in record.deliveries.iter().zip(&plan.roster) {
        let Delivery {
            manifests: delivered,
            packages,
        } = delivery;
        if **delivered != *record.manifests {
            return Err(Reject::DkgEquivocation);
        }
        let recipient = recipient.identifier;
        let senders = others(plan, recipient);
        if !packages.iter().map(|proven| proven.sender).eq(senders) {
            return Err(Reject::PackageMembers);
        }
        for proven in packages {
            let manifest = manifests.iter().find(|word| word.member == proven.sender);
            let manifest = manifest.ok_or(Reject::NotAMember)?;
            check_package(proven, manifest, recipient, plan)?;
        }
    }
    Ok(())
}

fn check_package(
    proven: &ProvenPackage,
    manifest: &DkgManifest,
    recipient: Identifier,
    plan: &Plan,
) -> Result<(), Reject> {
    let place = others(plan, proven.sender).position(|other| other == recipient);
    let place = place.and_then(|place| u64::try_from(place).ok());
    let size = u64::try_from(plan.roster.len().saturating_sub(1)).unwrap_or(u64::MAX);
    let hashes = proven.path.iter().map(|hash| *hash.as_bytes()).collect();
    let path = InclusionProof::from_hashes(hashes).map_err(|_| Reject::DkgEquivocation)?;
    let leaf = LeafHash::of(&package_leaf(&proven.package)?);
    let place = place.filter(|_| proven.package.recipient == recipient);
    path.verify(
        leaf,
        place.ok_or(Reject::PackageMembers)?,
        TreeSize::new(size),
        manifest.packages,
    )
    .map_err(|_| Reject::DkgEquivocation)
}

fn check_proof(
    proof: &ProofRecord,
    sharing: &CertifiedSharing,
    coordinators: &[IdentityKey],
) -> Result<Vec<Identifier>, Reject> {
    let header = header_of(&proof.header, coordinators)?;
    check_header(&header, sharing.plan(), Flow::ProofOfLife)?;
    let challenge = Item::proof_of_life(
        sharing.plan_digest(),
        sharing.share_version(),
        &header.members,
        &header.nonce,
    )?;
    let round = Round {
        header: &proof.header,
        commitments: &proof.commitments,
        package: &proof.package,
        shares: &proof.shares,
    };
    round.check(
        sharing.plan(),
        sharing.public(),
        coordinators,
        &[challenge],
        &[proof.signature],
    )?;
    Ok(header.members.to_vec())
}

fn others(plan: &Plan, member: Identifier) -> impl Iterator<Item = Identifier> {
    plan.roster
        .iter()
        .map(|entry| entry.identifier)
        .filter(move |other| *other != member)
}

/// One word of each member of the plan, in its order.
fn words_of_all<T: firn_protocol::envelope::Document>(
    words: &[Envelope<T>],
    plan: &Plan,
) -> Result<Vec<Verified<T>>, Reject> {
    if words.len() != plan.roster.len() {
        return Err(Reject::PackageMembers);
    }
    plan.roster
        .iter()
        .zip(words)
        .map(|(member, word)| Ok(word.clone().verify(&member.identity)?))
        .collect()
}

fn digests<T>(words: &[Verified<T>]) -> Vec<MessageDigest> {
    words
        .iter()
        .map(|word| MessageDigest::from_bytes(word.digest()))
        .collect()
}

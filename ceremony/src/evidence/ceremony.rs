//! The record of a DKG. It decides whether every member said what the certificates bind, whether the
//! certified key is the one that was dealt, and whether every share has proved that it signs.

use firn_client::evidence::header_of;
use firn_protocol::{
    documents::{Ceremony, Plan},
    envelope::{Approved, Document, Envelope, Verified},
    ids::{Flow, Identifier, MessageDigest, PlanDigest, SessionId},
    keys::IdentityKey,
    merkle::{InclusionProof, LeafHash, TreeSize},
    messages::{
        CeremonyRecord, Delivery, DkgManifest, DkgRound1, ProvenPackage, package_leaf,
        transcript_digest,
    },
    reject::Reject,
    session::{SessionHeader, Subject},
    sharing::CertifiedSharing,
    threshold::dealt_key,
};

use super::proofs::check_proofs;

/// A DKG that proves itself.
#[derive(Debug, Clone)]
pub struct CheckedCeremony {
    /// The key, not usable yet.
    pub sharing: CertifiedSharing,
    /// The attempt that made it.
    pub attempt: SessionId,
    /// The members that signed together for each proof of life, ascending.
    pub proofs: Vec<Vec<Identifier>>,
}

/// The steps of the check, in their order: each stands on those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CeremonyStep {
    /// The attempt's header.
    Attempt,
    /// Everybody's round one.
    Round1,
    /// The clocks in it.
    InTime,
    /// Everybody's manifest.
    Manifests,
    /// What each member was delivered.
    Deliveries,
    /// Everybody's certificate.
    Certificates,
    /// What the certificates bind.
    Transcript,
    /// The key that they name.
    DealtKey,
    /// The proofs of life.
    Proofs,
}

impl CeremonyStep {
    /// What holds after the step.
    #[must_use]
    pub const fn claim(self) -> &'static str {
        match self {
            Self::Attempt => "the attempt is of this plan, by a coordinator of the Authorities",
            Self::Round1 => {
                "round one: every member, by its own signature, for this attempt, with exactly t \
                 commitments and a sealing key for each other member"
            }
            Self::InTime => "by every member's clock the plan had not expired",
            Self::Manifests => "every member saw the very same round one from everybody",
            Self::Deliveries => {
                "every member was delivered exactly what each other member had sealed and signed"
            }
            Self::Certificates => "every member certified the same key from the same messages",
            Self::Transcript => "the certificates bind exactly the messages in this record",
            Self::DealtKey => "the certified key is the one that round one's commitments make",
            Self::Proofs => "proofs of life: every share has signed, by its owner's own signature",
        }
    }
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
    check_steps(record, plan, coordinators, |_, _| {})
}

/// The same, telling of each step; after the first that does not hold there are no more.
///
/// # Errors
/// The first rule that is broken.
pub fn check_steps(
    record: &CeremonyRecord,
    plan: Approved<Plan>,
    coordinators: &[IdentityKey],
    mut told: impl FnMut(CeremonyStep, Result<(), Reject>),
) -> Result<CheckedCeremony, Reject> {
    let mut step = |step, outcome: Result<(), Reject>| {
        told(step, outcome);
        outcome
    };
    let header = check_attempt(record, &plan, coordinators);
    step(CeremonyStep::Attempt, broken(&header))?;
    let attempt = header?.session_id();
    let words = round1(record, &plan, attempt);
    step(CeremonyStep::Round1, broken(&words))?;
    let words = words?;
    step(CeremonyStep::InTime, in_time(&words, &plan))?;
    let seen = digests(&words);
    let manifests = manifests(record, &plan, attempt, &seen);
    step(CeremonyStep::Manifests, broken(&manifests))?;
    let manifests = manifests?;
    let deliveries = check_deliveries(record, &plan, &manifests);
    step(CeremonyStep::Deliveries, deliveries)?;
    let plan_digest = PlanDigest::from_bytes(plan.digest());
    let transcript = transcript_digest(plan_digest, attempt, &seen, &digests(&manifests))?;
    let sharing = CertifiedSharing::verify(plan, &record.certificates);
    step(CeremonyStep::Certificates, broken(&sharing))?;
    let sharing = sharing?;
    let bound = sharing
        .certificates()
        .iter()
        .all(|certificate| certificate.attempt == attempt && certificate.transcript == transcript);
    let bound = bound.then_some(()).ok_or(Reject::CertificateMismatch);
    step(CeremonyStep::Transcript, bound)?;
    step(CeremonyStep::DealtKey, check_key(&words, &sharing))?;
    let proofs = check_proofs(&record.proofs, &sharing, coordinators);
    step(CeremonyStep::Proofs, broken(&proofs))?;
    Ok(CheckedCeremony {
        sharing,
        attempt,
        proofs: proofs?,
    })
}

fn broken<T>(outcome: &Result<T, Reject>) -> Result<(), Reject> {
    outcome.as_ref().map(|_| ()).map_err(|code| *code)
}

fn check_attempt(
    record: &CeremonyRecord,
    plan: &Approved<Plan>,
    coordinators: &[IdentityKey],
) -> Result<Verified<SessionHeader>, Reject> {
    let header = header_of(&record.header, coordinators)?;
    check_header(&header, plan, Flow::Dkg)?;
    let everybody = plan.roster.iter().map(|member| &member.identifier);
    if header.members.iter().eq(everybody) {
        Ok(header)
    } else {
        Err(Reject::SessionMembers)
    }
}

pub(super) fn check_header(
    header: &SessionHeader,
    plan: &Approved<Plan>,
    flow: Flow,
) -> Result<(), Reject> {
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

/// Everybody's round one.
fn round1(
    record: &CeremonyRecord,
    plan: &Approved<Plan>,
    attempt: SessionId,
) -> Result<Vec<Verified<DkgRound1>>, Reject> {
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
        let senders = word.sealing_keys.iter().map(|(sender, _)| *sender);
        if word.commitment.len() != threshold || !senders.eq(others(plan, member.identifier)) {
            return Err(Reject::DkgCommitment);
        }
        let head = word.standing.checkpoint.clone();
        head.verify(&member.identity)?;
    }
    Ok(words)
}

fn in_time(words: &[Verified<DkgRound1>], plan: &Plan) -> Result<(), Reject> {
    let in_time = words.iter().all(|word| word.standing.time < plan.expires);
    in_time.then_some(()).ok_or(Reject::PlanExpired)
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

/// Group key and verifying shares, worked out again from everybody's commitments.
fn check_key(words: &[Verified<DkgRound1>], sharing: &CertifiedSharing) -> Result<(), Reject> {
    let commitments: Vec<_> = words
        .iter()
        .map(|word| (word.member, &*word.commitment))
        .collect();
    let dealt = dealt_key(sharing.plan().threshold, &commitments);
    let dealt = dealt.map_err(|_| Reject::DkgCommitment)?;
    if dealt == *sharing.public() {
        Ok(())
    } else {
        Err(Reject::CertificateMismatch)
    }
}

fn others(plan: &Plan, member: Identifier) -> impl Iterator<Item = Identifier> {
    plan.roster
        .iter()
        .map(|entry| entry.identifier)
        .filter(move |other| *other != member)
}

/// One word of each member of the plan, in its order.
fn words_of_all<T: Document>(
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

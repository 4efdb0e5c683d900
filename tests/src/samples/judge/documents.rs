//! Each document alone, as the bytes of its envelope.

use firn_protocol::{
    documents::{
        Activation, Authorities, Certificate, Checkpoint, Completed, Enrollment, Grant, Intent,
        Outcome, Plan, Policy, Receipt,
    },
    envelope::{Document, Endorsed, Envelope, Verified},
    ids::{PackageDigest, PlanDigest, PolicyDigest},
    keys::IdentityKey,
    messages::{
        Acknowledgement, Commitments, Complaint, DkgManifest, DkgRound1, Hello, KeyQuery,
        MemberStatus, OutcomeQuery, OutcomeStatement, PackageBody, PresenceQuery, Refusal,
        ShareList, StatusQuery, Welcome,
    },
    reject::Reject,
    session::SessionHeader,
    sharing::verify_plan,
    signable::Signable,
    threshold::{SealingContext, dealt_share_matches, open, sealing_key_of},
};

use super::{
    Verdict, check_standing, connection, decode, endorsed, ensure, header, member_word,
    of_the_request, outcome, status, word,
};
use crate::samples::{NOW, World, dealing::Dealing, people::member};

macro_rules! judges {
    ($($(#[$meta:meta])* $name:ident: $document:ident, $judge:path;)+) => {$(
        $(#[$meta])*
        pub(in crate::samples) fn $name(world: &World, bytes: &[u8]) -> Verdict {
            let envelope: Envelope<$document> = Envelope::from_bytes(bytes.to_vec())?;
            $judge(world, &envelope)
        }
    )+};
}

judges! {
    /// The policy of the samples' key.
    policy: Policy, policy_envelope;
    /// Member 1's certificate.
    certificate: Certificate, certificate_envelope;
    /// Member 1's head.
    checkpoint: Checkpoint, checkpoint_envelope;
    /// The grant of the samples' request.
    grant: Grant, grant_envelope;
    /// The intent of the samples' request.
    intent: Intent, intent_envelope;
    /// Member 1's receipt.
    receipt: Receipt, receipt_envelope;
    /// The header of the samples' signing session.
    session: SessionHeader, session_envelope;
    /// The requester's hello.
    hello: Hello, connection::hello;
    /// The coordinator's welcome.
    welcome: Welcome, connection::welcome;
    /// Member 1's commitments.
    commitments: Commitments, commitments_envelope;
    /// The coordinator's word on the lists.
    package: PackageBody, package_envelope;
    /// Member 1's shares.
    shares: ShareList, shares_envelope;
    /// Member 3's refusal.
    refusal: Refusal, refusal_envelope;
    /// The coordinator's question.
    key_query: KeyQuery, key_query_envelope;
    /// Member 1's word that it has stored the activation.
    acknowledgement: Acknowledgement, acknowledgement_envelope;
    /// An operator's question.
    presence_query: PresenceQuery, presence_query_envelope;
    /// Member 1's round one.
    dkg_round1: DkgRound1, dkg_round1_envelope;
    /// Member 1's manifest.
    dkg_manifest: DkgManifest, dkg_manifest_envelope;
    /// Member 1's complaint about member 2.
    complaint: Complaint, complaint_envelope;
    /// The requester's question.
    outcome_query: OutcomeQuery, outcome::query_of_owner;
    /// Member 1's word on the samples' request.
    outcome_statement: OutcomeStatement, outcome::statement;
    /// An operator's question.
    status_query: StatusQuery, status::query;
    /// Member 1's word on itself.
    member_status: MemberStatus, status::status;
    /// What member 1's machine gave the operators.
    enrollment: Enrollment, enrollment_envelope;
}

/// By an operator who accepts them on a machine.
pub(in crate::samples) fn authorities(_: &World, bytes: &[u8]) -> Verdict {
    let endorsed: Endorsed = decode(bytes, Endorsed::LIMIT)?;
    let (authorities, _) = endorsed.read::<Authorities>()?;
    ensure(authorities.is_sound(), Reject::UnsoundDocument)?;
    let operators = &authorities.operators;
    endorsed.verify::<Authorities>(&operators.identities(), usize::from(operators.needed))?;
    Ok(())
}

/// By an operator who accepts it on a machine.
pub(in crate::samples) fn plan(world: &World, bytes: &[u8]) -> Verdict {
    let endorsed: Endorsed = decode(bytes, Endorsed::LIMIT)?;
    let plan = verify_plan(endorsed, &world.authorities, world.authorities_digest)?;
    ensure(NOW < plan.expires, Reject::PlanExpired)?;
    ensure(*plan == *world.plan, Reject::PlanNotAccepted)
}

/// By a member of the key.
pub(in crate::samples) fn activation(world: &World, bytes: &[u8]) -> Verdict {
    let envelope: Endorsed = decode(bytes, Endorsed::LIMIT)?;
    let activation = endorsed::<Activation>(world, &envelope)?;
    let bound = activation.key_id == world.key_id()
        && activation.share_version == world.certified.share_version()
        && activation.certificates == world.certified.set_digest()
        && activation.policy == world.policy_digest()
        && activation.authorities == world.authorities_digest;
    ensure(bound, Reject::ActivationMismatch)
}

pub(super) fn policy_envelope(world: &World, envelope: &Envelope<Policy>) -> Verdict {
    let policy = word(&world.authorities.policy_authority, envelope)?;
    ensure(policy.is_sound(), Reject::UnsoundDocument)?;
    ensure(policy.key_id == world.key_id(), Reject::GrantKeyMismatch)
}

pub(super) fn certificate_envelope(world: &World, envelope: &Envelope<Certificate>) -> Verdict {
    let certificate = member_word(world, 1, envelope)?;
    let agrees = certificate.agrees_with(&world.certified.certificates()[0]);
    ensure(
        agrees && certificate.member == member(1),
        Reject::CertificateMismatch,
    )
}

pub(super) fn checkpoint_envelope(world: &World, envelope: &Envelope<Checkpoint>) -> Verdict {
    member_word(world, 1, envelope).map(|_| ())
}

fn grant_envelope(world: &World, envelope: &Envelope<Grant>) -> Verdict {
    let grant = word(&world.authorities.grant_authority, envelope)?;
    ensure(grant.key_id == world.key_id(), Reject::GrantKeyMismatch)?;
    ensure(grant.not_before <= NOW, Reject::GrantNotYetValid)?;
    ensure(NOW < grant.expires, Reject::GrantExpired)?;
    ensure(
        grant.owner == world.people.requester_id(),
        Reject::GrantOwnerMismatch,
    )
}

fn intent_envelope(world: &World, envelope: &Envelope<Intent>) -> Verdict {
    let intent = word(&world.people.requester.key(), envelope)?;
    let plan = world.certified.plan();
    let group_key = world.certified.public().group_key();
    let signable = Signable::of_intent(&intent, world.key_id(), plan.network, group_key)?;
    let (_, expected) = of_the_request(world);
    ensure(
        signable.intent_digest() == expected,
        Reject::GrantIntentMismatch,
    )
}

pub(super) fn receipt_envelope(world: &World, envelope: &Envelope<Receipt>) -> Verdict {
    receipt_of(world, 1, envelope)
}

pub(super) fn receipt_of(world: &World, number: u16, envelope: &Envelope<Receipt>) -> Verdict {
    let receipt = member_word(world, number, envelope)?;
    let (session, intent) = of_the_request(world);
    ensure(receipt.session == session, Reject::SessionMismatch)?;
    ensure(
        receipt.request_id == world.opening.grant.request_id,
        Reject::GrantRequestMismatch,
    )?;
    ensure(receipt.intent == intent, Reject::GrantIntentMismatch)?;
    ensure(
        receipt.policy == world.policy_digest(),
        Reject::GrantPolicyMismatch,
    )?;
    ensure(receipt.key_id == world.key_id(), Reject::GrantKeyMismatch)?;
    let signed = match &receipt.outcome {
        Outcome::Completed(Completed { signatures }) => **signatures == *world.request.signatures,
        Outcome::Refused(_) => false,
    };
    ensure(signed, Reject::FinalSignature)?;
    member_word(world, number, &receipt.checkpoint).map(|_| ())
}

fn session_envelope(world: &World, envelope: &Envelope<SessionHeader>) -> Verdict {
    let verified = header(world, envelope)?;
    ensure(
        verified.session_id() == world.request.id(),
        Reject::SessionMismatch,
    )
}

pub(super) fn commitments_envelope(world: &World, envelope: &Envelope<Commitments>) -> Verdict {
    let said = member_word(world, 1, envelope)?;
    ensure(said.session == world.request.id(), Reject::SessionMismatch)?;
    ensure(said.member == member(1), Reject::PackageMembers)?;
    ensure(
        said.inputs.len() == world.request.items.len(),
        Reject::InputCount,
    )?;
    check_standing(world, 1, &said.standing)
}

fn package_envelope(world: &World, envelope: &Envelope<PackageBody>) -> Verdict {
    let body = word(&world.people.coordinator.key(), envelope)?;
    ensure(body.session == world.request.id(), Reject::SessionMismatch)?;
    ensure(
        body.inputs.len() == world.request.items.len(),
        Reject::InputCount,
    )?;
    ensure(
        body.inputs == world.request.body.inputs,
        Reject::PackageDigest,
    )
}

pub(super) fn shares_envelope(world: &World, envelope: &Envelope<ShareList>) -> Verdict {
    let said = member_word(world, 1, envelope)?;
    ensure(said.session == world.request.id(), Reject::SessionMismatch)?;
    ensure(said.member == member(1), Reject::SessionMembers)?;
    let package = PackageDigest::from_bytes(world.request.body.digest());
    ensure(said.package == package, Reject::PackageDigest)?;
    ensure(
        said.shares.len() == world.request.items.len(),
        Reject::InputCount,
    )?;
    member_word(world, 1, &said.checkpoint).map(|_| ())
}

pub(super) fn refusal_envelope(world: &World, envelope: &Envelope<Refusal>) -> Verdict {
    let refusal = member_word(world, 3, envelope)?;
    ensure(
        refusal.session.0.is_none_or(|id| id == world.request.id()),
        Reject::SessionMismatch,
    )
}

pub(super) fn key_query_envelope(world: &World, envelope: &Envelope<KeyQuery>) -> Verdict {
    key_query_of(world, &[world.people.coordinator.key()], envelope)
}

pub(super) fn key_query_of(
    world: &World,
    asking: &[IdentityKey],
    envelope: &Envelope<KeyQuery>,
) -> Verdict {
    let query = one_of(asking, envelope)?;
    ensure(query.key_id == world.key_id(), Reject::KeyUnknown)
}

/// By the operators, who know from elsewhere whose machine it is.
fn enrollment_envelope(_: &World, envelope: &Envelope<Enrollment>) -> Verdict {
    Enrollment::verify(envelope.clone())?;
    Ok(())
}

pub(super) fn acknowledgement_envelope(
    world: &World,
    envelope: &Envelope<Acknowledgement>,
) -> Verdict {
    acknowledgement_of(world, 1, envelope)
}

pub(super) fn acknowledgement_of(
    world: &World,
    number: u16,
    envelope: &Envelope<Acknowledgement>,
) -> Verdict {
    let said = member_word(world, number, envelope)?;
    ensure(said.member == member(number), Reject::NotAMember)?;
    let what = *world.activation_digest().as_bytes();
    ensure(*said.what.as_bytes() == what, Reject::UnexpectedMessage)?;
    check_standing(world, number, &said.standing)
}

pub(super) fn presence_query_envelope(
    world: &World,
    envelope: &Envelope<PresenceQuery>,
) -> Verdict {
    one_of(&world.authorities.operators.identities(), envelope).map(|_| ())
}

fn one_of<T: Document + Clone + 'static>(
    keys: &[IdentityKey],
    envelope: &Envelope<T>,
) -> Result<Verified<T>, Reject> {
    let claimed = envelope.claimed_signer()?;
    ensure(keys.contains(&claimed), Reject::UnknownSigner)?;
    word(&claimed, envelope)
}

pub(super) fn dkg_round1_envelope(world: &World, envelope: &Envelope<DkgRound1>) -> Verdict {
    round1_of(world, &world.dealing, 1, envelope).map(|_| ())
}

pub(super) fn round1_of(
    world: &World,
    dealing: &Dealing,
    number: u16,
    envelope: &Envelope<DkgRound1>,
) -> Result<Verified<DkgRound1>, Reject> {
    let said = member_word(world, number, envelope)?;
    let bound = said.attempt == dealing.header.session_id()
        && said.plan == world.certified.plan_digest()
        && said.member == member(number);
    ensure(bound, Reject::SessionMismatch)?;
    let senders = said.sealing_keys.iter().map(|(sender, _)| sender.value());
    let expected = (1..=3).filter(|sender| *sender != number);
    let degree = usize::from(world.plan.threshold.value());
    let fits = said.commitment.len() == degree && senders.eq(expected);
    ensure(fits, Reject::DkgCommitment)?;
    check_standing(world, number, &said.standing)?;
    Ok(said)
}

fn dkg_manifest_envelope(world: &World, envelope: &Envelope<DkgManifest>) -> Verdict {
    manifest_of(world, &world.dealing, 1, envelope).map(|_| ())
}

pub(super) fn manifest_of(
    world: &World,
    dealing: &Dealing,
    number: u16,
    envelope: &Envelope<DkgManifest>,
) -> Result<Verified<DkgManifest>, Reject> {
    let said = member_word(world, number, envelope)?;
    let bound = said.attempt == dealing.header.session_id() && said.member == member(number);
    ensure(bound, Reject::SessionMismatch)?;
    ensure(
        *said.round1 == *dealing.round1_digests(),
        Reject::DkgEquivocation,
    )?;
    Ok(said)
}

/// By anybody who wants to know which of the two lies: the package is the accused's, the key is the
/// one that the complainer announced for it, and what it opens is not what the accused promised.
pub(super) fn complaint_envelope(world: &World, envelope: &Envelope<Complaint>) -> Verdict {
    let said = member_word(world, 1, envelope)?;
    let dealing = &world.broken;
    let proven = &said.package;
    ensure(
        said.attempt == dealing.header.session_id(),
        Reject::SessionMismatch,
    )?;
    let about_own = said.member == member(1) && proven.package.recipient == member(1);
    ensure(about_own, Reject::SessionMembers)?;
    super::member::check_package(world, dealing, 1, proven)?;
    let sender = usize::from(proven.sender.value()) - 1;
    let announced = &dealing.round1[0].sealing_keys;
    let announced = announced.iter().find(|(from, _)| *from == proven.sender);
    let key = sealing_key_of(&said.secret).map_err(|_| Reject::DkgShare)?;
    ensure(
        announced.is_some_and(|(_, known)| *known == key),
        Reject::DkgShare,
    )?;
    let context = SealingContext {
        plan: PlanDigest::from_bytes(world.plan.digest()),
        attempt: said.attempt,
        sender: proven.sender,
        recipient: member(1),
        sender_round1: dealing.round1_digests()[sender],
    };
    let commitment = &dealing.round1[sender].commitment;
    let good = open(&context, &said.secret, &proven.package)
        .is_ok_and(|share| dealt_share_matches(commitment, member(1), &share));
    ensure(!good, Reject::DkgShare)
}

/// Every document that makes a sharing usable.
pub(super) fn key_documents(
    world: &World,
    documents: &firn_protocol::messages::KeyDocuments,
) -> Verdict {
    // First what is remembered, so that only what was changed is verified again.
    let plan = endorsed::<Plan>(world, &documents.plan)?;
    super::certified(world, &documents.certificates)?;
    policy_envelope(world, &documents.policy)?;
    let activation = endorsed::<Activation>(world, &documents.activation)?;
    let sharing = firn_protocol::sharing::ActiveSharing::verify(
        documents,
        &world.authorities,
        world.authorities_digest,
    )?;
    let policy: PolicyDigest = sharing.policy_digest();
    ensure(
        policy == activation.policy && sharing.certified().plan().digest() == plan.digest(),
        Reject::ActivationMismatch,
    )
}

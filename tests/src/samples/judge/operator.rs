//! Between the operator's tool and a coordinator.

use firn_protocol::{
    ids::Flow,
    limits,
    messages::{ActivationResult, CeremonyRecord, FromCeremony, Package, ProofRecord, ToCeremony},
    reject::Reject,
    sharing::verify_plan,
};

use super::{
    Verdict, certified, decode, documents as document, ensure, header, member,
    requester::check_round, status,
};
use crate::samples::{NOW, World, signing::Round};

/// What the coordinator does.
pub(in crate::samples) fn to_ceremony(world: &World, bytes: &[u8]) -> Verdict {
    match decode(bytes, limits::MAX_CEREMONY_MESSAGE)? {
        ToCeremony::Run(run) => {
            let plan = verify_plan(run.plan, &world.authorities, world.authorities_digest)?;
            ensure(NOW < plan.expires, Reject::PlanExpired)
        }
        ToCeremony::Deliver(deliver) => document::key_documents(world, &deliver.documents),
        ToCeremony::Presence(query) => document::presence_query_envelope(world, &query),
        ToCeremony::Status(query) => status::query(world, &query),
        ToCeremony::Key(query) => {
            let operators = world.authorities.operators.identities();
            document::key_query_of(world, &operators, &query)
        }
    }
}

/// What the operator's tool does. Progress, failure and presence are the coordinator's word, which
/// nobody acts on.
pub(in crate::samples) fn from_ceremony(world: &World, bytes: &[u8]) -> Verdict {
    match decode(bytes, limits::MAX_FRAME)? {
        FromCeremony::Progress(_) | FromCeremony::Failed(_) | FromCeremony::Presence(_) => Ok(()),
        FromCeremony::Certified(record) => ceremony(world, &record),
        FromCeremony::Delivered(result) => delivered(world, &result),
        FromCeremony::Status(report) => status::report(world, &report),
        FromCeremony::Key(documents) => document::key_documents(world, &documents),
    }
}

fn ceremony(world: &World, record: &CeremonyRecord) -> Verdict {
    let dealing = &world.dealing;
    let of = header(world, &record.header)?;
    ensure(
        of.session_id() == dealing.header.session_id(),
        Reject::SessionMismatch,
    )?;
    let members = world.plan.roster.len();
    ensure(record.round1.len() == members, Reject::SessionMembers)?;
    for (number, envelope) in (1..).zip(&record.round1) {
        document::round1_of(world, dealing, number, envelope)?;
    }
    ensure(record.manifests.len() == members, Reject::SessionMembers)?;
    for (number, manifest) in (1..).zip(&record.manifests) {
        document::manifest_of(world, dealing, number, manifest)?;
    }
    ensure(record.deliveries.len() == members, Reject::SessionMembers)?;
    for (number, delivery) in (1..).zip(&record.deliveries) {
        member::check_delivery(world, dealing, number, delivery, false)?;
        ensure(
            *delivery.manifests == *record.manifests,
            Reject::DkgEquivocation,
        )?;
    }
    let sharing = certified(world, &record.certificates)?;
    let is_this = sharing.set_digest() == world.certified.set_digest();
    ensure(is_this, Reject::CertificateMismatch)?;
    // With three members every pair proves.
    ensure(
        record.proofs.len() == world.proofs.len(),
        Reject::SessionMembers,
    )?;
    for (round, proof) in world.proofs.iter().zip(&record.proofs) {
        check_proof(world, round, proof)?;
    }
    Ok(())
}

fn check_proof(world: &World, round: &Round, proof: &ProofRecord) -> Verdict {
    let of = header(world, &proof.header)?;
    ensure(of.flow == Flow::ProofOfLife, Reject::UnexpectedMessage)?;
    ensure(of.session_id() == round.id(), Reject::SessionMismatch)?;
    let package = Package {
        body: proof.package.clone(),
        commitments: proof.commitments.clone(),
    };
    check_round(world, round, &package, &proof.shares)?;
    member::check_signatures(world, round, std::slice::from_ref(&proof.signature))
}

/// Acknowledgements prove themselves; who is missing, and why, is the coordinator's word. Together
/// they name every member once.
fn delivered(world: &World, result: &ActivationResult) -> Verdict {
    let mut named = Vec::new();
    for envelope in &result.acknowledgements {
        let signer = envelope.claimed_signer()?;
        let entry = world.plan.member(&signer).ok_or(Reject::UnknownSigner)?;
        let number = entry.identifier.value();
        document::acknowledgement_of(world, number, envelope)?;
        named.push(number);
    }
    named.extend(result.missing.iter().map(|(number, _)| number.value()));
    named.sort_unstable();
    ensure(named == [1, 2, 3], Reject::SessionMembers)
}

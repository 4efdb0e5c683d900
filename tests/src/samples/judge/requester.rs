//! Between the requester and a coordinator.

use firn_protocol::{
    ids::PackageDigest,
    limits,
    messages::{
        FromRequests, Package, RequestFailed, RequestSigned, SignRequest, SigningRecord, ToRequests,
    },
    reject::Reject,
};

use super::{
    Verdict, decode, documents as document, ensure, header, member, member_word, outcome, word,
};
use crate::samples::{World, people, signing::Round};

/// What the coordinator does: the signatures that it can check before it asks anybody.
pub(in crate::samples) fn to_requests(world: &World, bytes: &[u8]) -> Verdict {
    let requester = world.people.requester.key();
    match decode(bytes, limits::MAX_OPEN)? {
        ToRequests::Sign(request) => sign(world, &request),
        ToRequests::Outcome(query) => outcome::query(world, &query),
        ToRequests::Key(query) => document::key_query_of(world, &[requester], &query),
    }
}

fn sign(world: &World, request: &SignRequest) -> Verdict {
    let intent = word(&world.people.requester.key(), &request.intent)?;
    let grant = word(&world.authorities.grant_authority, &request.grant)?;
    ensure(grant.key_id == intent.key_id, Reject::GrantKeyMismatch)?;
    let signable = world.understand(&intent);
    ensure(
        signable.intent_digest() == grant.intent,
        Reject::GrantIntentMismatch,
    )?;
    // Nobody gives approvals in the samples.
    ensure(request.approvals.is_empty(), Reject::UnknownSigner)
}

/// What the requester does. Evidence is missing only from a stored answer, which a request that was
/// never made before cannot have.
pub(in crate::samples) fn from_requests(world: &World, bytes: &[u8]) -> Verdict {
    match decode(bytes, limits::MAX_FRAME)? {
        FromRequests::Signed(answer) => signed(world, &answer),
        FromRequests::Failed(answer) => failed(world, &answer),
        FromRequests::Outcome(report) => outcome::report(world, &report),
        FromRequests::Key(documents) => document::key_documents(world, &documents),
    }
}

fn signed(world: &World, answer: &RequestSigned) -> Verdict {
    ensure(
        answer.session == world.request.id(),
        Reject::SessionMismatch,
    )?;
    member::check_signatures(world, &world.request, &answer.signatures)?;
    let members = world.request.header.members.iter();
    let given = answer.receipts.iter().map(|(number, _)| number);
    ensure(given.eq(members), Reject::PackageMembers)?;
    for (number, receipt) in &answer.receipts {
        document::receipt_of(world, number.value(), receipt)?;
    }
    match &answer.evidence.0 {
        Some(record) => {
            let SigningRecord {
                header: envelope,
                commitments,
                package,
                shares,
            } = record;
            let of = header(world, envelope)?;
            ensure(
                of.session_id() == world.request.id(),
                Reject::SessionMismatch,
            )?;
            let package = Package {
                body: package.clone(),
                commitments: commitments.clone(),
            };
            check_round(world, &world.request, &package, shares)
        }
        None => Err(Reject::UnexpectedMessage),
    }
}

/// The evidence of one session: its package, and one list of shares of each member for it.
pub(super) fn check_round(
    world: &World,
    round: &Round,
    package: &Package,
    shares: &[firn_protocol::envelope::Envelope<firn_protocol::messages::ShareList>],
) -> Verdict {
    // A member's own entry needs no exception here: every entry is compared with what was said.
    let said = round.commitments.iter().map(|said| said.envelope());
    ensure(
        package.commitments.len() == round.commitments.len(),
        Reject::PackageMembers,
    )?;
    for (number, envelope) in round.header.members.iter().zip(&package.commitments) {
        member_word(world, number.value(), envelope)?;
    }
    ensure(package.commitments.iter().eq(said), Reject::PackageAltered)?;
    let body = word(&world.people.coordinator.key(), &package.body)?;
    ensure(body.session == round.id(), Reject::SessionMismatch)?;
    ensure(body.inputs == round.body.inputs, Reject::PackageDigest)?;
    ensure(shares.len() == round.shares.len(), Reject::SessionMembers)?;
    for (number, envelope) in round.header.members.iter().zip(shares) {
        let list = member_word(world, number.value(), envelope)?;
        let package = PackageDigest::from_bytes(body.digest());
        let bound = list.member == *number && list.session == round.id();
        ensure(bound, Reject::SessionMismatch)?;
        ensure(list.package == package, Reject::PackageDigest)?;
        ensure(list.shares.len() == round.items.len(), Reject::InputCount)?;
        member_word(world, number.value(), &list.checkpoint)?;
    }
    Ok(())
}

/// The refusals prove themselves; code, missing members and detail are the coordinator's word, which
/// nobody acts on.
fn failed(world: &World, answer: &RequestFailed) -> Verdict {
    for (number, refusal) in &answer.refusals {
        ensure(*number == people::member(3), Reject::NotAMember)?;
        document::refusal_envelope(world, refusal)?;
    }
    Ok(())
}

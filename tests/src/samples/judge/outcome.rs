//! What became of a request: a member judges the question, a requester each answer.

use firn_protocol::{
    documents::KeyHolder,
    envelope::Envelope,
    messages::{KnownRequest, OutcomeQuery, OutcomeReport, OutcomeStatement, RequestProgress},
    reject::Reject,
};

use super::{Verdict, documents as document, ensure, member_word, word};
use crate::samples::{World, people::member};

/// What a coordinator does before it asks anybody: any requester may ask it.
pub(super) fn query(world: &World, envelope: &Envelope<OutcomeQuery>) -> Verdict {
    asking(world, envelope).map(|_| ())
}

/// What a member does: only the owner of the highest epoch is told.
pub(super) fn query_of_owner(world: &World, envelope: &Envelope<OutcomeQuery>) -> Verdict {
    let holder = asking(world, envelope)?;
    let owner = world.ledger.owner(world.key_id());
    let owns = owner.is_none_or(|owner| owner == holder.id);
    ensure(owns, Reject::EpochOwnerConflict)
}

fn asking<'a>(
    world: &'a World,
    envelope: &Envelope<OutcomeQuery>,
) -> Result<&'a KeyHolder, Reject> {
    let claimed = envelope.claimed_signer()?;
    let mut requesters = world.authorities.requesters.iter();
    let holder = requesters.find(|holder| holder.key == claimed);
    let holder = holder.ok_or(Reject::UnknownSigner)?;
    let query = word(&claimed, envelope)?;
    ensure(query.key_id == world.key_id(), Reject::KeyUnknown)?;
    Ok(holder)
}

/// What the requester does with member 1's word.
pub(super) fn statement(world: &World, envelope: &Envelope<OutcomeStatement>) -> Verdict {
    statement_of(world, 1, envelope)
}

fn statement_of(world: &World, number: u16, envelope: &Envelope<OutcomeStatement>) -> Verdict {
    let said = member_word(world, number, envelope)?;
    let asked = world.outcome_query();
    ensure(said.nonce == asked.nonce, Reject::UnexpectedMessage)?;
    ensure(said.key_id == asked.key_id, Reject::GrantKeyMismatch)?;
    ensure(
        said.request_id == asked.request_id,
        Reject::GrantRequestMismatch,
    )?;
    ensure(said.member == member(number), Reject::NotAMember)?;
    member_word(world, number, &said.checkpoint)?;
    match &said.known.0 {
        Some(known) => known_request(world, number, known),
        None => Ok(()),
    }
}

/// A request id that stands for another intent is not this request. Signatures are known exactly
/// where there is a receipt that carries them.
fn known_request(world: &World, number: u16, known: &KnownRequest) -> Verdict {
    let same = known.intent == world.opening.grant.intent;
    ensure(same, Reject::RequestConflict)?;
    match (known.progress, &known.receipt.0) {
        (RequestProgress::Completed, Some(receipt)) => document::receipt_of(world, number, receipt),
        (RequestProgress::Open | RequestProgress::Released, None) => Ok(()),
        // Nothing refuses a request for good yet.
        (RequestProgress::Refused, _)
        | (RequestProgress::Completed, None)
        | (RequestProgress::Open | RequestProgress::Released, Some(_)) => {
            Err(Reject::UnsoundDocument)
        }
    }
}

/// What the requester does with everybody's. Who is missing is the coordinator's word.
pub(super) fn report(world: &World, report: &OutcomeReport) -> Verdict {
    let mut last = 0;
    for envelope in &report.statements {
        let signer = envelope.claimed_signer()?;
        let entry = world.plan.member(&signer).ok_or(Reject::UnknownSigner)?;
        let number = entry.identifier.value();
        statement_of(world, number, envelope)?;
        ensure(last < number, Reject::SessionMembers)?;
        last = number;
    }
    for (number, refusal) in &report.refusals {
        ensure(*number == member(3), Reject::NotAMember)?;
        document::refusal_envelope(world, refusal)?;
    }
    Ok(())
}

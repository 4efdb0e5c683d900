//! What became of a request: a member judges the question, a requester each answer.

use firn_client::evidence::{OutcomeTerms, RequestOutcome, Statements, Undetermined};
use firn_participant::session::AskedOutcome;
use firn_protocol::{
    codec::List,
    envelope::Envelope,
    keys::IdentityKey,
    messages::{OutcomeQuery, OutcomeReport, OutcomeStatement},
    reject::Reject,
};

use super::{Verdict, documents as document, ensure, remembered, word};
use crate::samples::{World, people::member};

/// What a coordinator does before it asks anybody: a requester asks for itself, with the key that its
/// connection is known by.
pub(super) fn query(world: &World, envelope: &Envelope<OutcomeQuery>) -> Verdict {
    let query = word(&world.people.requester.key(), envelope)?;
    ensure(query.key_id == world.key_id(), Reject::KeyUnknown)
}

/// What a member does: only the owner of the highest epoch is told.
pub(super) fn query_of_owner(world: &World, envelope: &Envelope<OutcomeQuery>) -> Verdict {
    let place = |key_id| {
        let known = (key_id == world.key_id()).then(|| member(1));
        known.ok_or(Reject::KeyUnknown)
    };
    AskedOutcome::judge(envelope, place, &world.authorities)?;
    // The look into the ledger, repeated: a table in memory is no durable ledger.
    let owner = world.ledger.owner(world.key_id());
    let owner = owner.and_then(|owner| world.authorities.requester(&owner).copied());
    let asks = envelope.claimed_signer()?;
    let owns = owner.is_none_or(|owner| owner == asks);
    ensure(owns, Reject::EpochOwnerConflict)
}

/// What the requester does with one member's word.
pub(super) fn statement(world: &World, envelope: &Envelope<OutcomeStatement>) -> Verdict {
    let nobody = IdentityKey::from_bytes([0; 32]);
    let name = ("outcome of a request", nobody, envelope.as_bytes().to_vec());
    remembered(name, || alone(world, envelope))
}

fn alone(world: &World, envelope: &Envelope<OutcomeStatement>) -> Verdict {
    let statements = List::new(vec![envelope.clone()]).unwrap();
    let report = OutcomeReport {
        statements,
        refusals: List::empty(),
        missing: List::empty(),
    };
    match together(world, &report) {
        RequestOutcome::Conflict(_) => Err(Reject::RequestConflict),
        RequestOutcome::Undetermined(Undetermined { ignored, .. }) => {
            ignored.first().map_or(Ok(()), |code| Err(*code))
        }
        RequestOutcome::Signed(_) | RequestOutcome::NotSigned(_) | RequestOutcome::Released(_) => {
            Ok(())
        }
    }
}

/// What the requester does with everybody's: what does not count by itself is left out there, and
/// refused here. Who is missing is the coordinator's word.
pub(super) fn report(world: &World, report: &OutcomeReport) -> Verdict {
    for envelope in &report.statements {
        statement(world, envelope)?;
    }
    for (number, refusal) in &report.refusals {
        ensure(*number == member(3), Reject::NotAMember)?;
        document::refusal_envelope(world, refusal)?;
    }
    Ok(())
}

fn together(world: &World, report: &OutcomeReport) -> RequestOutcome {
    let asked = world.outcome_query();
    let signable = world.understand(&world.opening.intent);
    let mut statements = Statements::new(OutcomeTerms {
        sharing: &world.key.sharing,
        request_id: asked.request_id,
        nonce: asked.nonce,
        signable: Some(&signable),
        granted_until: Some(world.opening.grant.expires),
    });
    statements.add(report);
    statements.judge()
}

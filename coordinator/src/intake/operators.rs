//! What the operator's tool may ask: run a ceremony, deliver documents, say who is there. It
//! decides nothing that the operators have not signed.

use std::sync::Arc;

use firn_protocol::{
    codec::{self, List},
    documents::RosterEntry,
    envelope::{Envelope, Verified},
    ids::MessageDigest,
    keys::IdentityKey,
    limits,
    messages::{
        Acknowledgement, ActivationResult, CeremonyFailed, Deliver, FromCeremony, FromMember,
        KeyQuery, MemberPresence, Presence, PresenceQuery, ToCeremony, ToMember,
    },
    reject::Reject,
    sharing::ActiveSharing,
};
use firn_transport::{Connection, FrameReceiver, FrameSender};
use tokio::{sync::OwnedSemaphorePermit, task::JoinSet};

use super::{ceremony, every_stream, question, room, status::status, tell_last};
use crate::{
    carry::ask,
    keys::{documents, newest},
    session::dkg::CeremonyFault,
    state::Shared,
};

/// The step that a refusal before anybody was asked is reported under.
const ACCEPT: &str = "accept";

/// Serves an operator's tool that speaks with this key.
pub(crate) async fn operators(
    shared: &Arc<Shared>,
    connection: &Connection,
    operator: IdentityKey,
) {
    every_stream(connection, |sender, receiver| {
        serve(Arc::clone(shared), operator, sender, receiver)
    })
    .await;
}

async fn serve(
    shared: Arc<Shared>,
    operator: IdentityKey,
    mut sender: FrameSender,
    mut receiver: FrameReceiver,
) {
    let patience = shared.bounds.step();
    // The place is held until the answer has arrived: a coordinator that stops waits for that.
    let (answer, _place) = match room(&shared, &shared.questions) {
        Ok(place) => {
            let asked = answer_to(&shared, &operator, &mut sender, &mut receiver, place).await;
            (asked.0, Some(asked.1))
        }
        Err(code) => (Err(code), None),
    };
    let answer = answer.or_else(refused);
    let told = match &answer {
        // What is too large to be told is at least named.
        Ok(answer) if is_too_large(answer) => match refused(Reject::TooLarge) {
            Ok(named) => tell_last(sender, &named, patience).await,
            Err(code) => Err(code),
        },
        Ok(answer) => tell_last(sender, answer, patience).await,
        Err(code) => Err(*code),
    };
    if let Err(code) = told {
        tracing::info!(code = %code, "the operator did not take its answer");
    }
}

fn is_too_large(answer: &FromCeremony) -> bool {
    codec::encode(answer).map_or(true, |frame| frame.len() > limits::MAX_FRAME)
}

/// The answer to the question of a stream, and the place that it was worked out in.
async fn answer_to(
    shared: &Arc<Shared>,
    operator: &IdentityKey,
    sender: &mut FrameSender,
    receiver: &mut FrameReceiver,
    mut place: OwnedSemaphorePermit,
) -> (Result<FromCeremony, Reject>, OwnedSemaphorePermit) {
    let limit = limits::MAX_CEREMONY_MESSAGE;
    let answer = match question(receiver, limit, shared.bounds.step()).await {
        Ok(ToCeremony::Run(run)) => match room(shared, &shared.ceremonies) {
            Ok(at_work) => {
                place = at_work;
                ceremony::run(shared, run, sender).await
            }
            Err(code) => Err(code),
        },
        Ok(ToCeremony::Deliver(deliver)) => match room(shared, &shared.ceremonies) {
            Ok(at_work) => {
                place = at_work;
                deliver_to_all(shared, deliver).await
            }
            Err(code) => Err(code),
        },
        Ok(ToCeremony::Presence(query)) => presence(shared, query),
        Ok(ToCeremony::Status(query)) => status(shared, query).await.map(FromCeremony::Status),
        Ok(ToCeremony::Key(query)) => key(shared, operator, query).await,
        Err(code) => Err(code),
    };
    (answer, place)
}

async fn key(
    shared: &Arc<Shared>,
    operator: &IdentityKey,
    query: Envelope<KeyQuery>,
) -> Result<FromCeremony, Reject> {
    let query = query.verify(operator)?;
    let sharing = newest(shared, query.key_id).await?;
    documents(&sharing).map(FromCeremony::Key)
}

fn refused(code: Reject) -> Result<FromCeremony, Reject> {
    tracing::info!(code = %code, "an operator's question was refused");
    failed(CeremonyFault::here(code, ACCEPT))
}

/// The answer that tells of a fault.
pub(super) fn failed(fault: CeremonyFault) -> Result<FromCeremony, Reject> {
    let message: CeremonyFailed = fault.to_message().ok_or(Reject::Internal)?;
    Ok(FromCeremony::Failed(message))
}

fn presence(shared: &Shared, query: Envelope<PresenceQuery>) -> Result<FromCeremony, Reject> {
    query.verify_any(&shared.authorities.operators.identities())?;
    let members = shared
        .registry()
        .members()
        .map(|(id, member)| MemberPresence {
            id: id.clone(),
            software: member.software.clone(),
            since: member.since,
        })
        .collect();
    let ceremonies = shared.running().iter().copied().collect();
    Ok(FromCeremony::Presence(Presence {
        members: List::new(members).ok_or(Reject::TooLarge)?,
        ceremonies: List::new(ceremonies).ok_or(Reject::TooLarge)?,
    }))
}

/// Hands verified documents to every member of their roster; whoever is missing is named.
async fn deliver_to_all(shared: &Arc<Shared>, deliver: Deliver) -> Result<FromCeremony, Reject> {
    let digest = shared.authorities_digest();
    let sharing = ActiveSharing::verify(&deliver.documents, &shared.authorities, digest)?;
    let what = MessageDigest::from_bytes(*sharing.activation_digest().as_bytes());
    let key_id = sharing.certified().key_id();
    let message = Arc::new(ToMember::Deliver(deliver));
    let mut asked = JoinSet::new();
    for entry in sharing.certified().plan().roster.iter().cloned() {
        let (shared, message) = (Arc::clone(shared), Arc::clone(&message));
        asked.spawn(async move {
            let answer = deliver_to(&shared, &entry, &message, what).await;
            (entry.identifier, answer)
        });
    }
    let mut acknowledged = Vec::new();
    let mut missing = Vec::new();
    while let Some(answer) = asked.join_next().await {
        match answer {
            Ok((member, Ok(word))) => acknowledged.push((member, word.into_envelope())),
            Ok((member, Err(code))) => {
                tracing::warn!(%key_id, %member, code = %code, "documents not delivered");
                missing.push((member, code));
            }
            Err(_) => return Err(Reject::Internal),
        }
    }
    acknowledged.sort_by_key(|(member, _)| *member);
    missing.sort_unstable_by_key(|(member, _)| *member);
    shared.keys().keep(Arc::new(sharing));
    let acknowledgements = acknowledged.into_iter().map(|(_, word)| word).collect();
    Ok(FromCeremony::Delivered(ActivationResult {
        acknowledgements: List::new(acknowledgements).ok_or(Reject::TooLarge)?,
        missing: List::new(missing).ok_or(Reject::TooLarge)?,
    }))
}

async fn deliver_to(
    shared: &Shared,
    entry: &RosterEntry,
    message: &ToMember,
    what: MessageDigest,
) -> Result<Verified<Acknowledgement>, Reject> {
    let line = shared
        .registry()
        .reach(entry)
        .ok_or(Reject::QuorumUnavailable)?;
    let limit = limits::ROSTER_DOCUMENT + limits::SMALL_DOCUMENT;
    match ask(&line, message, limit, shared.bounds.step()).await? {
        FromMember::Acknowledgement(envelope) => {
            let word = envelope.verify(&entry.identity)?;
            if word.member == entry.identifier && word.what == what {
                Ok(word)
            } else {
                Err(Reject::UnexpectedMessage)
            }
        }
        FromMember::Refusal(envelope) => Err(envelope.verify(&entry.identity)?.code),
        FromMember::Commitments(_)
        | FromMember::Shares(_)
        | FromMember::Receipt(_)
        | FromMember::KeyDocuments(_)
        | FromMember::Outcome(_)
        | FromMember::Status(_)
        | FromMember::DkgRound1(_)
        | FromMember::DkgRound2(_)
        | FromMember::Certificate(_)
        | FromMember::Complaint(_) => Err(Reject::UnexpectedMessage),
    }
}

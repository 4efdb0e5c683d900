//! Requests for signatures. It decides which members are asked and in which attempts; that the
//! request is allowed is decided by the members alone.

use std::{sync::Arc, time::Duration};

use firn_protocol::{
    codec::{List, Maybe},
    documents::{Grant, Intent, RosterEntry},
    envelope::{Envelope, Verified},
    ids::{Identifier, UnixMillis},
    keys::IdentityKey,
    limits,
    messages::{FromRequests, KeyQuery, MissingMember, RequestFailed, SignRequest, ToRequests},
    reject::Reject,
    session::RequestSubject,
    sharing::ActiveSharing,
    signable::Signable,
};
use firn_transport::{Connection, FrameReceiver, FrameSender};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};
use tracing::Instrument;

use super::{every_stream, outcome::outcome, question, room, tell_last};
use crate::{
    carry::{Link, converse},
    keys::{documents, newest, resolve},
    session::{
        Failing, Fault,
        request::{Move, Request, RequestTerms, answer, failed_early},
        round::{Item, RoundFailed},
        sign::{AttemptOutcome, SignAttempt, SignedRequest},
    },
    state::{Shared, now, rng},
};

/// Serves a requester that speaks with this key.
pub(crate) async fn requests(
    shared: &Arc<Shared>,
    connection: &Connection,
    requester: IdentityKey,
) {
    every_stream(connection, |sender, receiver| {
        serve(Arc::clone(shared), requester, sender, receiver)
    })
    .await;
}

async fn serve(
    shared: Arc<Shared>,
    requester: IdentityKey,
    sender: FrameSender,
    mut receiver: FrameReceiver,
) {
    // The place is held until the answer has arrived: a coordinator that stops waits for that.
    let (answer, _place) = match room(&shared, &shared.questions) {
        Ok(place) => {
            let asked = answer_to(&shared, &requester, &mut receiver, place).await;
            (asked.0, Some(asked.1))
        }
        Err(code) => (refused(code), None),
    };
    if let Err(code) = tell_last(sender, &answer, shared.bounds.step()).await {
        tracing::info!(code = %code, "the requester did not take its answer");
    }
}

/// The answer to the question of a stream, and the place that it was worked out in.
async fn answer_to(
    shared: &Arc<Shared>,
    requester: &IdentityKey,
    receiver: &mut FrameReceiver,
    mut place: OwnedSemaphorePermit,
) -> (FromRequests, OwnedSemaphorePermit) {
    let asked = question(receiver, limits::MAX_OPEN, shared.bounds.step()).await;
    let answer = match asked {
        Ok(ToRequests::Sign(request)) => match room(shared, &shared.requests) {
            Ok(at_work) => {
                place = at_work;
                sign(shared, requester, request).await
            }
            Err(code) => refused(code),
        },
        Ok(ToRequests::Outcome(query)) => outcome(shared, requester, query).await,
        Ok(ToRequests::Key(query)) => key(shared, requester, query).await.unwrap_or_else(refused),
        Err(code) => refused(code),
    };
    (answer, place)
}

async fn key(
    shared: &Arc<Shared>,
    requester: &IdentityKey,
    query: Envelope<KeyQuery>,
) -> Result<FromRequests, Reject> {
    let query = query.verify(requester)?;
    let sharing = newest(shared, query.key_id).await?;
    documents(&sharing).map(FromRequests::Key)
}

/// A no before any member was asked.
pub(super) fn refused(code: Reject) -> FromRequests {
    let detail = format!("{} {}", code.meaning(), code.advice());
    FromRequests::Failed(failed_early(code, &detail))
}

async fn sign(shared: &Arc<Shared>, requester: &IdentityKey, request: SignRequest) -> FromRequests {
    let (intent, grant) = match check(shared, requester, &request) {
        Ok(checked) => checked,
        Err(code) => {
            tracing::info!(code = %code, "request refused before anybody was asked");
            return refused(code);
        }
    };
    let span = tracing::info_span!(
        "request",
        request_id = %grant.request_id,
        key_id = %grant.key_id,
    );
    async {
        let turn = shared.turns.take(grant.key_id, grant.request_id);
        // Whoever has the turn is bounded too; a place must not be held by those who only wait.
        let Ok(_turn) = timeout(shared.bounds.turn(), turn).await else {
            return refused(Reject::Busy);
        };
        let terms = match resolve(shared, grant.key_id, grant.activation).await {
            Ok(sharing) => terms(&sharing, request, &intent, &grant),
            Err(code) => Err(code),
        };
        match terms {
            Ok(terms) => drive(shared, Arc::new(terms)).await,
            Err(code) => {
                tracing::info!(code = %code, "request refused before anybody was asked");
                refused(code)
            }
        }
    }
    .instrument(span)
    .await
}

/// The signatures that can be checked without knowing the key, so that noise costs members nothing.
fn check(
    shared: &Shared,
    requester: &IdentityKey,
    request: &SignRequest,
) -> Result<(Verified<Intent>, Verified<Grant>), Reject> {
    let intent = request.intent.clone().verify(requester)?;
    let grant = request
        .grant
        .clone()
        .verify(&shared.authorities.grant_authority)?;
    if grant.key_id != intent.key_id {
        return Err(Reject::GrantKeyMismatch);
    }
    Ok((intent, grant))
}

/// Everything that the attempts need to know.
fn terms(
    sharing: &ActiveSharing,
    request: SignRequest,
    intent: &Intent,
    grant: &Grant,
) -> Result<RequestTerms, Reject> {
    let certified = sharing.certified();
    let public = certified.public();
    let plan = certified.plan();
    let signable =
        Signable::of_intent(intent, certified.key_id(), plan.network, public.group_key())?;
    if signable.intent_digest() != grant.intent {
        return Err(Reject::GrantIntentMismatch);
    }
    let items = signable
        .items()
        .iter()
        .map(|item| Item::of(item, public))
        .collect::<Result<_, _>>()?;
    Ok(RequestTerms {
        request,
        subject: RequestSubject {
            activation: grant.activation,
            request_id: grant.request_id,
            intent: grant.intent,
            policy: grant.policy,
        },
        key_id: grant.key_id,
        share_version: certified.share_version(),
        epoch: grant.epoch,
        threshold: plan.threshold,
        roster: plan.roster.to_vec(),
        items,
    })
}

/// Attempts until it is signed or cannot be.
async fn drive(shared: &Arc<Shared>, terms: Arc<RequestTerms>) -> FromRequests {
    let mut request = Request::new(Arc::clone(&terms));
    loop {
        let candidates = shared.registry().candidates(&terms.roster, now());
        match request.choose(&candidates, now(), &mut rng()) {
            Move::GiveUp(failed) => return gave_up(shared, &terms.roster, *failed),
            Move::Attempt(members, start) => {
                wait_until(start).await;
                match attempt(shared, &terms, &members).await {
                    Ok(signed) => return signed_answer(*signed),
                    Err(failed) => {
                        note(shared, &terms, &failed);
                        request.failed(&failed, now());
                    }
                }
            }
        }
    }
}

async fn wait_until(start: UnixMillis) {
    let wait = start.value().saturating_sub(now().value());
    tokio::time::sleep(Duration::from_millis(wait)).await;
}

async fn attempt(
    shared: &Arc<Shared>,
    terms: &Arc<RequestTerms>,
    members: &[Identifier],
) -> Result<Box<SignedRequest>, RoundFailed> {
    let links = links(shared, terms, members)?;
    let (attempt, opening) = SignAttempt::open(terms, members, &shared.voice, &mut rng())?;
    let session_id = attempt.session();
    let span = tracing::info_span!("attempt", %session_id);
    let outcome = converse(
        attempt,
        opening,
        links,
        shared.bounds.patience(),
        |progress| {
            tracing::debug!(
                step = progress.step,
                done = progress.done,
                of = progress.of,
                "step"
            );
        },
    )
    .instrument(span)
    .await;
    match outcome {
        AttemptOutcome::Signed(signed) => Ok(signed),
        AttemptOutcome::Failed(failed) => {
            tracing::info!(%session_id, code = %failed.code, "attempt failed");
            Err(failed)
        }
    }
}

/// A member may have gone since it was chosen.
fn links(
    shared: &Shared,
    terms: &RequestTerms,
    members: &[Identifier],
) -> Result<Vec<Link>, Fault> {
    let registry = shared.registry();
    members
        .iter()
        .map(|member| {
            terms
                .roster
                .iter()
                .find(|entry| entry.identifier == *member)
                .and_then(|entry| registry.reach(entry))
                .map(|line| Link {
                    member: *member,
                    line,
                })
                .ok_or(Fault::silent(*member, Reject::QuorumUnavailable))
        })
        .collect()
}

/// Remembers who has failed, and forgets a key that members know in another way.
fn note(shared: &Shared, terms: &RequestTerms, failed: &RoundFailed) {
    for fault in &failed.faults {
        let code = fault.failing.code();
        tracing::info!(member = %fault.member, code = %code, "a member failed the attempt");
        match &fault.failing {
            Failing::Misbehaved(_) | Failing::Silent(_) => {
                shared
                    .registry()
                    .suspect(&terms.roster, fault.member, now());
            }
            Failing::Refused(_) if code == Reject::ActivationMismatch => {
                shared.keys().forget(terms.key_id);
            }
            Failing::Refused(_) => {}
        }
    }
}

fn signed_answer(signed: SignedRequest) -> FromRequests {
    for fault in &signed.faults {
        let code = fault.failing.code();
        tracing::warn!(member = %fault.member, code = %code, "signed, but a receipt is missing");
    }
    tracing::info!(session_id = %signed.session, receipts = signed.receipts.len(), "signed");
    match answer(signed) {
        Ok(answer) => FromRequests::Signed(answer),
        Err(code) => refused(code),
    }
}

fn gave_up(shared: &Shared, roster: &[RosterEntry], mut failed: RequestFailed) -> FromRequests {
    let missing = failed.missing.iter().map(|missing| {
        let entry = roster.iter().find(|entry| entry.name == missing.name);
        MissingMember {
            name: missing.name.clone(),
            since: Maybe(entry.and_then(|entry| shared.away_since(entry))),
        }
    });
    if let Some(missing) = List::new(missing.collect()) {
        failed.missing = missing;
    }
    tracing::info!(code = %failed.code, missing = failed.missing.len(), "not signed");
    FromRequests::Failed(failed)
}

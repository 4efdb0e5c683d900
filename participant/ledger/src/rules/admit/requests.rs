//! Epochs, requests and the sessions that sign: which of them may be opened, released and completed.
//! Everything that two sessions could slip past each other hangs on these functions.

use firn_protocol::{
    documents::Receipt,
    envelope::Envelope,
    ids::{Epoch, IntentDigest, KeyId, SessionId},
    messages::{RequestProgress, ShareStage},
    names::SpiffeId,
    reject::Reject,
};

use super::{Judgement, Refused, newer_heads, nothing, sharing, written};
use crate::rules::{
    body::{
        Body, Completed, Conflicted, EpochRaised, ProofOpened, Released, RequestOpened, Witnessed,
    },
    command::{Answer, Limits, OpenRequest, refuse},
    state::{
        MAX_OPEN_ATTEMPTS, RequestState, SessionPurpose, SessionStage, SessionState, StateError,
        View,
    },
};

pub(super) fn raise_epoch(view: &View<'_>, limits: Limits, raised: EpochRaised) -> Judgement {
    let highest = judge_epoch(view, limits, raised.key_id, raised.epoch, &raised.owner)?;
    if highest { written(raised) } else { nothing() }
}

/// Whether `epoch` is to be recorded: it is higher than any, or the first owner shows itself.
fn judge_epoch(
    view: &View<'_>,
    limits: Limits,
    key_id: KeyId,
    epoch: Epoch,
    owner: &SpiffeId,
) -> Result<bool, Refused> {
    let highest = view
        .epoch(key_id)?
        .ok_or(Refused::Rule(Reject::ShareNotActive))?;
    let jump = epoch.value().saturating_sub(highest.epoch.value());
    if epoch < highest.epoch {
        refuse(Reject::StaleEpoch)
    } else if epoch == highest.epoch {
        match &highest.owner.0 {
            Some(known) if known != owner => refuse(Reject::EpochOwnerConflict),
            Some(_) => Ok(false),
            None => Ok(true),
        }
    } else if jump > limits.max_epoch_jump {
        refuse(Reject::EpochJump)
    } else {
        Ok(true)
    }
}

pub(super) fn open_request(view: &View<'_>, limits: Limits, open: OpenRequest) -> Judgement {
    let OpenRequest {
        opened,
        at_once,
        denied,
    } = open;
    let key = sharing(view, opened.key_id)?;
    match (key.stage, &key.active.0) {
        (ShareStage::Active, Some(active))
            if key.share_version == opened.share_version
                && active.activation == opened.activation =>
        {
            if active.policy != opened.policy {
                return refuse(Reject::GrantPolicyMismatch);
            }
        }
        (ShareStage::Active, _) => return refuse(Reject::ActivationMismatch),
        (ShareStage::Pending | ShareStage::Certified, _) => return refuse(Reject::ShareNotActive),
    }
    if view.session(opened.session)?.is_some() || view.attempt(opened.session)?.is_some() {
        return refuse(Reject::SessionSeen);
    }
    // Epoch before request: a fenced owner learns nothing of what is stored. A higher epoch is
    // recorded whatever becomes of the request.
    let raised =
        judge_epoch(view, limits, opened.key_id, opened.epoch, &opened.owner)?.then(|| {
            EpochRaised {
                key_id: opened.key_id,
                epoch: opened.epoch,
                owner: opened.owner.clone(),
            }
        });
    let mut bodies: Vec<Body> = raised.map(Body::from).into_iter().collect();
    let answer = match judge_request(view, limits, &opened, at_once, denied)? {
        Verdict::Open => {
            bodies.push(opened.into());
            Answer::Written
        }
        Verdict::Stored(receipt) => Answer::AlreadyCompleted(receipt),
        Verdict::Denied(code) => Answer::Denied(code),
        Verdict::Conflict(intent) => {
            // Once: who sends it again fills no disk.
            if !view.conflicted(opened.key_id, opened.request_id, opened.intent)? {
                bodies.push(
                    Conflicted {
                        key_id: opened.key_id,
                        request_id: opened.request_id,
                        intent,
                        other: opened.intent,
                        owner: opened.owner,
                    }
                    .into(),
                );
            }
            Answer::Denied(Reject::RequestConflict)
        }
    };
    Ok((bodies, answer))
}

/// What becomes of a request whose epoch is good.
enum Verdict {
    Open,
    Stored(Envelope<Receipt>),
    Denied(Reject),
    Conflict(IntentDigest),
}

fn judge_request(
    view: &View<'_>,
    limits: Limits,
    opened: &RequestOpened,
    at_once: usize,
    denied: Option<Reject>,
) -> Result<Verdict, Refused> {
    if let Some(request) = view.request(opened.key_id, opened.request_id)? {
        if request.intent != opened.intent {
            return Ok(Verdict::Conflict(request.intent));
        }
        if request.progress == RequestProgress::Completed {
            let receipt = view
                .receipt(opened.key_id, opened.request_id)?
                .ok_or(Refused::Rule(Reject::Internal))?;
            return Ok(Verdict::Stored(receipt));
        }
        let (alive, own) = open_attempts(view, &request, &opened.coordinator)?;
        let attempts = view.attempts(opened.grant, &opened.coordinator)?;
        let full = alive >= MAX_OPEN_ATTEMPTS || own >= at_once;
        if full || attempts >= limits.max_attempts_per_grant {
            return Ok(Verdict::Denied(Reject::AttemptsExhausted));
        }
    } else if view
        .first_request_for(opened.key_id, opened.intent)?
        .is_some()
    {
        return Ok(Verdict::Denied(Reject::IntentAlreadySigned));
    }
    Ok(denied.map_or(Verdict::Open, Verdict::Denied))
}

/// How many attempts of a request are open, and how many of them through this coordinator. Each has
/// its own: one that opens and abandons takes nothing from another.
fn open_attempts(
    view: &View<'_>,
    request: &RequestState,
    coordinator: &SpiffeId,
) -> Result<(usize, usize), StateError> {
    let run = view.run()?;
    let (mut alive, mut own) = (0_usize, 0_usize);
    for (session, _) in request
        .open
        .iter()
        .filter(|(_, opened_in)| *opened_in == run)
    {
        alive = alive.saturating_add(1);
        let through = view.session(*session)?.map(|session| session.purpose);
        if matches!(through, Some(SessionPurpose::Request(request)) if request.coordinator == *coordinator)
        {
            own = own.saturating_add(1);
        }
    }
    Ok((alive, own))
}

pub(super) fn open_proof(view: &View<'_>, limits: Limits, opened: ProofOpened) -> Judgement {
    let key = sharing(view, opened.key_id)?;
    if key.stage == ShareStage::Pending {
        return refuse(Reject::ShareNotActive);
    }
    if key.share_version != opened.share_version || key.attempt != opened.attempt {
        return refuse(Reject::CertificateMismatch);
    }
    if key.proofs >= limits.max_proofs_per_sharing {
        return refuse(Reject::AttemptsExhausted);
    }
    if view.session(opened.session)?.is_some() || view.attempt(opened.session)?.is_some() {
        return refuse(Reject::SessionSeen);
    }
    written(opened)
}

/// The gates again, when the share is about to leave: the epoch may have moved, the request may
/// have been completed elsewhere, the process may have been restarted.
pub(super) fn release(view: &View<'_>, released: Released, witnessed: Vec<Witnessed>) -> Judgement {
    let session = live(view, released.session)?;
    if session.stage != SessionStage::Open {
        return refuse(Reject::UnexpectedMessage);
    }
    if let SessionPurpose::Request(purpose) = &session.purpose {
        let highest = view
            .epoch(session.key_id)?
            .ok_or(Refused::Rule(Reject::ShareNotActive))?;
        if purpose.epoch < highest.epoch {
            return refuse(Reject::StaleEpoch);
        }
        if highest.owner.0.as_ref() != Some(&purpose.owner) {
            return refuse(Reject::EpochOwnerConflict);
        }
        let key = sharing(view, session.key_id)?;
        if key.stage != ShareStage::Active || key.share_version != session.share_version {
            return refuse(Reject::ActivationMismatch);
        }
    }
    let mut bodies = newer_heads(view, witnessed)?;
    bodies.push(released.into());
    Ok((bodies, Answer::Written))
}

/// A session of this run: an earlier run's nonces are gone.
pub(super) fn live(view: &View<'_>, session: SessionId) -> Result<SessionState, Refused> {
    let state = view
        .session(session)?
        .ok_or(Refused::Rule(Reject::SessionMismatch))?;
    if state.run == view.run()? {
        Ok(state)
    } else {
        refuse(Reject::SessionMismatch)
    }
}

pub(super) fn released_session(
    view: &View<'_>,
    session: SessionId,
) -> Result<SessionState, Refused> {
    let state = live(view, session)?;
    if state.stage == SessionStage::Released {
        Ok(state)
    } else {
        refuse(Reject::UnexpectedMessage)
    }
}

pub(super) fn complete(view: &View<'_>, completed: Completed) -> Judgement {
    let state = released_session(view, completed.session)?;
    let SessionPurpose::Request(purpose) = &state.purpose else {
        return refuse(Reject::UnexpectedMessage);
    };
    // Another attempt of the request was first: its receipt stands, and this one gives the same.
    match view.receipt(state.key_id, purpose.request_id)? {
        Some(receipt) => Ok((Vec::new(), Answer::AlreadyCompleted(receipt))),
        None => written(completed),
    }
}

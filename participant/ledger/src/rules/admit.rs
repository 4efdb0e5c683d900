//! Which command may be written. Everything that two sessions could slip past each other is judged
//! here, while the record is appended, by the state as of the record before.

use firn_protocol::{
    codec::Malformed,
    documents::Receipt,
    envelope::Envelope,
    ids::{Epoch, IntentDigest, KeyId, SessionId, UnixMillis},
    messages::{RequestProgress, ShareStage},
    names::SpiffeId,
    reject::Reject,
};

use super::{
    body::{
        AttemptOpened, AuthoritiesAccepted, Body, CeremonySent, CeremonyStep, Completed,
        Conflicted, EpochRaised, Genesis, ProofOpened, Released, RequestOpened, ShareActivated,
        ShareCertified, SharePending, Witnessed,
    },
    command::{Answer, Command, Limits, OpenRequest, refuse},
    state::{
        KeyState, MAX_OPEN_ATTEMPTS, RequestState, SessionPurpose, SessionStage, SessionState,
        StateError, View,
    },
};

/// Why a command is not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The rules do not allow it.
    #[error("{0}")]
    Rule(Reject),
    /// The state cannot be read: the process must end.
    #[error(transparent)]
    State(#[from] StateError),
}

impl From<Malformed> for Refused {
    fn from(malformed: Malformed) -> Self {
        Self::State(malformed.into())
    }
}

type Judgement = Result<(Vec<Body>, Answer), Refused>;

/// Judges `command` at the time `now`; `last` is the time of the last record.
///
/// # Errors
/// The code of the rule that it breaks.
pub fn admit(
    view: &View<'_>,
    limits: Limits,
    command: Command,
    now: UnixMillis,
    last: Option<UnixMillis>,
) -> Judgement {
    if last.is_some_and(|last| now < last) {
        return refuse(Reject::ClockRewound);
    }
    if let Command::Begin(genesis) = command {
        return begin(view, genesis);
    }
    if view.genesis()?.is_none() {
        return refuse(Reject::LedgerUnavailable);
    }
    match command {
        Command::Begin(genesis) => begin(view, genesis),
        Command::Start(started) => written(started),
        Command::AcceptAuthorities(accepted) => accept_authorities(view, accepted),
        Command::AcceptPlan(accepted) => {
            if view.plan_attempts(accepted.plan)?.is_some() {
                nothing()
            } else {
                written(accepted)
            }
        }
        Command::OpenAttempt(opened) => open_attempt(view, limits, opened),
        Command::Send {
            attempt,
            step,
            digest,
        } => send(
            view,
            CeremonySent {
                attempt,
                step,
                digest,
            },
        ),
        Command::Pend(pending) => pend(view, pending),
        Command::Certify(certified) => certify(view, certified),
        Command::Activate(activated) => activate(view, activated),
        Command::RaiseEpoch {
            key_id,
            epoch,
            owner,
        } => raise_epoch(
            view,
            limits,
            EpochRaised {
                key_id,
                epoch,
                owner,
            },
        ),
        Command::OpenRequest(open) => open_request(view, limits, *open),
        Command::OpenProof(opened) => open_proof(view, limits, opened),
        Command::Release {
            session,
            package,
            witnessed,
        } => release(view, Released { session, package }, witnessed),
        Command::Complete(completed) => complete(view, completed),
        Command::CompleteProof(completed) => {
            let state = released_session(view, completed.session)?;
            match state.purpose {
                SessionPurpose::Proof(_) => written(completed),
                SessionPurpose::Request(_) => refuse(Reject::UnexpectedMessage),
            }
        }
        Command::End(ended) => match live(view, ended.session)?.stage {
            SessionStage::Open | SessionStage::Released => written(ended),
            SessionStage::Completed | SessionStage::Ended => nothing(),
        },
        Command::Refuse(refused) => written(refused),
        Command::CountRefusals(counted) => written(counted),
        Command::Witness(heads) => Ok((newer_heads(view, heads)?, Answer::Written)),
    }
}

fn written(body: impl Into<Body>) -> Judgement {
    Ok((vec![body.into()], Answer::Written))
}

const fn nothing() -> Judgement {
    Ok((Vec::new(), Answer::Written))
}

fn begin(view: &View<'_>, genesis: Genesis) -> Judgement {
    if view.genesis()?.is_some() {
        refuse(Reject::LedgerUnavailable)
    } else {
        written(genesis)
    }
}

fn accept_authorities(view: &View<'_>, accepted: AuthoritiesAccepted) -> Judgement {
    match view.authorities()? {
        Some((digest, _)) if digest == accepted.authorities => nothing(),
        Some((_, version)) if version >= accepted.version => refuse(Reject::AuthoritiesMismatch),
        _ => written(accepted),
    }
}

fn open_attempt(view: &View<'_>, limits: Limits, opened: AttemptOpened) -> Judgement {
    match view.plan_attempts(opened.plan)? {
        None => return refuse(Reject::PlanNotAccepted),
        Some(attempts) if attempts >= limits.max_attempts_per_plan => {
            return refuse(Reject::AttemptsExhausted);
        }
        Some(_) => {}
    }
    if view.attempt(opened.attempt)?.is_some() || view.session(opened.attempt)?.is_some() {
        return refuse(Reject::SessionSeen);
    }
    written(opened)
}

/// Steps leave in their order, each once, and only in the run that opened the attempt: a later run
/// has none of its secrets.
fn send(view: &View<'_>, sent: CeremonySent) -> Judgement {
    let Some(attempt) = view.attempt(sent.attempt)? else {
        return refuse(Reject::SessionMismatch);
    };
    if attempt.run != view.run()? {
        return refuse(Reject::AttemptAbandoned);
    }
    let due = match attempt.sent.last() {
        None => CeremonyStep::Round1,
        Some((CeremonyStep::Round1, _)) => CeremonyStep::Round2,
        Some((CeremonyStep::Round2, _)) => CeremonyStep::Certificate,
        Some((CeremonyStep::Certificate, _)) => return refuse(Reject::UnexpectedMessage),
    };
    if due == sent.step {
        written(sent)
    } else {
        refuse(Reject::UnexpectedMessage)
    }
}

fn pend(view: &View<'_>, pending: SharePending) -> Judgement {
    match view.attempt(pending.attempt)? {
        Some(attempt) if attempt.plan == pending.plan => {}
        _ => return refuse(Reject::SessionMismatch),
    }
    match view.key(pending.key_id)? {
        // An attempt that others did not finish may be followed by another of the same plan.
        Some(key) if key.stage != ShareStage::Pending => refuse(Reject::AttemptAbandoned),
        _ => written(pending),
    }
}

/// Any attempt counts that this participant has sealed a share and signed a certificate of, until the
/// operators have activated one: a coordinator that begins again could else take from a member the
/// share that the others hold certificates of.
fn certify(view: &View<'_>, certified: ShareCertified) -> Judgement {
    let key = sharing(view, certified.key_id)?;
    match view.pended(certified.key_id, certified.attempt)? {
        Some(pended) if pended.share_version == certified.share_version => {}
        _ => return refuse(Reject::CertificateMismatch),
    }
    match (key.stage, key.certificates.0) {
        (_, Some(digest)) if digest == certified.certificates => nothing(),
        (ShareStage::Pending | ShareStage::Certified, _) => written(certified),
        (ShareStage::Active, _) => refuse(Reject::CertificateMismatch),
    }
}

fn activate(view: &View<'_>, activated: ShareActivated) -> Judgement {
    let key = sharing(view, activated.key_id)?;
    if key.share_version != activated.share_version
        || key.certificates.0 != Some(activated.certificates)
    {
        return refuse(Reject::ActivationMismatch);
    }
    match (key.stage, key.active.0) {
        (ShareStage::Pending, _) => refuse(Reject::ShareNotActive),
        (ShareStage::Certified, _) => written(activated),
        (ShareStage::Active, Some(active)) if active.activation == activated.activation => {
            nothing()
        }
        (ShareStage::Active, _) => refuse(Reject::ActivationMismatch),
    }
}

fn sharing(view: &View<'_>, key_id: KeyId) -> Result<KeyState, Refused> {
    view.key(key_id)?.ok_or(Refused::Rule(Reject::KeyUnknown))
}

fn raise_epoch(view: &View<'_>, limits: Limits, raised: EpochRaised) -> Judgement {
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

fn open_request(view: &View<'_>, limits: Limits, open: OpenRequest) -> Judgement {
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

fn open_proof(view: &View<'_>, limits: Limits, opened: ProofOpened) -> Judgement {
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
fn release(view: &View<'_>, released: Released, witnessed: Vec<Witnessed>) -> Judgement {
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
fn live(view: &View<'_>, session: SessionId) -> Result<SessionState, Refused> {
    let state = view
        .session(session)?
        .ok_or(Refused::Rule(Reject::SessionMismatch))?;
    if state.run == view.run()? {
        Ok(state)
    } else {
        refuse(Reject::SessionMismatch)
    }
}

fn released_session(view: &View<'_>, session: SessionId) -> Result<SessionState, Refused> {
    let state = live(view, session)?;
    if state.stage == SessionStage::Released {
        Ok(state)
    } else {
        refuse(Reject::UnexpectedMessage)
    }
}

fn complete(view: &View<'_>, completed: Completed) -> Judgement {
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

/// Only heads that are not known yet, and none behind what is known.
fn newer_heads(view: &View<'_>, heads: Vec<Witnessed>) -> Result<Vec<Body>, Refused> {
    let mut bodies = Vec::new();
    for head in heads {
        let verified = head.checkpoint.clone().verify(&head.identity);
        let Ok(checkpoint) = verified else {
            return refuse(Reject::BadSignature);
        };
        let newer = match view.witnessed(&head.identity)? {
            Some(known) => known
                .verify(&head.identity)
                .is_ok_and(|known| known.size < checkpoint.size),
            None => true,
        };
        if newer {
            bodies.push(head.into());
        }
    }
    Ok(bodies)
}

//! Which command may be written. Everything that two sessions could slip past each other is judged
//! here, while the record is appended, by the state as of the record before.

mod requests;

use firn_protocol::{
    codec::Malformed,
    ids::{KeyId, UnixMillis},
    messages::ShareStage,
    reject::Reject,
};

use super::{
    body::{
        AttemptOpened, AuthoritiesAccepted, Body, CeremonySent, CeremonyStep, EpochRaised, Frozen,
        Genesis, Released, ShareActivated, ShareCertified, SharePending, Witnessed,
    },
    command::{Answer, Command, Limits, refuse},
    state::{KeyState, SessionPurpose, SessionStage, StateError, View},
};
use requests::{complete, live, open_proof, open_request, raise_epoch, release, released_session};

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
    let Some(own) = view.genesis()? else {
        return refuse(Reject::LedgerUnavailable);
    };
    if may_lead_to_a_share(&command) && view.frozen()?.is_some() {
        return refuse(Reject::Frozen);
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
        Command::Freeze(frozen) => freeze(view, &own, frozen),
    }
}

/// What a frozen participant does no more. What has left already may be completed, and it goes on to
/// record what it learns.
const fn may_lead_to_a_share(command: &Command) -> bool {
    match command {
        Command::OpenAttempt(_)
        | Command::Send { .. }
        | Command::Pend(_)
        | Command::OpenRequest(_)
        | Command::OpenProof(_)
        | Command::Release { .. } => true,
        Command::Begin(_)
        | Command::Start(_)
        | Command::AcceptAuthorities(_)
        | Command::AcceptPlan(_)
        | Command::Certify(_)
        | Command::Activate(_)
        | Command::RaiseEpoch { .. }
        | Command::Complete(_)
        | Command::CompleteProof(_)
        | Command::End(_)
        | Command::Refuse(_)
        | Command::CountRefusals(_)
        | Command::Witness(_)
        | Command::Freeze(_) => false,
    }
}

/// Only what this participant signed itself counts against it: nobody can freeze it with a forgery.
fn freeze(view: &View<'_>, own: &Genesis, frozen: Frozen) -> Judgement {
    if view.frozen()?.is_some() {
        return nothing();
    }
    match frozen.witnessed.clone().verify(&own.identity) {
        Ok(_) => written(frozen),
        Err(_) => refuse(Reject::BadSignature),
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
        Some(key)
            if key.stage == ShareStage::Active
                || (key.stage == ShareStage::Certified && key.attempt == pending.attempt) =>
        {
            refuse(Reject::AttemptAbandoned)
        }
        // An attempt that others did not finish may be followed by another of the same plan: also one
        // that was certified here, since a crash may have kept the certificates from the others. It
        // takes no share away: the operators may still activate any attempt that all have certified.
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

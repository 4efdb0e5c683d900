//! How each record changes the state. It refuses records that the rules could never have admitted,
//! so that a journal that was written by something else does not open.

use firn_protocol::{
    codec::{List, Malformed, Maybe},
    ids::{KeyId, SessionId},
    messages::{RequestProgress, ShareStage},
};

use super::{
    body::{
        AttemptOpened, Body, CeremonySent, Completed, EpochRaised, ProofOpened, ReceiptChunk,
        Released, RequestOpened, ShareActivated, ShareCertified, SharePending,
    },
    state::{
        ActiveState, AttemptState, EpochState, KeyState, RequestPurpose, RequestState,
        SessionPurpose, SessionStage, SessionState, StateError, View, attempts_key, conflict_key,
        key, receipt_key, write,
    },
};
use crate::{
    journal::{Bound, Record, Report, SegmentSource, check_with},
    table::{MemoryTable, Table},
};

/// A record that cannot follow the ones before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unlawful {
    /// The state cannot be read or changed.
    #[error(transparent)]
    State(#[from] StateError),
    /// Its kind is unknown or its body is not of its kind.
    #[error("body of kind {kind} does not decode: {malformed}")]
    Body {
        /// The number of the kind.
        kind: u16,
        /// What is wrong.
        malformed: Malformed,
    },
    /// It is about something that is not there, or comes out of order.
    #[error("{0} cannot follow the records before it")]
    Order(&'static str),
}

impl From<crate::table::TableError> for Unlawful {
    fn from(error: crate::table::TableError) -> Self {
        Self::State(error.into())
    }
}

/// Checks a journal at rest, its form and its law: every record is one that the rules could have
/// written after the ones before it.
pub fn check<S: SegmentSource>(source: &mut S, bounds: &[Bound]) -> Report {
    let mut table = MemoryTable::default();
    check_with(source, bounds, |record| {
        apply(&mut table, record).map_err(|unlawful| unlawful.to_string())
    })
}

/// Changes the state by one record.
///
/// # Errors
/// [`Unlawful`].
pub fn apply(table: &mut dyn Table, record: &Record) -> Result<(), Unlawful> {
    let body = Body::of(record).map_err(|malformed| Unlawful::Body {
        kind: record.kind().number(),
        malformed,
    })?;
    let name = body.kind();
    let first = record.sequence().value() == 0;
    if first != matches!(body, Body::Genesis(_)) {
        return Err(Unlawful::Order(name));
    }
    match body {
        Body::Genesis(genesis) => put(table, b"g", &genesis),
        Body::Started(_) => {
            let run = View(table).run()?.saturating_add(1);
            put(table, b"n", &run)
        }
        Body::AuthoritiesAccepted(accepted) => {
            put(table, b"a", &(accepted.authorities, accepted.version))
        }
        Body::PlanAccepted(accepted) => put(table, &key(b'p', &[accepted.plan.as_bytes()]), &0_u32),
        Body::AttemptOpened(opened) => attempt_opened(table, &opened),
        Body::CeremonySent(sent) => ceremony_sent(table, &sent),
        Body::SharePending(pending) => share_pending(table, &pending),
        Body::ShareCertified(certified) => share_certified(table, &certified),
        Body::ShareActivated(activated) => share_activated(table, &activated),
        Body::EpochRaised(raised) => epoch_raised(table, raised),
        Body::RequestOpened(opened) => request_opened(table, opened),
        Body::ProofOpened(opened) => proof_opened(table, &opened),
        Body::Released(released) => session_released(table, &released),
        Body::Completed(completed) => request_completed(table, &completed),
        Body::ProofCompleted(completed) => {
            stage(table, completed.session, SessionStage::Completed, name).map(|_| ())
        }
        Body::SessionEnded(ended) => {
            let state = stage(table, ended.session, SessionStage::Ended, name)?;
            close_attempt(table, ended.session, &state)
        }
        // The same conflict is recorded once.
        Body::Conflicted(conflict) => put(
            table,
            &conflict_key(conflict.key_id, conflict.request_id, conflict.other),
            &true,
        ),
        // Evidence: nothing follows from it.
        Body::RefusedInFull(_) | Body::RefusalsCounted(_) => Ok(()),
        Body::Witnessed(witnessed) => put(
            table,
            &key(b'w', &[witnessed.identity.as_bytes()]),
            &witnessed.checkpoint,
        ),
        Body::Frozen(frozen) => put(table, b"z", &frozen),
    }
}

fn put<V: serde::Serialize>(table: &mut dyn Table, name: &[u8], value: &V) -> Result<(), Unlawful> {
    Ok(write(table, name, value)?)
}

fn attempt_opened(table: &mut dyn Table, opened: &AttemptOpened) -> Result<(), Unlawful> {
    let attempts = View(table)
        .plan_attempts(opened.plan)?
        .ok_or(Unlawful::Order("AttemptOpened"))?;
    put(
        table,
        &key(b'p', &[opened.plan.as_bytes()]),
        &attempts.saturating_add(1),
    )?;
    let run = View(table).run()?;
    let state = AttemptState {
        plan: opened.plan,
        run,
        sent: List::empty(),
    };
    put(table, &key(b't', &[opened.attempt.as_bytes()]), &state)
}

fn ceremony_sent(table: &mut dyn Table, sent: &CeremonySent) -> Result<(), Unlawful> {
    let unlawful = Unlawful::Order("CeremonySent");
    let mut state = View(table).attempt(sent.attempt)?.ok_or(unlawful.clone())?;
    let mut steps = state.sent.into_vec();
    steps.push((sent.step, sent.digest));
    state.sent = List::new(steps).ok_or(unlawful)?;
    put(table, &key(b't', &[sent.attempt.as_bytes()]), &state)
}

fn share_pending(table: &mut dyn Table, pending: &SharePending) -> Result<(), Unlawful> {
    let parts: [&[u8]; 2] = [pending.key_id.as_bytes(), pending.attempt.as_bytes()];
    put(table, &key(b'd', &parts), pending)?;
    let state = KeyState {
        share_version: pending.share_version,
        stage: ShareStage::Pending,
        attempt: pending.attempt,
        plan: pending.plan,
        member: pending.member,
        certificate: pending.certificate,
        certificates: Maybe(None),
        active: Maybe(None),
        proofs: 0,
    };
    put(table, &key(b'k', &[pending.key_id.as_bytes()]), &state)
}

fn share_certified(table: &mut dyn Table, certified: &ShareCertified) -> Result<(), Unlawful> {
    let mut state = key_state(table, certified.key_id, "ShareCertified")?;
    let pended = View(table)
        .pended(certified.key_id, certified.attempt)?
        .ok_or(Unlawful::Order("ShareCertified"))?;
    state.stage = ShareStage::Certified;
    state.attempt = pended.attempt;
    state.certificate = pended.certificate;
    state.certificates = Maybe(Some(certified.certificates));
    put(table, &key(b'k', &[certified.key_id.as_bytes()]), &state)
}

fn share_activated(table: &mut dyn Table, activated: &ShareActivated) -> Result<(), Unlawful> {
    let mut state = key_state(table, activated.key_id, "ShareActivated")?;
    state.stage = ShareStage::Active;
    state.active = Maybe(Some(ActiveState {
        activation: activated.activation,
        policy: activated.policy,
        policy_version: activated.policy_version,
        authorities: activated.authorities,
        network: activated.network,
    }));
    put(table, &key(b'k', &[activated.key_id.as_bytes()]), &state)?;
    let epoch = EpochState {
        epoch: activated.first_epoch,
        owner: Maybe(None),
    };
    put(table, &key(b'e', &[activated.key_id.as_bytes()]), &epoch)
}

fn key_state(table: &dyn Table, key_id: KeyId, record: &'static str) -> Result<KeyState, Unlawful> {
    View(table).key(key_id)?.ok_or(Unlawful::Order(record))
}

fn epoch_raised(table: &mut dyn Table, raised: EpochRaised) -> Result<(), Unlawful> {
    let highest = View(table).epoch(raised.key_id)?;
    if highest.is_none_or(|highest| raised.epoch < highest.epoch) {
        return Err(Unlawful::Order("EpochRaised"));
    }
    let state = EpochState {
        epoch: raised.epoch,
        owner: Maybe(Some(raised.owner)),
    };
    put(table, &key(b'e', &[raised.key_id.as_bytes()]), &state)
}

fn request_opened(table: &mut dyn Table, opened: RequestOpened) -> Result<(), Unlawful> {
    let unlawful = Unlawful::Order("RequestOpened");
    let run = View(table).run()?;
    let before = View(table).request(opened.key_id, opened.request_id)?;
    let mut state = match before {
        Some(state) if state.intent == opened.intent => state,
        Some(_) => return Err(unlawful),
        None => RequestState {
            intent: opened.intent,
            policy: opened.policy,
            epoch: opened.epoch,
            outflow: opened.outflow,
            progress: RequestProgress::Open,
            open: List::empty(),
            receipt_chunks: 0,
        },
    };
    let attempts = View(table).attempts(opened.grant, &opened.coordinator)?;
    put(
        table,
        &attempts_key(opened.grant, &opened.coordinator),
        &attempts.saturating_add(1),
    )?;
    state.policy = opened.policy;
    state.epoch = opened.epoch;
    let mut open = state.open.into_vec();
    // What an earlier run left open is over.
    open.retain(|(_, opened_in)| *opened_in == run);
    open.push((opened.session, run));
    state.open = List::new(open).ok_or(unlawful)?;
    put_request(table, opened.key_id, opened.request_id, &state)?;
    let intent = key(b'i', &[opened.key_id.as_bytes(), opened.intent.as_bytes()]);
    if View(table)
        .first_request_for(opened.key_id, opened.intent)?
        .is_none()
    {
        put(table, &intent, &opened.request_id)?;
    }
    let session = SessionState {
        key_id: opened.key_id,
        share_version: opened.share_version,
        purpose: SessionPurpose::Request(RequestPurpose {
            request_id: opened.request_id,
            epoch: opened.epoch,
            owner: opened.owner,
            coordinator: opened.coordinator,
        }),
        stage: SessionStage::Open,
        run,
        package: Maybe(None),
    };
    put(table, &key(b's', &[opened.session.as_bytes()]), &session)
}

fn proof_opened(table: &mut dyn Table, opened: &ProofOpened) -> Result<(), Unlawful> {
    let mut sharing = key_state(table, opened.key_id, "ProofOpened")?;
    sharing.proofs = sharing.proofs.saturating_add(1);
    put(table, &key(b'k', &[opened.key_id.as_bytes()]), &sharing)?;
    let session = SessionState {
        key_id: opened.key_id,
        share_version: opened.share_version,
        purpose: SessionPurpose::Proof(opened.attempt),
        stage: SessionStage::Open,
        run: View(table).run()?,
        package: Maybe(None),
    };
    put(table, &key(b's', &[opened.session.as_bytes()]), &session)
}

fn session_released(table: &mut dyn Table, released: &Released) -> Result<(), Unlawful> {
    let name = key(b's', &[released.session.as_bytes()]);
    let mut state = View(table)
        .session(released.session)?
        .ok_or(Unlawful::Order("Released"))?;
    if state.stage != SessionStage::Open {
        return Err(Unlawful::Order("Released"));
    }
    state.stage = SessionStage::Released;
    state.package = Maybe(Some(released.package));
    put(table, &name, &state)?;
    if let SessionPurpose::Request(purpose) = &state.purpose {
        let mut request = View(table)
            .request(state.key_id, purpose.request_id)?
            .ok_or(Unlawful::Order("Released"))?;
        if request.progress == RequestProgress::Open {
            request.progress = RequestProgress::Released;
            put_request(table, state.key_id, purpose.request_id, &request)?;
        }
    }
    Ok(())
}

fn request_completed(table: &mut dyn Table, completed: &Completed) -> Result<(), Unlawful> {
    let unlawful = Unlawful::Order("Completed");
    let state = stage(
        table,
        completed.session,
        SessionStage::Completed,
        "Completed",
    )?;
    let SessionPurpose::Request(purpose) = &state.purpose else {
        return Err(unlawful);
    };
    let request_id = purpose.request_id;
    close_attempt(table, completed.session, &state)?;
    let mut request = View(table)
        .request(state.key_id, request_id)?
        .ok_or(unlawful.clone())?;
    if request.progress == RequestProgress::Completed {
        return Err(unlawful);
    }
    let mut chunks: u16 = 0;
    for bytes in completed.receipt.as_bytes().chunks(32 << 10) {
        let chunk = ReceiptChunk::new(bytes.to_vec()).ok_or(unlawful.clone())?;
        put(
            table,
            &receipt_key(state.key_id, request_id, chunks),
            &chunk,
        )?;
        chunks = chunks.checked_add(1).ok_or(unlawful.clone())?;
    }
    request.progress = RequestProgress::Completed;
    request.receipt_chunks = chunks;
    put_request(table, state.key_id, request_id, &request)
}

/// Moves a session on; a session that is over stays so.
fn stage(
    table: &mut dyn Table,
    session: SessionId,
    stage: SessionStage,
    record: &'static str,
) -> Result<SessionState, Unlawful> {
    let mut state = View(table)
        .session(session)?
        .ok_or(Unlawful::Order(record))?;
    if matches!(state.stage, SessionStage::Completed | SessionStage::Ended) {
        return Err(Unlawful::Order(record));
    }
    state.stage = stage;
    put(table, &key(b's', &[session.as_bytes()]), &state)?;
    Ok(state)
}

fn close_attempt(
    table: &mut dyn Table,
    session: SessionId,
    state: &SessionState,
) -> Result<(), Unlawful> {
    let SessionPurpose::Request(purpose) = &state.purpose else {
        return Ok(());
    };
    let Some(mut request) = View(table).request(state.key_id, purpose.request_id)? else {
        return Err(Unlawful::Order("SessionEnded"));
    };
    let mut open = request.open.into_vec();
    open.retain(|(other, _)| *other != session);
    request.open = List::new(open).ok_or(Unlawful::Order("SessionEnded"))?;
    put_request(table, state.key_id, purpose.request_id, &request)
}

fn put_request(
    table: &mut dyn Table,
    key_id: KeyId,
    request_id: firn_protocol::ids::RequestId,
    state: &RequestState,
) -> Result<(), Unlawful> {
    put(
        table,
        &key(b'r', &[key_id.as_bytes(), request_id.as_bytes()]),
        state,
    )
}

//! Runs a ceremony for the operators: the key generation, then the proofs of life. It decides the
//! order, and reports how far it is; each step is a machine of its own.

use std::{collections::BTreeSet, sync::Arc};

use firn_protocol::{
    codec::Text,
    documents::Plan,
    envelope::Approved,
    ids::{CeremonyId, Flow, Identifier, PlanDigest},
    messages::{CeremonyRecord, FromCeremony, Progress, ProofRecord, RunCeremony},
    reject::Reject,
    sharing::{CertifiedSharing, verify_plan},
};
use firn_transport::FrameSender;
use tokio::sync::mpsc;
use tracing::Instrument;

use super::{operators::failed, tell};
use crate::{
    carry::{Link, Patience, converse},
    session::{
        Conversation, Send, StepProgress,
        dkg::{self, CeremonyFault, session_terms},
        proof::{ProofAttempt, subsets},
    },
    state::{Shared, now, rng},
};

/// Steps that wait to be told; older ones are of no use by then.
const PROGRESS_KEPT: usize = 64;

/// Runs the ceremony of a plan, and tells `operator` how far it is.
///
/// # Errors
/// A plan that is not one; what fails later is an answer.
pub(super) async fn run(
    shared: &Arc<Shared>,
    run: RunCeremony,
    operator: &mut FrameSender,
) -> Result<FromCeremony, Reject> {
    let plan = verify_plan(run.plan, &shared.authorities, shared.authorities_digest())?;
    let (ceremony_id, digest) = (plan.ceremony_id, PlanDigest::from_bytes(plan.digest()));
    let made = shared.records().find(ceremony_id, digest, now());
    if let Some(record) = made {
        tracing::info!(%ceremony_id, "the record of a ceremony that has succeeded is given again");
        return Ok(FromCeremony::Certified(Arc::unwrap_or_clone(record)));
    }
    if now().value() >= plan.expires.value() {
        return Err(Reject::PlanExpired);
    }
    // Only key generation is carried so far.
    let terms = session_terms(&plan, Flow::Dkg).ok_or(Reject::UnexpectedMessage)?;
    let place = Place::take(shared, plan.ceremony_id)?;
    let span =
        tracing::info_span!("ceremony", key_id = %terms.key_id, ceremony_id = %plan.ceremony_id);
    let (steps, told) = mpsc::channel(PROGRESS_KEPT);
    let work = perform(shared, plan, steps).instrument(span.clone());
    let outcome = report(work, told, operator, shared).await;
    // An operator that has gone meanwhile asks again, and the members cannot do it again: the record is
    // there before the ceremony counts as over.
    if let Ok(record) = &outcome {
        let record = Arc::new(record.clone());
        shared.records().keep(ceremony_id, digest, record, now());
    }
    drop(place);
    let _entered = span.entered();
    match outcome {
        Ok(record) => {
            tracing::info!(proofs = record.proofs.len(), "certified by every member");
            Ok(FromCeremony::Certified(record))
        }
        Err(fault) => {
            tracing::warn!(
                code = %fault.code,
                culprit = fault.culprit.map(tracing::field::display),
                accuser = fault.accuser.map(tracing::field::display),
                step = fault.step,
                "ceremony failed"
            );
            failed(fault)
        }
    }
}

/// Forwards steps while the work goes on. An operator that has gone does not stop a ceremony.
async fn report<T>(
    work: impl Future<Output = T>,
    mut told: mpsc::Receiver<StepProgress>,
    operator: &mut FrameSender,
    shared: &Shared,
) -> T {
    let mut work = std::pin::pin!(work);
    let mut listening = true;
    loop {
        tokio::select! {
            biased;
            Some(step) = told.recv(), if listening => {
                let (done, of) = (u16::try_from(step.done), u16::try_from(step.of));
                if let (Some(name), Ok(done), Ok(of)) = (Text::new(step.step), done, of) {
                    let step = FromCeremony::Progress(Progress { step: name, done, of });
                    listening = tell(operator, &step, shared.bounds.step()).await.is_ok();
                }
            }
            outcome = &mut work => return outcome,
        }
    }
}

async fn perform(
    shared: &Arc<Shared>,
    plan: Approved<Plan>,
    steps: mpsc::Sender<StepProgress>,
) -> Result<CeremonyRecord, CeremonyFault> {
    let everybody: Vec<_> = plan.roster.iter().map(|entry| entry.identifier).collect();
    let (attempt, opening) =
        dkg::open(plan.clone(), &shared.voice, &mut rng()).map_err(here("round one"))?;
    let made = talk(shared, &plan, &everybody, attempt, opening, &steps).await??;
    let proofs = prove(shared, &plan, &made.sharing, &steps).await?;
    made.record(proofs).map_err(here("record"))
}

async fn prove(
    shared: &Arc<Shared>,
    plan: &Plan,
    sharing: &CertifiedSharing,
    steps: &mpsc::Sender<StepProgress>,
) -> Result<Vec<ProofRecord>, CeremonyFault> {
    let public = sharing.public();
    let groups = subsets(public.members(), usize::from(public.threshold().value()));
    let of = groups.len();
    let mut proofs = Vec::new();
    for group in groups {
        let (attempt, opening) = ProofAttempt::open(sharing, &group, &shared.voice, &mut rng())
            .map_err(here("proof of life"))?;
        proofs.push(*talk(shared, plan, &group, attempt, opening, steps).await??);
        let _ = steps.try_send(StepProgress {
            step: "proofs of life",
            done: proofs.len(),
            of,
        });
    }
    Ok(proofs)
}

/// A conversation with members of the plan, all of whom must be there.
async fn talk<C: Conversation>(
    shared: &Shared,
    plan: &Plan,
    members: &[Identifier],
    conversation: C,
    opening: Vec<Send>,
    steps: &mpsc::Sender<StepProgress>,
) -> Result<C::Outcome, CeremonyFault> {
    let links = links(shared, plan, members)?;
    let step = shared.bounds.step();
    let patience = Patience { first: step, step };
    let outcome = converse(conversation, opening, links, patience, |step| {
        let _ = steps.try_send(step);
    });
    Ok(outcome.await)
}

fn links(shared: &Shared, plan: &Plan, members: &[Identifier]) -> Result<Vec<Link>, CeremonyFault> {
    let registry = shared.registry();
    members
        .iter()
        .map(|member| {
            plan.member_at(*member)
                .and_then(|entry| registry.reach(entry))
                .map(|line| Link {
                    member: *member,
                    line,
                })
                .ok_or(CeremonyFault {
                    code: Reject::QuorumUnavailable,
                    culprit: Some(*member),
                    accuser: None,
                    step: "connect",
                })
        })
        .collect()
}

const fn here(step: &'static str) -> impl Fn(Reject) -> CeremonyFault {
    move |code| CeremonyFault::here(code, step)
}

/// The mark that a ceremony is running, taken off when dropped.
struct Place<'a> {
    shared: &'a Shared,
    ceremony: CeremonyId,
}

impl<'a> Place<'a> {
    /// One attempt of a ceremony at a time.
    fn take(shared: &'a Shared, ceremony: CeremonyId) -> Result<Self, Reject> {
        let mut running: std::sync::MutexGuard<'_, BTreeSet<_>> = shared.running();
        if running.insert(ceremony) {
            Ok(Self { shared, ceremony })
        } else {
            Err(Reject::Busy)
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.shared.running().remove(&self.ceremony);
    }
}

//! What the operator of this machine may ask, and how the participant is. Acceptance is on disk and on
//! record before it is confirmed; nothing here signs for a key.

use std::sync::atomic::Ordering;

use firn_ledger::rules::{Command, PlanAccepted as AcceptedRecord};
use firn_protocol::{
    envelope::Envelope,
    ids::{Nonce, UnixMillis},
    messages::{AcceptPlan, MemberStatus, PlanAccepted},
    reject::Reject,
};

use super::{Host, Service};
use crate::{
    accept::{AcceptError, Acceptor},
    session::{LedgerStatus, OwnState},
};

impl<H: Host> Service<H> {
    /// Accepts a plan for this machine. Doing it again changes nothing.
    ///
    /// # Errors
    /// [`AcceptError`].
    pub async fn accept_plan(&self, asked: &AcceptPlan) -> Result<PlanAccepted, AcceptError> {
        let acceptor = Acceptor {
            authorities: &self.authorities,
            authorities_digest: self.authorities_digest,
            identity: self.speaker.identity(),
            name: &self.name,
        };
        let (plan, accepted) = acceptor.judge(asked, self.now())?;
        // The document first: the record says that it is there.
        self.documents.accept_plan(plan.endorsed())?;
        let record = AcceptedRecord {
            plan: accepted.plan,
        };
        self.commit(Command::AcceptPlan(record)).await?;
        tracing::info!(plan = %accepted.plan, member = %accepted.member, "plan accepted");
        Ok(accepted)
    }

    /// How this participant is.
    ///
    /// # Errors
    /// [`Reject::LedgerUnavailable`].
    pub async fn status(&self, nonce: Nonce) -> Result<Envelope<MemberStatus>, Reject> {
        let ledger = self.query(LedgerStatus::look).await??;
        let own = OwnState {
            name: &self.name,
            own: &self.own,
            authorities: self.authorities_digest,
            stopped: self.check_not_frozen().err(),
            certificate_expires: UnixMillis::new(self.certificate_ends.load(Ordering::Relaxed)),
            now: self.now(),
        };
        ledger.say(nonce, &own, &self.speaker)
    }

    /// Takes note of when the certificate ends that peers are shown from now on.
    pub fn certificate_ends(&self, at: UnixMillis) {
        self.certificate_ends.store(at.value(), Ordering::Relaxed);
    }
}

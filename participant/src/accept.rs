//! The operator's word, on this machine, that a plan may be carried out. It decides whether a plan is
//! the one that was read out and whether it counts here; the session checks it again when it begins.

use firn_protocol::{
    codec::Malformed,
    documents::{Authorities, Plan},
    envelope::Approved,
    ids::{AuthoritiesDigest, PlanDigest, UnixMillis},
    keys::IdentityKey,
    messages::{AcceptPlan, PlanAccepted},
    names::SpiffeId,
    reject::Reject,
    sharing::verify_plan,
};

use crate::documents::DocumentError;

/// Why a plan is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// It is no plan.
    #[error("that is no endorsed plan: {0}")]
    NoPlan(#[from] Malformed),
    /// It is another plan than the one that was read out.
    #[error("the plan's fingerprint is {found}, not the one given")]
    Fingerprint {
        /// The plan's digest.
        found: PlanDigest,
    },
    /// It does not count here, or cannot be recorded.
    #[error("the plan does not count here: {0}")]
    Refused(#[from] Reject),
    /// It cannot be kept.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

impl AcceptError {
    /// The stable code of the reason.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoPlan(_) => "plan_unreadable",
            Self::Fingerprint { .. } => "plan_fingerprint",
            Self::Refused(code) => code.name(),
            Self::Document(error) => error.code(),
        }
    }

    /// What an operator can do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::NoPlan(_) => "Fetch the plan's file again from whoever wrote it.",
            Self::Fingerprint { .. } => {
                "Compare again by voice. If it stays different, somebody changed the file: stop."
            }
            Self::Refused(code) => code.advice(),
            Self::Document(error) => error.advice(),
        }
    }
}

/// For whom a plan is judged.
#[derive(Debug, Clone, Copy)]
pub struct Acceptor<'a> {
    /// The keys that count.
    pub authorities: &'a Authorities,
    /// Their digest, as the operator pinned it.
    pub authorities_digest: AuthoritiesDigest,
    /// This participant's key.
    pub identity: IdentityKey,
    /// The name in its TLS certificate.
    pub name: &'a SpiffeId,
}

impl Acceptor<'_> {
    /// Judges a plan: it is the one with the fingerprint, the operators have endorsed it under these
    /// Authorities, this participant is in its roster under its own name, and its time is not over.
    ///
    /// # Errors
    /// [`AcceptError`], in this order.
    pub fn judge(
        &self,
        asked: &AcceptPlan,
        now: UnixMillis,
    ) -> Result<(Approved<Plan>, PlanAccepted), AcceptError> {
        let (_, digest) = asked.plan.read::<Plan>()?;
        let found = PlanDigest::from_bytes(digest);
        if asked.fingerprint != found {
            return Err(AcceptError::Fingerprint { found });
        }
        let plan = verify_plan(
            asked.plan.clone(),
            self.authorities,
            self.authorities_digest,
        )?;
        let member = plan
            .member(&self.identity)
            .filter(|member| member.tls_name == *self.name)
            .ok_or(Reject::NotAMember)?;
        if plan.expires <= now {
            return Err(Reject::PlanExpired.into());
        }
        let accepted = PlanAccepted {
            plan: found,
            member: member.name.clone(),
        };
        Ok((plan, accepted))
    }
}

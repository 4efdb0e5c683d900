//! What a session may ask the ledger to write, and what it is told.

use firn_protocol::{
    documents::Receipt,
    envelope::Envelope,
    ids::{Epoch, KeyId, MessageDigest, PackageDigest, SessionId},
    names::SpiffeId,
    reject::Reject,
};

use super::body::{
    AttemptOpened, AuthoritiesAccepted, CeremonyStep, Completed, Frozen, Genesis, PlanAccepted,
    ProofCompleted, ProofOpened, RefusalsCounted, RefusedInFull, RequestOpened, SessionEnded,
    ShareActivated, ShareCertified, SharePending, Started, Witnessed,
};

/// Bounds that the operator of a participant sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How far above the highest epoch a grant may reach.
    pub max_epoch_jump: u64,
    /// Attempts of one request under one grant, through one coordinator.
    pub max_attempts_per_grant: u32,
    /// Attempts of one plan: a coordinator cannot fill the disk with ceremonies that fail.
    pub max_attempts_per_plan: u32,
    /// Proofs of life of one sharing; a ceremony makes at most one for each member or ten.
    pub max_proofs_per_sharing: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_epoch_jump: 1_000,
            max_attempts_per_grant: 32,
            max_attempts_per_plan: 64,
            max_proofs_per_sharing: 256,
        }
    }
}

/// An attempt of a request, and how many of the same may be open at once through its coordinator:
/// n - t + 1, enough to work around every member that may be missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenRequest {
    /// What is recorded.
    pub opened: RequestOpened,
    /// Attempts at once.
    pub at_once: usize,
    /// Why policy or approvals say no. It counts only after epoch and request id have been judged:
    /// what was completed is answered again whatever the policy says now.
    pub denied: Option<Reject>,
}

/// What is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Begin the ledger.
    Begin(Genesis),
    /// The process has started.
    Start(Started),
    /// The operator accepts Authorities.
    AcceptAuthorities(AuthoritiesAccepted),
    /// The operator accepts a plan.
    AcceptPlan(PlanAccepted),
    /// Open an attempt of a ceremony.
    OpenAttempt(AttemptOpened),
    /// Send a message of a ceremony.
    Send {
        /// The attempt.
        attempt: SessionId,
        /// Which message.
        step: CeremonyStep,
        /// Its digest.
        digest: MessageDigest,
    },
    /// A share is sealed on disk.
    Pend(SharePending),
    /// All certificates are here.
    Certify(ShareCertified),
    /// The operators make a sharing usable.
    Activate(ShareActivated),
    /// A valid grant shows an epoch.
    RaiseEpoch {
        /// The key.
        key_id: KeyId,
        /// The epoch.
        epoch: Epoch,
        /// Who holds it.
        owner: SpiffeId,
    },
    /// Open an attempt of a request.
    OpenRequest(Box<OpenRequest>),
    /// Open a proof of life.
    OpenProof(ProofOpened),
    /// Let shares out for one package, and remember the heads that came with it.
    Release {
        /// The session.
        session: SessionId,
        /// The package.
        package: PackageDigest,
        /// Heads of the other members.
        witnessed: Vec<Witnessed>,
    },
    /// The signatures are known.
    Complete(Completed),
    /// A proof of life is known.
    CompleteProof(ProofCompleted),
    /// A session is over.
    End(SessionEnded),
    /// Something was refused.
    Refuse(RefusedInFull),
    /// Further refusals.
    CountRefusals(RefusalsCounted),
    /// Heads of other participants.
    Witness(Vec<Witnessed>),
    /// A head of this participant's own that its ledger never had.
    Freeze(Frozen),
}

/// What the asker is told once it is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is written.
    Written,
    /// The request was completed before; this is what was answered then.
    AlreadyCompleted(Envelope<Receipt>),
    /// No, with what must be remembered of it written.
    Denied(Reject),
}

/// The refusal of a command.
pub(super) const fn refuse<T>(code: Reject) -> Result<T, super::admit::Refused> {
    Err(super::admit::Refused::Rule(code))
}

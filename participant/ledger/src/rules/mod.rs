//! What the records mean. It decides which records may follow the ones before (promises 1 to 4 and
//! 9 hang on it) and never sees a disk, a socket or a secret.
//!
//! [`admit`] judges a command by the state and answers with records; [`apply`] changes the state by
//! one record, whether it is about to be written or read again. The state is a plain function of the
//! records.

mod admit;
mod apply;
mod body;
mod command;
mod outcome;
mod state;
mod summary;

pub use admit::{Refused, admit};
pub use apply::{Unlawful, apply, check};
pub use body::{
    AttemptOpened, AuthoritiesAccepted, Body, CeremonySent, CeremonyStep, Completed, Conflicted,
    EpochRaised, Frozen, Genesis, PlanAccepted, ProofCompleted, ProofOpened, RefusalsCounted,
    RefusedInFull, Released, RequestOpened, SessionEnded, ShareActivated, ShareCertified,
    SharePending, Started, Witnessed,
};
pub use command::{Answer, Command, Limits, OpenRequest};
pub use firn_protocol::messages::ShareStage;
pub use state::{
    ActiveState, AttemptState, EpochState, KeyState, RequestPurpose, RequestState, SessionPurpose,
    SessionStage, SessionState, StateError, View,
};

/// Counts the changes to what [`apply`] makes of a record.
pub const STATE_VERSION: u32 = 3;

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "small numbers of a test")]
mod tests;

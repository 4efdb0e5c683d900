//! Sessions as pure state machines: they take a message, the time and a source of randomness, and
//! return what to record and what to send. They never touch a socket, a disk or a clock.
//!
//! Write-then-release is in the types: what lets a commitment or a share out takes the [`Durable`]
//! token that only the store makes, after fdatasync has returned. One type for each state, named
//! for what it awaits; an error consumes the state, and with it the nonces.
//!
//! [`Durable`]: crate::store::Durable

mod clock;
pub mod dkg;
mod gate;
mod outcome;
mod random;
mod sign;
mod speaker;
mod status;

pub use clock::{ClockSkew, SaidBetween};
pub use gate::{
    GrantTime, Judged, JudgedProof, JudgedRequest, KeyInUse, ReceiptTerms, RefusedOpening,
    ShownEpoch, judge_proof, judge_request,
};
pub use outcome::{AskedOutcome, FoundOutcome};
pub use random::HedgedRng;
pub use sign::{AwaitFinal, AwaitPackage, Finished, Releasing, WitnessConflict};
pub use speaker::{Peers, Speaker, witness};
pub use status::{LedgerStatus, OwnState, judge_status_query};

use firn_protocol::{ids::Identifier, reject::Reject};

/// A refusal and who is at fault, where that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusing {
    /// Why.
    pub code: Reject,
    /// Who.
    pub culprit: Option<Identifier>,
}

impl Refusing {
    /// A refusal that another member is to blame for.
    #[must_use]
    pub const fn of(code: Reject, culprit: Identifier) -> Self {
        Self {
            code,
            culprit: Some(culprit),
        }
    }
}

impl<E: Into<Reject>> From<E> for Refusing {
    fn from(error: E) -> Self {
        Self {
            code: error.into(),
            culprit: None,
        }
    }
}

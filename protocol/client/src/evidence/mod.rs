//! Checks what a session leaves behind, from files alone. It decides whether the evidence proves what it
//! claims, and believes no machine that took part.
//!
//! What became of a request is worked out in the same way, from what members state: see [`Statements`].

mod outcome;
#[cfg(test)]
mod outcome_tests;
mod round;
mod signing;

pub use outcome::{
    ConflictingOutcome, MOST_SKEW_MS, NotSigned, OutcomeTerms, Proof, Prospect, ReleasedOutcome,
    RequestOutcome, SignedOutcome, Statements, Undetermined,
};
pub use round::{Round, header_of};
pub use signing::{
    CheckedSigning, SigningTerms, check_receipts, check_session, check_signatures, check_signed,
};

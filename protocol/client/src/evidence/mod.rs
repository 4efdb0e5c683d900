//! Checks what a session leaves behind, from files alone. It decides whether the evidence proves what it
//! claims, and believes no machine that took part.

mod round;
mod signing;

pub use round::{Round, header_of};
pub use signing::{CheckedSigning, SigningTerms, check_signed};

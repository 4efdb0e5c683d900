//! Checks what sessions leave behind, from files alone. It decides whether the evidence proves what it
//! claims, and believes no machine that took part.

mod ceremony;
mod proofs;

pub use ceremony::{CeremonyStep, CheckedCeremony, check_ceremony, check_steps};
pub use firn_client::evidence::{CheckedSigning, SigningTerms, check_signed};

#[cfg(test)]
mod tests;

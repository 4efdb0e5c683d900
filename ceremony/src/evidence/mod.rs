//! Checks what sessions leave behind, from files alone. It decides whether the evidence proves what it
//! claims, and believes no machine that took part.

mod ceremony;

pub use ceremony::{CheckedCeremony, check_ceremony};
pub use firn_client::evidence::{CheckedSigning, SigningTerms, check_signed};

#[cfg(test)]
mod tests;

//! Checks what sessions leave behind, from files alone. It decides whether the evidence proves what it
//! claims, and believes no machine that took part.

mod ceremony;
mod checks;
mod folder;
mod proofs;
mod verify;
mod writing;

pub use ceremony::{CeremonyStep, CheckedCeremony, check_ceremony, check_steps};
pub use checks::Check;
pub use firn_client::evidence::{CheckedSigning, SigningTerms, check_signed};
pub use folder::{
    ACKNOWLEDGEMENTS, ACTIVATION, Acknowledgements, CEREMONY, FILES, Folder, PLAN, POLICY,
    REQUESTS, RequestEvidence,
};
pub use verify::{AUTHORITIES, InForce, Verification, merge_acknowledgements, verify};
pub use writing::{Beginning, keep_rejected};

#[cfg(test)]
pub(crate) mod tests;

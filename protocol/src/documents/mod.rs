//! The documents: what authorities, operators, requesters and members sign. Each binds what it
//! needs by digest, so that none of them means anything in another setting.

mod activation;
mod authorities;
mod certificate;
mod checkpoint;
mod enrollment;
mod grant;
mod intent;
mod plan;
mod policy;
mod receipt;

pub use activation::Activation;
pub use authorities::{ApproverGroup, Authorities, KeyHolder, NamedKey, Quorum};
pub use certificate::{Certificate, Sealing, certificate_set_digest};
pub use checkpoint::{Checkpoint, SignedCheckpoint};
pub use enrollment::Enrollment;
pub use grant::Grant;
pub use intent::{Content, Intent, ProofOfLife};
pub use plan::{Ceremony, DkgTerms, Plan, ReshareTerms, RetireTerms, Roster, RosterEntry};
pub use policy::{
    DestinationRule, FeeRule, NetworkRule, OutflowRule, Policy, Rule, Rules, Script, SighashRule,
};
pub use receipt::{Completed, InputSignature, Outcome, Receipt, Refused};

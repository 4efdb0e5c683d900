//! What authorities, operators and requesters write and sign. It decides that a document says what it
//! must before anybody signs it, and never signs with a key that it was not given.

mod activation;
mod authorities;
mod plan;
mod policy;
mod request;

pub use activation::{activation, key_documents};
pub use authorities::{read_authorities, read_draft, verify_authorities};
pub use plan::{PlanTerms, plan};
pub use policy::{RuleTerms, first_policy, rules};
pub use request::{GrantTerms, grant, intent};

use firn_protocol::{
    envelope::{Document, Endorsed},
    keys::IdentitySecret,
};

use crate::error::Error;

/// A document with the signature of each of these people, in any order.
///
/// # Errors
/// A document over its limit; a person twice.
pub fn endorse<T: Document>(document: &T, people: &[IdentitySecret]) -> Result<Endorsed, Error> {
    people
        .iter()
        .try_fold(Endorsed::unsigned(document)?, |endorsed, person| {
            Ok(endorsed.endorse::<T>(person)?)
        })
}

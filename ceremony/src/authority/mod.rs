//! What authorities, operators and requesters write and sign. It decides that a document says what it
//! must before anybody signs it, and never signs with a key that it was not given.

mod activation;
mod authorities;
mod plan;
mod policy;
mod request;
mod rules_file;

pub use activation::{activation, key_documents};
pub use authorities::{read_authorities, read_draft, verify_authorities};
pub use plan::{PlanTerms, plan, read_plan};
pub use policy::{RuleTerms, first_policy, rules};
pub use request::{GrantTerms, grant, intent};
pub(crate) use rules_file::EXAMPLE as RULES_EXAMPLE;
pub use rules_file::{described as described_rules, network_of, read_rules, rules_digest};

use firn_protocol::{
    documents::Quorum,
    envelope::{Document, Endorsed},
    keys::{IdentityKey, IdentitySecret},
    reject::Reject,
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

/// A document with one operator's signature more; the same where the operator has signed already.
///
/// # Errors
/// [`Error::Refused`] where the signer is not one of the operators, or one of the signatures that are
/// there is not one of theirs.
pub fn countersign<T: Document>(
    endorsed: Endorsed,
    operators: &Quorum,
    operator: &IdentitySecret,
    doing: &'static str,
) -> Result<Endorsed, Error> {
    let refused = |code, detail: &str| Error::Refused {
        doing,
        code,
        detail: detail.to_owned(),
    };
    let identities = operators.identities();
    if !identities.contains(&operator.identity()) {
        return Err(refused(
            Reject::UnknownSigner,
            "your key is not one of the operators'",
        ));
    }
    let signed = signed_so_far::<T>(&endorsed, &identities, doing)?;
    if signed.contains(&operator.identity()) {
        return Ok(endorsed);
    }
    Ok(endorsed.endorse::<T>(operator)?)
}

/// Who of the operators has signed a document so far.
///
/// # Errors
/// [`Error::Refused`] where one of its signatures does not verify, or is a stranger's.
pub fn signed_so_far<T: Document>(
    endorsed: &Endorsed,
    operators: &[IdentityKey],
    doing: &'static str,
) -> Result<Vec<IdentityKey>, Error> {
    endorsed
        .signers_among::<T>(operators)
        .map_err(|error| Error::Refused {
            doing,
            code: error.into(),
            detail: "a signature that is there already".to_owned(),
        })
}

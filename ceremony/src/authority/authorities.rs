//! The Authorities as a file. It decides whether they stand by themselves; whether they are the right
//! ones is for whoever compares their digest.

use std::path::Path;

use firn_protocol::{
    documents::Authorities,
    envelope::{Approved, Endorsed},
    reject::Reject,
};

use crate::{domain::files::read_document, error::Error};

/// First Authorities, signed by a quorum of their own operators.
///
/// # Errors
/// [`Error::Unverified`].
pub fn verify_authorities(endorsed: Endorsed) -> Result<Approved<Authorities>, Error> {
    verified(endorsed).map_err(Error::unverified("the Authorities"))
}

/// The same from a file.
///
/// # Errors
/// [`Error::File`]; [`Error::BadFile`]; [`Error::Unverified`].
pub fn read_authorities(path: &Path) -> Result<Approved<Authorities>, Error> {
    verify_authorities(read_document(path, Endorsed::LIMIT, "Authorities")?)
}

fn verified(endorsed: Endorsed) -> Result<Approved<Authorities>, Reject> {
    let (claimed, _) = endorsed.read::<Authorities>()?;
    if !claimed.is_sound() {
        return Err(Reject::UnsoundDocument);
    }
    let operators = &claimed.operators;
    Ok(endorsed.verify(&operators.identities(), usize::from(operators.needed))?)
}

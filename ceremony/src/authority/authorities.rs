//! The Authorities as a file. It decides whether they stand by themselves; whether they are the right
//! ones is for whoever compares their digest.

use std::path::Path;

use firn_protocol::{
    documents::Authorities,
    envelope::{Approved, Endorsed},
    reject::Reject,
};

use crate::{domain::read_endorsed_authorities, error::Error};

/// First Authorities, signed by a quorum of their own operators.
///
/// # Errors
/// [`Error::Unverified`].
pub fn verify_authorities(endorsed: Endorsed) -> Result<Approved<Authorities>, Error> {
    verified(endorsed).map_err(Error::unverified("the Authorities"))
}

/// The same from a file: their own, or a trust domain's description.
///
/// # Errors
/// As [`read_endorsed_authorities`]; [`Error::Unverified`].
pub fn read_authorities(path: &Path) -> Result<Approved<Authorities>, Error> {
    verify_authorities(read_endorsed_authorities(path)?)
}

/// What Authorities say, whoever has signed them so far: for those who are to sign, and nobody else.
///
/// # Errors
/// What contradicts itself, as text.
pub fn read_draft(endorsed: &Endorsed) -> Result<(Authorities, [u8; 32]), String> {
    let read = endorsed.read::<Authorities>();
    let (authorities, digest) =
        read.map_err(|error| format!("the Authorities do not decode: {error}"))?;
    if authorities.is_sound() {
        Ok((authorities, digest))
    } else {
        Err(Reject::UnsoundDocument.meaning().to_owned())
    }
}

fn verified(endorsed: Endorsed) -> Result<Approved<Authorities>, Reject> {
    let (claimed, _) = endorsed.read::<Authorities>()?;
    if !claimed.is_sound() {
        return Err(Reject::UnsoundDocument);
    }
    let operators = &claimed.operators;
    Ok(endorsed.verify(&operators.identities(), usize::from(operators.needed))?)
}

//! Asks a coordinator, as a requester or as an operator of a domain. It decides whose files speak; what
//! comes back is judged by the requester's library, and believed only where it proves itself.

mod operator;
mod requester;
mod standing;

pub use firn_client::{Answer, Asked, Line, Peer};
pub use operator::{Delivered, OperatorLine};
pub use requester::RequesterLine;
pub use standing::{NoWord, Standing, standings};

use firn_client::Caller;
use firn_transport::{TlsIdentity, Trust};

use crate::{domain::Party, error::Error};

/// The party as a caller, by the files in its folder.
///
/// # Errors
/// Files that cannot be read, or hold something else.
pub fn caller(party: &Party) -> Result<Caller, Error> {
    let files = &party.folder;
    let identity = TlsIdentity::load(&files.certificate(), &files.tls_key())
        .map_err(Error::transport("reading the certificate"))?;
    let trust = Trust::load(party.id.trust_domain().clone(), &files.roots())
        .map_err(Error::transport("reading the roots"))?;
    let caller = Caller::new(party.secret()?, identity, trust)?;
    Ok(caller.with_software(concat!("firn ", env!("CARGO_PKG_VERSION"))))
}

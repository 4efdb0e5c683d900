//! The system's clock and randomness. The only place of this crate that asks for either.

use std::time::{SystemTime, UNIX_EPOCH};

use firn_protocol::{ids::UnixMillis, keys::IdentitySecret};
use zeroize::Zeroizing;

use crate::error::Error;

/// The time now; the beginning of 1970 where the clock is set before it.
#[must_use]
pub fn now() -> UnixMillis {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    UnixMillis::new(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Random bytes of the system, wiped when dropped.
///
/// # Errors
/// [`Error::Randomness`].
pub(crate) fn random<const N: usize>() -> Result<Zeroizing<[u8; N]>, Error> {
    let mut bytes = Zeroizing::new([0; N]);
    getrandom::fill(&mut *bytes).map_err(|_| Error::Randomness)?;
    Ok(bytes)
}

/// A fresh Ed25519 key.
///
/// # Errors
/// [`Error::Randomness`].
pub(crate) fn fresh_identity() -> Result<IdentitySecret, Error> {
    Ok(IdentitySecret::from_seed(&random::<32>()?))
}

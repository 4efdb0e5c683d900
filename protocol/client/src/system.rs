//! The system's clock and randomness. The only place of this crate that asks for either.

use std::time::{SystemTime, UNIX_EPOCH};

use firn_protocol::ids::{Nonce, UnixMillis};

use crate::error::Error;

/// The time now; the beginning of 1970 where the clock is set before it.
pub(crate) fn now() -> UnixMillis {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    UnixMillis::new(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Random bytes of the system.
///
/// # Errors
/// [`Error::Randomness`].
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| Error::Randomness)?;
    Ok(bytes)
}

/// A nonce for one question.
///
/// # Errors
/// [`Error::Randomness`].
pub(crate) fn nonce() -> Result<Nonce, Error> {
    random().map(Nonce::from_bytes)
}

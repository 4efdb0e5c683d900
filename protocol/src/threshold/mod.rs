//! FROST (RFC 9591) over secp256k1 with Taproot output, between Firn's wire types and
//! frost-secp256k1-tr. It decides that lists are exactly what a session needs before frost sees
//! them, and that what comes out verifies; frost itself accepts more.

mod aggregate;
mod dealt;
mod nonces;
mod public;
mod rng;
mod sealing;
mod share;

pub use aggregate::{Culprits, aggregate, verify_share};
pub use dealt::dealt_key;
pub use nonces::{NoncePair, SigningList};
pub use public::{AddressKey, PublicShares};
pub use rng::FrostRng;
pub use sealing::{SealingContext, dealt_share_matches, open, seal, sealing_key_of, sealing_pair};
pub use share::SigningShare;

/// Why a threshold operation was refused. Nothing here says anything about a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ThresholdError {
    /// A point or scalar is not one.
    #[error("not a valid point or scalar")]
    BadEncoding,
    /// A list does not hold exactly the members that it must.
    #[error("list of the wrong members")]
    WrongMembers,
    /// The derived key is not the one that the script pays to.
    #[error("derived key is not the address's")]
    WrongKey,
    /// FROST refused.
    #[error("FROST refused the operation")]
    Frost,
}

impl From<frost_secp256k1_tr::Error> for ThresholdError {
    fn from(_: frost_secp256k1_tr::Error) -> Self {
        Self::Frost
    }
}

/// The FROST identifier of a member.
///
/// # Errors
/// Never: [`crate::ids::Identifier`] is not zero.
pub fn frost_identifier(
    identifier: crate::ids::Identifier,
) -> Result<frost_secp256k1_tr::Identifier, ThresholdError> {
    frost_secp256k1_tr::Identifier::try_from(identifier.value())
        .map_err(|_| ThresholdError::BadEncoding)
}

#[cfg(test)]
mod tests;

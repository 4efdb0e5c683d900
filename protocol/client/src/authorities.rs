//! The keys that count, pinned. It decides whether a file holds exactly the Authorities whose digest the
//! person at this machine has compared, and never which ones are the right ones.

use std::ops::Deref;

use firn_protocol::{
    codec,
    documents::{Authorities, KeyHolder},
    envelope::{Approved, Endorsed},
    ids::AuthoritiesDigest,
    names::SpiffeId,
    reject::Reject,
};

use crate::error::Error;

const WHAT: &str = "the Authorities";

/// Authorities whose digest was compared.
#[derive(Debug, Clone)]
pub struct PinnedAuthorities(Approved<Authorities>);

impl PinnedAuthorities {
    /// The Authorities in `bytes`, if their digest is `pinned`.
    ///
    /// # Errors
    /// [`Error::Unfit`]: bytes that are none, contradict themselves, have another digest or are not
    /// signed by a quorum of their own operators.
    pub fn from_bytes(bytes: &[u8], pinned: AuthoritiesDigest) -> Result<Self, Error> {
        let endorsed = codec::decode::<Endorsed>(bytes, Endorsed::LIMIT)
            .map_err(|malformed| Error::unfit(WHAT)(malformed.into()))?;
        Self::verify(endorsed, pinned).map_err(Error::unfit(WHAT))
    }

    /// The same of what was decoded.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn verify(endorsed: Endorsed, pinned: AuthoritiesDigest) -> Result<Self, Reject> {
        let (claimed, digest) = endorsed.read::<Authorities>()?;
        if AuthoritiesDigest::from_bytes(digest) != pinned {
            return Err(Reject::AuthoritiesMismatch);
        }
        if !claimed.is_sound() {
            return Err(Reject::UnsoundDocument);
        }
        let operators = &claimed.operators;
        let approved = endorsed.verify(&operators.identities(), usize::from(operators.needed))?;
        Ok(Self(approved))
    }

    /// Authorities that somebody else has verified.
    #[must_use]
    pub const fn of(approved: Approved<Authorities>) -> Self {
        Self(approved)
    }

    /// Their digest.
    #[must_use]
    pub const fn digest(&self) -> AuthoritiesDigest {
        AuthoritiesDigest::from_bytes(self.0.digest())
    }

    /// With the signatures that prove them.
    #[must_use]
    pub const fn approved(&self) -> &Approved<Authorities> {
        &self.0
    }

    /// A coordinator and its key, if it may carry messages.
    #[must_use]
    pub fn coordinator_named(&self, id: &SpiffeId) -> Option<&KeyHolder> {
        self.0.coordinators.iter().find(|holder| holder.id == *id)
    }
}

impl Deref for PinnedAuthorities {
    type Target = Authorities;

    fn deref(&self) -> &Authorities {
        &self.0
    }
}

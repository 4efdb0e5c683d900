//! The coordinator's own word: session headers, packages, questions, welcomes. It decides what a
//! header binds, and never speaks for anybody else.

use firn_protocol::{
    codec::List,
    envelope::{Document, Envelope, Verified},
    ids::{Identifier, Nonce},
    keys::{IdentityKey, IdentitySecret},
    names::SpiffeId,
    reject::Reject,
    session::SessionHeader,
};
use rand_core::CryptoRng;

/// Who this coordinator is and the key that it signs with.
#[derive(Debug)]
pub struct Voice {
    id: SpiffeId,
    secret: IdentitySecret,
}

impl Voice {
    /// The voice of `id`.
    #[must_use]
    pub const fn new(id: SpiffeId, secret: IdentitySecret) -> Self {
        Self { id, secret }
    }

    /// The coordinator's name.
    #[must_use]
    pub const fn id(&self) -> &SpiffeId {
        &self.id
    }

    /// The key that others check its word with.
    #[must_use]
    pub fn identity(&self) -> IdentityKey {
        self.secret.identity()
    }

    /// Signs a document, and keeps it readable beside its envelope.
    ///
    /// # Errors
    /// When the document is over its own limit.
    pub fn sign<T: Document>(&self, document: &T) -> Result<Verified<T>, Reject> {
        Ok(Envelope::sign(document, &self.secret)?.verify(&self.secret.identity())?)
    }

    /// Signs the header of a fresh session: `terms` says everything but who carries, the nonce and
    /// the members, which are put in order here.
    ///
    /// # Errors
    /// More members than a session may have.
    pub fn open_session<R: CryptoRng>(
        &self,
        terms: SessionTerms,
        members: &[Identifier],
        rng: &mut R,
    ) -> Result<Verified<SessionHeader>, Reject> {
        let mut members = members.to_vec();
        members.sort_unstable();
        let members = List::new(members).ok_or(Reject::SessionMembers)?;
        self.sign(&SessionHeader {
            flow: terms.flow,
            subject: terms.subject,
            key_id: terms.key_id,
            share_version: terms.share_version,
            epoch: terms.epoch,
            coordinator: self.id.clone(),
            nonce: fresh_nonce(rng),
            members,
        })
    }
}

/// What a session's header binds beside its members: the same for every attempt.
#[derive(Debug, Clone)]
pub struct SessionTerms {
    /// What the session is for.
    pub flow: firn_protocol::ids::Flow,
    /// On whose authority.
    pub subject: firn_protocol::session::Subject,
    /// The key.
    pub key_id: firn_protocol::ids::KeyId,
    /// Its sharing.
    pub share_version: firn_protocol::ids::ShareVersion,
    /// The owner's epoch, or the plan's.
    pub epoch: firn_protocol::ids::Epoch,
}

/// 32 random bytes.
pub fn fresh_nonce<R: CryptoRng>(rng: &mut R) -> Nonce {
    let mut bytes = [0; 32];
    rng.fill_bytes(&mut bytes);
    Nonce::from_bytes(bytes)
}

//! How this participant speaks: every word is signed with its identity key and carries its head and
//! the heads that it has witnessed of the others.

use std::collections::BTreeMap;

use firn_ledger::{journal::Head, rules::Witnessed};
use firn_protocol::{
    codec::List,
    documents::{Checkpoint, SignedCheckpoint},
    envelope::{Document, Envelope},
    ids::UnixMillis,
    keys::{IdentityKey, IdentitySecret},
    messages::Standing,
    reject::Reject,
};

use crate::store::Durable;

/// The latest heads that this participant has witnessed of others, by identity.
pub type Peers = BTreeMap<IdentityKey, SignedCheckpoint>;

/// Remembers heads that are stored, so that they may be said. An older head never takes the place of
/// a later one: a restored copy would else be forgotten by the very peers that can unmask it.
pub fn witness(peers: &mut Peers, heads: Vec<Witnessed>) {
    for Witnessed {
        identity,
        checkpoint,
    } in heads
    {
        let size = |head: &SignedCheckpoint| {
            let head = head.clone().verify(&identity).ok();
            head.map(|head| head.size)
        };
        // Nothing is less than every size.
        if peers.get(&identity).and_then(size) < size(&checkpoint) {
            peers.insert(identity, checkpoint);
        }
    }
}

/// The participant's voice.
pub struct Speaker {
    secret: IdentitySecret,
}

impl Speaker {
    /// Speaks with this key.
    #[must_use]
    pub const fn new(secret: IdentitySecret) -> Self {
        Self { secret }
    }

    /// The key that others know it by.
    #[must_use]
    pub fn identity(&self) -> IdentityKey {
        self.secret.identity()
    }

    /// Signs a document.
    ///
    /// # Errors
    /// [`Reject::TooLarge`] when it is over its limit.
    pub fn sign<T: Document>(&self, document: &T) -> Result<Envelope<T>, Reject> {
        Ok(Envelope::sign(document, &self.secret)?)
    }

    /// Says how far the ledger reaches: only heads that are on disk have a token.
    ///
    /// # Errors
    /// Never: a checkpoint is small.
    pub fn checkpoint(
        &self,
        durable: &Durable,
        now: UnixMillis,
    ) -> Result<SignedCheckpoint, Reject> {
        self.checkpoint_at(durable.head(), now)
    }

    /// Says where the participant stands.
    ///
    /// # Errors
    /// Never: a roster fits its list.
    pub fn standing(
        &self,
        durable: &Durable,
        peers: &Peers,
        now: UnixMillis,
    ) -> Result<Standing, Reject> {
        let checkpoint = self.checkpoint(durable, now)?;
        let witnessed = peers.values().cloned().collect();
        let witnessed = List::new(witnessed).ok_or(Reject::TooLarge)?;
        Ok(Standing {
            checkpoint,
            witnessed,
            time: now,
        })
    }

    /// The same for a head that a look at the durable ledger gave.
    pub(super) fn checkpoint_at(
        &self,
        head: Head,
        now: UnixMillis,
    ) -> Result<SignedCheckpoint, Reject> {
        self.sign(&Checkpoint {
            size: head.size,
            root: head.root,
            time: now,
        })
    }
}

//! What became of a request: this participant's word to the key's current owner, so that an answer that
//! was lost can be had again. It needs no grant, knows no expiry and records nothing; whoever does not
//! own the key's highest epoch learns nothing of what is stored.

use firn_ledger::{
    journal::Head,
    rules::{ShareStage, View},
};
use firn_protocol::{
    codec::Maybe,
    documents::Authorities,
    envelope::{Envelope, Verified},
    ids::{Identifier, KeyId, RequestId, UnixMillis},
    messages::{KnownRequest, OutcomeQuery, OutcomeStatement},
    names::SpiffeId,
    reject::Reject,
};

use super::Speaker;
use crate::store;

/// A question of a requester that the Authorities name, about a key that this participant holds.
#[derive(Debug)]
pub struct AskedOutcome {
    query: Verified<OutcomeQuery>,
    requester: SpiffeId,
    member: Identifier,
}

/// What the durable ledger holds of a request.
#[derive(Debug)]
pub struct FoundOutcome {
    known: Option<KnownRequest>,
    head: Head,
}

impl AskedOutcome {
    /// Judges a question; `place` tells this participant's place in a key that it has an active share
    /// of. When the question was asked does not matter: its nonce makes the answer fresh.
    ///
    /// # Errors
    /// The signature, the key, the requester, in this order.
    pub fn judge(
        query: &Envelope<OutcomeQuery>,
        place: impl FnOnce(KeyId) -> Result<Identifier, Reject>,
        authorities: &Authorities,
    ) -> Result<Self, Reject> {
        let signer = query.claimed_signer()?;
        let query = query.clone().verify(&signer)?;
        let member = place(query.key_id)?;
        let requester = authorities
            .requesters
            .iter()
            .find(|holder| holder.key == signer)
            .ok_or(Reject::UnknownRequester)?;
        Ok(Self {
            query,
            requester: requester.id.clone(),
            member,
        })
    }

    /// The request that is asked about.
    #[must_use]
    pub fn request_id(&self) -> RequestId {
        self.query.request_id
    }

    /// Looks it up, if the requester owns the key's highest epoch. Before anybody owns it there is
    /// nothing stored, and every requester may be told so.
    ///
    /// # Errors
    /// [`Reject::EpochOwnerConflict`]; [`Reject::ShareNotActive`].
    pub fn look(&self, ledger: &store::View<'_>) -> Result<FoundOutcome, Reject> {
        let state = View(ledger.state());
        let key = state.key(self.query.key_id).map_err(unreadable)?;
        let epoch = state.epoch(self.query.key_id).map_err(unreadable)?;
        let (Some(ShareStage::Active), Some(epoch)) = (key.map(|key| key.stage), epoch) else {
            return Err(Reject::ShareNotActive);
        };
        if epoch.owner.0.is_some_and(|owner| owner != self.requester) {
            return Err(Reject::EpochOwnerConflict);
        }
        let known = state
            .known_request(self.query.key_id, self.query.request_id)
            .map_err(unreadable)?;
        Ok(FoundOutcome {
            known,
            head: ledger.tip().head(),
        })
    }

    /// Says it.
    ///
    /// # Errors
    /// Never: a receipt fits.
    pub fn answer(
        &self,
        found: FoundOutcome,
        speaker: &Speaker,
        now: UnixMillis,
    ) -> Result<Envelope<OutcomeStatement>, Reject> {
        speaker.sign(&OutcomeStatement {
            key_id: self.query.key_id,
            request_id: self.query.request_id,
            nonce: self.query.nonce,
            member: self.member,
            known: Maybe(found.known),
            checkpoint: speaker.checkpoint_at(found.head, now)?,
            time: now,
        })
    }
}

/// A state that does not decode ends the process with its next record; until then nothing is said.
fn unreadable(_: firn_ledger::rules::StateError) -> Reject {
    Reject::LedgerUnavailable
}

//! How this participant is, by its own signed word: for an operator that the Authorities name, or for
//! whoever holds its machine. It tells no secret, and says of each key only what its members know.

use firn_ledger::{journal::Head, rules::View};
use firn_protocol::{
    codec::{List, Maybe},
    documents::Authorities,
    envelope::Envelope,
    ids::{AuthoritiesDigest, Nonce, PlanDigest, UnixMillis},
    messages::{KeyStatus, MAX_ACCEPTED, MemberStatus, StatusQuery},
    names::SpiffeId,
    reject::Reject,
};

use super::{Speaker, dkg::OwnSoftware};
use crate::store;

/// The nonce of a question that an operator of the Authorities signed. When it was asked does not
/// matter: the nonce makes the answer fresh.
///
/// # Errors
/// The form, the signer, the signature, in this order.
pub fn judge_status_query(
    query: &Envelope<StatusQuery>,
    authorities: &Authorities,
) -> Result<Nonce, Reject> {
    let operators = authorities.operators.identities();
    let query = query.clone().verify_any(&operators)?;
    Ok(query.nonce)
}

/// What the process knows of itself beside the ledger.
#[derive(Debug)]
pub struct OwnState<'a> {
    /// Its name.
    pub name: &'a SpiffeId,
    /// What it says of its software.
    pub own: &'a OwnSoftware,
    /// The keys that count.
    pub authorities: AuthoritiesDigest,
    /// Why it signs nothing, where it has stopped by itself.
    pub stopped: Option<Reject>,
    /// When its TLS certificate ends.
    pub certificate_expires: UnixMillis,
    /// Its clock.
    pub now: UnixMillis,
}

/// What the durable ledger holds for an operator.
#[derive(Debug)]
pub struct LedgerStatus {
    head: Head,
    last: Option<UnixMillis>,
    waiting: Vec<PlanDigest>,
    keys: Vec<KeyStatus>,
}

impl LedgerStatus {
    /// Looks it up.
    ///
    /// # Errors
    /// [`Reject::LedgerUnavailable`].
    pub fn look(ledger: &store::View<'_>) -> Result<Self, Reject> {
        let state = View(ledger.state());
        let unreadable = |_| Reject::LedgerUnavailable;
        Ok(Self {
            head: ledger.tip().head(),
            last: ledger.tip().last_time(),
            waiting: state.waiting_plans().map_err(unreadable)?,
            keys: state.key_statuses().map_err(unreadable)?,
        })
    }

    /// Says it, together with what the process knows of itself.
    ///
    /// # Errors
    /// [`Reject::TooLarge`] with more keys than a participant may have.
    pub fn say(
        self,
        nonce: Nonce,
        own: &OwnState<'_>,
        speaker: &Speaker,
    ) -> Result<Envelope<MemberStatus>, Reject> {
        let rewound = self.last.is_some_and(|last| own.now < last);
        let stopped = own
            .stopped
            .or_else(|| rewound.then_some(Reject::ClockRewound));
        // Plans that never became keys may be many over the years.
        let accepted = self.waiting.into_iter().take(MAX_ACCEPTED).collect();
        speaker.sign(&MemberStatus {
            nonce,
            name: own.name.clone(),
            software: own.own.software.clone(),
            build: own.own.build,
            authorities: own.authorities,
            checkpoint: speaker.checkpoint_at(self.head, own.now)?,
            stopped: Maybe(stopped),
            certificate_expires: own.certificate_expires,
            accepted: List::new(accepted).ok_or(Reject::TooLarge)?,
            keys: List::new(self.keys).ok_or(Reject::TooLarge)?,
            time: own.now,
        })
    }
}

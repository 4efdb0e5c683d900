//! What a grant is worth by itself, whatever else comes with it: a valid one shows who owns the key
//! from now on, also when its request is refused. It never judges a request.

use firn_ledger::rules::Command;
use firn_protocol::{
    documents::{Authorities, Grant},
    envelope::{Envelope, Verified},
    ids::{Epoch, KeyId, UnixMillis},
    keys::IdentityKey,
    names::SpiffeId,
    reject::Reject,
    sharing::ActiveSharing,
};

/// By which clock a grant's time is judged, and for how long one counts at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantTime {
    /// This participant's clock.
    pub now: UnixMillis,
    /// By how much the control plane's clock may differ.
    pub skew_ms: u64,
    /// A grant counts for at most this long after its `not_before`, whatever it says itself.
    pub max_life_ms: u64,
}

impl GrantTime {
    fn judge(self, grant: &Grant) -> Result<(), Reject> {
        if grant.not_before > self.now.plus(self.skew_ms) {
            return Err(Reject::GrantNotYetValid);
        }
        self.judge_end(grant)
    }

    /// Whether the grant's time is not over.
    pub(super) fn judge_end(self, grant: &Grant) -> Result<(), Reject> {
        let end = grant
            .expires
            .min(grant.not_before.plus(self.max_life_ms))
            .plus(self.skew_ms);
        if self.now < end {
            Ok(())
        } else {
            Err(Reject::GrantExpired)
        }
    }
}

/// The owner and epoch that a valid grant shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownEpoch {
    key_id: KeyId,
    epoch: Epoch,
    owner: SpiffeId,
}

impl ShownEpoch {
    fn of(grant: &Grant) -> Self {
        Self {
            key_id: grant.key_id,
            epoch: grant.epoch,
            owner: grant.owner.clone(),
        }
    }

    /// What is to be written.
    #[must_use]
    pub fn command(&self) -> Command {
        Command::RaiseEpoch {
            key_id: self.key_id,
            epoch: self.epoch,
            owner: self.owner.clone(),
        }
    }
}

/// Why an opening is refused, and what its grant shows all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedOpening {
    code: Reject,
    shown: Option<ShownEpoch>,
    epoch_first: bool,
}

impl RefusedOpening {
    /// A refusal by a gate before the epoch's, after a valid grant.
    pub(super) fn before_epoch(code: Reject, grant: &Grant) -> Self {
        Self {
            code,
            shown: Some(ShownEpoch::of(grant)),
            epoch_first: false,
        }
    }

    /// A refusal by a gate after the epoch's.
    pub(super) fn after_epoch(code: Reject, grant: &Grant) -> Self {
        Self {
            code,
            shown: Some(ShownEpoch::of(grant)),
            epoch_first: true,
        }
    }

    /// The same for a reason that comes before any gate.
    #[must_use]
    pub fn because(self, code: Reject) -> Self {
        Self {
            code,
            epoch_first: false,
            ..self
        }
    }

    /// What has to be on disk before anything is answered; none without a valid grant.
    #[must_use]
    pub const fn shown(&self) -> Option<&ShownEpoch> {
        self.shown.as_ref()
    }

    /// What the peer is told, once the ledger has judged the epoch that was shown: the code of the
    /// first gate that is shut.
    #[must_use]
    pub fn code(&self, epoch: Result<(), Reject>) -> Reject {
        match epoch {
            Err(code) if self.epoch_first => code,
            Ok(()) | Err(_) => self.code,
        }
    }
}

/// A refusal without a valid grant.
impl From<Reject> for RefusedOpening {
    fn from(code: Reject) -> Self {
        Self {
            code,
            shown: None,
            epoch_first: false,
        }
    }
}

/// The grant, if the grant authority signed it for this key and activation, its owner may ask at all,
/// and its time is now; with its owner's key. Nothing here costs more than one signature.
pub(super) fn verify_grant<'a>(
    grant: &Envelope<Grant>,
    authorities: &'a Authorities,
    sharing: &ActiveSharing,
    time: GrantTime,
) -> Result<(Verified<Grant>, &'a IdentityKey), Reject> {
    let grant = grant.clone().verify(&authorities.grant_authority)?;
    let requester = authorities
        .requester(&grant.owner)
        .ok_or(Reject::UnknownRequester)?;
    if grant.key_id != sharing.certified().key_id() {
        return Err(Reject::GrantKeyMismatch);
    }
    if grant.activation != sharing.activation_digest() {
        return Err(Reject::ActivationMismatch);
    }
    time.judge(&grant)?;
    Ok((grant, requester))
}

//! What all conversations of a participant share.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use firn_ledger::rules::{Answer, Command, RefusalsCounted, RefusedInFull, Witnessed};
use firn_protocol::{
    documents::{Authorities, RosterEntry},
    envelope::Approved,
    ids::{AuthoritiesDigest, KeyId, MessageDigest, UnixMillis},
    names::SpiffeId,
    reject::Reject,
};
use getrandom::{SysRng, rand_core::UnwrapErr};
use tokio::sync::watch;

use super::{DaemonError, keys::LoadedKey};
use crate::{
    config::{Config, LimitsConfig},
    documents::Documents,
    refusals::{Noted, Refusals},
    rules::ParticipantRules,
    session::{Peers, Speaker, dkg::OwnSoftware, witness},
    store::{Clock, CommitError, Committed, Committer},
    vault::Vault,
};

/// How often counted refusals are recorded.
const COUNT_EVERY: Duration = Duration::from_secs(60);

/// The participant, as its conversations see it.
pub(super) struct Shared {
    pub(super) name: SpiffeId,
    pub(super) speaker: Speaker,
    pub(super) authorities: Approved<Authorities>,
    pub(super) authorities_digest: AuthoritiesDigest,
    pub(super) vault: Vault,
    pub(super) documents: Documents,
    pub(super) ledger: Committer<ParticipantRules>,
    pub(super) own: OwnSoftware,
    pub(super) limits: LimitsConfig,
    clock: Arc<dyn Clock>,
    keys: Mutex<BTreeMap<KeyId, Arc<LoadedKey>>>,
    peers: Mutex<Peers>,
    refusals: Mutex<Refusals>,
    frozen: AtomicBool,
}

impl Shared {
    #[expect(
        clippy::too_many_arguments,
        reason = "called once, by the daemon's start"
    )]
    pub(super) fn new(
        speaker: Speaker,
        authorities: Approved<Authorities>,
        authorities_digest: AuthoritiesDigest,
        vault: Vault,
        documents: Documents,
        ledger: Committer<ParticipantRules>,
        clock: Arc<dyn Clock>,
        own: OwnSoftware,
        config: &Config,
    ) -> Self {
        Self {
            name: config.name.clone(),
            speaker,
            authorities,
            authorities_digest,
            vault,
            documents,
            ledger,
            own,
            limits: config.limits,
            clock,
            keys: Mutex::default(),
            peers: Mutex::default(),
            refusals: Mutex::new(Refusals::new()),
            frozen: AtomicBool::new(false),
        }
    }

    pub(super) fn now(&self) -> UnixMillis {
        self.clock.now()
    }

    pub(super) fn step_timeout(&self) -> Duration {
        Duration::from_millis(self.limits.step_timeout_ms)
    }

    /// The system's randomness. A system that gives none ends the process.
    pub(super) const fn random() -> UnwrapErr<SysRng> {
        UnwrapErr(SysRng)
    }

    /// Records something at start, where a refusal is a reason not to start.
    pub(super) async fn record(&self, command: Command) -> Result<Committed<Answer>, DaemonError> {
        self.ledger
            .commit(command)
            .await
            .map_err(|error| match error {
                CommitError::Refused(code) => DaemonError::Refused(code),
                CommitError::TooLarge | CommitError::Busy | CommitError::Stopped => {
                    DaemonError::LedgerStopped
                }
            })
    }

    /// Records something in a conversation.
    pub(super) async fn commit(&self, command: Command) -> Result<Committed<Answer>, Reject> {
        self.ledger
            .commit(command)
            .await
            .map_err(|error| match error {
                CommitError::Refused(code) => code,
                CommitError::TooLarge => Reject::TooLarge,
                CommitError::Busy => Reject::Busy,
                CommitError::Stopped => Reject::LedgerUnavailable,
            })
    }

    /// The participant has found out that it is an old copy or runs twice: it signs no more.
    pub(super) fn freeze(&self) {
        self.frozen.store(true, Ordering::SeqCst);
        tracing::error!(
            code = Reject::WitnessConflict.name(),
            advice = Reject::WitnessConflict.advice(),
            "a peer has seen a ledger of this participant that this one does not have"
        );
    }

    pub(super) fn check_not_frozen(&self) -> Result<(), Reject> {
        if self.frozen.load(Ordering::SeqCst) {
            Err(Reject::Frozen)
        } else {
            Ok(())
        }
    }

    pub(super) fn keys(&self) -> MutexGuard<'_, BTreeMap<KeyId, Arc<LoadedKey>>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has been witnessed of the other members of a roster: others are not their business.
    pub(super) fn peers_in(&self, roster: &[RosterEntry]) -> Peers {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let witnessed = |member: &RosterEntry| {
            let checkpoint = peers.get(&member.identity)?;
            Some((member.identity, checkpoint.clone()))
        };
        roster.iter().filter_map(witnessed).collect()
    }

    /// Heads that are stored may be said.
    pub(super) fn remember(&self, heads: Vec<Witnessed>) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        witness(&mut peers, heads);
    }

    /// Records a refusal, or counts it.
    pub(super) async fn note_refusal(&self, peer: &SpiffeId, code: Reject, about: MessageDigest) {
        let noted = {
            let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
            refusals.note(peer, code, self.now())
        };
        if noted == Noted::InFull {
            let refused = RefusedInFull {
                peer: peer.clone(),
                code,
                about,
            };
            if let Err(code) = self.commit(Command::Refuse(refused)).await {
                tracing::warn!(code = code.name(), "a refusal could not be recorded");
            }
        }
    }

    fn drain_refusals(&self) -> Vec<RefusalsCounted> {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let tallies = refusals.drain(self.now());
        tallies
            .into_iter()
            .map(|tally| {
                // Those beyond the bound are told apart no more: they stand under this participant.
                let (peer, code) = tally.kind.unwrap_or((self.name.clone(), Reject::Busy));
                RefusalsCounted {
                    peer,
                    code,
                    count: tally.count,
                }
            })
            .collect()
    }
}

/// Records counted refusals, from time to time and at the end.
pub(super) async fn count_refusals(shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    loop {
        let last = tokio::time::timeout(COUNT_EVERY, stopped.wait_for(|stopped| *stopped))
            .await
            .is_ok();
        for counted in shared.drain_refusals() {
            if let Err(code) = shared.commit(Command::CountRefusals(counted)).await {
                tracing::warn!(code = code.name(), "refusals could not be recorded");
            }
        }
        if last {
            return;
        }
    }
}

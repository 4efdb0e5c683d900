//! What the participant does with a stream that a coordinator opens, whatever carries it: the same
//! code serves the daemon's sockets and disk and the simulation's queues. It keeps what all
//! conversations share, and never touches a socket, a clock or the ledger's files itself.

mod conversation;
mod error;
mod host;
mod keys;
mod operator;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use firn_ledger::rules::{
    Answer, AuthoritiesAccepted, Command, Genesis, RefusalsCounted, RefusedInFull, Started,
    Witnessed,
};
use firn_protocol::{
    documents::{Authorities, RosterEntry},
    envelope::Approved,
    ids::{AuthoritiesDigest, KeyId, MessageDigest, Nonce, UnixMillis},
    names::SpiffeId,
    reject::Reject,
};
use rand_core::Rng;

pub use error::ServiceError;
pub use host::{Host, Ledger, NotReceived, NotSent, Stream};

use keys::LoadedKey;

use crate::{
    config::LimitsConfig,
    documents::Documents,
    refusals::{Noted, Refusals},
    session::{GrantTime, Peers, Speaker, WitnessConflict, dkg::OwnSoftware, witness},
    store::{CommitError, Committed, View},
    vault::Vault,
};

/// Who a participant is and what it has on its machine.
pub struct Setup {
    /// Its name.
    pub name: SpiffeId,
    /// Its voice.
    pub speaker: Speaker,
    /// The keys that count.
    pub authorities: Approved<Authorities>,
    /// Their digest, as the operator pinned it.
    pub authorities_digest: AuthoritiesDigest,
    /// Its shares.
    pub vault: Vault,
    /// Its documents.
    pub documents: Documents,
    /// What it says of its software.
    pub own: OwnSoftware,
    /// The operator's bounds.
    pub limits: LimitsConfig,
}

/// The participant, as its conversations see it.
pub struct Service<H> {
    setup: Setup,
    host: H,
    keys: Mutex<BTreeMap<KeyId, Arc<LoadedKey>>>,
    peers: Mutex<Peers>,
    refusals: Mutex<Refusals>,
    frozen: AtomicBool,
    certificate_ends: AtomicU64,
}

impl<H> std::ops::Deref for Service<H> {
    type Target = Setup;

    fn deref(&self) -> &Setup {
        &self.setup
    }
}

impl<H: Host> Service<H> {
    /// Begins a run: the first records, and every key that is on record.
    ///
    /// # Errors
    /// [`ServiceError`]; nothing was served then.
    pub async fn begin(setup: Setup, host: H) -> Result<Self, ServiceError> {
        let service = Self {
            setup,
            host,
            keys: Mutex::default(),
            peers: Mutex::default(),
            refusals: Mutex::new(Refusals::new()),
            frozen: AtomicBool::new(false),
            certificate_ends: AtomicU64::new(0),
        };
        service.record_start().await?;
        service.load_freeze().await?;
        service.load_keys().await?;
        Ok(service)
    }

    /// Serves one stream that `peer` opened, from its first message to its end.
    pub async fn converse<S: Stream>(self: Arc<Self>, peer: SpiffeId, stream: S) {
        conversation::hold(self, peer, stream).await;
    }

    /// Records the refusals that were counted; to be called from time to time, and at the end.
    pub async fn record_refusals(&self) {
        for counted in self.drain_refusals() {
            if let Err(code) = self.commit(Command::CountRefusals(counted)).await {
                tracing::warn!(code = code.name(), "refusals could not be recorded");
            }
        }
    }

    /// The time now.
    pub fn now(&self) -> UnixMillis {
        self.host.now()
    }

    /// 32 random bytes.
    pub fn fresh_nonce(&self) -> Nonce {
        let mut nonce = [0; 32];
        self.random().fill_bytes(&mut nonce);
        Nonce::from_bytes(nonce)
    }

    /// How a grant's time is judged now.
    fn grant_time(&self) -> GrantTime {
        GrantTime {
            now: self.now(),
            skew_ms: self.limits.max_clock_skew_ms,
            max_life_ms: self.limits.max_grant_life_ms,
        }
    }

    fn step_timeout(&self) -> Duration {
        Duration::from_millis(self.limits.step_timeout_ms)
    }

    fn random(&self) -> H::Random {
        self.host.random()
    }

    /// The first records of a ledger, and of every run.
    async fn record_start(&self) -> Result<(), ServiceError> {
        let empty = self.look(|view| view.tip().size().leaves() == 0).await?;
        if empty {
            let genesis = Genesis {
                identity: self.speaker.identity(),
                nonce: self.fresh_nonce(),
            };
            self.record(Command::Begin(genesis)).await?;
        }
        let genesis = self
            .look(|view| firn_ledger::rules::View(view.state()).genesis())
            .await?;
        match genesis {
            Ok(Some(genesis)) if genesis.identity == self.speaker.identity() => {}
            _ => return Err(ServiceError::OtherLedger),
        }
        let started = Started {
            software: self.own.software.clone(),
            build: self.own.build,
        };
        self.record(Command::Start(started)).await?;
        let accepted = AuthoritiesAccepted {
            authorities: self.authorities_digest,
            version: self.authorities.version,
        };
        self.record(Command::AcceptAuthorities(accepted)).await?;
        Ok(())
    }

    /// A freeze outlives the process.
    async fn load_freeze(&self) -> Result<(), ServiceError> {
        let frozen = self
            .look(|view| firn_ledger::rules::View(view.state()).frozen())
            .await?;
        match frozen {
            Ok(None) => Ok(()),
            Ok(Some(_)) => {
                self.stand_still();
                Ok(())
            }
            Err(_) => Err(ServiceError::LedgerStopped),
        }
    }

    /// Records something at start, where a refusal is a reason not to start.
    async fn record(&self, command: Command) -> Result<Committed<Answer>, ServiceError> {
        let committed = self.host.ledger().commit(command).await;
        committed.map_err(|error| match error {
            CommitError::Refused(code) => ServiceError::Refused(code),
            CommitError::TooLarge | CommitError::Busy | CommitError::Stopped => {
                ServiceError::LedgerStopped
            }
        })
    }

    /// Looks at the ledger at start.
    async fn look<A, Q>(&self, question: Q) -> Result<A, ServiceError>
    where
        A: Send + 'static,
        Q: FnOnce(&View<'_>) -> A + Send + 'static,
    {
        let looked = self.host.ledger().query(question).await;
        looked.map_err(|_| ServiceError::LedgerStopped)
    }

    /// Records something in a conversation.
    async fn commit(&self, command: Command) -> Result<Committed<Answer>, Reject> {
        let committed = self.host.ledger().commit(command).await;
        committed.map_err(|error| match error {
            CommitError::Refused(code) => code,
            CommitError::TooLarge => Reject::TooLarge,
            CommitError::Busy => Reject::Busy,
            CommitError::Stopped => Reject::LedgerUnavailable,
        })
    }

    /// Looks at the ledger in a conversation.
    async fn query<A, Q>(&self, question: Q) -> Result<A, Reject>
    where
        A: Send + 'static,
        Q: FnOnce(&View<'_>) -> A + Send + 'static,
    {
        let looked = self.host.ledger().query(question).await;
        looked.map_err(|_| Reject::LedgerUnavailable)
    }

    /// The participant has found out that it is an old copy or runs twice: it signs no more, in this
    /// run and in every later one with this ledger.
    async fn freeze(&self, conflict: &WitnessConflict) {
        self.stand_still();
        if let Err(code) = self.commit(conflict.command()).await {
            tracing::error!(code = code.name(), "the freeze could not be recorded");
        }
    }

    fn stand_still(&self) {
        self.frozen.store(true, Ordering::SeqCst);
        tracing::error!(
            code = Reject::WitnessConflict.name(),
            advice = Reject::WitnessConflict.advice(),
            "a peer has seen a ledger of this participant that this one does not have: frozen"
        );
    }

    fn check_not_frozen(&self) -> Result<(), Reject> {
        if self.frozen.load(Ordering::SeqCst) {
            Err(Reject::Frozen)
        } else {
            Ok(())
        }
    }

    fn keys(&self) -> MutexGuard<'_, BTreeMap<KeyId, Arc<LoadedKey>>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has been witnessed of the other members of a roster: others are not their business.
    fn peers_in(&self, roster: &[RosterEntry]) -> Peers {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let witnessed = |member: &RosterEntry| {
            let checkpoint = peers.get(&member.identity)?;
            Some((member.identity, checkpoint.clone()))
        };
        roster.iter().filter_map(witnessed).collect()
    }

    /// Heads that are stored may be said.
    fn remember(&self, heads: Vec<Witnessed>) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        witness(&mut peers, heads);
    }

    /// Records a refusal, or counts it.
    async fn note_refusal(&self, peer: &SpiffeId, code: Reject, about: MessageDigest) {
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

//! What all tasks of the process share: who it is, who is connected, what it has looked up. All of it
//! is in memory, and none of it is missed after a restart.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use firn_protocol::{
    documents::{Authorities, RosterEntry},
    envelope::Approved,
    ids::{AuthoritiesDigest, CeremonyId, UnixMillis},
};
use getrandom::SysRng;
use rand_core::UnwrapErr;
use tokio::sync::Semaphore;

use crate::{
    config::Bounds, keys::KeyCache, line::Line, records::Records, registry::Registry, seen::Seen,
    turns::Turns, voice::Voice,
};

/// Ceremonies at once: the operator's tool can be told of no more.
pub(crate) const MAX_CEREMONIES: u16 = 16;

/// What the tasks share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Our own word.
    pub(crate) voice: Arc<Voice>,
    /// The keys that count.
    pub(crate) authorities: Approved<Authorities>,
    /// How much and how long.
    pub(crate) bounds: Bounds,
    /// Since when it runs.
    pub(crate) since: UnixMillis,
    /// Room for questions that are being read, and for those that change nothing: requests that hang
    /// must not keep anybody from asking what has become of them.
    pub(crate) questions: Arc<Semaphore>,
    /// Room for requests.
    pub(crate) requests: Arc<Semaphore>,
    /// Whose turn a request is.
    pub(crate) turns: Turns,
    /// Room for ceremonies, and for other work of operators.
    pub(crate) ceremonies: Arc<Semaphore>,
    registry: Mutex<Registry<Line>>,
    seen: Mutex<Seen>,
    records: Mutex<Records>,
    keys: Mutex<KeyCache>,
    running: Mutex<BTreeSet<CeremonyId>>,
    stopping: AtomicBool,
}

impl Shared {
    pub(crate) fn new(voice: Voice, authorities: Approved<Authorities>, bounds: Bounds) -> Self {
        Self {
            voice: Arc::new(voice),
            authorities,
            bounds,
            since: now(),
            questions: Arc::new(Semaphore::new(usize::from(bounds.requests))),
            requests: Arc::new(Semaphore::new(usize::from(bounds.requests))),
            turns: Turns::default(),
            ceremonies: Arc::new(Semaphore::new(usize::from(MAX_CEREMONIES))),
            registry: Mutex::default(),
            seen: Mutex::default(),
            records: Mutex::default(),
            keys: Mutex::default(),
            running: Mutex::default(),
            stopping: AtomicBool::new(false),
        }
    }

    pub(crate) const fn authorities_digest(&self) -> AuthoritiesDigest {
        AuthoritiesDigest::from_bytes(self.authorities.digest())
    }

    /// Nothing awaits while it holds the guard. A panic elsewhere leaves no half-made change here.
    pub(crate) fn registry(&self) -> MutexGuard<'_, Registry<Line>> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Since when a roster's member is away: when it was last connected, or, where its connection still
    /// stands, when something last came over it. None where it was not there since the start.
    pub(crate) fn away_since(&self, entry: &RosterEntry) -> Option<UnixMillis> {
        let line = self.registry().reach(entry);
        line.map_or_else(|| self.seen().last(entry), |line| Some(line.last_heard()))
    }

    pub(crate) fn keys(&self) -> MutexGuard<'_, KeyCache> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn running(&self) -> MutexGuard<'_, BTreeSet<CeremonyId>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on nothing new is begun.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}

/// The system's time. It goes into greetings and counts for nothing else.
pub(crate) fn now() -> UnixMillis {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    UnixMillis::new(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// The system's randomness. A system without any ends the task that needs it.
pub(crate) const fn rng() -> UnwrapErr<SysRng> {
    UnwrapErr(SysRng)
}

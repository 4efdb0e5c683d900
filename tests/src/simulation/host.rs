//! What the members' own code stands on in a simulation: a stream of two queues, a ledger that is
//! written when the scheduler says so, a clock that stands still, randomness that follows from a seed.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Poll, Waker},
    time::Duration,
};

use firn_ledger::rules::{Answer, Command};
use firn_participant::{
    service::{Host, Ledger, NotReceived, NotSent, Stream},
    store::{CommitError, Committed, View},
    vault::VaultError,
};
use firn_protocol::{ids::UnixMillis, reject::Reject, tagged::tagged_hash};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use tokio::sync::oneshot;

use super::domain::START;

/// What one member's process sees of the time: virtual time, which everybody shares, and how far its
/// own clock is off.
#[derive(Debug, Clone, Default)]
pub(super) struct Time {
    elapsed: Arc<AtomicU64>,
    offset: Arc<AtomicU64>,
}

impl Time {
    /// The same time, for somebody with a clock of its own.
    #[must_use]
    pub(super) fn own_clock(&self) -> Self {
        Self {
            elapsed: Arc::clone(&self.elapsed),
            offset: Arc::default(),
        }
    }

    /// Milliseconds since the run began.
    #[must_use]
    pub(super) fn elapsed(&self) -> u64 {
        self.elapsed.load(Ordering::SeqCst)
    }

    /// What the clock says.
    #[must_use]
    pub(super) fn now(&self) -> UnixMillis {
        let offset = self.offset.load(Ordering::SeqCst);
        UnixMillis::new(START.value().wrapping_add(offset) + self.elapsed())
    }

    /// Lets time pass, for everybody.
    pub(super) fn pass_until(&self, elapsed: u64) {
        self.elapsed.fetch_max(elapsed, Ordering::SeqCst);
    }

    /// Puts this clock off by so many milliseconds.
    pub(super) fn put_off_by(&self, milliseconds: i64) {
        self.offset
            .store(milliseconds.cast_unsigned(), Ordering::SeqCst);
    }
}

/// What is carried on a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Carried {
    /// One frame.
    Frame(Arc<[u8]>),
    /// The end.
    Finish,
    /// The stream is lost.
    Reset,
}

/// The member's side of a stream.
#[derive(Debug, Default)]
pub(super) struct Side {
    inbox: VecDeque<Carried>,
    pub(super) outbox: Vec<Carried>,
    lost: bool,
    pub(super) deadline: Option<u64>,
    waker: Option<Waker>,
}

impl Side {
    pub(super) fn arrive(&mut self, carried: Carried) {
        if carried == Carried::Reset {
            self.lost = true;
        }
        self.inbox.push_back(carried);
        self.wake();
    }

    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// A stream as the service has it.
pub(super) struct SimStream {
    side: Arc<Mutex<Side>>,
    time: Time,
}

impl SimStream {
    pub(super) const fn new(side: Arc<Mutex<Side>>, time: Time) -> Self {
        Self { side, time }
    }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stream for SimStream {
    async fn receive(&mut self, limit: usize, patience: Duration) -> Result<Vec<u8>, NotReceived> {
        let until = self.time.elapsed() + u64::try_from(patience.as_millis()).unwrap();
        poll_fn(|context| {
            let mut side = locked(&self.side);
            let outcome = match side.inbox.pop_front() {
                Some(Carried::Frame(frame)) if frame.len() > limit => Err(NotReceived::TooLarge),
                Some(Carried::Frame(frame)) => Ok(frame.to_vec()),
                Some(Carried::Finish) => Err(NotReceived::Finished),
                Some(Carried::Reset) => Err(NotReceived::Lost),
                None if side.lost => Err(NotReceived::Lost),
                None if self.time.elapsed() >= until => Err(NotReceived::Deadline),
                None => {
                    side.deadline = Some(until);
                    side.waker = Some(context.waker().clone());
                    return Poll::Pending;
                }
            };
            side.deadline = None;
            Poll::Ready(outcome)
        })
        .await
    }

    async fn send(&mut self, frame: &[u8], _patience: Duration) -> Result<(), NotSent> {
        let mut side = locked(&self.side);
        if side.lost {
            return Err(NotSent::Lost);
        }
        side.outbox.push(Carried::Frame(frame.into()));
        Ok(())
    }

    fn finish(self) {}
}

// However a conversation ends, its stream ends with it.
impl Drop for SimStream {
    fn drop(&mut self) {
        locked(&self.side).outbox.push(Carried::Finish);
    }
}

/// What waits for a member's disk.
pub(super) enum Waiting {
    /// A command and who hears of it.
    Commit(
        Command,
        oneshot::Sender<Result<Committed<Answer>, CommitError<Reject>>>,
    ),
    /// A question.
    Query(Box<dyn FnOnce(&View<'_>) + Send>),
}

/// The way to a member's ledger.
#[derive(Clone, Default)]
pub(super) struct SimLedger {
    pub(super) queue: Arc<Mutex<Vec<Waiting>>>,
}

impl Ledger for SimLedger {
    async fn commit(&self, command: Command) -> Result<Committed<Answer>, CommitError<Reject>> {
        let (reply, answer) = oneshot::channel();
        locked(&self.queue).push(Waiting::Commit(command, reply));
        answer.await.unwrap_or(Err(CommitError::Stopped))
    }

    async fn query<A, Q>(&self, question: Q) -> Result<A, CommitError<Reject>>
    where
        A: Send + 'static,
        Q: FnOnce(&View<'_>) -> A + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let ask = move |view: &View<'_>| drop(reply.send(question(view)));
        locked(&self.queue).push(Waiting::Query(Box::new(ask)));
        answer.await.map_err(|_| CommitError::Stopped)
    }
}

/// What a member's service stands on.
pub(super) struct SimHost {
    ledger: SimLedger,
    time: Time,
    seed: [u8; 32],
    drawn: AtomicU64,
    ended: Arc<AtomicBool>,
}

impl SimHost {
    /// The host of one run of a member's process; `seed` is of that run alone.
    pub(super) fn new(ledger: SimLedger, time: Time, seed: [u8; 32]) -> Self {
        Self {
            ledger,
            time,
            seed,
            drawn: AtomicU64::new(0),
            ended: Arc::default(),
        }
    }

    /// Whether the service has ended the process.
    pub(super) fn ended(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.ended)
    }
}

impl Host for SimHost {
    type Ledger = SimLedger;
    type Random = ChaCha20Rng;

    fn ledger(&self) -> &SimLedger {
        &self.ledger
    }

    fn now(&self) -> UnixMillis {
        self.time.now()
    }

    fn random(&self) -> ChaCha20Rng {
        let drawn = self.drawn.fetch_add(1, Ordering::SeqCst);
        let parts: [&[u8]; 2] = [&self.seed, &drawn.to_be_bytes()];
        ChaCha20Rng::from_seed(tagged_hash("firn/simulated-randomness", &parts))
    }

    fn vault_failed(&self, _error: &VaultError) {
        self.ended.store(true, Ordering::SeqCst);
    }
}

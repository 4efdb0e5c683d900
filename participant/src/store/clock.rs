//! Where the time comes from. It never decides whether a time is sane; the rules do.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use firn_protocol::ids::UnixMillis;

/// A source of wall-clock time.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> UnixMillis;
}

/// The system's clock. A time before 1970 counts as 1970, which no ledger accepts as later than its
/// last record.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> UnixMillis {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        UnixMillis::new(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A clock that stands where it is put.
#[derive(Clone, Debug, Default)]
pub struct FakeClock(Arc<AtomicU64>);

impl FakeClock {
    /// Puts every copy of this clock to `time`.
    pub fn set(&self, time: UnixMillis) {
        self.0.store(time.value(), Ordering::SeqCst);
    }
}

impl Clock for FakeClock {
    fn now(&self) -> UnixMillis {
        UnixMillis::new(self.0.load(Ordering::SeqCst))
    }
}

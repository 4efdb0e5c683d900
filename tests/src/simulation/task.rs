//! Futures that are polled when the scheduler says so, and only after something woke them.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Wake, Waker},
};

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// One future of a member's process.
pub(super) struct Task {
    future: Pin<Box<dyn Future<Output = ()> + Send>>,
    woken: Arc<Woken>,
    waker: Waker,
}

impl Task {
    /// A task that wants to be polled.
    pub(super) fn new(future: impl Future<Output = ()> + Send + 'static) -> Self {
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        Self {
            future: Box::pin(future),
            waker: Waker::from(Arc::clone(&woken)),
            woken,
        }
    }

    /// Whether something has happened that it waits for.
    pub(super) fn is_woken(&self) -> bool {
        self.woken.0.load(Ordering::SeqCst)
    }

    /// Lets it run as far as it can; true when it has ended.
    pub(super) fn run(&mut self) -> bool {
        self.woken.0.store(false, Ordering::SeqCst);
        let mut context = Context::from_waker(&self.waker);
        self.future.as_mut().poll(&mut context).is_ready()
    }
}

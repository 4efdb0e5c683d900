//! When a process is told to stop. It decides what counts as that, and never how the process stops.

use std::{
    io::{self, IsTerminal},
    process,
};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// How a shell reports a process that SIGTERM ended; the units count it as success.
const ENDED_BY_SIGTERM: i32 = 143;

/// Resolves when the process is told to stop: SIGTERM or SIGINT, or a terminal that goes away. The
/// second time the process ends at once. That is a crash to everything that it holds open, so only
/// what survives crashes may be held.
///
/// Needs a tokio runtime with I/O, whose handlers are in place when this returns.
///
/// # Errors
/// When the handlers cannot be installed.
pub fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut signals = StopSignals {
        terminate: signal(SignalKind::terminate())?,
        interrupt: signal(SignalKind::interrupt())?,
        hangup: signal(SignalKind::hangup())?,
        on_terminal: io::stderr().is_terminal(),
    };
    Ok(async move {
        signals.next().await;
        tokio::spawn(async move {
            signals.next().await;
            tracing::warn!("told to stop again: ending at once, with what is in flight");
            process::exit(ENDED_BY_SIGTERM);
        });
    })
}

struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    on_terminal: bool,
}

impl StopSignals {
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            // Where there is no terminal it means: read the certificate again.
            _ = self.hangup.recv(), if self.on_terminal => {}
        }
    }
}

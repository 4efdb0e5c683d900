//! What systemd is told of this process: nothing, where it was not started by it. It decides nothing.

use std::time::Duration;

use sd_notify::NotifyState;

/// It serves.
pub fn ready(status: &str) {
    say(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// It reads its configuration again; [`ready`] ends that.
pub fn reloading() {
    // systemd compares the time with that of its request.
    match NotifyState::monotonic_usec_now() {
        Ok(time) => say(&[NotifyState::Reloading, time]),
        Err(_) => say(&[NotifyState::Reloading]),
    }
}

/// It was told to stop, and does.
pub fn stopping(status: &str) {
    say(&[NotifyState::Stopping, NotifyState::Status(status)]);
}

/// It lives.
pub fn alive() {
    say(&[NotifyState::Watchdog]);
}

/// How often it is to say that it lives, if at all: thrice in the time that it has.
#[must_use]
pub fn beat() -> Option<Duration> {
    let time = sd_notify::watchdog_enabled()?.checked_div(3)?;
    (!time.is_zero()).then_some(time)
}

fn say(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("the service manager cannot be told: {error}");
    }
}

//! What a daemon does beside its work: it reads its certificate again, warns of the end of it, and
//! tells systemd that it lives. It decides when, and never what a certificate must be.

use std::{io, time::Duration};

use firn_transport::{Renewable, Renewal};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{Interval, MissedTickBehavior, interval},
};

use crate::service_manager;

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Somebody asks for the files to be read again: SIGHUP.
    Reload,
    /// The files are looked at as a matter of routine.
    Look,
    /// systemd wants to hear that the process lives.
    Beat,
}

/// When it is due, and what it is done with.
#[derive(Debug)]
pub struct Upkeep {
    renewal: Renewal,
    hangup: Signal,
    look: Interval,
    beat: Option<Interval>,
}

impl Upkeep {
    /// From now on SIGHUP does not end the process. The first look is due at once, for its warnings.
    ///
    /// Needs a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// When the handler of SIGHUP cannot be installed.
    pub fn new(renewal: Renewal, look_every: Duration) -> io::Result<Self> {
        Ok(Self {
            renewal,
            hangup: signal(SignalKind::hangup())?,
            look: unhurried(look_every),
            beat: service_manager::beat().map(unhurried),
        })
    }

    /// Waits until something is due; nothing is missed where the wait is given up.
    pub async fn next(&mut self) -> Due {
        let beat = async {
            match &mut self.beat {
                Some(beat) => beat.tick().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(()) = self.hangup.recv() => Due::Reload,
            _ = beat => Due::Beat,
            _ = self.look.tick() => Due::Look,
        }
    }

    /// Does what is due. Whoever calls it proves by it that the process does its work: a loop that
    /// hangs gives no sign of life, and systemd starts the process anew.
    pub fn act(&mut self, due: Due, endpoint: &impl Renewable) {
        match due {
            Due::Reload => {
                service_manager::reloading();
                // What is wrong is in the log, and the old certificate stays in use.
                drop(self.renewal.reload(endpoint));
                self.renewal.warn();
                service_manager::ready(&self.status());
            }
            Due::Look => {
                drop(self.renewal.look(endpoint));
                self.renewal.warn();
            }
            Due::Beat => service_manager::alive(),
        }
    }

    /// The certificate in use.
    #[must_use]
    pub const fn renewal(&self) -> &Renewal {
        &self.renewal
    }

    /// A line for whoever asks systemd how the process does.
    #[must_use]
    pub fn status(&self) -> String {
        let until = self.renewal.validity().not_after();
        format!("serving; certificate good until {until}")
    }
}

/// A tick that comes late is not made up for.
fn unhurried(every: Duration) -> Interval {
    let mut interval = interval(every);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

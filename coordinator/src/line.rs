//! A member's line: its connection, and when something last came over it. It decides since when a
//! member counts as silent, and never whether it does.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use firn_protocol::{ids::UnixMillis, keys::IdentityKey};
use firn_transport::{Connection, IDLE_MS};

use crate::state::now;

/// How to reach a member. Copies are the same line.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    connection: Connection,
    identity: IdentityKey,
    heard: Arc<AtomicU64>,
}

impl Line {
    /// A line that has just been opened by whoever says hello with this key.
    pub(crate) fn new(connection: Connection, identity: IdentityKey) -> Self {
        Self {
            connection,
            identity,
            heard: Arc::new(AtomicU64::new(now().value())),
        }
    }

    pub(crate) const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The key that the member said hello with.
    pub(crate) const fn identity(&self) -> &IdentityKey {
        &self.identity
    }

    /// Something has come over it.
    pub(crate) fn hear(&self) {
        self.heard.fetch_max(now().value(), Ordering::Relaxed);
    }

    /// When something last came over it, while it stands: QUIC ends a line over which nothing comes.
    pub(crate) fn last_heard(&self) -> UnixMillis {
        let heard = self.heard.load(Ordering::Relaxed);
        UnixMillis::new(heard.max(before_idle().value()))
    }
}

/// When something last came over a line that QUIC has just given up, or is about to.
pub(crate) fn before_idle() -> UnixMillis {
    UnixMillis::new(now().value().saturating_sub(u64::from(IDLE_MS)))
}

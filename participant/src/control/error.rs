//! Why there is no control socket, or why a peer on it is not served.

use std::{io, path::PathBuf};

/// Why there is no control socket, or why a peer on it is not served.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Another process listens there.
    #[error("another process listens at {}", path.display())]
    InUse {
        /// Where.
        path: PathBuf,
    },
    /// Something else than a socket is there.
    #[error("{} is no socket", path.display())]
    Strange {
        /// Where.
        path: PathBuf,
    },
    /// The system does not let it be made or used.
    #[error("{doing} {} failed: {source}", path.display())]
    Failed {
        /// What was tried.
        doing: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The peer runs as another user.
    #[error("user {peer} may not speak with a daemon of user {own}")]
    PeerRefused {
        /// The peer's user id.
        peer: u32,
        /// The daemon's.
        own: u32,
    },
    /// The system does not say who the peer is.
    #[error("the peer's user is not known: {0}")]
    PeerUnknown(io::Error),
}

impl ControlError {
    /// The stable code of the reason.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InUse { .. } => "control_socket_in_use",
            Self::Strange { .. } => "control_socket_strange",
            Self::Failed { .. } => "control_socket_failed",
            Self::PeerRefused { .. } | Self::PeerUnknown(_) => "control_peer_refused",
        }
    }

    /// What an operator can do about it.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::InUse { .. } => {
                "Stop the other daemon, or give each its own `control_socket`; nothing was replaced."
            }
            Self::Strange { .. } => {
                "Find out who put it there and move it away, or name another `control_socket`."
            }
            Self::Failed { .. } => {
                "Check that the folder of `control_socket` is there and belongs to the daemon's user."
            }
            Self::PeerRefused { .. } | Self::PeerUnknown(_) => {
                "Run the command as the daemon's own user, or as root."
            }
        }
    }

    pub(super) fn failed(
        doing: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Failed {
            doing,
            path,
            source,
        }
    }
}

//! Why the coordinator does not start, or stops. It decides the stable code and the next step for
//! each cause, and names the file.

use std::{io, path::PathBuf};

use firn_protocol::reject::Reject;
use firn_transport::TransportError;

/// Everything that keeps a coordinator from running.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CoordinatorError {
    /// A file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("{}: cannot be written: {source}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The configuration is not one.
    #[error("{}: not a valid configuration: {reason}", path.display())]
    Config {
        /// Which file.
        path: PathBuf,
        /// What is wrong, in the words of the TOML parser.
        reason: String,
    },
    /// A key file that others can read.
    #[error("{}: has mode {mode:o}, must be 600", path.display())]
    KeyMode {
        /// Which file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A key file that does not hold 64 hexadecimal digits.
    #[error("{}: not the 64 hexadecimal digits of an Ed25519 seed", path.display())]
    KeyFormat {
        /// Which file.
        path: PathBuf,
    },
    /// The Authorities are not what they must be.
    #[error("{}: {code}: {}", path.display(), code.meaning())]
    Authorities {
        /// Which file.
        path: PathBuf,
        /// Why.
        code: Reject,
    },
    /// The Authorities are others than the configured ones.
    #[error("{}: their digest is {found}, not the configured one", path.display())]
    AuthoritiesPin {
        /// Which file.
        path: PathBuf,
        /// The digest of what is there.
        found: String,
    },
    /// The Authorities do not name this coordinator with this identity key.
    #[error("{}: does not name {id} with the identity key {identity}", path.display())]
    NotACoordinator {
        /// The Authorities' file.
        path: PathBuf,
        /// The name in the TLS certificate.
        id: String,
        /// The public half of the identity key.
        identity: String,
    },
    /// Certificates, sockets.
    #[error("{what}: {source}")]
    Transport {
        /// The files or the address that it is about.
        what: String,
        /// What is wrong.
        source: TransportError,
    },
    /// The runtime or a signal handler could not be set up.
    #[error("the system refused: {0}")]
    System(io::Error),
}

impl CoordinatorError {
    /// The stable name of the cause.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "file_unreadable",
            Self::Write { .. } => "file_unwritable",
            Self::Config { .. } => "config_invalid",
            Self::KeyMode { .. } => "key_file_mode",
            Self::KeyFormat { .. } => "key_file_format",
            Self::Authorities { code, .. } => code.name(),
            Self::AuthoritiesPin { .. } => "authorities_pin",
            Self::NotACoordinator { .. } => "unknown_coordinator",
            Self::Transport { source, .. } => source.code(),
            Self::System(_) => "system",
        }
    }

    /// What a person does next.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::Read { .. } => "check the path and who may read the file",
            Self::Write { .. } => "check the path, who may write there, and the space on the disk",
            Self::Config { .. } => "compare it with the example in --help",
            Self::KeyMode { .. } => "chmod 600 it, and make a new key if others could read it",
            Self::KeyFormat { .. } => "write it again with the tool that made it",
            Self::Authorities { code, .. } => code.advice(),
            Self::AuthoritiesPin { .. } => {
                "find out which Authorities are right; change the pin only after comparing the digest"
            }
            Self::NotACoordinator { .. } => {
                "have Authorities signed that name it, or use its own key"
            }
            Self::Transport { source, .. } => source.advice(),
            Self::System(_) => "look at the limits of the process",
        }
    }
}

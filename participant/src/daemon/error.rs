//! Why a participant does not start, or stops.

use firn_protocol::names::SpiffeId;
use firn_transport::TransportError;

use crate::{
    control::ControlError, documents::DocumentError, identity::IdentityError,
    private_files::FileError, process::ProcessError, service::ServiceError, store::StoreError,
    vault::VaultError,
};

/// Why a participant does not start, or stops.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// Identity key or Authorities.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The data folder.
    #[error(transparent)]
    File(#[from] FileError),
    /// Documents.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The vault.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The ledger.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The control socket.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// TLS or the network.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The process.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The certificate has another name than the configuration.
    #[error("the certificate is for {certificate}, the configuration for {config}")]
    OtherName {
        /// In the certificate.
        certificate: SpiffeId,
        /// In the configuration.
        config: SpiffeId,
    },
    /// The service does not begin.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// Signals cannot be heard.
    #[error("signals cannot be heard: {0}")]
    Signals(std::io::Error),
    /// The ledger's thread has ended.
    #[error("the ledger has stopped")]
    LedgerStopped,
    /// The system gives no random bytes.
    #[error("the system gives no random bytes")]
    Randomness,
    /// Something that a build rules out.
    #[error("the participant cannot describe itself")]
    Start,
}

impl DaemonError {
    /// The stable code of the reason.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Identity(error) => error.code(),
            Self::File(error) => error.code(),
            Self::Document(error) => error.code(),
            Self::Vault(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::Control(error) => error.code(),
            Self::Transport(error) => error.code(),
            Self::Process(error) => error.code(),
            Self::Service(error) => error.code(),
            Self::OtherName { .. } => "certificate_other_name",
            Self::Signals(_) => "signals_unheard",
            Self::LedgerStopped => "ledger_stopped",
            Self::Randomness => "no_randomness",
            Self::Start => "internal",
        }
    }

    /// What an operator can do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Identity(error) => error.advice(),
            Self::File(error) => error.advice(),
            Self::Document(error) => error.advice(),
            Self::Vault(error) => error.advice(),
            Self::Store(error) => error.advice(),
            Self::Control(error) => error.advice(),
            Self::Transport(error) => error.advice(),
            Self::Process(error) => error.advice(),
            Self::Service(error) => error.advice(),
            Self::OtherName { .. } => {
                "Use the certificate that was issued for this participant, or correct `name`."
            }
            Self::Signals(_) => "Look at the system's limits and at what the sandbox forbids.",
            Self::LedgerStopped => "Look further up in the log for why, and at the disk.",
            Self::Randomness => "Check that the sandbox allows getrandom(2).",
            Self::Start => "Report this defect.",
        }
    }
}

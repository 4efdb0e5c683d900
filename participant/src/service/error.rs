//! Why the service does not begin.

use firn_protocol::reject::Reject;

use crate::{documents::DocumentError, vault::VaultError};

/// Why the service does not begin.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// Documents.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The vault.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The ledger refuses its first records.
    #[error("the ledger refuses to go on: {0}")]
    Refused(Reject),
    /// The ledger is another participant's.
    #[error("the ledger belongs to another identity key")]
    OtherLedger,
    /// The ledger's thread has ended.
    #[error("the ledger has stopped")]
    LedgerStopped,
    /// The documents of a key do not verify any more.
    #[error("the documents of key {key} do not verify: {code}")]
    KeyDocuments {
        /// Which key.
        key: String,
        /// What is wrong.
        code: Reject,
    },
}

impl ServiceError {
    /// The stable code of the reason.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Document(error) => error.code(),
            Self::Vault(error) => error.code(),
            Self::Refused(code) | Self::KeyDocuments { code, .. } => code.name(),
            Self::OtherLedger => "ledger_other_identity",
            Self::LedgerStopped => "ledger_stopped",
        }
    }

    /// What an operator can do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Document(error) => error.advice(),
            Self::Vault(error) => error.advice(),
            Self::Refused(code) | Self::KeyDocuments { code, .. } => code.advice(),
            Self::OtherLedger => "Use the identity key and the data folder that belong together.",
            Self::LedgerStopped => "Look further up in the log for why, and at the disk.",
        }
    }
}

//! Why the vault does not open or a share is not given. Each reason has a stable code and says what an
//! operator can do; none says more of a secret than that it did not fit.

use std::path::PathBuf;

use firn_protocol::{codec::Malformed, documents::Sealing};

use crate::private_files::FileError;

/// Why the vault does not open or a share is not given.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// A file or folder cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file whose form, length or place is wrong.
    #[error("{} is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A share file of good form that the vault's key does not open.
    #[error("{} does not open", path.display())]
    CannotOpen {
        /// The file.
        path: PathBuf,
    },
    /// There are shares, but not the file that says how they are sealed.
    #[error("there are shares, but {} is missing", path.display())]
    HeaderMissing {
        /// The missing file.
        path: PathBuf,
    },
    /// The vault was sealed in another way than the configuration says.
    #[error("the vault is sealed by {sealed}, but the configuration unlocks by {unlocked}")]
    OtherMethod {
        /// How it was sealed.
        sealed: Sealing,
        /// How it was to be unlocked.
        unlocked: Sealing,
    },
    /// Argon2id costs that are too low to protect or too high to compute.
    #[error("the vault's Argon2id costs are out of bounds")]
    CostsOutOfBounds,
    /// Argon2id could not be computed.
    #[error("Argon2id failed: {0}")]
    Kdf(argon2::Error),
    /// No memory for Argon2id.
    #[error("no memory for Argon2id")]
    OutOfMemory,
    /// The passphrase is not the vault's.
    #[error("the passphrase is not the vault's")]
    WrongPassphrase,
    /// The key file or credential is not the vault's.
    #[error("the key is not the vault's")]
    WrongKey,
    /// A key file or credential that cannot be a key.
    #[error("{} is not a key: {what}", path.display())]
    NotAKey {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// There is a file where a new key is to be made.
    #[error("{} exists", path.display())]
    KeyExists {
        /// The file.
        path: PathBuf,
    },
    /// The service manager gave no credentials, or the name is not one of a credential.
    #[error("no credential {name:?}")]
    NoCredential {
        /// The name.
        name: String,
    },
    /// No passphrase, or one that is not accepted.
    #[error("no passphrase: {0}")]
    NoPassphrase(&'static str),
    /// There is no such share.
    #[error("there is no share at {}", path.display())]
    ShareMissing {
        /// Where it would be.
        path: PathBuf,
    },
    /// Another share is in this one's place.
    #[error("another share is at {}", path.display())]
    ShareConflict {
        /// Where it is.
        path: PathBuf,
    },
    /// The system gives no random bytes.
    #[error("the system gives no random bytes: {0}")]
    Randomness(getrandom::Error),
    /// A header that cannot be encoded, which its type rules out.
    #[error("a header cannot be encoded: {0}")]
    Encoding(#[from] Malformed),
}

impl VaultError {
    /// The stable code of the reason.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::File(error) => error.code(),
            Self::Damaged { .. } => "vault_damaged",
            Self::CannotOpen { .. } => "vault_cannot_open",
            Self::HeaderMissing { .. } => "vault_header_missing",
            Self::OtherMethod { .. } => "vault_other_method",
            Self::CostsOutOfBounds => "vault_costs_out_of_bounds",
            Self::Kdf(_) => "vault_kdf",
            Self::OutOfMemory => "vault_out_of_memory",
            Self::WrongPassphrase => "wrong_passphrase",
            Self::WrongKey => "wrong_key",
            Self::NotAKey { .. } => "vault_key_invalid",
            Self::KeyExists { .. } => "vault_key_exists",
            Self::NoCredential { .. } => "credential_missing",
            Self::NoPassphrase(_) => "passphrase_missing",
            Self::ShareMissing { .. } => "share_missing",
            Self::ShareConflict { .. } => "share_conflict",
            Self::Randomness(_) => "randomness_unavailable",
            Self::Encoding(_) => "vault_encoding",
        }
    }

    /// What an operator can do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::File(error) => error.advice(),
            Self::Damaged { .. } => {
                "Keep the file as evidence and bring back a copy of exactly this file. If there is none, \
                 replace this member by a reshare."
            }
            Self::CannotOpen { .. } => {
                "The file was altered, or sealed under another vault. Bring back the copy that belongs to \
                 this vault; if there is none, replace this member by a reshare."
            }
            Self::HeaderMissing { .. } => {
                "Bring back `vault.hdr` from the same copy as the shares: without its salt they do not open."
            }
            Self::OtherMethod { .. } => {
                "Set `unlock` in the configuration's [vault] to how the vault was sealed."
            }
            Self::CostsOutOfBounds => {
                "Somebody has changed `vault.hdr`: bring back the copy that belongs to the shares."
            }
            Self::Kdf(_) | Self::Encoding(_) => "This is a defect of the participant; report it.",
            Self::OutOfMemory => "Give the participant at least 64 MiB more memory at its start.",
            Self::WrongPassphrase => {
                "Type it again; check the keyboard's layout. Nothing was changed, and trying again costs \
                 nothing."
            }
            Self::WrongKey => {
                "Check which key file or credential the configuration names: it is not the one that this \
                 vault was made with."
            }
            Self::NotAKey { .. } => {
                "A key is exactly 32 random bytes. Bring back the right file. Only for a new vault, make one: \
                 `umask 077 && head -c 32 /dev/urandom > vault.key`."
            }
            Self::KeyExists { .. } => {
                "Choose another path: a key that is overwritten takes every share that it seals with it."
            }
            Self::NoCredential { .. } => {
                "Start the participant under the service manager with LoadCredentialEncrypted= for this \
                 name, or choose another way to unlock."
            }
            Self::NoPassphrase(_) => {
                "Type 12 to 1024 bytes at a terminal, or name a file for this user alone, or /dev/fd/3 for a \
                 descriptor, in FIRN_PASSPHRASE_FILE."
            }
            Self::ShareMissing { .. } => {
                "Check the data folder. If the share is lost, replace this member by a reshare."
            }
            Self::ShareConflict { .. } => {
                "Nothing was overwritten. Start a new attempt of the ceremony; keep both files as evidence."
            }
            Self::Randomness(_) => "Do not go on without the system's random source; find out why.",
        }
    }
}

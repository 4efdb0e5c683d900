//! The participant's configuration: one TOML file. It decides whether the file says what is needed and
//! nothing that is not known, and never looks at the files that it names.
//!
//! Paths that are relative are taken from the folder of the configuration file. [`EXAMPLE`] shows every
//! field.

mod file;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use firn_protocol::{ids::AuthoritiesDigest, names::SpiffeId};
use firn_transport::CredentialFiles;
use serde::Deserialize;

use file::File;

use crate::{
    private_files::{FileError, read_public},
    vault::{Asking, Credential, Passphrase, Unlock, VaultError},
};

const FILE_LIMIT: usize = 64 << 10;

/// A configuration with every field.
pub const EXAMPLE: &str = include_str!("../../deploy/participant.toml");

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file does not say what it must.
    #[error("{}:{line}: {what}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        what: String,
    },
}

impl ConfigError {
    /// The stable code of the reason.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::File(error) => error.code(),
            Self::Invalid { .. } => "config_invalid",
        }
    }

    /// What an operator can do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::File(error) => error.advice(),
            Self::Invalid { .. } => {
                "Correct the line and start again: nothing was started, and no other file was read."
            }
        }
    }
}

/// The configuration, with all paths resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The SPIFFE id in this participant's TLS certificate.
    pub name: SpiffeId,
    /// The folder of ledger, vault and documents.
    pub data_dir: PathBuf,
    /// The folder of the ledger's anchor. By default `data_dir/anchor`, which finds damage out, but not
    /// an old copy of the whole data folder: name a folder on another disk.
    pub anchor_dir: PathBuf,
    /// The Unix socket for this machine's operator. By default `data_dir/control.sock`.
    pub control_socket: PathBuf,
    /// Certificate, key and roots.
    pub tls: TlsConfig,
    /// The file of the Ed25519 seed in hexadecimal; mode 0600.
    pub identity_key: PathBuf,
    /// The file of the endorsed Authorities.
    pub authorities: PathBuf,
    /// The digest of the Authorities that the operator of this machine accepted.
    pub authorities_digest: AuthoritiesDigest,
    /// How the vault is unlocked.
    pub vault: VaultConfig,
    /// The coordinators to dial: at least one, each name once.
    pub coordinators: Vec<CoordinatorConfig>,
    /// Bounds of time and epochs.
    pub limits: LimitsConfig,
    /// The form of the log.
    pub log: LogFormat,
}

/// The files of TLS, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsConfig {
    /// This participant's certificate chain.
    pub certificate: PathBuf,
    /// The certificate's private key.
    pub key: PathBuf,
    /// The roots that vouch for coordinators.
    pub roots: PathBuf,
    /// How often the three files are looked at; 100 to 3,600,000, by default 30,000.
    pub look_every_ms: u64,
    /// How long before a certificate's end it is warned of: 1 to 87,600. By default 14 days, or a third
    /// of the certificate's life if that is shorter.
    pub warn_before_hours: Option<u64>,
}

impl TlsConfig {
    /// The three files.
    #[must_use]
    pub fn files(&self) -> CredentialFiles {
        CredentialFiles {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            roots: self.roots.clone(),
        }
    }
}

/// How the vault is unlocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VaultConfig {
    /// By a file of 32 random bytes; mode 0600.
    KeyFile(PathBuf),
    /// By a passphrase from a terminal, a file or a descriptor.
    Passphrase,
    /// By the credential of this name that systemd gives.
    Credential(String),
}

/// A coordinator to dial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoordinatorConfig {
    /// The SPIFFE id that its certificate must have.
    pub name: SpiffeId,
    /// Where it listens.
    pub address: Address,
}

/// Bounds of time and epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitsConfig {
    /// By how much this clock and a peer's may differ; 100 to 60,000, by default 2,000.
    pub max_clock_skew_ms: u64,
    /// How far above the highest epoch seen an epoch may be; 1 to 1,000,000,000, by default 1,000.
    pub max_epoch_jump: u64,
    /// For how long after its `not_before` a grant counts at most; 60,000 to 2,592,000,000 (30 days), by
    /// default 86,400,000 (a day). A grant that allows itself more ends then all the same.
    pub max_grant_life_ms: u64,
    /// How long a session waits for its next message; 100 to 600,000, by default 10,000.
    pub step_timeout_ms: u64,
}

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// Lines for people.
    Human,
    /// One JSON object a line.
    Json,
    /// For people where there is a terminal, JSON elsewhere.
    #[default]
    Auto,
}

/// Host and port: `name:port`, `192.0.2.1:port` or `[2001:db8::1]:port`; the port is not 0.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    host: String,
    port: u16,
}

impl Address {
    /// The name or IP address, without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The UDP port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "an address is host:port, with brackets around an IPv6 address";
        let (host, port) = text.rsplit_once(':').ok_or(wrong)?;
        let bracketed = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let good = match bracketed {
            Some(host) => host.parse::<std::net::Ipv6Addr>().is_ok(),
            None => {
                let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
                (1..=253).contains(&host.len()) && host.bytes().all(allowed)
            }
        };
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().map_err(|_| wrong)?;
        if !good || !digits || port == 0 {
            return Err(wrong);
        }
        let host = bracketed.unwrap_or(host).to_owned();
        Ok(Self { host, port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl VaultConfig {
    /// Gets ready to unlock the vault, which may mean asking for a passphrase: twice for a new vault.
    ///
    /// # Errors
    /// [`VaultError`] where there is no passphrase or credential.
    pub fn unlock(&self, asking: Asking) -> Result<Unlock, VaultError> {
        match self {
            Self::KeyFile(path) => Ok(Unlock::KeyFile(path.clone())),
            Self::Passphrase => Passphrase::obtain(asking).map(Unlock::Passphrase),
            Self::Credential(name) => Credential::from_environment(name).map(Unlock::Credential),
        }
    }
}

impl Config {
    /// Reads a configuration.
    ///
    /// # Errors
    /// [`ConfigError::File`], or [`ConfigError::Invalid`] with the line of the first thing wrong.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let bytes = read_public(path, FILE_LIMIT)?;
        let invalid = |line, what: &str| ConfigError::Invalid {
            path: path.to_owned(),
            line,
            what: what.to_owned(),
        };
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            invalid(line_after(before), "not UTF-8")
        })?;
        let at = |offset: usize| {
            let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
            line_after(before)
        };
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| at(span.start));
            invalid(line, error.message())
        })?;
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        file.check(folder)
            .map_err(|wrong| invalid(at(wrong.span.start), &wrong.what))
    }
}

/// The number of the line that begins or goes on after these bytes.
fn line_after(before: &[u8]) -> usize {
    before
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        .saturating_add(1)
}

//! Where a process keeps its files. It decides the names, once for everybody who writes or reads them.

use std::path::{Path, PathBuf};

use firn_protocol::names::SpiffeId;

use super::{
    ca::Issued,
    files::{make_folder, write_private, write_public},
};
use crate::error::Error;

// Configurations name their files relative to their own folder, so that the folder can be moved.
const CONFIG: &str = "config.toml";
pub(super) const CERTIFICATE: &str = "tls/certificate.pem";
pub(super) const TLS_KEY: &str = "tls/key.pem";
pub(super) const ROOTS: &str = "tls/roots.pem";
pub(super) const IDENTITY: &str = "identity.key";
pub(super) const AUTHORITIES: &str = "authorities.cbor";
pub(super) const VAULT_KEY: &str = "vault.key";
pub(super) const DATA: &str = "data";
pub(super) const ANCHOR: &str = "anchor";
pub(super) const ADDRESS: &str = "address";
const LOG: &str = "log.txt";
const PLAN: &str = "plan.cbor";

/// A folder that holds everything one process needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessFolder(PathBuf);

impl ProcessFolder {
    /// The folder at `path`.
    #[must_use]
    pub const fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Makes the folder of the process `id` within `parent`.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn make(parent: &Path, id: &SpiffeId) -> Result<Self, Error> {
        let folder = Self(parent.join(id.name().as_str()));
        make_folder(&folder.0)?;
        make_folder(&folder.0.join("tls"))?;
        Ok(folder)
    }

    /// Puts a certificate, its key and the root that the peers' certificates are under into it.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn install_tls(&self, issued: &Issued, roots_pem: &str) -> Result<(), Error> {
        write_public(&self.certificate(), issued.certificate_pem.as_bytes())?;
        write_private(&self.tls_key(), issued.key_pem.as_bytes())?;
        write_public(&self.roots(), roots_pem.as_bytes())
    }

    /// The folder itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The process's configuration.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.0.join(CONFIG)
    }

    /// Its certificate.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.0.join(CERTIFICATE)
    }

    /// Its certificate's key.
    #[must_use]
    pub fn tls_key(&self) -> PathBuf {
        self.0.join(TLS_KEY)
    }

    /// The root of the peers' certificates.
    #[must_use]
    pub fn roots(&self) -> PathBuf {
        self.0.join(ROOTS)
    }

    /// The Ed25519 key that it speaks with.
    #[must_use]
    pub fn identity(&self) -> PathBuf {
        self.0.join(IDENTITY)
    }

    /// The Authorities that it stands on.
    #[must_use]
    pub fn authorities(&self) -> PathBuf {
        self.0.join(AUTHORITIES)
    }

    /// What opens a participant's vault.
    #[must_use]
    pub fn vault_key(&self) -> PathBuf {
        self.0.join(VAULT_KEY)
    }

    /// A participant's shares and ledger.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.0.join(DATA)
    }

    /// A participant's anchor; in service on another disk.
    #[must_use]
    pub fn anchor(&self) -> PathBuf {
        self.0.join(ANCHOR)
    }

    /// Where a coordinator writes the address that it listens at.
    #[must_use]
    pub fn address(&self) -> PathBuf {
        self.0.join(ADDRESS)
    }

    /// What the process writes for people.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.0.join(LOG)
    }

    /// A plan that is to be accepted here.
    #[must_use]
    pub fn plan(&self) -> PathBuf {
        self.0.join(PLAN)
    }
}

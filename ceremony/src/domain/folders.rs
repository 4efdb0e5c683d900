//! Where a process keeps its files. It decides the names, once for everybody who writes or reads them.

use std::path::{Path, PathBuf};

use firn_protocol::names::Role;

// Configurations name their files relative to their own folder, so that the folder can be moved.
pub(super) const CERTIFICATE: &str = "tls/certificate.pem";
pub(super) const TLS_KEY: &str = "tls/key.pem";
pub(super) const ROOTS: &str = "tls/roots.pem";
pub(super) const IDENTITY: &str = "identity.key";
pub(super) const AUTHORITIES: &str = "authorities.cbor";
pub(super) const VAULT_KEY: &str = "vault.key";
pub(super) const DATA: &str = "data";
pub(super) const CONTROL: &str = "control.sock";
pub(super) const ANCHOR: &str = "anchor";
pub(super) const ADDRESS: &str = "address";
const LOG: &str = "log.txt";
const PLAN: &str = "plan.cbor";
const REQUEST: &str = "tls.csr";
const ENROLLMENT: &str = "enrollment.cbor";

/// A folder that holds everything one process or person needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessFolder {
    path: PathBuf,
    role: Role,
}

impl ProcessFolder {
    /// The folder at `path`, of a process or person of this role.
    #[must_use]
    pub const fn at(path: PathBuf, role: Role) -> Self {
        Self { path, role }
    }

    /// The folder itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of what TLS needs.
    #[must_use]
    pub fn tls(&self) -> PathBuf {
        self.path.join("tls")
    }

    /// What is given to the operators: name, keys and certificate request, signed.
    #[must_use]
    pub fn enrollment(&self) -> PathBuf {
        self.path.join(ENROLLMENT)
    }

    /// The certificate request, for any CA.
    #[must_use]
    pub fn request(&self) -> PathBuf {
        self.path.join(REQUEST)
    }

    /// The configuration: `participant.toml`, `coordinator.toml`, or a person's `firn.toml`.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.path.join(config_name(self.role))
    }

    /// Its certificate.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.path.join(CERTIFICATE)
    }

    /// Its certificate's key.
    #[must_use]
    pub fn tls_key(&self) -> PathBuf {
        self.path.join(TLS_KEY)
    }

    /// The root of the peers' certificates.
    #[must_use]
    pub fn roots(&self) -> PathBuf {
        self.path.join(ROOTS)
    }

    /// The Ed25519 key that it speaks with.
    #[must_use]
    pub fn identity(&self) -> PathBuf {
        self.path.join(IDENTITY)
    }

    /// The Authorities that it stands on.
    #[must_use]
    pub fn authorities(&self) -> PathBuf {
        self.path.join(AUTHORITIES)
    }

    /// What opens a participant's vault.
    #[must_use]
    pub fn vault_key(&self) -> PathBuf {
        self.path.join(VAULT_KEY)
    }

    /// A participant's shares and ledger.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.path.join(DATA)
    }

    /// Where a participant's daemon listens to its operator.
    #[must_use]
    pub fn control_socket(&self) -> PathBuf {
        self.data().join(CONTROL)
    }

    /// A participant's anchor; in service on another disk.
    #[must_use]
    pub fn anchor(&self) -> PathBuf {
        self.path.join(ANCHOR)
    }

    /// Where a coordinator writes the address that it listens at.
    #[must_use]
    pub fn address(&self) -> PathBuf {
        self.path.join(ADDRESS)
    }

    /// What the process writes for people.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.path.join(LOG)
    }

    /// A plan that is to be accepted here.
    #[must_use]
    pub fn plan(&self) -> PathBuf {
        self.path.join(PLAN)
    }
}

const fn config_name(role: Role) -> &'static str {
    match role {
        Role::Participant => "participant.toml",
        Role::Coordinator => "coordinator.toml",
        Role::Requester | Role::Operator => "firn.toml",
    }
}

//! The profile of a person or service: one TOML file in its folder. It decides whether the file says what
//! is needed and nothing that is not known; the files that it names are read when somebody asks for what
//! is in them.
//!
//! Paths that are relative are taken from the profile's own folder, so that a folder can be moved.
//! [`EXAMPLE`] shows every field.

mod file;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use firn_protocol::{ids::AuthoritiesDigest, keys::IdentitySecret, names::SpiffeId};
use firn_transport::{TlsIdentity, TransportError, Trust};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use self::file::File;
use crate::{
    address::Address,
    authorities::PinnedAuthorities,
    caller::Caller,
    client::{Client, Settings},
    error::Error,
    files::{FileError, read_private, read_public},
};

/// The name of a profile within its folder.
pub const FILE_NAME: &str = "firn.toml";

/// A profile with every field.
pub const EXAMPLE: &str = include_str!("example.toml");

const FILE_LIMIT: usize = 64 << 10;
/// Bytes of a certificate chain, a key or roots.
const PEM_LIMIT: usize = 256 << 10;

/// Why there is no profile, or why a file that it names is not used.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The profile does not say what it must.
    #[error("{}:{line}: {what}", path.display())]
    Invalid {
        /// The profile.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        what: String,
    },
    /// A file does not hold what it must.
    #[error("{} does not hold {what}", path.display())]
    BadFile {
        /// Which.
        path: PathBuf,
        /// What it must hold.
        what: &'static str,
    },
    /// The certificate is for somebody else than the profile.
    #[error("{} is the certificate of {found}, the profile is for {expected}", path.display())]
    OtherName {
        /// The certificate.
        path: PathBuf,
        /// Whose it is.
        found: Box<SpiffeId>,
        /// Whose it must be.
        expected: Box<SpiffeId>,
    },
}

impl ProfileError {
    /// The stable code of the reason.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::File(error) => error.code(),
            Self::Invalid { .. } => "profile_invalid",
            Self::BadFile { .. } => "bad_file",
            Self::OtherName { .. } => "profile_other_name",
        }
    }

    /// What a person does next.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::File(error) => error.advice(),
            Self::Invalid { .. } => "correct the line and try again",
            Self::BadFile { .. } => "check that the path names the file that was meant",
            Self::OtherName { .. } => "use the certificate of the name in the profile",
        }
    }
}

/// A profile, with all paths resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The SPIFFE id in the certificate: a requester's or an operator's.
    pub name: SpiffeId,
    /// The file of the Ed25519 seed in hexadecimal; mode 0600.
    pub identity_key: PathBuf,
    /// The file of the endorsed Authorities.
    pub authorities: PathBuf,
    /// The digest of the Authorities that this person has compared.
    pub authorities_digest: AuthoritiesDigest,
    /// Certificate, key and roots.
    pub tls: TlsFiles,
    /// The coordinators, in the order in which they are tried: at least one, each name once.
    pub coordinators: Vec<Coordinator>,
}

/// The files of TLS, in PEM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// The certificate's private key; mode 0600.
    pub key: PathBuf,
    /// The roots that vouch for coordinators.
    pub roots: PathBuf,
}

/// A coordinator that may be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coordinator {
    /// The SPIFFE id that its certificate must have; its key is in the Authorities.
    pub name: SpiffeId,
    /// Where it listens; looked up whenever it is dialled.
    pub address: Address,
}

impl Profile {
    /// Reads the profile in `path`; where that is a folder, its [`FILE_NAME`].
    ///
    /// # Errors
    /// [`ProfileError::File`], or [`ProfileError::Invalid`] with the line of the first thing wrong.
    pub fn load(path: &Path) -> Result<Self, ProfileError> {
        if path.is_dir() {
            return Self::load(&path.join(FILE_NAME));
        }
        let bytes = read_public(path, FILE_LIMIT)?;
        let invalid = |line, what: &str| ProfileError::Invalid {
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

    /// The profile as a file holds it, with its paths as they stand here: relative ones mean the folder
    /// of the file that this is written to.
    ///
    /// # Errors
    /// [`Error::Usage`] for a path that is not UTF-8.
    pub fn to_toml(&self) -> Result<String, Error> {
        file::write(self).map_err(|error| Error::Usage {
            what: format!("the profile cannot be written: {error}"),
        })
    }

    /// Reads the Ed25519 key.
    ///
    /// # Errors
    /// [`ProfileError::File`], also where others may read it; [`ProfileError::BadFile`].
    pub fn secret(&self) -> Result<IdentitySecret, ProfileError> {
        let path = &self.identity_key;
        let bytes = read_private(path, 256)?;
        let mut seed = Zeroizing::new([0; 32]);
        hex::decode_to_slice(bytes.trim_ascii_end(), &mut *seed).map_err(|_| {
            ProfileError::BadFile {
                path: path.clone(),
                what: "an Ed25519 seed of 64 hexadecimal digits",
            }
        })?;
        Ok(IdentitySecret::from_seed(&seed))
    }

    /// Reads the certificate with its key, and the roots.
    ///
    /// # Errors
    /// [`Error::Profile`]; [`Error::Transport`] for files that hold something else.
    pub fn tls(&self) -> Result<(TlsIdentity, Trust), Error> {
        let TlsFiles {
            certificate,
            key,
            roots,
        } = &self.tls;
        let chain = read_public(certificate, PEM_LIMIT).map_err(ProfileError::from)?;
        let private = read_private(key, PEM_LIMIT).map_err(ProfileError::from)?;
        let identity = TlsIdentity::from_pem(&chain, &private)
            .map_err(Error::transport("reading the certificate"))?;
        let found = identity.spiffe_id();
        if *found != self.name {
            return Err(Error::Profile(ProfileError::OtherName {
                path: certificate.clone(),
                found: Box::new(found.clone()),
                expected: Box::new(self.name.clone()),
            }));
        }
        let roots = read_public(roots, PEM_LIMIT).map_err(ProfileError::from)?;
        let trust = Trust::from_pem(self.name.trust_domain().clone(), &roots)
            .map_err(Error::transport("reading the roots"))?;
        // Here, where its file can be named; a coordinator's refusal would only be an alert.
        trust
            .verify_own(&identity)
            .map_err(TransportError::OwnCertificate)
            .map_err(Error::transport("judging the certificate"))?;
        Ok((identity, trust))
    }

    /// Who the profile stands for, with key and certificate.
    ///
    /// # Errors
    /// As [`Self::secret`] and [`Self::tls`].
    pub fn caller(&self) -> Result<Caller, Error> {
        let (identity, trust) = self.tls()?;
        Caller::new(self.secret()?, identity, trust)
    }

    /// The Authorities, if they are the ones that were compared.
    ///
    /// # Errors
    /// [`Error::Profile`]; [`Error::Unfit`].
    pub fn authorities(&self) -> Result<PinnedAuthorities, Error> {
        let limit = firn_protocol::envelope::Endorsed::LIMIT;
        let bytes = read_public(&self.authorities, limit).map_err(ProfileError::from)?;
        PinnedAuthorities::from_bytes(&bytes, self.authorities_digest)
    }

    /// A client of everything that the profile names. Nobody is dialled yet.
    ///
    /// # Errors
    /// As [`Self::caller`], [`Self::authorities`] and [`Client::new`].
    pub fn client(&self, settings: Settings) -> Result<Client, Error> {
        let authorities = self.authorities()?;
        Client::new(self.caller()?, authorities, &self.coordinators, settings)
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

//! `domain.toml`: what every machine of a trust domain needs to know, in one file that is carried. It
//! decides whether the file says all of it and nothing else; whether it is the right one is for whoever
//! compares the Authorities' fingerprint.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use firn_client::Coordinator;
use firn_protocol::{
    codec,
    documents::Authorities,
    envelope::{Approved, Endorsed},
    ids::AuthoritiesDigest,
    names::TrustDomain,
};
use firn_transport::Trust;
use serde::{Deserialize, Serialize};

use super::files::{read_bounded, replace_public, write_public};
use crate::{authority, error::Error};

const HEAD: &str = "\
# What every machine of this trust domain needs. Nothing here is secret, and nothing here is believed
# before its fingerprint was compared: `firn authorities show domain.toml`.

";
/// Authorities in hexadecimal, roots, and a coordinator's line for each that can be.
const LIMIT: usize = 2 * Endorsed::LIMIT + (512 << 10);

/// The file as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    trust_domain: TrustDomain,
    authorities_digest: String,
    authorities: String,
    roots: String,
    coordinators: Vec<Coordinator>,
}

/// A trust domain, with Authorities that may still lack signatures.
#[derive(Debug, Clone)]
pub struct Draft {
    endorsed: Endorsed,
    authorities: Authorities,
    digest: AuthoritiesDigest,
    roots_pem: String,
    coordinators: Vec<Coordinator>,
}

/// A trust domain, with Authorities that a quorum of their own operators have signed.
#[derive(Debug, Clone)]
pub struct Description {
    authorities: Approved<Authorities>,
    roots_pem: String,
    coordinators: Vec<Coordinator>,
}

impl Draft {
    /// Puts a description together.
    ///
    /// # Errors
    /// What contradicts itself, as text.
    pub fn new(
        endorsed: Endorsed,
        roots_pem: String,
        coordinators: Vec<Coordinator>,
    ) -> Result<Self, String> {
        let (authorities, digest) = authority::read_draft(&endorsed)?;
        if coordinators.is_empty() {
            return Err("there is no coordinator".to_owned());
        }
        let mut names = BTreeSet::new();
        for coordinator in &coordinators {
            if authorities.coordinator(&coordinator.name).is_none() {
                return Err(format!("{} is not in the Authorities", coordinator.name));
            }
            if !names.insert(&coordinator.name) {
                return Err(format!("{} stands twice", coordinator.name));
            }
        }
        Trust::from_pem(authorities.trust_domain.clone(), roots_pem.as_bytes())
            .map_err(|error| error.to_string())?;
        Ok(Self {
            digest: AuthoritiesDigest::from_bytes(digest),
            endorsed,
            authorities,
            roots_pem,
            coordinators,
        })
    }

    /// Reads a description; its Authorities may lack signatures.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::Invalid`]; [`Error::Unfit`] where its parts do not belong together.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let file: File = read_toml(path, LIMIT, "the description of a trust domain")?;
        let unfit = |what: String| Error::Unfit {
            path: path.to_owned(),
            what,
        };
        let bytes = hex::decode(&file.authorities)
            .map_err(|_| unfit("the Authorities are not hexadecimal".to_owned()))?;
        let endorsed = codec::decode(&bytes, Endorsed::LIMIT)
            .map_err(|error| unfit(format!("the Authorities do not decode: {error}")))?;
        let draft = Self::new(endorsed, file.roots, file.coordinators).map_err(unfit)?;
        if AuthoritiesDigest::from_hex(&file.authorities_digest) != Some(draft.digest) {
            return Err(unfit(format!(
                "authorities_digest is not that of the Authorities, {}",
                draft.digest
            )));
        }
        if file.trust_domain != draft.authorities.trust_domain {
            return Err(unfit(format!(
                "the Authorities are those of {}",
                draft.authorities.trust_domain
            )));
        }
        Ok(draft)
    }

    /// Writes a new file.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::FileExists`].
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        write_public(path, self.to_toml()?.as_bytes())
    }

    /// Puts other signatures on the same Authorities into the file that this was read from.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn replace(mut self, path: &Path, endorsed: Endorsed) -> Result<Self, Error> {
        self.endorsed = endorsed;
        replace_public(path, self.to_toml()?.as_bytes())?;
        Ok(self)
    }

    /// The Authorities as they are signed so far.
    #[must_use]
    pub const fn endorsed(&self) -> &Endorsed {
        &self.endorsed
    }

    /// The Authorities' digest.
    #[must_use]
    pub const fn digest(&self) -> AuthoritiesDigest {
        self.digest
    }

    /// The description, if a quorum has signed its Authorities.
    ///
    /// # Errors
    /// [`Error::Unverified`].
    pub fn complete(self) -> Result<Description, Error> {
        Ok(Description {
            authorities: authority::verify_authorities(self.endorsed)?,
            roots_pem: self.roots_pem,
            coordinators: self.coordinators,
        })
    }

    fn to_toml(&self) -> Result<String, Error> {
        let file = File {
            trust_domain: self.authorities.trust_domain.clone(),
            authorities_digest: self.digest.to_string(),
            authorities: hex::encode(codec::encode(&self.endorsed)?),
            roots: self.roots_pem.clone(),
            coordinators: self.coordinators.clone(),
        };
        Ok(format!("{HEAD}{}", to_toml(&file)?))
    }
}

impl Description {
    /// Reads a description whose Authorities are signed.
    ///
    /// # Errors
    /// As [`Draft::read`] and [`Draft::complete`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        Draft::read(path)?.complete()
    }

    /// The keys that count.
    #[must_use]
    pub const fn authorities(&self) -> &Approved<Authorities> {
        &self.authorities
    }

    /// Their digest.
    #[must_use]
    pub const fn digest(&self) -> AuthoritiesDigest {
        AuthoritiesDigest::from_bytes(self.authorities.digest())
    }

    /// The trust domain.
    #[must_use]
    pub fn trust_domain(&self) -> &TrustDomain {
        &self.authorities.trust_domain
    }

    /// The roots that vouch for names in it, PEM.
    #[must_use]
    pub fn roots_pem(&self) -> &str {
        &self.roots_pem
    }

    /// Its coordinators.
    #[must_use]
    pub fn coordinators(&self) -> &[Coordinator] {
        &self.coordinators
    }
}

/// Authorities from a file of their own or from a description, as they are signed so far.
///
/// # Errors
/// [`Error::File`]; [`Error::BadFile`]; [`Error::Invalid`]; [`Error::Unfit`].
pub fn read_endorsed_authorities(path: &Path) -> Result<Endorsed, Error> {
    if is_description(path) {
        Ok(Draft::read(path)?.endorsed)
    } else {
        super::files::read_document(path, Endorsed::LIMIT, "Authorities")
    }
}

/// Whether a file is a description, by its name.
pub(crate) fn is_description(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "toml")
}

/// Reads what a person may have written, with the line of the first thing that is wrong.
fn read_toml<T: serde::de::DeserializeOwned>(
    path: &Path,
    limit: usize,
    what: &'static str,
) -> Result<T, Error> {
    let text = read_toml_text(path, limit, what)?;
    toml::from_str(&text).map_err(|error| Error::Invalid {
        path: path.to_owned(),
        line: line_of(&text, error.span().map_or(0, |span| span.start)),
        what: error.message().to_owned(),
    })
}

/// The text of a file that a person may have written.
pub(crate) fn read_toml_text(
    path: &Path,
    limit: usize,
    what: &'static str,
) -> Result<String, Error> {
    String::from_utf8(read_bounded(path, limit, what)?).map_err(|_| Error::Invalid {
        path: path.to_owned(),
        line: 1,
        what: "not UTF-8".to_owned(),
    })
}

/// The number of the line, from 1, that a byte of a text stands in.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or(text);
    before.matches('\n').count().saturating_add(1)
}

pub(super) fn to_toml<T: Serialize>(value: &T) -> Result<String, Error> {
    toml::to_string(value).map_err(|error| Error::Usage {
        what: format!("it cannot be written as TOML: {error}"),
    })
}

/// Where the other form of the same Authorities lies: `domain.toml` and `authorities.cbor` in one folder.
pub(crate) fn twin(path: &Path) -> PathBuf {
    let name = if is_description(path) {
        "authorities.cbor"
    } else {
        "domain.toml"
    };
    path.with_file_name(name)
}

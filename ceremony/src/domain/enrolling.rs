//! A new machine or person: keys made in a folder that they never leave, the word about them that is
//! given to the operators, and what comes back. It decides that certificate, key, name, roots and
//! Authorities belong together before any of them is put in its place.

use std::{
    fs,
    path::{Path, PathBuf},
};

use firn_protocol::{
    codec::{Blob, Text},
    documents::{Authorities, Enrollment},
    envelope::{Approved, Envelope, Verified},
    ids::UnixMillis,
    names::{Role, SpiffeId},
};
use firn_transport::{TlsIdentity, Trust};

use super::{
    config::configuration,
    description::Description,
    files::{
        claim_empty_folder, make_folder, read_bounded, read_document, read_identity,
        replace_public, write_document, write_identity, write_private, write_public,
    },
    folders::ProcessFolder,
    request::{FreshRequest, RequestedKey},
};
use crate::{
    authority,
    clock::{fresh_identity, random},
    error::Error,
};

/// Bytes of a certificate chain or of roots.
const PEM_LIMIT: usize = 256 << 10;
/// What an enrollment says of the software that made it.
const SOFTWARE: &str = concat!("firn ", env!("CARGO_PKG_VERSION"));

/// An enrollment that holds: signed by its own identity, with a request for exactly its name.
#[derive(Debug)]
pub struct Enrolled {
    enrollment: Verified<Enrollment>,
    key: RequestedKey,
}

impl Enrolled {
    /// Reads what a machine gave to the operators.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::BadFile`]; [`Error::Unfit`] where it is not signed by its own key, or
    /// its request is not for its name and key.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let limit = Envelope::<Enrollment>::LIMIT.saturating_add(8);
        let envelope: Envelope<Enrollment> = read_document(path, limit, "an enrollment")?;
        Self::verify(envelope).map_err(|what| Error::Unfit {
            path: path.to_owned(),
            what,
        })
    }

    fn verify(envelope: Envelope<Enrollment>) -> Result<Self, String> {
        let signer = envelope
            .claimed_signer()
            .map_err(|error| error.to_string())?;
        let enrollment = envelope
            .verify(&signer)
            .map_err(|error| error.to_string())?;
        if enrollment.identity != signer {
            return Err("it is signed by another key than the one that it is about".to_owned());
        }
        let key = RequestedKey::verify(enrollment.csr.as_bytes(), &enrollment.name)
            .map_err(|error| error.to_string())?;
        Ok(Self { enrollment, key })
    }

    /// What it says.
    #[must_use]
    pub const fn enrollment(&self) -> &Verified<Enrollment> {
        &self.enrollment
    }

    /// The key that a certificate is asked for.
    #[must_use]
    pub const fn key(&self) -> &RequestedKey {
        &self.key
    }

    /// What is compared by voice before anybody names it.
    #[must_use]
    pub const fn fingerprint(&self) -> [u8; 32] {
        self.enrollment.digest()
    }
}

/// The folder of somebody who has enrolled.
#[derive(Debug)]
pub struct EnrolledFolder {
    folder: ProcessFolder,
    enrolled: Enrolled,
}

impl EnrolledFolder {
    /// Makes, in an empty or new folder, everything that only this machine may know: identity key, TLS
    /// key, for a participant what opens its vault.
    ///
    /// # Errors
    /// [`Error::FolderNotEmpty`]; [`Error::File`]; [`Error::Issue`]; [`Error::Randomness`].
    pub fn begin(path: &Path, id: &SpiffeId, now: UnixMillis) -> Result<Self, Error> {
        let folder = ProcessFolder::at(path.to_owned(), id.role());
        claim_empty_folder(path)?;
        make_folder(&folder.tls())?;
        let secret = fresh_identity()?;
        let identity = write_identity(&folder.identity(), &secret)?;
        let request = FreshRequest::make(id)?;
        write_private(&folder.tls_key(), request.key_pem.as_bytes())?;
        write_public(&folder.request(), request.pem.as_bytes())?;
        if id.role() == Role::Participant {
            write_private(&folder.vault_key(), &*random::<32>()?)?;
            make_folder(&folder.data())?;
            make_folder(&folder.anchor())?;
        }
        let too_long = || Error::Usage {
            what: format!("{id} makes a certificate request that is too long"),
        };
        let enrollment = Enrollment {
            name: id.clone(),
            identity,
            csr: Blob::new(request.der).ok_or_else(too_long)?,
            software: Text::new(SOFTWARE).ok_or_else(too_long)?,
            time: now,
        };
        let envelope = Envelope::sign(&enrollment, &secret)?;
        write_document(&folder.enrollment(), &envelope)?;
        let enrolled = Enrolled::verify(envelope).map_err(|what| Error::Unfit {
            path: folder.enrollment(),
            what,
        })?;
        Ok(Self { folder, enrolled })
    }

    /// The folder that [`EnrolledFolder::begin`] made at `path`.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::BadFile`]; [`Error::Unfit`] where its keys are not those of its
    /// enrollment.
    pub fn open(path: &Path) -> Result<Self, Error> {
        // The role is in the enrollment, whose place does not depend on it.
        let enrollment = ProcessFolder::at(path.to_owned(), Role::Participant).enrollment();
        let enrolled = Enrolled::read(&enrollment)?;
        let role = enrolled.enrollment.name.role();
        let folder = ProcessFolder::at(path.to_owned(), role);
        if read_identity(&folder.identity())?.identity() != enrolled.enrollment.identity {
            return Err(Error::Unfit {
                path: folder.identity(),
                what: "it is not the key of the enrollment beside it".to_owned(),
            });
        }
        Ok(Self { folder, enrolled })
    }

    /// Its files.
    #[must_use]
    pub const fn folder(&self) -> &ProcessFolder {
        &self.folder
    }

    /// What it gives to the operators.
    #[must_use]
    pub const fn enrolled(&self) -> &Enrolled {
        &self.enrolled
    }

    /// Whether this is the folder of somebody who has enrolled.
    #[must_use]
    pub fn is_at(path: &Path) -> bool {
        ProcessFolder::at(path.to_owned(), Role::Participant)
            .enrollment()
            .exists()
    }

    /// Puts the roots into the folder that vouch for peers, and for this folder's own certificate.
    ///
    /// # Errors
    /// [`Error::FileExists`] where others are there.
    pub fn trust(&self, roots_pem: &str) -> Result<(), Error> {
        put(&self.folder.roots(), roots_pem.as_bytes())
    }

    /// Puts the trust domain into the folder, once its Authorities were compared: roots, Authorities and
    /// configuration. What is there already must be the same.
    ///
    /// # Errors
    /// [`Error::Unfit`] for another trust domain than the name's; [`Error::FileExists`] where other
    /// files are there.
    pub fn join(&self, description: &Description) -> Result<(), Error> {
        let name = &self.enrolled.enrollment.name;
        if description.trust_domain() != name.trust_domain() {
            return Err(Error::Unfit {
                path: self.folder.enrollment(),
                what: format!(
                    "{name} is not of the trust domain {}",
                    description.trust_domain()
                ),
            });
        }
        let config = configuration(name, description.digest(), description.coordinators())?;
        let authorities = firn_protocol::codec::encode(description.authorities().endorsed())?;
        self.trust(description.roots_pem())?;
        put(&self.folder.authorities(), &authorities)?;
        put(&self.folder.config(), config.as_bytes())
    }

    /// Whether a trust domain has been put into the folder.
    #[must_use]
    pub fn has_joined(&self) -> bool {
        self.folder.authorities().exists() && self.folder.roots().exists()
    }

    /// The Authorities that were put into the folder.
    ///
    /// # Errors
    /// As [`authority::read_authorities`].
    pub fn joined(&self) -> Result<Approved<Authorities>, Error> {
        authority::read_authorities(&self.folder.authorities())
    }

    /// Puts a certificate in its place, if peers of the trust domain would take it: it has this folder's
    /// TLS key and name, and one of the roots vouches for it now. A later one replaces it.
    ///
    /// # Errors
    /// [`Error::Certificate`]; [`Error::CertificateRefused`]; [`Error::Unfit`] for another's name.
    pub fn install(&self, certificate: &Path) -> Result<(), Error> {
        let bytes = read_bounded(certificate, PEM_LIMIT, "a certificate in PEM")?;
        self.install_pem(&bytes, certificate)
    }

    pub(super) fn install_pem(&self, pem: &[u8], path: &Path) -> Result<(), Error> {
        let name = &self.enrolled.enrollment.name;
        let key = fs::read(self.folder.tls_key())
            .map(zeroize::Zeroizing::new)
            .map_err(Error::file("reading", self.folder.tls_key()))?;
        let unusable = |source| Error::Certificate {
            path: path.to_owned(),
            source,
        };
        let identity = TlsIdentity::from_pem(pem, &key).map_err(unusable)?;
        if identity.spiffe_id() != name {
            return Err(Error::Unfit {
                path: path.to_owned(),
                what: format!(
                    "it is the certificate of {}, and this folder is that of {name}",
                    identity.spiffe_id()
                ),
            });
        }
        let roots = self.folder.roots();
        let trust = Trust::load(name.trust_domain().clone(), &roots).map_err(|source| {
            Error::Certificate {
                path: roots,
                source,
            }
        })?;
        trust
            .verify_own(&identity)
            .map_err(|refusal| Error::CertificateRefused {
                path: path.to_owned(),
                refusal,
            })?;
        let place = self.folder.certificate();
        if place.exists() {
            replace_public(&place, pem)
        } else {
            write_public(&place, pem)
        }
    }
}

/// Writes a new file, or finds the very same there.
fn put(path: &PathBuf, bytes: &[u8]) -> Result<(), Error> {
    match write_public(path, bytes) {
        Err(Error::FileExists { .. }) => {
            let there = fs::read(path).map_err(Error::file("reading", path))?;
            if there == bytes {
                Ok(())
            } else {
                Err(Error::FileExists { path: path.clone() })
            }
        }
        written => written,
    }
}

//! The documents that this participant keeps, each in a file named by its digest. It decides that what
//! comes back is what the digest names, and never who may have signed it: its caller verifies that, each
//! time, against the Authorities.
//!
//! ```text
//! documents/plans/<plan digest>                     a plan as endorsed
//! documents/keys/<activation digest>                everything that says what a key is
//! documents/certificates/<certificate set digest>   the certificates of all members
//! accepted/<plan digest>                            a plan that this machine's operator accepted
//! ```

use std::path::{Path, PathBuf};

use firn_protocol::{
    codec::{self, Malformed},
    documents::{Activation, Certificate, Plan, certificate_set_digest},
    envelope::{Endorsed, Envelope, EnvelopeError, Verified},
    ids::{ActivationDigest, CertificateSetDigest, PlanDigest, PolicyDigest},
    limits,
    messages::{CertificateSet, KeyDocuments},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::private_files::{FileError, ensure_private_folder, read_private, write_private};

const PLANS: &str = "plans";
const KEYS: &str = "keys";
const CERTIFICATES: &str = "certificates";
const ACCEPTED: &str = "accepted";
const FOLDER: &str = "documents";

/// Bytes of the certificates of all members.
const CERTIFICATE_SET_LIMIT: usize =
    limits::MAX_MEMBERS * (Envelope::<Certificate>::LIMIT + 4) + 16;
/// Bytes of everything that says what a key is.
const KEY_DOCUMENTS_LIMIT: usize =
    CERTIFICATE_SET_LIMIT + 2 * Endorsed::LIMIT + limits::ROSTER_DOCUMENT + (4 << 10);

/// Why a document is not kept or not given.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// A file or folder cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file that does not hold what its name says.
    #[error("{} does not hold what its name says: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A document that is to be kept under a digest that is not its own, or that contradicts itself.
    #[error("the document is not kept: {0}")]
    NotKept(&'static str),
    /// A document that cannot be encoded or decoded.
    #[error("the document is malformed: {0}")]
    Malformed(#[from] Malformed),
}

impl DocumentError {
    /// The stable code of the reason.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::File(error) => error.code(),
            Self::Damaged { .. } => "document_damaged",
            Self::NotKept(_) => "document_not_kept",
            Self::Malformed(_) => "document_malformed",
        }
    }

    /// What an operator can do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::File(error) => error.advice(),
            Self::Damaged { .. } => {
                "Keep the file as evidence and move it away; have the ceremony's tool deliver the document \
                 again. A plan must be accepted again on this machine."
            }
            Self::NotKept(_) | Self::Malformed(_) => {
                "Fetch the document again from the operators; it is binary and must be copied as it is."
            }
        }
    }
}

/// The participant's documents.
#[derive(Debug)]
pub struct Documents {
    data_dir: PathBuf,
}

impl Documents {
    /// Opens the documents in a data folder, which must be there and this user's alone.
    ///
    /// # Errors
    /// [`DocumentError::File`].
    pub fn open(data_dir: &Path) -> Result<Self, DocumentError> {
        let documents = Self {
            data_dir: data_dir.to_owned(),
        };
        ensure_private_folder(&data_dir.join(FOLDER))?;
        for kind in [PLANS, KEYS, CERTIFICATES] {
            ensure_private_folder(&data_dir.join(FOLDER).join(kind))?;
        }
        ensure_private_folder(&data_dir.join(ACCEPTED))?;
        Ok(documents)
    }

    /// Keeps a plan; durable when this returns.
    ///
    /// # Errors
    /// [`DocumentError`].
    pub fn put_plan(&self, plan: &Endorsed) -> Result<PlanDigest, DocumentError> {
        let digest = plan_digest(plan)?;
        self.put(PLANS, digest.as_bytes(), &codec::encode(plan)?)?;
        Ok(digest)
    }

    /// The plan with this digest; its signatures are for the caller to verify.
    ///
    /// # Errors
    /// [`DocumentError`].
    pub fn plan(&self, digest: PlanDigest) -> Result<Option<Endorsed>, DocumentError> {
        let path = self.path(PLANS, digest.as_bytes());
        load_plan(&path, digest)
    }

    /// Keeps everything that says what a key is; durable when this returns.
    ///
    /// # Errors
    /// [`DocumentError::NotKept`] where the documents do not bind each other.
    pub fn put_key_documents(
        &self,
        documents: &KeyDocuments,
    ) -> Result<ActivationDigest, DocumentError> {
        let digest = bound_digest(documents).map_err(DocumentError::NotKept)?;
        self.put(KEYS, digest.as_bytes(), &codec::encode(documents)?)?;
        Ok(digest)
    }

    /// Everything that says what a key is, by its activation: plan, certificates and policy are those that
    /// the activation binds. The signatures of authorities are for the caller to verify.
    ///
    /// # Errors
    /// [`DocumentError`].
    pub fn key_documents(
        &self,
        digest: ActivationDigest,
    ) -> Result<Option<KeyDocuments>, DocumentError> {
        let path = self.path(KEYS, digest.as_bytes());
        load(&path, KEY_DOCUMENTS_LIMIT, digest, bound_digest)
    }

    /// Keeps the certificates of all members; durable when this returns.
    ///
    /// # Errors
    /// [`DocumentError::NotKept`] where a certificate is not signed by the key that it names.
    pub fn put_certificate_set(
        &self,
        set: &CertificateSet,
    ) -> Result<CertificateSetDigest, DocumentError> {
        let digest = set_digest(&set.certificates).map_err(DocumentError::NotKept)?;
        self.put(CERTIFICATES, digest.as_bytes(), &codec::encode(set)?)?;
        Ok(digest)
    }

    /// The certificates with this digest; who signed them is for the caller to verify.
    ///
    /// # Errors
    /// [`DocumentError`].
    pub fn certificate_set(
        &self,
        digest: CertificateSetDigest,
    ) -> Result<Option<CertificateSet>, DocumentError> {
        let path = self.path(CERTIFICATES, digest.as_bytes());
        load(
            &path,
            CERTIFICATE_SET_LIMIT,
            digest,
            |set: &CertificateSet| set_digest(&set.certificates),
        )
    }

    /// The plan with this digest, if this machine's operator accepted it; its signatures are for the
    /// caller to verify.
    ///
    /// # Errors
    /// [`DocumentError`].
    pub fn accepted_plan(&self, digest: PlanDigest) -> Result<Option<Endorsed>, DocumentError> {
        load_plan(&accepted_path(&self.data_dir, digest), digest)
    }

    /// Accepts a plan for this machine, in the operator's name; durable when this returns. The operator
    /// has compared its fingerprint, and the caller has verified its signatures.
    ///
    /// # Errors
    /// [`DocumentError::NotKept`] for a plan that contradicts itself; [`DocumentError::File`].
    pub fn accept_plan(&self, plan: &Endorsed) -> Result<PlanDigest, DocumentError> {
        let digest = plan_digest(plan)?;
        let path = accepted_path(&self.data_dir, digest);
        write_private(&path, &codec::encode(plan)?)?;
        Ok(digest)
    }

    fn put(&self, kind: &str, digest: &[u8; 32], bytes: &[u8]) -> Result<(), DocumentError> {
        Ok(write_private(&self.path(kind, digest), bytes)?)
    }

    fn path(&self, kind: &str, digest: &[u8; 32]) -> PathBuf {
        self.data_dir
            .join(FOLDER)
            .join(kind)
            .join(hex::encode(digest))
    }
}

fn accepted_path(data_dir: &Path, digest: PlanDigest) -> PathBuf {
    data_dir.join(ACCEPTED).join(digest.to_string())
}

/// A plan's own digest.
fn plan_digest(plan: &Endorsed) -> Result<PlanDigest, DocumentError> {
    let (plan, digest) = plan.read::<Plan>()?;
    if plan.is_sound() {
        Ok(PlanDigest::from_bytes(digest))
    } else {
        Err(DocumentError::NotKept("the plan contradicts itself"))
    }
}

fn load_plan(path: &Path, digest: PlanDigest) -> Result<Option<Endorsed>, DocumentError> {
    load(path, Endorsed::LIMIT, digest, |plan: &Endorsed| {
        plan_digest(plan).map_err(|_| "the plan does not decode")
    })
}

/// What a file holds, if the digest computed from it is the one that it is kept under.
fn load<T: Serialize + DeserializeOwned, D: PartialEq>(
    path: &Path,
    limit: usize,
    digest: D,
    recompute: impl Fn(&T) -> Result<D, &'static str>,
) -> Result<Option<T>, DocumentError> {
    let Some(bytes) = read_private(path, limit)? else {
        return Ok(None);
    };
    let damaged = |what| DocumentError::Damaged {
        path: path.to_owned(),
        what,
    };
    let document = codec::decode(&bytes, limit).map_err(|_| damaged("it does not decode"))?;
    if recompute(&document).map_err(damaged)? == digest {
        Ok(Some(document))
    } else {
        Err(damaged("its digest is another"))
    }
}

/// The digest of a set of certificates, each by the key that it names itself.
fn set_digest(
    certificates: &[Envelope<Certificate>],
) -> Result<CertificateSetDigest, &'static str> {
    verified_certificates(certificates)
        .map(|certificates| certificate_set_digest(&certificates))
        .map_err(|_| "a certificate does not verify")
}

fn verified_certificates(
    certificates: &[Envelope<Certificate>],
) -> Result<Vec<Verified<Certificate>>, EnvelopeError> {
    certificates
        .iter()
        .map(|certificate| {
            let signer = certificate.claimed_signer()?;
            certificate.clone().verify(&signer)
        })
        .collect()
}

/// The digest of the activation, which binds all the other documents of a key.
fn bound_digest(documents: &KeyDocuments) -> Result<ActivationDigest, &'static str> {
    let (activation, digest) = documents
        .activation
        .read::<Activation>()
        .map_err(|_| "the activation does not decode")?;
    let certificates = verified_certificates(&documents.certificates)
        .map_err(|_| "a certificate does not verify")?;
    if certificate_set_digest(&certificates) != activation.certificates {
        return Err("the certificates are not those that the activation binds");
    }
    let (_, plan) = documents
        .plan
        .read::<Plan>()
        .map_err(|_| "the plan does not decode")?;
    let plan = PlanDigest::from_bytes(plan);
    if certificates.is_empty()
        || certificates
            .iter()
            .any(|certificate| certificate.plan != plan)
    {
        return Err("the plan is not the one that the certificates bind");
    }
    let policy = documents
        .policy
        .claimed_signer()
        .and_then(|signer| documents.policy.clone().verify(&signer))
        .map_err(|_| "the policy does not verify")?;
    if PolicyDigest::from_bytes(policy.digest()) != activation.policy {
        return Err("the policy is not the one that the activation binds");
    }
    Ok(ActivationDigest::from_bytes(digest))
}

#[cfg(test)]
mod tests;

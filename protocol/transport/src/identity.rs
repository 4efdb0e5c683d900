//! Who this process is towards its peers, and whose certificates it believes. It decides whether
//! files are a usable identity, and never shows a private key.

use std::{
    fmt,
    fs::{File, Metadata},
    io::{self, Read},
    path::Path,
    str::FromStr,
    sync::Arc,
};

use firn_protocol::names::SpiffeId;
use rustls::{
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::{
    TransportError,
    san::uri_names,
    validity::Validity,
    verify::{CertificateRefusal, provider},
};

/// Certificates of one chain, ours or a peer's: X.509-SVIDs come with a few intermediates at most.
pub const MAX_CHAIN: usize = 8;
/// Bytes of a PEM file; a chain, a key or a set of roots needs a few thousand.
const MAX_PEM: u64 = 256 << 10;

/// SHA-256 of a certificate's DER, which names the certificate itself rather than its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of this certificate.
    #[must_use]
    pub fn of(certificate: &CertificateDer<'_>) -> Self {
        Self(Sha256::digest(certificate).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// Text is not the 64 hexadecimal digits of a SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint is 64 hexadecimal digits")]
pub struct BadFingerprint;

impl FromStr for Fingerprint {
    type Err = BadFingerprint;

    fn from_str(text: &str) -> Result<Self, BadFingerprint> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| BadFingerprint)?;
        Ok(Self(bytes))
    }
}

/// A certificate chain, end entity first, with its private key.
///
/// Neither shown nor serialised. An endpoint takes what it needs when it is bound or when its
/// identity is replaced; the value can be dropped then.
pub struct TlsIdentity {
    id: SpiffeId,
    validity: Validity,
    key: Arc<CertifiedKey>,
}

impl TlsIdentity {
    /// An identity from PEM text: the chain with the end entity first, and its PKCS #8, SEC 1 or
    /// PKCS #1 key.
    ///
    /// # Errors
    ///
    /// Text without certificate or key, a key that is not the certificate's, and an end entity
    /// without exactly one SPIFFE id.
    pub fn from_pem(chain_pem: &[u8], key_pem: &[u8]) -> Result<Self, TransportError> {
        let chain = certificates(chain_pem, "certificate chain")?;
        let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(|_| TransportError::BadPem {
            what: "private key",
        })?;
        Self::from_der(chain, key)
    }

    /// The same from files.
    ///
    /// # Errors
    ///
    /// As [`Self::from_pem`], and files that cannot be read.
    pub fn load(chain: &Path, key: &Path) -> Result<Self, TransportError> {
        let chain_pem = read(chain)?;
        let key_pem = Zeroizing::new(read(key)?);
        Self::from_pem(&chain_pem, &key_pem)
    }

    fn from_der(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, TransportError> {
        let end_entity = chain.first().ok_or(TransportError::BadPem {
            what: "certificate chain",
        })?;
        let id = spiffe_id(end_entity).map_err(TransportError::OwnCertificate)?;
        // A peer refuses the chain at the end of any of its certificates.
        let validity = chain
            .iter()
            .try_fold(Validity::ALWAYS, |whole, one| {
                Validity::of(one).map(|one| whole.and(one))
            })
            .map_err(|_| TransportError::OwnCertificate(CertificateRefusal::Malformed))?;
        let key = CertifiedKey::from_der(chain, key, provider())
            .map_err(|_| TransportError::KeyMismatch)?;
        Ok(Self {
            id,
            validity,
            key: Arc::new(key),
        })
    }

    /// The id in the certificate.
    #[must_use]
    pub const fn spiffe_id(&self) -> &SpiffeId {
        &self.id
    }

    /// The period in which every certificate of the chain is good.
    #[must_use]
    pub const fn validity(&self) -> Validity {
        self.validity
    }

    /// The certificate's fingerprint.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.key.cert.first().map(Fingerprint::of)
    }

    pub(crate) const fn certified_key(&self) -> &Arc<CertifiedKey> {
        &self.key
    }
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsIdentity")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// The SPIFFE id of an end-entity certificate: its one and only URI name (X.509-SVID specification,
/// section 2). Says nothing about whether the certificate is to be believed.
///
/// # Errors
///
/// No URI name, more than one, or one that is not a SPIFFE id of this network's form.
pub fn spiffe_id(end_entity: &CertificateDer<'_>) -> Result<SpiffeId, CertificateRefusal> {
    let uris = uri_names(end_entity).map_err(|_| CertificateRefusal::Malformed)?;
    match uris.as_slice() {
        [] => Err(CertificateRefusal::NoUri),
        [uri] => std::str::from_utf8(uri)
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or(CertificateRefusal::NotSpiffe),
        [_, _, ..] => Err(CertificateRefusal::TwoUris),
    }
}

/// All certificates of a PEM text, at least one.
pub(crate) fn certificates(
    pem: &[u8],
    what: &'static str,
) -> Result<Vec<CertificateDer<'static>>, TransportError> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .take(MAX_CHAIN.saturating_add(1))
        .collect::<Result<_, _>>()
        .map_err(|_| TransportError::BadPem { what })?;
    if certificates.is_empty() || certificates.len() > MAX_CHAIN {
        return Err(TransportError::BadPem { what });
    }
    Ok(certificates)
}

/// The bytes of a PEM file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, TransportError> {
    read_if(path, |_| Ok(()))
}

/// The bytes of a PEM file, if `allow` has nothing against what was opened.
pub(crate) fn read_if(
    path: &Path,
    allow: impl FnOnce(&Metadata) -> Result<(), TransportError>,
) -> Result<Vec<u8>, TransportError> {
    let failed = |source| TransportError::Read {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    allow(&found)?;
    if found.len() > MAX_PEM {
        return Err(failed(io::Error::other("larger than such a file can be")));
    }
    // All at once: a buffer that grows would leave copies of a key behind.
    let length = usize::try_from(found.len()).unwrap_or(0);
    let mut bytes = Vec::with_capacity(length.saturating_add(1));
    file.take(MAX_PEM).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

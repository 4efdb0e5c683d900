//! A development CA: one root that issues X.509-SVIDs for one trust domain. It decides what a
//! certificate says; any other CA that issues such certificates can take its place.

use std::{fs, path::Path, time::Duration};

use firn_protocol::{
    ids::UnixMillis,
    names::{Role, SpiffeId, TrustDomain},
};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SanType, string::Ia5String,
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use time::OffsetDateTime;
use zeroize::Zeroizing;

use super::{
    der::{Elements, OBJECT_IDENTIFIER, SEQUENCE, SET, UTF8_STRING},
    files::{make_folder, write_private, write_public},
    request::{RequestedKey, common_name},
};
use crate::error::Error;

/// How long the root is good.
pub const ROOT_VALIDITY: Duration = Duration::from_hours(365 * 24);
/// How long a certificate is good.
pub const LEAF_VALIDITY: Duration = Duration::from_hours(30 * 24);
/// How far back validity begins, for clocks that are a little behind.
pub const BACKDATING: Duration = Duration::from_mins(5);

const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";
/// The subject of a root, before its trust domain: how a root is known again.
const SUBJECT: &str = "Firn development CA of ";
/// commonName (RFC 4519, section 2.3).
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// The root of one trust domain.
#[derive(Debug)]
pub struct DevelopmentCa {
    issuer: Issuer<'static, KeyPair>,
    certificate_pem: String,
    domain: TrustDomain,
}

impl DevelopmentCa {
    /// A fresh root, good from a little before `now`.
    ///
    /// # Errors
    /// [`Error::Issue`].
    pub fn new(domain: TrustDomain, now: UnixMillis) -> Result<Self, Error> {
        let mut params = root_params(&domain);
        (params.not_before, params.not_after) = validity(now, ROOT_VALIDITY)?;
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate_pem = params.self_signed(&key)?.pem();
        Ok(Self {
            issuer: Issuer::new(params, key),
            certificate_pem,
            domain,
        })
    }

    /// The root that [`DevelopmentCa::save`] wrote into `folder`.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::BadFile`] for a root that is none of ours, or whose key is another's.
    pub fn load(folder: &Path) -> Result<Self, Error> {
        let (certificate, key) = (folder.join(CERTIFICATE), folder.join(KEY));
        let certificate_pem =
            fs::read_to_string(&certificate).map_err(Error::file("reading", &certificate))?;
        let key_pem = fs::read_to_string(&key).map_err(Error::file("reading", &key))?;
        let key_pem = Zeroizing::new(key_pem);
        let no_root = || Error::BadFile {
            path: certificate.clone(),
            what: "the root of a development CA; have your own CA sign the request (tls.csr)",
        };
        let der =
            CertificateDer::from_pem_slice(certificate_pem.as_bytes()).map_err(|_| no_root())?;
        let anchor = webpki::anchor_from_trusted_cert(&der).map_err(|_| no_root())?;
        let domain = trust_domain(&anchor.subject).ok_or_else(no_root)?;
        let no_key = || Error::BadFile {
            path: key.clone(),
            what: "the private key of the root beside it",
        };
        let pair = KeyPair::from_pem(&key_pem).map_err(|_| no_key())?;
        let own = pair.subject_public_key_info();
        let own = Elements::of(&own, SEQUENCE).map_err(|_| no_key())?;
        if own.rest() != anchor.subject_public_key_info.as_ref() {
            return Err(no_key());
        }
        Ok(Self {
            issuer: Issuer::new(root_params(&domain), pair),
            certificate_pem,
            domain,
        })
    }

    /// Writes root and key into a new folder.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::FileExists`].
    pub fn save(&self, folder: &Path) -> Result<(), Error> {
        make_folder(folder)?;
        write_public(&folder.join(CERTIFICATE), self.certificate_pem.as_bytes())?;
        let key = Zeroizing::new(self.issuer.key().serialize_pem());
        write_private(&folder.join(KEY), key.as_bytes())
    }

    /// The root certificate, PEM.
    #[must_use]
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The trust domain that it vouches for.
    #[must_use]
    pub const fn trust_domain(&self) -> &TrustDomain {
        &self.domain
    }

    /// A certificate, PEM, for a process of this domain that has asked for it: its name is the only
    /// URI, and its use follows from its role.
    ///
    /// # Errors
    /// [`Error::Usage`] for another domain's name; [`Error::Issue`].
    pub fn issue(
        &self,
        id: &SpiffeId,
        key: &RequestedKey,
        now: UnixMillis,
    ) -> Result<String, Error> {
        if *id.trust_domain() != self.domain {
            return Err(Error::Usage {
                what: format!("{id} is not of the trust domain {}", self.domain),
            });
        }
        let mut params = CertificateParams::default();
        params.distinguished_name = common_name(id);
        params.subject_alt_names = vec![SanType::URI(Ia5String::try_from(id.to_string())?)];
        params.is_ca = IsCa::ExplicitNoCa;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = match id.role() {
            // A coordinator accepts, and later dials other coordinators.
            Role::Coordinator => vec![
                ExtendedKeyUsagePurpose::ServerAuth,
                ExtendedKeyUsagePurpose::ClientAuth,
            ],
            Role::Participant | Role::Requester | Role::Operator => {
                vec![ExtendedKeyUsagePurpose::ClientAuth]
            }
        };
        (params.not_before, params.not_after) = validity(now, LEAF_VALIDITY)?;
        Ok(params.signed_by(key, &self.issuer)?.pem())
    }
}

/// What every root of ours says, but for its time.
fn root_params(domain: &TrustDomain) -> CertificateParams {
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, format!("{SUBJECT}{domain}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// The trust domain in a root's subject, which is rcgen's default name and one of ours.
fn trust_domain(subject: &[u8]) -> Option<TrustDomain> {
    let mut sets = Elements::within(subject);
    let mut found = None;
    while !sets.is_empty() {
        let mut entry = Elements::of(sets.take(SET).ok()?.content, SEQUENCE).ok()?;
        let kind = entry.take(OBJECT_IDENTIFIER).ok()?;
        let value = entry.take(UTF8_STRING).ok()?;
        if kind.content == COMMON_NAME {
            let name = std::str::from_utf8(value.content).ok()?;
            found = name.strip_prefix(SUBJECT)?.parse().ok();
        }
    }
    found
}

fn validity(
    now: UnixMillis,
    length: Duration,
) -> Result<(OffsetDateTime, OffsetDateTime), rcgen::Error> {
    let seconds = i64::try_from(now.value() / 1000).map_err(|_| rcgen::Error::Time)?;
    let now = OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| rcgen::Error::Time)?;
    let begin = now.checked_sub(signed(BACKDATING)?);
    let end = now.checked_add(signed(length)?);
    begin.zip(end).ok_or(rcgen::Error::Time)
}

fn signed(length: Duration) -> Result<time::Duration, rcgen::Error> {
    length.try_into().map_err(|_| rcgen::Error::Time)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use firn_protocol::names::{Role, SpiffeId, TrustDomain};
    use firn_transport::{Dialer, Limits, Listener, TlsIdentity, Trust};

    use super::{DevelopmentCa, RequestedKey};
    use crate::{clock::now, domain::request::FreshRequest, error::Error};

    fn id(role: Role) -> SpiffeId {
        let domain: TrustDomain = "test.firn".parse().unwrap();
        SpiffeId::new(domain, role, "a".parse().unwrap())
    }

    fn issue(ca: &DevelopmentCa, role: Role) -> TlsIdentity {
        let request = FreshRequest::make(&id(role)).unwrap();
        let key = RequestedKey::verify(&request.der, &id(role)).unwrap();
        let chain = ca.issue(&id(role), &key, now()).unwrap();
        TlsIdentity::from_pem(chain.as_bytes(), request.key_pem.as_bytes()).unwrap()
    }

    #[test]
    fn transport_reads_exactly_one_name_in_each_certificate() {
        let ca = DevelopmentCa::new("test.firn".parse().unwrap(), now()).unwrap();
        for role in Role::ALL {
            assert_eq!(*issue(&ca, role).spiffe_id(), id(role));
        }
    }

    #[test]
    fn refuses_to_vouch_for_another_domain() {
        let ca = DevelopmentCa::new("other.firn".parse().unwrap(), now()).unwrap();
        let request = FreshRequest::make(&id(Role::Participant)).unwrap();
        let key = RequestedKey::verify(&request.der, &id(Role::Participant)).unwrap();
        let refused = ca.issue(&id(Role::Participant), &key, now());
        assert!(matches!(refused, Err(Error::Usage { .. })));
    }

    #[tokio::test]
    async fn every_dialling_role_is_welcomed_by_a_coordinator_of_the_same_domain() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca");
        let made = DevelopmentCa::new("test.firn".parse().unwrap(), now()).unwrap();
        made.save(&path).unwrap();
        // As `admit` finds it later.
        let ca = DevelopmentCa::load(&path).unwrap();
        assert_eq!(ca.trust_domain(), made.trust_domain());
        let trust = || {
            let domain = "test.firn".parse().unwrap();
            Arc::new(Trust::from_pem(domain, ca.certificate_pem().as_bytes()).unwrap())
        };
        let loopback = ([127, 0, 0, 1], 0).into();
        let coordinator = issue(&ca, Role::Coordinator);
        let limits = Limits::small();
        let listener = Listener::bind(loopback, &coordinator, trust(), &Role::ALL, limits).unwrap();
        let address = listener.local_address().unwrap();
        for role in [Role::Participant, Role::Requester, Role::Operator] {
            let dialer = Dialer::bind(loopback, &issue(&ca, role), trust(), limits).unwrap();
            let coordinator = id(Role::Coordinator);
            let accepting = async {
                let greeting = listener.accept().await?.handshake().await?;
                assert_eq!(*greeting.peer(), id(role));
                greeting.welcome(b"welcome").await
            };
            let dialling = dialer.connect(address, &coordinator, b"hello");
            let (accepted, dialled) = tokio::join!(accepting, dialling);
            accepted.unwrap();
            dialled.unwrap();
        }
    }

    #[test]
    fn refuses_the_key_of_another_root_and_roots_that_it_did_not_make() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            let ca = DevelopmentCa::new("test.firn".parse().unwrap(), now()).unwrap();
            ca.save(&folder.path().join(name)).unwrap();
        }
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::copy(b.join("key.pem"), a.join("key.pem")).unwrap();
        assert!(matches!(
            DevelopmentCa::load(&a),
            Err(Error::BadFile { .. })
        ));
        let mut params = rcgen::CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let foreign = params.self_signed(&key).unwrap().pem();
        std::fs::write(b.join("certificate.pem"), foreign).unwrap();
        std::fs::write(b.join("key.pem"), key.serialize_pem()).unwrap();
        assert!(matches!(
            DevelopmentCa::load(&b),
            Err(Error::BadFile { .. })
        ));
    }
}

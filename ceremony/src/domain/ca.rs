//! A development CA: one root that issues X.509-SVIDs for one trust domain. It decides what a
//! certificate says; any other CA that issues such certificates can take its place.

use std::time::Duration;

use firn_protocol::{
    ids::UnixMillis,
    names::{Role, SpiffeId, TrustDomain},
};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType, string::Ia5String,
};
use time::OffsetDateTime;
use zeroize::Zeroizing;

use crate::error::Error;

/// How long the root is good.
pub const ROOT_VALIDITY: Duration = Duration::from_hours(365 * 24);
/// How long a certificate is good.
pub const LEAF_VALIDITY: Duration = Duration::from_hours(30 * 24);
/// How far back validity begins, for clocks that are a little behind.
pub const BACKDATING: Duration = Duration::from_mins(5);

/// The root of one trust domain.
#[derive(Debug)]
pub struct DevelopmentCa {
    issuer: Issuer<'static, KeyPair>,
    certificate_pem: String,
    domain: TrustDomain,
}

/// A certificate with its private key, which is wiped when dropped.
pub struct Issued {
    /// The certificate, PEM.
    pub certificate_pem: String,
    /// The private key, PKCS #8 in PEM.
    pub key_pem: Zeroizing<String>,
}

impl DevelopmentCa {
    /// A fresh root, good from a little before `now`.
    ///
    /// # Errors
    /// [`Error::Issue`].
    pub fn new(domain: TrustDomain, now: UnixMillis) -> Result<Self, Error> {
        let mut params = CertificateParams::default();
        let name = format!("Firn development CA of {domain}");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        (params.not_before, params.not_after) = validity(now, ROOT_VALIDITY)?;
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate_pem = params.self_signed(&key)?.pem();
        Ok(Self {
            issuer: Issuer::new(params, key),
            certificate_pem,
            domain,
        })
    }

    /// The root certificate, PEM.
    #[must_use]
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The root's private key, PKCS #8 in PEM.
    #[must_use]
    pub fn key_pem(&self) -> Zeroizing<String> {
        Zeroizing::new(self.issuer.key().serialize_pem())
    }

    /// A certificate with a fresh key for a process of this domain: its name is the only URI, and
    /// its use follows from its role.
    ///
    /// # Errors
    /// [`Error::Usage`] for another domain's name; [`Error::Issue`].
    pub fn issue(&self, id: &SpiffeId, now: UnixMillis) -> Result<Issued, Error> {
        if *id.trust_domain() != self.domain {
            return Err(Error::Usage {
                what: format!("{id} is not of the trust domain {}", self.domain),
            });
        }
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, id.name().as_str());
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
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Issued {
            certificate_pem: certificate.pem(),
            key_pem: Zeroizing::new(key.serialize_pem()),
        })
    }
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

    use super::DevelopmentCa;
    use crate::clock::now;

    fn id(role: Role) -> SpiffeId {
        let domain: TrustDomain = "test.firn".parse().unwrap();
        SpiffeId::new(domain, role, "a".parse().unwrap())
    }

    fn issue(ca: &DevelopmentCa, role: Role) -> TlsIdentity {
        let issued = ca.issue(&id(role), now()).unwrap();
        let (chain, key) = (issued.certificate_pem, issued.key_pem);
        TlsIdentity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap()
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
        assert!(ca.issue(&id(Role::Participant), now()).is_err());
    }

    #[tokio::test]
    async fn every_dialling_role_is_welcomed_by_a_coordinator_of_the_same_domain() {
        let ca = DevelopmentCa::new("test.firn".parse().unwrap(), now()).unwrap();
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
}

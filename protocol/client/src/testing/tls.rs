//! A throw-away CA.

use firn_protocol::names::SpiffeId;
use firn_transport::{TlsIdentity, Trust};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use time::{Duration, OffsetDateTime};

pub(crate) struct Ca {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Ca {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "test");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    /// Certificate and key, in PEM.
    pub(crate) fn issue(&self, id: &SpiffeId) -> (String, String) {
        self.issue_around(id, OffsetDateTime::now_utc())
    }

    /// The same, valid for an hour before and after `now`.
    pub(crate) fn issue_around(&self, id: &SpiffeId, now: OffsetDateTime) -> (String, String) {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "svid");
        params.not_before = now - Duration::hours(1);
        params.not_after = now + Duration::hours(1);
        let uri = id.to_string().as_str().try_into().unwrap();
        params.subject_alt_names = vec![SanType::URI(uri)];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ClientAuth,
            ExtendedKeyUsagePurpose::ServerAuth,
        ];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    pub(crate) fn identity(&self, id: &SpiffeId) -> TlsIdentity {
        let (certificate, key) = self.issue(id);
        TlsIdentity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap()
    }

    pub(crate) fn roots(&self) -> &str {
        &self.pem
    }

    pub(crate) fn trust(&self) -> Trust {
        Trust::from_pem("test.firn".parse().unwrap(), self.pem.as_bytes()).unwrap()
    }
}

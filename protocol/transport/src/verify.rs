//! What TLS asks about a peer's certificate, on both sides. It decides whether the peer is one that
//! this connection is meant for, remembers why not, and never matches a DNS name.

use std::sync::{Arc, OnceLock};

use firn_protocol::names::{Role, SpiffeId};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, PeerIncompatible, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::danger::{ClientCertVerified, ClientCertVerifier},
};

use crate::trust::{Trust, Usage};

/// Why a certificate is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CertificateRefusal {
    /// The peer sent none.
    #[error("no certificate was presented")]
    NoCertificate,
    /// No chain to one of the roots.
    #[error("not issued under a trusted root")]
    UnknownCa,
    /// After its end.
    #[error("expired")]
    Expired,
    /// Before its beginning.
    #[error("not yet valid")]
    NotYetValid,
    /// A CA's certificate used as an end entity's.
    #[error("a CA certificate used as an end entity's")]
    CaAsLeaf,
    /// No URI name.
    #[error("no URI name")]
    NoUri,
    /// More than one URI name.
    #[error("more than one URI name")]
    TwoUris,
    /// One URI name, which is not a SPIFFE id of this network's form.
    #[error("the URI name is not spiffe://<trust domain>/<role>/<name>")]
    NotSpiffe,
    /// Of another trust domain.
    #[error("of another trust domain")]
    WrongTrustDomain,
    /// Of a role that has no business here.
    #[error("of a role that is not accepted here")]
    WrongRole,
    /// Of another process than the one that was dialled.
    #[error("of another process than the one dialled")]
    WrongName,
    /// On the list of revoked certificates.
    #[error("revoked")]
    Revoked,
    /// Its extended key usage excludes this side of a connection.
    #[error("not for this purpose")]
    WrongPurpose,
    /// The handshake's signature was not made with the certificate's key.
    #[error("the handshake was not signed with its key")]
    BadSignature,
    /// Not a certificate that can be read, or with an extension that must be understood and is not.
    #[error("malformed or unsupported")]
    Malformed,
}

impl CertificateRefusal {
    /// The stable name of the cause.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NoCertificate => "tls_no_certificate",
            Self::UnknownCa => "tls_unknown_ca",
            Self::Expired => "tls_expired",
            Self::NotYetValid => "tls_not_yet_valid",
            Self::CaAsLeaf => "tls_ca_as_leaf",
            Self::NoUri => "tls_no_uri",
            Self::TwoUris => "tls_two_uris",
            Self::NotSpiffe => "tls_not_spiffe",
            Self::WrongTrustDomain => "tls_wrong_trust_domain",
            Self::WrongRole => "tls_wrong_role",
            Self::WrongName => "tls_wrong_name",
            Self::Revoked => "tls_revoked",
            Self::WrongPurpose => "tls_wrong_purpose",
            Self::BadSignature => "tls_bad_signature",
            Self::Malformed => "tls_malformed",
        }
    }

    /// What a person does next.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::NoCertificate => "give the peer a certificate: both sides must present one",
            Self::UnknownCa => "check that both sides have the roots of the same trust domain",
            Self::Expired => "renew the certificate; check the clock of both machines",
            Self::NotYetValid => "check the clock of both machines",
            Self::CaAsLeaf => "issue an end-entity certificate; keep the CA's off this machine",
            Self::NoUri | Self::TwoUris | Self::NotSpiffe => {
                "issue it with exactly one URI name, spiffe://<trust domain>/<role>/<name>"
            }
            Self::WrongTrustDomain => "check the configured trust domain against the certificate",
            Self::WrongRole => "dial the listener of the role that the certificate has",
            Self::WrongName => "check the address and the name that were configured together",
            Self::Revoked => "issue a new certificate, unless the revocation was the point",
            Self::WrongPurpose => "issue it for clientAuth and serverAuth",
            Self::BadSignature => "find out who answers at this address",
            Self::Malformed => "issue it again with a CA that makes X.509-SVIDs",
        }
    }

    /// What TLS tells the peer: the standard alert where there is one, and no more.
    const fn to_tls(self) -> CertificateError {
        match self {
            Self::UnknownCa => CertificateError::UnknownIssuer,
            Self::Expired => CertificateError::Expired,
            Self::NotYetValid => CertificateError::NotValidYet,
            Self::Revoked => CertificateError::Revoked,
            Self::WrongPurpose => CertificateError::InvalidPurpose,
            Self::BadSignature => CertificateError::BadSignature,
            Self::Malformed => CertificateError::BadEncoding,
            Self::NoCertificate
            | Self::CaAsLeaf
            | Self::NoUri
            | Self::TwoUris
            | Self::NotSpiffe
            | Self::WrongTrustDomain
            | Self::WrongRole
            | Self::WrongName => CertificateError::ApplicationVerificationFailure,
        }
    }
}

impl From<webpki::Error> for CertificateRefusal {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "webpki may learn more ways to refuse"
    )]
    fn from(error: webpki::Error) -> Self {
        use webpki::Error as Path;
        match error {
            // A signature that does not verify means another CA of the same name.
            Path::UnknownIssuer | Path::InvalidSignatureForPublicKey => Self::UnknownCa,
            Path::CertExpired { .. } | Path::InvalidCertValidity => Self::Expired,
            Path::CertNotValidYet { .. } => Self::NotYetValid,
            Path::CaUsedAsEndEntity => Self::CaAsLeaf,
            Path::CertRevoked => Self::Revoked,
            Path::RequiredEkuNotFoundContext(_) | Path::EmptyEkuExtension => Self::WrongPurpose,
            _ => Self::Malformed,
        }
    }
}

/// The cryptography of TLS and of certificates: ring's, whatever a process installs as its default.
pub(crate) fn provider() -> &'static Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    PROVIDER.get_or_init(|| Arc::new(rustls::crypto::ring::default_provider()))
}

/// Whom a connection is meant for.
#[derive(Debug, Clone)]
pub(crate) enum Meant {
    /// Anybody with one of these roles, who dials us.
    Dialling(Arc<[Role]>),
    /// This coordinator, whom we dial.
    Coordinator(SpiffeId),
}

impl Meant {
    const fn usage(&self) -> Usage {
        match self {
            Self::Dialling(_) => Usage::Client,
            Self::Coordinator(_) => Usage::Server,
        }
    }

    fn check(&self, id: &SpiffeId) -> Result<(), CertificateRefusal> {
        match self {
            Self::Dialling(roles) if roles.contains(&id.role()) => Ok(()),
            Self::Dialling(_) => Err(CertificateRefusal::WrongRole),
            Self::Coordinator(_) if id.role() != Role::Coordinator => {
                Err(CertificateRefusal::WrongRole)
            }
            Self::Coordinator(expected) if id == expected => Ok(()),
            Self::Coordinator(_) => Err(CertificateRefusal::WrongName),
        }
    }
}

/// Why the peer of one connection was refused, if it was. TLS itself passes on no more than an
/// alert.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verdict(Arc<OnceLock<CertificateRefusal>>);

impl Verdict {
    pub(crate) fn refusal(&self) -> Option<CertificateRefusal> {
        self.0.get().copied()
    }

    fn refuse(&self, refusal: CertificateRefusal) -> rustls::Error {
        // The first reason is the one that ended the handshake.
        let first = *self.0.get_or_init(|| refusal);
        rustls::Error::InvalidCertificate(first.to_tls())
    }
}

/// Judges the peer of one connection.
#[derive(Debug)]
pub(crate) struct Verifier {
    trust: Arc<Trust>,
    meant: Meant,
    verdict: Verdict,
}

impl Verifier {
    pub(crate) const fn new(trust: Arc<Trust>, meant: Meant, verdict: Verdict) -> Self {
        Self {
            trust,
            meant,
            verdict,
        }
    }

    fn judge(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        self.trust
            .authenticate(end_entity, intermediates, now, self.meant.usage())
            .and_then(|id| self.meant.check(&id))
            .map_err(|refusal| self.verdict.refuse(refusal))
    }

    fn signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
            .map_err(|_| self.verdict.refuse(CertificateRefusal::BadSignature))
    }
}

const NO_TLS_1_2: rustls::Error =
    rustls::Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered);

fn schemes() -> Vec<SignatureScheme> {
    provider()
        .signature_verification_algorithms
        .supported_schemes()
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        // An X.509-SVID has no DNS name; the SPIFFE id is compared instead.
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.judge(end_entity, intermediates, now)
            .map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(NO_TLS_1_2)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        schemes()
    }
}

impl ClientCertVerifier for Verifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // A process has one certificate; there is nothing to hint at.
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.judge(end_entity, intermediates, now)
            .map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(NO_TLS_1_2)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        schemes()
    }
}

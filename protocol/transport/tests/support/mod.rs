//! Throw-away CAs, certificates with one thing wrong, and peers that check nothing themselves: what
//! refuses must be the side under test.

// Each test file uses its part of this.
#![allow(dead_code)]

use std::{net::SocketAddr, sync::Arc, time::Duration};

use firn_protocol::names::{Role, SpiffeId};
use firn_transport::{
    Connection, Dialer, Fingerprint, Greeting, Limits, Listener, TlsIdentity, TransportError, Trust,
};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime},
    server::{
        ClientHello, ResolvesServerCert,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    sign::{CertifiedKey, SingleCertAndKey},
};
use time::OffsetDateTime;

pub(crate) const PARTICIPANT: &str = "spiffe://custody.example/participant/p1";
pub(crate) const REQUESTER: &str = "spiffe://custody.example/requester/r1";
pub(crate) const COORDINATOR: &str = "spiffe://custody.example/coordinator/c1";
pub(crate) const PARTICIPANT_ALPN: &[u8] = b"firn-participant/1";
pub(crate) const REQUESTER_ALPN: &[u8] = b"firn-requester/1";

/// Only ever reached by a test that fails.
pub(crate) const GUARD: Duration = Duration::from_secs(20);

pub(crate) fn id(text: &str) -> SpiffeId {
    text.parse().unwrap()
}

pub(crate) fn loopback() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// What a certificate says; the default has nothing wrong but the name it lacks.
pub(crate) struct Leaf {
    pub(crate) uris: Vec<&'static str>,
    pub(crate) not_before: OffsetDateTime,
    pub(crate) not_after: OffsetDateTime,
    pub(crate) is_ca: bool,
    pub(crate) purposes: Vec<ExtendedKeyUsagePurpose>,
}

impl Leaf {
    pub(crate) fn of(uri: &'static str) -> Self {
        let now = OffsetDateTime::now_utc();
        Self {
            uris: vec![uri],
            not_before: now - time::Duration::hours(1),
            not_after: now + time::Duration::hours(1),
            is_ca: false,
            purposes: vec![
                ExtendedKeyUsagePurpose::ClientAuth,
                ExtendedKeyUsagePurpose::ServerAuth,
            ],
        }
    }
}

pub(crate) struct Ca {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

impl Ca {
    pub(crate) fn new(name: &str) -> Self {
        Self::with(name, |_| {})
    }

    /// One that ends at `not_after`.
    pub(crate) fn until(name: &str, not_after: OffsetDateTime) -> Self {
        Self::with(name, |params| params.not_after = not_after)
    }

    fn with(name: &str, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = CertificateParams::default();
        change(&mut params);
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    pub(crate) fn issue(&self, leaf: Leaf) -> Issued {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "svid");
        params.not_before = leaf.not_before;
        params.not_after = leaf.not_after;
        params.subject_alt_names = leaf
            .uris
            .iter()
            .map(|uri| SanType::URI((*uri).try_into().unwrap()))
            .collect();
        params.extended_key_usages = leaf.purposes;
        if leaf.is_ca {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Issued {
            pem: certificate.pem(),
            certificate: certificate.der().clone(),
            key_pem: key.serialize_pem(),
            key: key.serialize_der(),
        }
    }

    /// An identity with nothing wrong.
    pub(crate) fn identity(&self, uri: &'static str) -> TlsIdentity {
        self.issue(Leaf::of(uri)).identity().unwrap()
    }

    pub(crate) fn trust(&self) -> Trust {
        Trust::from_pem("custody.example".parse().unwrap(), self.pem.as_bytes()).unwrap()
    }
}

pub(crate) struct Issued {
    pub(crate) pem: String,
    pub(crate) key_pem: String,
    pub(crate) certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Issued {
    pub(crate) fn identity(&self) -> Result<TlsIdentity, TransportError> {
        TlsIdentity::from_pem(self.pem.as_bytes(), self.key_pem.as_bytes())
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.certificate)
    }

    fn private_key(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.clone()).into()
    }
}

pub(crate) fn listen(ca: &Ca, trust: Trust, roles: &[Role], limits: Limits) -> Listener {
    let identity = ca.identity(COORDINATOR);
    Listener::bind(loopback(), &identity, Arc::new(trust), roles, limits).unwrap()
}

pub(crate) fn dialer(identity: &TlsIdentity, trust: Trust) -> Dialer {
    Dialer::bind(loopback(), identity, Arc::new(trust), Limits::small()).unwrap()
}

/// Accepts one attempt and runs its handshake.
pub(crate) async fn greeting(listener: &Listener) -> Result<Greeting, TransportError> {
    listener.accept().await?.handshake().await
}

/// A connection with nothing wrong: the accepting and the dialling end.
pub(crate) async fn pair(listener: &Listener, dialer: &Dialer) -> (Connection, Connection) {
    let address = listener.local_address().unwrap();
    let expected = id(COORDINATOR);
    let accepting = async { greeting(listener).await?.welcome(b"welcome").await };
    let (accepted, dialled) = tokio::join!(accepting, dialer.connect(address, &expected, b"hello"));
    let (dialled, welcome) = dialled.unwrap();
    assert_eq!(welcome, b"welcome");
    (accepted.unwrap(), dialled)
}

/// Believes everything.
#[derive(Debug)]
struct Credulous;

impl ServerCertVerifier for Credulous {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

impl ClientCertVerifier for Credulous {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[derive(Debug)]
struct NoCertificate;

impl ResolvesServerCert for NoCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        None
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// What a rogue client dials with; keeps sessions, if it is given any.
pub(crate) fn rogue_client_config(issued: Option<&Issued>, alpn: &[u8]) -> quinn::ClientConfig {
    let builder = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Credulous));
    let mut config = match issued {
        Some(issued) => builder
            .with_client_auth_cert(vec![issued.certificate.clone()], issued.private_key())
            .unwrap(),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![alpn.to_vec()];
    config.enable_early_data = true;
    quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(config).unwrap()))
}

/// A client that keeps trying as long as it is let.
pub(crate) struct RogueClient {
    pub(crate) endpoint: quinn::Endpoint,
    pub(crate) config: quinn::ClientConfig,
}

impl RogueClient {
    pub(crate) fn new(issued: Option<&Issued>, alpn: &[u8]) -> Self {
        Self {
            endpoint: quinn::Endpoint::client(loopback()).unwrap(),
            config: rogue_client_config(issued, alpn),
        }
    }

    pub(crate) async fn connect(
        &self,
        address: SocketAddr,
    ) -> Result<quinn::Connection, quinn::ConnectionError> {
        self.endpoint
            .connect_with(self.config.clone(), address, "firn.invalid")
            .unwrap()
            .await
    }

    /// The welcome, if it can be had.
    pub(crate) async fn reach_welcome(&self, address: SocketAddr) -> Option<Vec<u8>> {
        let connection = self.connect(address).await.ok()?;
        let (mut send, mut receive) = connection.open_bi().await.ok()?;
        send.write_all(b"\0\0\0\x05hello").await.ok()?;
        send.finish().ok()?;
        receive
            .read_to_end(1024)
            .await
            .ok()
            .filter(|welcome| !welcome.is_empty())
    }
}

/// A server that lets everybody in and answers every hello.
pub(crate) struct RogueServer {
    endpoint: quinn::Endpoint,
}

impl RogueServer {
    pub(crate) fn new(issued: Option<&Issued>, alpn: &[&[u8]]) -> Self {
        let builder = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_client_cert_verifier(Arc::new(Credulous));
        let mut config = match issued {
            Some(issued) => {
                let chain = vec![issued.certificate.clone()];
                let key = CertifiedKey::from_der(chain, issued.private_key(), &provider()).unwrap();
                builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(key)))
            }
            None => builder.with_cert_resolver(Arc::new(NoCertificate)),
        };
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        let crypto = QuicServerConfig::try_from(config).unwrap();
        let server = quinn::ServerConfig::with_crypto(Arc::new(crypto));
        Self {
            endpoint: quinn::Endpoint::server(server, loopback()).unwrap(),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.endpoint.local_addr().unwrap()
    }

    /// The hello of the next client, if it says one.
    pub(crate) async fn hear_hello(&self) -> Option<Vec<u8>> {
        let connection = self.endpoint.accept().await?.await.ok()?;
        let (mut send, mut receive) = connection.accept_bi().await.ok()?;
        let hello = receive.read_to_end(1024).await.ok()?;
        send.write_all(b"\0\0\0\x07welcome").await.ok()?;
        send.finish().ok()?;
        send.stopped().await.ok()?;
        Some(hello)
    }
}

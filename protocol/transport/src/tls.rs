//! TLS 1.3 for QUIC with a certificate on both sides. It decides the settings, and never keeps a
//! session: no tickets, no resumption, no 0-RTT, so that every connection is judged anew.

use std::sync::Arc;

use firn_protocol::names::Role;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::{
    client::Resumption,
    server::NoServerSessionStorage,
    sign::{CertifiedKey, SingleCertAndKey},
    version::TLS13,
};

use crate::{
    TransportError,
    alpn::{alpn, offers},
    trust::Trust,
    verify::{Meant, Verdict, Verifier, provider},
};

/// What one endpoint shows and believes; replaced as a whole.
#[derive(Debug, Clone)]
pub(crate) struct Credentials {
    pub(crate) role: Role,
    pub(crate) key: Arc<CertifiedKey>,
    pub(crate) trust: Arc<Trust>,
}

/// The accepting side of one connection.
pub(crate) fn server(
    credentials: &Credentials,
    roles: &Arc<[Role]>,
    verdict: Verdict,
) -> Result<Arc<QuicServerConfig>, TransportError> {
    let meant = Meant::Dialling(Arc::clone(roles));
    let verifier = Verifier::new(Arc::clone(&credentials.trust), meant, verdict);
    let clock = Arc::clone(credentials.trust.clock());
    let mut config = rustls::ServerConfig::builder_with_details(Arc::clone(provider()), clock)
        .with_protocol_versions(&[&TLS13])
        .map_err(TransportError::TlsConfiguration)?
        .with_client_cert_verifier(Arc::new(verifier))
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(
            &credentials.key,
        ))));
    config.alpn_protocols = offers(roles);
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    let config = QuicServerConfig::try_from(config).map_err(|_| no_initial_suite())?;
    Ok(Arc::new(config))
}

/// The dialling side of one connection.
pub(crate) fn client(
    credentials: &Credentials,
    meant: Meant,
    verdict: Verdict,
) -> Result<Arc<QuicClientConfig>, TransportError> {
    let verifier = Verifier::new(Arc::clone(&credentials.trust), meant, verdict);
    let clock = Arc::clone(credentials.trust.clock());
    let mut config = rustls::ClientConfig::builder_with_details(Arc::clone(provider()), clock)
        .with_protocol_versions(&[&TLS13])
        .map_err(TransportError::TlsConfiguration)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(
            &credentials.key,
        ))));
    config.alpn_protocols = alpn(credentials.role)
        .map(<[u8]>::to_vec)
        .into_iter()
        .collect();
    config.resumption = Resumption::disabled();
    config.enable_early_data = false;
    // There is no DNS name to indicate.
    config.enable_sni = false;
    let config = QuicClientConfig::try_from(config).map_err(|_| no_initial_suite())?;
    Ok(Arc::new(config))
}

fn no_initial_suite() -> TransportError {
    TransportError::TlsConfiguration(rustls::Error::General("no initial cipher suite".to_owned()))
}

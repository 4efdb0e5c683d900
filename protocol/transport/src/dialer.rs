//! The side that dials: participants, requesters and operators. It decides whether the peer is the
//! one coordinator that was asked for, and never returns a connection that has not been welcomed.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use firn_protocol::names::{Role, SpiffeId};
use tokio::time::timeout;

use crate::{
    TransportError,
    alpn::alpn,
    connection::Connection,
    error::{CLOSE_ALPN_MISMATCH, CLOSE_BAD_HELLO, CLOSE_CERTIFICATE, CLOSE_TIMEOUT},
    identity::TlsIdentity,
    limits::{Limits, MAX_GREETING},
    tls::{self, Credentials},
    trust::{Trust, Usage},
    verify::{CertificateRefusal, Meant, Verdict},
};

/// quinn wants some name; it is neither sent nor compared (RFC 6761, section 6.4).
const NO_SERVER_NAME: &str = "firn.invalid";

/// Dials coordinators.
#[derive(Debug)]
pub struct Dialer {
    endpoint: quinn::Endpoint,
    credentials: Mutex<Arc<Credentials>>,
    transport: Arc<quinn::TransportConfig>,
    limits: Limits,
}

impl Dialer {
    /// Dials from `local`, usually the unspecified address and port 0, of the family of the
    /// addresses to be dialled.
    ///
    /// # Errors
    ///
    /// A coordinator's identity, one of another trust domain than `trust`, and a socket that cannot
    /// be bound.
    pub fn bind(
        local: SocketAddr,
        identity: &TlsIdentity,
        trust: Arc<Trust>,
        limits: Limits,
    ) -> Result<Self, TransportError> {
        let endpoint = quinn::Endpoint::client(local).map_err(TransportError::Socket)?;
        Self::on(endpoint, identity, trust, limits)
    }

    /// The same on an endpoint made elsewhere, as a simulated network does.
    ///
    /// # Errors
    ///
    /// A coordinator's identity, and one of another trust domain than `trust`.
    pub fn on(
        endpoint: quinn::Endpoint,
        identity: &TlsIdentity,
        trust: Arc<Trust>,
        limits: Limits,
    ) -> Result<Self, TransportError> {
        let credentials = Mutex::new(Arc::new(dialling(identity, trust)?));
        let transport = Arc::new(limits.transport());
        Ok(Self {
            endpoint,
            credentials,
            transport,
            limits,
        })
    }

    /// Dials the coordinator `expected` at `address`, says `hello` (at most [`MAX_GREETING`] bytes)
    /// and waits for its welcome, which is returned with the connection.
    ///
    /// # Errors
    ///
    /// Another peer than `expected`, a certificate that is refused by either side, a refusal by the
    /// accepting application, a welcome that does not come in time.
    pub async fn connect(
        &self,
        address: SocketAddr,
        expected: &SpiffeId,
        hello: &[u8],
    ) -> Result<(Connection, Vec<u8>), TransportError> {
        if hello.len() > MAX_GREETING {
            let length = hello.len();
            return Err(TransportError::FrameTooLarge {
                length,
                limit: MAX_GREETING,
            });
        }
        let connection = self.handshake(address, expected).await?;
        match timeout(self.limits.welcome_deadline(), greet(&connection, hello)).await {
            Ok(Ok(welcome)) => Ok((connection, welcome)),
            Ok(Err(error)) => {
                connection.close_with(CLOSE_BAD_HELLO);
                Err(error.before_welcome())
            }
            Err(_) => {
                connection.close_with(CLOSE_TIMEOUT);
                Err(TransportError::HandshakeTimeout)
            }
        }
    }

    /// Shows another certificate, and believes by other roots and revocations, from the next
    /// connection on. Connections stay: [`Connection::recheck`] says which ones should not.
    ///
    /// # Errors
    ///
    /// As [`Self::bind`]; the old identity stays then.
    pub fn replace_identity(
        &self,
        identity: &TlsIdentity,
        trust: Arc<Trust>,
    ) -> Result<(), TransportError> {
        let credentials = Arc::new(dialling(identity, trust)?);
        *self
            .credentials
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = credentials;
        Ok(())
    }

    /// Closes all connections with a reason code and dials no more.
    pub fn close(&self, code: u16) {
        self.endpoint
            .close(quinn::VarInt::from_u32(u32::from(code)), &[]);
    }

    /// Waits until all connections have ended and the peers have been told.
    pub async fn wait_idle(&self) {
        self.endpoint.wait_idle().await;
    }

    async fn handshake(
        &self,
        address: SocketAddr,
        expected: &SpiffeId,
    ) -> Result<Connection, TransportError> {
        let credentials = Arc::clone(
            &self
                .credentials
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        let verdict = Verdict::default();
        let meant = Meant::Coordinator(expected.clone());
        let mut client =
            quinn::ClientConfig::new(tls::client(&credentials, meant, verdict.clone())?);
        client
            .transport_config(Arc::clone(&self.transport))
            .token_store(Arc::new(quinn::NoneTokenStore));
        let connecting = self
            .endpoint
            .connect_with(client, address, NO_SERVER_NAME)
            .map_err(TransportError::Address)?;
        let quic = timeout(self.limits.handshake_deadline(), connecting)
            .await
            .map_err(|_| TransportError::HandshakeTimeout)?
            .map_err(|error| TransportError::from_connection(error, verdict.refusal()))?;
        let connection = Connection::new(quic.clone(), Usage::Server).map_err(|refusal| {
            quic.close(quinn::VarInt::from_u32(CLOSE_CERTIFICATE), &[]);
            TransportError::Certificate(refusal)
        })?;
        // TLS has seen to it that nothing else was negotiated; this says so where it matters.
        if connection.protocol().as_deref() != alpn(credentials.role) {
            connection.close_with(CLOSE_ALPN_MISMATCH);
            return Err(TransportError::AlpnMismatch);
        }
        Ok(connection)
    }
}

fn dialling(identity: &TlsIdentity, trust: Arc<Trust>) -> Result<Credentials, TransportError> {
    let id = identity.spiffe_id();
    if id.role() == Role::Coordinator {
        return Err(TransportError::OwnRole("dial"));
    }
    if id.trust_domain() != trust.trust_domain() {
        return Err(TransportError::OwnCertificate(
            CertificateRefusal::WrongTrustDomain,
        ));
    }
    Ok(Credentials {
        role: id.role(),
        key: Arc::clone(identity.certified_key()),
        trust,
    })
}

/// Says hello on the first stream and waits for the answer on it.
async fn greet(connection: &Connection, hello: &[u8]) -> Result<Vec<u8>, TransportError> {
    let (mut sender, mut receiver) = connection.open_stream().await?;
    sender.send(hello).await?;
    sender.finish();
    receiver
        .receive(MAX_GREETING)
        .await?
        .ok_or(TransportError::BadGreeting)
}

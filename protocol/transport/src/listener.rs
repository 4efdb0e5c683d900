//! The side that is dialled: a coordinator. It decides whether an attempt may take up room and
//! whether the peer's certificate, role and protocol fit together; whether the peer is welcome is
//! the application's to say, and nothing counts before it has.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use firn_protocol::names::{Role, SpiffeId};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use crate::{
    TransportError,
    alpn::alpn,
    connection::Connection,
    error::{CLOSE_ALPN_MISMATCH, CLOSE_BAD_HELLO, CLOSE_CERTIFICATE, CLOSE_TIMEOUT},
    framing::FrameSender,
    identity::TlsIdentity,
    limits::{Limits, MAX_GREETING, MAX_INCOMING},
    tls::{self, Credentials},
    trust::{Trust, Usage},
    verify::{CertificateRefusal, Verdict},
};

/// Accepts connections of peers with certain roles.
#[derive(Debug)]
pub struct Listener {
    endpoint: quinn::Endpoint,
    // Kept over a change of identity, so that the key of Retry tokens stays the same and nobody
    // who is dialling meanwhile is turned away.
    server: quinn::ServerConfig,
    credentials: Mutex<Arc<Credentials>>,
    roles: Arc<[Role]>,
    limits: Limits,
    handshakes: Arc<Semaphore>,
}

impl Listener {
    /// Listens at `address` for peers of `roles`.
    ///
    /// # Errors
    ///
    /// An identity that is no coordinator's or of another trust domain than `trust`, and a socket
    /// that cannot be bound.
    pub fn bind(
        address: SocketAddr,
        identity: &TlsIdentity,
        trust: Arc<Trust>,
        roles: &[Role],
        limits: Limits,
    ) -> Result<Self, TransportError> {
        let socket = std::net::UdpSocket::bind(address).map_err(TransportError::Socket)?;
        let runtime = Arc::new(quinn::TokioRuntime);
        let endpoint =
            quinn::Endpoint::new(quinn::EndpointConfig::default(), None, socket, runtime)
                .map_err(TransportError::Socket)?;
        Self::on(endpoint, identity, trust, roles, limits)
    }

    /// The same on an endpoint made elsewhere, as a simulated network does.
    ///
    /// # Errors
    ///
    /// An identity that is no coordinator's or of another trust domain than `trust`.
    pub fn on(
        endpoint: quinn::Endpoint,
        identity: &TlsIdentity,
        trust: Arc<Trust>,
        roles: &[Role],
        limits: Limits,
    ) -> Result<Self, TransportError> {
        let credentials = Arc::new(coordinator(identity, trust)?);
        let roles: Arc<[Role]> = roles.into();
        let crypto = tls::server(&credentials, &roles, Verdict::default())?;
        let mut server = quinn::ServerConfig::with_crypto(crypto);
        limits.apply(&mut server);
        endpoint.set_server_config(Some(server.clone()));
        Ok(Self {
            endpoint,
            server,
            credentials: Mutex::new(credentials),
            roles,
            limits,
            handshakes: Arc::new(Semaphore::new(MAX_INCOMING)),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    ///
    /// A socket that the system has taken away.
    pub fn local_address(&self) -> Result<SocketAddr, TransportError> {
        self.endpoint.local_addr().map_err(TransportError::Socket)
    }

    /// The next attempt from an address that has proved itself by Retry.
    ///
    /// The handshake has not begun: run [`PendingConnection::handshake`] in a task of its own, or a
    /// slow peer holds up all others. Attempts beyond [`MAX_INCOMING`] handshakes under way, or
    /// beyond the limit of connections, are turned away here.
    ///
    /// # Errors
    ///
    /// Only [`TransportError::LocallyClosed`], after [`Self::close`].
    pub async fn accept(&self) -> Result<PendingConnection, TransportError> {
        loop {
            let incoming = self
                .endpoint
                .accept()
                .await
                .ok_or(TransportError::LocallyClosed)?;
            if !incoming.remote_address_validated() {
                // An address that cannot be asked to retry is refused by the drop of the error.
                let _ = incoming.retry();
                continue;
            }
            let room = self.endpoint.open_connections() < self.limits.connections();
            let permit = Arc::clone(&self.handshakes).try_acquire_owned();
            let (true, Ok(permit)) = (room, permit) else {
                tracing::warn!(code = "peer_busy", "no room for another connection");
                incoming.refuse();
                continue;
            };
            return Ok(PendingConnection {
                incoming,
                server: self.server.clone(),
                credentials: self.credentials(),
                roles: Arc::clone(&self.roles),
                limits: self.limits,
                permit,
            });
        }
    }

    /// Shows another certificate, and believes by other roots and revocations, from the next attempt
    /// on. Connections stay: [`Connection::recheck`] says which ones should not.
    ///
    /// # Errors
    ///
    /// As [`Self::bind`]; the old identity stays then.
    pub fn replace_identity(
        &self,
        identity: &TlsIdentity,
        trust: Arc<Trust>,
    ) -> Result<(), TransportError> {
        let credentials = Arc::new(coordinator(identity, trust)?);
        let mut server = self.server.clone();
        server.crypto = tls::server(&credentials, &self.roles, Verdict::default())?;
        self.endpoint.set_server_config(Some(server));
        *self
            .credentials
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = credentials;
        Ok(())
    }

    /// Closes all connections with a reason code and accepts no more.
    pub fn close(&self, code: u16) {
        self.endpoint
            .close(quinn::VarInt::from_u32(u32::from(code)), &[]);
    }

    /// Waits until all connections have ended and the peers have been told.
    pub async fn wait_idle(&self) {
        self.endpoint.wait_idle().await;
    }

    fn credentials(&self) -> Arc<Credentials> {
        Arc::clone(
            &self
                .credentials
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }
}

fn coordinator(identity: &TlsIdentity, trust: Arc<Trust>) -> Result<Credentials, TransportError> {
    let id = identity.spiffe_id();
    if id.role() != Role::Coordinator {
        return Err(TransportError::OwnRole("accept connections"));
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

/// An attempt whose handshake has not begun. Dropped, it is refused.
#[derive(Debug)]
pub struct PendingConnection {
    incoming: quinn::Incoming,
    server: quinn::ServerConfig,
    credentials: Arc<Credentials>,
    roles: Arc<[Role]>,
    limits: Limits,
    permit: OwnedSemaphorePermit,
}

impl PendingConnection {
    /// Where the attempt comes from.
    #[must_use]
    pub fn remote_address(&self) -> SocketAddr {
        self.incoming.remote_address()
    }

    /// Runs the handshake and reads the hello, within the handshake's deadline.
    ///
    /// # Errors
    ///
    /// A certificate that is refused, a protocol that is not the one of the certificate's role, no
    /// whole hello, a lost connection, the deadline.
    pub async fn handshake(self) -> Result<Greeting, TransportError> {
        let deadline = Instant::now()
            .checked_add(self.limits.handshake_deadline())
            .ok_or(TransportError::HandshakeTimeout)?;
        let verdict = Verdict::default();
        let mut server = self.server;
        server.crypto = tls::server(&self.credentials, &self.roles, verdict.clone())?;
        let fail = |error| TransportError::from_connection(error, verdict.refusal());
        let connecting = self.incoming.accept_with(Arc::new(server)).map_err(fail)?;
        let quic = timeout_at(deadline, connecting)
            .await
            .map_err(|_| TransportError::HandshakeTimeout)?
            .map_err(fail)?;

        let connection = Connection::new(quic.clone(), Usage::Client).map_err(|refusal| {
            quic.close(quinn::VarInt::from_u32(CLOSE_CERTIFICATE), &[]);
            TransportError::Certificate(refusal)
        })?;
        if connection.protocol().as_deref() != alpn(connection.peer().role()) {
            connection.close_with(CLOSE_ALPN_MISMATCH);
            return Err(TransportError::AlpnMismatch);
        }
        match timeout_at(deadline, hello(&connection)).await {
            Ok(Ok((sender, hello))) => Ok(Greeting {
                connection,
                hello,
                sender,
                _permit: self.permit,
            }),
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
}

/// The one frame of the dialling side's first stream.
async fn hello(connection: &Connection) -> Result<(FrameSender, Vec<u8>), TransportError> {
    let (sender, mut receiver) = connection.accept_stream().await?;
    let hello = receiver
        .receive(MAX_GREETING)
        .await?
        .ok_or(TransportError::BadGreeting)?;
    Ok((sender, hello))
}

/// A peer whose certificate, role and protocol fit, and who waits for an answer. Dropped, it is
/// turned away without a reason.
#[derive(Debug)]
pub struct Greeting {
    connection: Connection,
    hello: Vec<u8>,
    sender: FrameSender,
    // Handshakes that wait for the application count as under way.
    _permit: OwnedSemaphorePermit,
}

impl Greeting {
    /// Who the peer is, by its certificate.
    #[must_use]
    pub fn peer(&self) -> &SpiffeId {
        self.connection.peer()
    }

    /// What the peer said first, at most [`MAX_GREETING`] bytes.
    #[must_use]
    pub fn hello(&self) -> &[u8] {
        &self.hello
    }

    /// The peer's certificate and address, for the decision and the log.
    #[must_use]
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Welcomes the peer with `payload`, at most [`MAX_GREETING`] bytes. From here on the connection
    /// counts, on this side; on the other it does when the welcome arrives.
    ///
    /// # Errors
    ///
    /// A longer payload, a lost connection.
    pub async fn welcome(mut self, payload: &[u8]) -> Result<Connection, TransportError> {
        if payload.len() > MAX_GREETING {
            let length = payload.len();
            return Err(TransportError::FrameTooLarge {
                length,
                limit: MAX_GREETING,
            });
        }
        self.sender.send(payload).await?;
        self.sender.finish();
        Ok(self.connection)
    }

    /// Turns the peer away with a reason code of the application's; 0 means no reason.
    pub fn refuse(self, code: u16) {
        self.connection.close(code);
    }
}

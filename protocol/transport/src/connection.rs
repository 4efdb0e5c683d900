//! A connection that has been welcomed. It decides nothing: it carries streams, and says who the
//! peer is by the verified certificate and by nothing else.

use std::{net::SocketAddr, sync::Arc};

use firn_protocol::names::SpiffeId;
use quinn::VarInt;
use rustls::pki_types::{CertificateDer, UnixTime};

use crate::{
    TransportError,
    framing::{FrameReceiver, FrameSender},
    identity::{Fingerprint, spiffe_id},
    trust::{Trust, Usage},
    verify::CertificateRefusal,
};

/// A connection to a peer; copies are the same connection, which closes with the last of them.
#[derive(Debug, Clone)]
pub struct Connection {
    quic: quinn::Connection,
    peer: Arc<Peer>,
}

#[derive(Debug)]
struct Peer {
    id: SpiffeId,
    end_entity: CertificateDer<'static>,
    intermediates: Vec<CertificateDer<'static>>,
    usage: Usage,
}

impl Connection {
    /// Takes the identity from the chain that TLS has verified.
    pub(crate) fn new(quic: quinn::Connection, usage: Usage) -> Result<Self, CertificateRefusal> {
        let chain = quic
            .peer_identity()
            .and_then(|chain| chain.downcast::<Vec<CertificateDer<'static>>>().ok())
            .ok_or(CertificateRefusal::NoCertificate)?;
        let mut chain = chain.into_iter();
        let end_entity = chain.next().ok_or(CertificateRefusal::NoCertificate)?;
        let id = spiffe_id(&end_entity)?;
        let peer = Peer {
            id,
            end_entity,
            intermediates: chain.collect(),
            usage,
        };
        Ok(Self {
            quic,
            peer: Arc::new(peer),
        })
    }

    /// Who the peer is.
    #[must_use]
    pub fn peer(&self) -> &SpiffeId {
        &self.peer.id
    }

    /// The peer's certificate itself, for revocation and for the log.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.peer.end_entity)
    }

    /// Where the peer is; says nothing about who it is.
    #[must_use]
    pub fn remote_address(&self) -> SocketAddr {
        self.quic.remote_address()
    }

    /// Whether the peer's certificate would still be accepted: a connection may outlive the end of
    /// its certificate, or the arrival of news that it is revoked. Close the connection if not.
    ///
    /// # Errors
    ///
    /// What a new handshake would find.
    pub fn recheck(&self, trust: &Trust) -> Result<(), TransportError> {
        // A clock that cannot be read must not make a certificate good.
        let now = trust
            .clock()
            .current_time()
            .unwrap_or(UnixTime::since_unix_epoch(std::time::Duration::from_secs(
                u64::MAX,
            )));
        let Peer {
            end_entity,
            intermediates,
            usage,
            ..
        } = &*self.peer;
        trust
            .authenticate(end_entity, intermediates, now, *usage)
            .map(|_| ())
            .map_err(TransportError::Certificate)
    }

    /// Opens a stream; waits while as many as the peer allows are open. The peer sees the stream
    /// with its first frame.
    ///
    /// # Errors
    ///
    /// A lost or closed connection.
    pub async fn open_stream(&self) -> Result<(FrameSender, FrameReceiver), TransportError> {
        let (send, receive) = self.quic.open_bi().await?;
        Ok((FrameSender::new(send), FrameReceiver::new(receive)))
    }

    /// The next stream that the peer opens.
    ///
    /// # Errors
    ///
    /// A lost or closed connection.
    pub async fn accept_stream(&self) -> Result<(FrameSender, FrameReceiver), TransportError> {
        let (send, receive) = self.quic.accept_bi().await?;
        Ok((FrameSender::new(send), FrameReceiver::new(receive)))
    }

    /// Closes the connection at once, with a reason code and no text. Frames that have not arrived
    /// are lost.
    pub fn close(&self, code: u16) {
        self.close_with(u32::from(code));
    }

    /// Waits for the end of the connection and says why it ended.
    pub async fn closed(&self) -> TransportError {
        self.quic.closed().await.into()
    }

    /// Whether both are one and the same connection, not only to the same peer.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.quic.stable_id() == other.quic.stable_id()
    }

    pub(crate) fn close_with(&self, code: u32) {
        self.quic.close(VarInt::from_u32(code), &[]);
    }

    /// The protocol that both sides agreed on.
    pub(crate) fn protocol(&self) -> Option<Vec<u8>> {
        self.quic
            .handshake_data()?
            .downcast::<quinn::crypto::rustls::HandshakeData>()
            .ok()?
            .protocol
    }
}

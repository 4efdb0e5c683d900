//! Why there is no connection, stream or frame. It decides the stable code and the next step for
//! each cause, and never repeats text that a peer chose.

use std::{io, path::PathBuf};

use firn_protocol::names::SpiffeId;

use crate::{validity::CertificateTime, verify::CertificateRefusal};

/// Application close codes from here on are this crate's own; those below are the application's.
pub(crate) const OWN_CODES: u32 = 0x1_0000;
/// The protocol negotiated is not the one of the role in the certificate.
pub(crate) const CLOSE_ALPN_MISMATCH: u32 = OWN_CODES;
/// The first stream did not hold one whole hello.
pub(crate) const CLOSE_BAD_HELLO: u32 = OWN_CODES + 1;
/// The peer's certificate was refused after the handshake.
pub(crate) const CLOSE_CERTIFICATE: u32 = OWN_CODES + 2;
/// The greeting took too long.
pub(crate) const CLOSE_TIMEOUT: u32 = OWN_CODES + 3;
/// A frame was larger than its reader allows; resets the stream only.
pub(crate) const STOP_TOO_LARGE: u32 = OWN_CODES + 4;

/// A TLS alert as the peer sent it (RFC 8446, section 6).
const ALERT_NO_APPLICATION_PROTOCOL: u64 = 0x100 + 120;
const ALERT_CERTIFICATE_REQUIRED: u64 = 0x100 + 116;
const CONNECTION_REFUSED: u64 = 0x2;

/// Everything that can go wrong between two processes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// A file of the identity cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// PEM text does not hold what it must.
    #[error("no usable {what} in the PEM text")]
    BadPem {
        /// What was looked for.
        what: &'static str,
    },
    /// The private key is not the one in the certificate, or of a kind that is not supported.
    #[error("the private key does not fit the certificate")]
    KeyMismatch,
    /// Our own certificate is not one that a peer would accept.
    #[error("our own certificate: {0}")]
    OwnCertificate(CertificateRefusal),
    /// The period of our own certificate, or of the last of the roots, is over.
    #[error("{what} expired at {not_after}")]
    Expired {
        /// What ended.
        what: &'static str,
        /// Its last second.
        not_after: CertificateTime,
    },
    /// The period of our own certificate, or of the first of the roots, has not begun.
    #[error("{what} is not valid before {not_before}")]
    NotYetValid {
        /// What has not begun.
        what: &'static str,
        /// Its first second.
        not_before: CertificateTime,
    },
    /// Our own certificate has another name than it had, or should have.
    #[error("our own certificate is for {found}, and this process is {expected}")]
    OtherName {
        /// The name in the certificate.
        found: SpiffeId,
        /// The name of this process.
        expected: SpiffeId,
    },
    /// Others can read or replace the file of the private key.
    #[error("{}: has mode {mode:o}; others may read or replace the private key", path.display())]
    KeyMode {
        /// Which file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Our own certificate has a role that cannot do this.
    #[error("a certificate of this role cannot be used to {0}")]
    OwnRole(&'static str),
    /// TLS could not be configured.
    #[error("TLS configuration: {0}")]
    TlsConfiguration(rustls::Error),
    /// The socket could not be bound or asked for its address.
    #[error("socket: {0}")]
    Socket(io::Error),
    /// The address cannot be dialled.
    #[error("address cannot be dialled: {0}")]
    Address(quinn::ConnectError),

    /// We refused the peer's certificate.
    #[error("the peer's certificate: {0}")]
    Certificate(CertificateRefusal),
    /// The peer refused our certificate, with this TLS alert.
    #[error("the peer refused our TLS credentials (alert {alert})")]
    RefusedByPeer {
        /// The alert's number (RFC 8446, section 6).
        alert: u8,
    },
    /// No common protocol, or not the one of the role in the certificate.
    #[error("the protocol is not the one of the certificate's role")]
    AlpnMismatch,
    /// The TLS handshake failed for another reason.
    #[error("TLS handshake failed (alert {alert})")]
    TlsFailed {
        /// The alert's number (RFC 8446, section 6).
        alert: u8,
    },
    /// The handshake, or the greeting after it, took too long.
    #[error("the handshake took too long")]
    HandshakeTimeout,
    /// The peer has no room for another connection now.
    #[error("the peer has no room for another connection")]
    PeerBusy,
    /// The accepting application refused this peer, with a reason code of its own.
    #[error("refused before the welcome, code {code}")]
    Refused {
        /// The application's reason code.
        code: u16,
    },
    /// The first stream did not hold one whole greeting.
    #[error("the greeting is missing or malformed")]
    BadGreeting,

    /// The peer closed the connection, with a reason code.
    #[error("closed by the peer, code {code}")]
    PeerClosed {
        /// The application's reason code; this crate's own are 65536 and up.
        code: u64,
    },
    /// We closed the connection.
    #[error("closed by this side")]
    LocallyClosed,
    /// Nothing was heard from the peer for too long.
    #[error("nothing was heard from the peer for too long")]
    IdleTimeout,
    /// The connection broke: the peer restarted, or broke the QUIC protocol.
    #[error("the connection broke")]
    ConnectionLost,
    /// A stream was reset or stopped by the peer, with a code.
    #[error("the peer gave up the stream, code {code}")]
    StreamReset {
        /// The peer's code.
        code: u64,
    },
    /// A stream was used after it ended.
    #[error("the stream has ended")]
    StreamEnded,
    /// A frame is announced, or was to be sent, that is over the limit.
    #[error("a frame of {length} bytes where {limit} are allowed")]
    FrameTooLarge {
        /// The frame's length.
        length: usize,
        /// The most that is allowed.
        limit: usize,
    },
    /// A stream ended inside a frame.
    #[error("the stream ended inside a frame")]
    FrameTruncated,
}

impl TransportError {
    /// The stable name of the cause, for logs, scripts and tables.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "identity_unreadable",
            Self::BadPem { .. } => "identity_bad_pem",
            Self::KeyMismatch => "identity_key_mismatch",
            Self::OwnCertificate(_) => "identity_bad_certificate",
            Self::Expired { .. } => "certificate_expired",
            Self::NotYetValid { .. } => "certificate_not_yet_valid",
            Self::OtherName { .. } => "certificate_other_name",
            Self::KeyMode { .. } => "identity_key_mode",
            Self::OwnRole(_) => "identity_wrong_role",
            Self::TlsConfiguration(_) => "tls_configuration",
            Self::Socket(_) => "socket",
            Self::Address(_) => "address",
            Self::Certificate(refusal) => refusal.code(),
            Self::RefusedByPeer { .. } => "tls_refused_by_peer",
            Self::AlpnMismatch => "alpn_mismatch",
            Self::TlsFailed { .. } => "tls_failed",
            Self::HandshakeTimeout => "handshake_timeout",
            Self::PeerBusy => "peer_busy",
            Self::Refused { .. } => "refused",
            Self::BadGreeting => "bad_greeting",
            Self::PeerClosed { .. } => "peer_closed",
            Self::LocallyClosed => "locally_closed",
            Self::IdleTimeout => "idle_timeout",
            Self::ConnectionLost => "connection_lost",
            Self::StreamReset { .. } => "stream_reset",
            Self::StreamEnded => "stream_ended",
            Self::FrameTooLarge { .. } => "frame_too_large",
            Self::FrameTruncated => "frame_truncated",
        }
    }

    /// What a person does next.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::Read { .. } => "check the path and who may read the file",
            Self::BadPem { .. } => "give the certificate chain, the key and the roots as PEM files",
            Self::KeyMismatch => "use the key that the certificate was issued for",
            Self::OwnCertificate(refusal) => refusal.advice(),
            Self::Expired { .. } => "renew the certificate; check this machine's clock",
            Self::NotYetValid { .. } => {
                "check this machine's clock; if it is right, wait for the time that is named"
            }
            Self::OtherName { .. } => "use the certificate that was issued for this process",
            Self::KeyMode { .. } => {
                "find out who could read it, have another certificate issued if that was possible, \
                 and `chmod 0600` the key"
            }
            Self::OwnRole(_) => {
                "a coordinator accepts; participants, requesters and operators dial"
            }
            Self::TlsConfiguration(_) => "check that the certificate's key type is supported",
            Self::Socket(_) => "check that the address is free and belongs to this machine",
            Self::Address(_) => "check the address and its family",
            Self::Certificate(refusal) => refusal.advice(),
            Self::RefusedByPeer { .. } => "read the peer's log: it names what it refused",
            Self::AlpnMismatch => "dial the listener of the role that the certificate has",
            Self::TlsFailed { .. } => "check that both sides run the same version",
            Self::HandshakeTimeout => {
                "check that the peer runs and that UDP reaches it, then retry"
            }
            Self::PeerBusy => "retry later; if it stays busy, look for a flood of connections",
            Self::Refused { .. } => "look the code up, and read the peer's log under it",
            Self::BadGreeting => "check that both sides run the same version",
            Self::PeerClosed { .. } => "look the code up; dial again if it is a restart",
            Self::LocallyClosed => "nothing; this side chose to close",
            Self::IdleTimeout => "check the network, then dial again",
            Self::ConnectionLost => "dial again; the peer has restarted or is damaged",
            Self::StreamReset { .. } => "look the code up; the connection is still good",
            Self::StreamEnded => "open another stream",
            Self::FrameTooLarge { .. } => "send less in one message; the limit is the protocol's",
            Self::FrameTruncated => "ask again on another stream",
        }
    }

    /// What quinn says of a connection, with what our own verifier found out where it ended it.
    pub(crate) fn from_connection(
        error: quinn::ConnectionError,
        found: Option<CertificateRefusal>,
    ) -> Self {
        use quinn::ConnectionError as Quic;
        match error {
            Quic::TransportError(fault) => match (found, u64::from(fault.code)) {
                (Some(refusal), _) => Self::Certificate(refusal),
                (None, ALERT_NO_APPLICATION_PROTOCOL) => Self::AlpnMismatch,
                (None, ALERT_CERTIFICATE_REQUIRED) => {
                    Self::Certificate(CertificateRefusal::NoCertificate)
                }
                (None, code) => {
                    alert(code).map_or(Self::ConnectionLost, |alert| Self::TlsFailed { alert })
                }
            },
            Quic::ConnectionClosed(close) => match u64::from(close.error_code) {
                CONNECTION_REFUSED => Self::PeerBusy,
                ALERT_NO_APPLICATION_PROTOCOL => Self::AlpnMismatch,
                code => {
                    alert(code).map_or(Self::ConnectionLost, |alert| Self::RefusedByPeer { alert })
                }
            },
            Quic::ApplicationClosed(close) => Self::PeerClosed {
                code: close.error_code.into_inner(),
            },
            Quic::TimedOut => Self::IdleTimeout,
            Quic::LocallyClosed => Self::LocallyClosed,
            Quic::VersionMismatch | Quic::Reset | Quic::CidsExhausted => Self::ConnectionLost,
        }
    }

    /// The same before the welcome, where a close is an answer to the greeting.
    pub(crate) fn before_welcome(self) -> Self {
        let Self::PeerClosed { code } = self else {
            let unreadable = matches!(
                self,
                Self::FrameTooLarge { .. } | Self::FrameTruncated | Self::StreamReset { .. }
            );
            return if unreadable { Self::BadGreeting } else { self };
        };
        match (u16::try_from(code), u32::try_from(code)) {
            // No reason was given: the peer dropped the connection.
            (Ok(0), _) => Self::PeerClosed { code },
            (Ok(code), _) => Self::Refused { code },
            (Err(_), Ok(CLOSE_ALPN_MISMATCH)) => Self::AlpnMismatch,
            (Err(_), Ok(CLOSE_BAD_HELLO)) => Self::BadGreeting,
            (Err(_), Ok(CLOSE_TIMEOUT)) => Self::HandshakeTimeout,
            (Err(_), _) => Self::PeerClosed { code },
        }
    }
}

impl From<quinn::ConnectionError> for TransportError {
    fn from(error: quinn::ConnectionError) -> Self {
        Self::from_connection(error, None)
    }
}

impl From<quinn::ReadError> for TransportError {
    fn from(error: quinn::ReadError) -> Self {
        match error {
            quinn::ReadError::Reset(code) => Self::StreamReset {
                code: code.into_inner(),
            },
            quinn::ReadError::ConnectionLost(lost) => lost.into(),
            quinn::ReadError::ClosedStream
            | quinn::ReadError::IllegalOrderedRead
            | quinn::ReadError::ZeroRttRejected => Self::StreamEnded,
        }
    }
}

impl From<quinn::WriteError> for TransportError {
    fn from(error: quinn::WriteError) -> Self {
        match error {
            quinn::WriteError::Stopped(code) => Self::StreamReset {
                code: code.into_inner(),
            },
            quinn::WriteError::ConnectionLost(lost) => lost.into(),
            quinn::WriteError::ClosedStream | quinn::WriteError::ZeroRttRejected => {
                Self::StreamEnded
            }
        }
    }
}

/// The TLS alert in a QUIC error code (RFC 9001, section 4.8).
fn alert(code: u64) -> Option<u8> {
    code.checked_sub(0x100)
        .and_then(|alert| u8::try_from(alert).ok())
}

//! QUIC with mutual TLS 1.3 between Firn's processes, and who the peer is.
//!
//! A coordinator accepts ([`Listener`]); participants, requesters and operators dial ([`Dialer`]).
//! Three things must fit before a connection counts. The certificate of each side proves one SPIFFE
//! id, `spiffe://<trust domain>/<role>/<name>`: the dialling side accepts exactly the coordinator
//! that it asked for, the accepting side any peer of the roles that its listener is for. The
//! protocol that TLS negotiates ([`alpn()`]) names the role that the dialling side speaks as, and
//! must be the one of the role in its certificate, so that a participant's credential opens nothing
//! that a requester's opens. Last comes the welcome: with mutual TLS over QUIC the dialling side's
//! handshake succeeds before its certificate has been judged, so it says hello on its first stream
//! and has no [`Connection`] until the accepting application has answered with a welcome
//! ([`Greeting::welcome`]). What hello and welcome say is the application's; who the peer is comes
//! from the verified certificate alone.

mod alpn;
mod connection;
mod der;
mod dialer;
mod error;
mod framing;
mod identity;
mod limits;
mod listener;
mod renewal;
mod san;
mod tls;
mod trust;
mod validity;
mod verify;

pub use alpn::alpn;
pub use connection::Connection;
pub use dialer::Dialer;
pub use error::TransportError;
pub use framing::{FrameReceiver, FrameSender};
pub use identity::{BadFingerprint, Fingerprint, MAX_CHAIN, TlsIdentity, spiffe_id};
pub use limits::{IDLE_MS, Limits, MAX_GREETING, MAX_INCOMING};
pub use listener::{Greeting, Listener, PendingConnection};
pub use renewal::{CredentialFiles, Ending, Renewable, Renewal};
pub use rustls::{
    pki_types::UnixTime,
    time_provider::{DefaultTimeProvider, TimeProvider},
};
pub use trust::Trust;
pub use validity::{CertificateTime, Standing, Validity};
pub use verify::CertificateRefusal;

//! A welcomed connection to one coordinator. It decides that the coordinator is the one in the
//! Authorities, by its certificate and by its signature; what is said on the streams is not its matter.

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use firn_protocol::{
    codec::{self, Malformed, Text},
    documents::KeyHolder,
    envelope::Envelope,
    ids::{BuildDigest, Nonce},
    limits,
    messages::{Hello, Welcome},
    reject::Reject,
};
use firn_transport::{
    Connection, Dialer, FrameReceiver, Limits, TlsIdentity, TransportError, Trust,
};
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use tokio::time::{Instant, timeout_at};

use crate::{
    clock::{now, random},
    domain::Party,
    error::Error,
};

/// Where a coordinator is, and who it must be.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its name and key, by the Authorities.
    pub holder: KeyHolder,
}

/// A welcomed connection; it closes when it is dropped.
#[derive(Debug)]
pub struct Line {
    connection: Connection,
    // The endpoint behind the connection.
    _dialer: Dialer,
}

const CONNECTING: &str = "connecting to the coordinator";

impl Line {
    /// Dials the coordinator as `party`, with the files in the party's folder.
    ///
    /// # Errors
    /// [`Error::Transport`]; [`Error::Unverified`] for a welcome that is not the coordinator's.
    pub async fn connect(party: &Party, peer: &Peer) -> Result<Self, Error> {
        let files = &party.folder;
        let identity = TlsIdentity::load(&files.certificate(), &files.tls_key())
            .map_err(Error::transport("reading the certificate"))?;
        let trust = Trust::load(party.id.trust_domain().clone(), &files.roots())
            .map_err(Error::transport("reading the roots"))?;
        let local: SocketAddr = match peer.address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let dialer = Dialer::bind(local, &identity, Arc::new(trust), Limits::for_intents())
            .map_err(Error::transport(CONNECTING))?;
        let nonce = Nonce::from_bytes(*random::<32>()?);
        let hello = Hello {
            from: party.id.clone(),
            to: peer.holder.id.clone(),
            nonce,
            software: software()?,
            build: build(),
            time: now(),
        };
        let hello = Envelope::sign(&hello, &party.secret()?)?;
        let (connection, welcome) = dialer
            .connect(peer.address, &peer.holder.id, hello.as_bytes())
            .await
            .map_err(greeting_failed)?;
        check_welcome(welcome, party, peer, nonce).map_err(Error::unverified("the welcome"))?;
        Ok(Self {
            connection,
            _dialer: dialer,
        })
    }

    /// Says `message` on a stream of its own; answers come until `patience` has passed.
    ///
    /// # Errors
    /// [`Error::Transport`] where it is certain that nothing was asked.
    pub(super) async fn ask<T: Serialize>(
        &self,
        doing: &'static str,
        message: &T,
        patience: Duration,
    ) -> Result<Answers, Error> {
        let bytes = codec::encode(message)?;
        let (mut sender, receiver) = self
            .connection
            .open_stream()
            .await
            .map_err(Error::transport(doing))?;
        // From here on somebody may have heard it.
        sender
            .send(&bytes)
            .await
            .map_err(|error| unknown(doing, &error))?;
        sender.finish();
        let deadline = Instant::now().checked_add(patience);
        Ok(Answers {
            receiver,
            doing,
            deadline: deadline.unwrap_or_else(Instant::now),
        })
    }
}

/// What comes back on one stream.
pub(super) struct Answers {
    receiver: FrameReceiver,
    doing: &'static str,
    deadline: Instant,
}

impl Answers {
    /// The next answer.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] where none comes; [`Error::Unverified`] where it does not decode.
    pub(super) async fn next<T: Serialize + DeserializeOwned>(&mut self) -> Result<T, Error> {
        let doing = self.doing;
        let frame = timeout_at(self.deadline, self.receiver.receive(limits::MAX_FRAME))
            .await
            .map_err(|_| Error::OutcomeUnknown {
                doing,
                reason: "it took too long".to_owned(),
            })?
            .map_err(|error| unknown(doing, &error))?
            .ok_or_else(|| Error::OutcomeUnknown {
                doing,
                reason: "the stream ended".to_owned(),
            })?;
        codec::decode(&frame, limits::MAX_FRAME).map_err(|malformed| Error::Unverified {
            what: "the coordinator's answer",
            code: malformed.into(),
        })
    }
}

fn unknown(doing: &'static str, error: &TransportError) -> Error {
    Error::OutcomeUnknown {
        doing,
        reason: format!("{error} [{}]", error.code()),
    }
}

/// A refusal before the welcome carries one of the protocol's own codes.
fn greeting_failed(error: TransportError) -> Error {
    let refused = if let TransportError::Refused { code } = &error {
        Reject::from_number(*code)
    } else {
        None
    };
    match refused {
        Some(code) => Error::Refused {
            doing: CONNECTING,
            code,
            detail: String::new(),
        },
        None => Error::transport(CONNECTING)(error),
    }
}

fn check_welcome(bytes: Vec<u8>, party: &Party, peer: &Peer, nonce: Nonce) -> Result<(), Reject> {
    let welcome = Envelope::<Welcome>::from_bytes(bytes)?.verify(&peer.holder.key)?;
    if welcome.from == peer.holder.id && welcome.to == party.id && welcome.nonce == nonce {
        Ok(())
    } else {
        Err(Reject::UnexpectedMessage)
    }
}

fn software() -> Result<Text<{ limits::MAX_NAME }>, Error> {
    Text::new(concat!("firn ", env!("CARGO_PKG_VERSION")))
        .ok_or(Error::Document(Malformed::TooLarge))
}

/// SHA-256 of this binary; of nothing where it cannot be read.
fn build() -> BuildDigest {
    let binary = std::env::current_exe().and_then(std::fs::read);
    BuildDigest::from_bytes(Sha256::digest(binary.unwrap_or_default()).into())
}

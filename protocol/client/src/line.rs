//! A welcomed connection to one coordinator. It decides that the coordinator is the one in the
//! Authorities, by its certificate and by its signature; what is said on the streams is not its matter.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use firn_protocol::{
    codec,
    documents::KeyHolder,
    envelope::Envelope,
    ids::{BuildDigest, Nonce},
    limits,
    messages::{Hello, Welcome},
    names::SpiffeId,
    reject::Reject,
};
use firn_transport::{Connection, Dialer, FrameReceiver, TransportError};
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use tokio::{
    net::lookup_host,
    time::{Instant, timeout, timeout_at},
};

use crate::{
    address::Address,
    authorities::PinnedAuthorities,
    caller::Caller,
    error::{Error, No, Tried, WhatNext},
    profile::Coordinator,
    system::{nonce, now},
};

/// Where a coordinator is, and who it must be.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its name and key, by the Authorities.
    pub holder: KeyHolder,
}

/// A welcomed connection; copies are the same connection, which closes with the last of them.
#[derive(Debug, Clone)]
pub struct Line {
    connection: Connection,
    holder: KeyHolder,
    // The endpoint behind the connection.
    _dialer: Arc<Dialer>,
}

const CONNECTING: &str = "connecting to the coordinator";
const LOOKING_UP: &str = "looking the coordinator's address up";
/// How long a name server may take.
const LOOKUP: Duration = Duration::from_secs(5);

impl Line {
    /// Dials the coordinator as `caller`.
    ///
    /// # Errors
    /// [`Error::Transport`]; a no where the coordinator refuses this caller; [`Error::Unverified`] for a
    /// welcome that is not the coordinator's.
    pub async fn connect(caller: &Caller, peer: &Peer) -> Result<Self, Error> {
        let dialer = caller
            .dialer(peer.address)
            .map_err(Error::transport(CONNECTING))?;
        let nonce = nonce()?;
        let hello = Hello {
            from: caller.id().clone(),
            to: peer.holder.id.clone(),
            nonce,
            software: caller.software()?,
            build: build(),
            time: now(),
        };
        let hello = caller.sign(&hello)?;
        let (connection, welcome) = dialer
            .connect(peer.address, &peer.holder.id, hello.as_bytes())
            .await
            .map_err(greeting_failed)?;
        check_welcome(welcome, caller.id(), &peer.holder, nonce)
            .map_err(Error::unverified("the welcome"))?;
        Ok(Self {
            connection,
            holder: peer.holder.clone(),
            _dialer: dialer,
        })
    }

    /// Dials every address that a coordinator's name stands for, until it welcomes at one of them.
    ///
    /// # Errors
    /// As [`Self::connect`], of the last address; [`Error::Transport`] for a name that has none.
    pub async fn dial(
        caller: &Caller,
        holder: &KeyHolder,
        address: &Address,
    ) -> Result<Self, Error> {
        let name = (address.host(), address.port());
        let addresses = timeout(LOOKUP, lookup_host(name))
            .await
            .map_err(|_| std::io::Error::from(std::io::ErrorKind::TimedOut))
            .and_then(|found| found)
            .map_err(|error| Error::transport(LOOKING_UP)(TransportError::Socket(error)))?;
        let nowhere = std::io::Error::from(std::io::ErrorKind::NotFound);
        let mut failed = Error::transport(LOOKING_UP)(TransportError::Socket(nowhere));
        for address in addresses {
            let holder = holder.clone();
            match Self::connect(caller, &Peer { address, holder }).await {
                Ok(line) => return Ok(line),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Dials these coordinators in order, until one of them welcomes.
    ///
    /// # Errors
    /// [`Error::Unfit`] for a coordinator that is not in the Authorities; a no;
    /// [`Error::Unreachable`].
    pub async fn to_any(
        caller: &Caller,
        authorities: &PinnedAuthorities,
        coordinators: &[Coordinator],
    ) -> Result<Self, Error> {
        let mut tried = Vec::new();
        for one in coordinators {
            let holder = authorities.coordinator_named(&one.name);
            let holder = holder.ok_or(Error::Unfit {
                what: "a coordinator's name",
                code: Reject::UnknownCoordinator,
            })?;
            match Self::dial(caller, holder, &one.address).await {
                Ok(line) => return Ok(line),
                Err(error) if error.what_next() == WhatNext::Usage || coordinators.len() == 1 => {
                    return Err(error);
                }
                Err(error) => tried.push(Tried {
                    coordinator: one.name.clone(),
                    code: error.code(),
                    reason: error.to_string(),
                }),
            }
        }
        Err(Error::Unreachable {
            doing: CONNECTING,
            tried,
        })
    }

    /// The coordinator at the other end.
    #[must_use]
    pub const fn coordinator(&self) -> &KeyHolder {
        &self.holder
    }

    /// Says `message` on a stream of its own; answers come until `patience` has passed.
    ///
    /// # Errors
    /// [`Error::Transport`] where it is certain that nothing was asked; otherwise
    /// [`Error::OutcomeUnknown`].
    pub async fn ask<T: Serialize>(
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
        let answers = Answers {
            receiver,
            doing,
            coordinator: self.holder.id.clone(),
            deadline: deadline(patience),
        };
        // From here on somebody may have heard it.
        match timeout_at(answers.deadline, sender.send(&bytes)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(answers.unknown(&error)),
            Err(_) => return Err(answers.too_long()),
        }
        sender.finish();
        Ok(answers)
    }

    /// Whether both are one and the same connection.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.connection.is_same(&other.connection)
    }
}

/// What comes back on one stream.
#[derive(Debug)]
pub struct Answers {
    receiver: FrameReceiver,
    doing: &'static str,
    coordinator: SpiffeId,
    deadline: Instant,
}

impl Answers {
    /// The next answer.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] where none comes; [`Error::Unverified`] where it does not decode.
    pub async fn next<T: Serialize + DeserializeOwned>(&mut self) -> Result<T, Error> {
        let frame = timeout_at(self.deadline, self.receiver.receive(limits::MAX_FRAME)).await;
        let frame = match frame {
            Err(_) => return Err(self.too_long()),
            Ok(Err(error)) => return Err(self.unknown(&error)),
            Ok(Ok(None)) => return Err(self.silent("stream_ended", "the stream ended".to_owned())),
            Ok(Ok(Some(frame))) => frame,
        };
        codec::decode(&frame, limits::MAX_FRAME).map_err(|malformed| Error::Unverified {
            what: "the coordinator's answer",
            code: malformed.into(),
        })
    }

    fn too_long(&self) -> Error {
        self.silent(Reject::Deadline.name(), "it took too long".to_owned())
    }

    fn unknown(&self, error: &TransportError) -> Error {
        self.silent(error.code(), error.to_string())
    }

    fn silent(&self, code: &'static str, reason: String) -> Error {
        Error::OutcomeUnknown {
            doing: self.doing,
            tried: vec![Tried {
                coordinator: self.coordinator.clone(),
                code,
                reason,
            }],
        }
    }
}

/// A deadline that overflows has passed.
fn deadline(patience: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(patience).unwrap_or(now)
}

/// A refusal before the welcome carries one of the protocol's own codes.
fn greeting_failed(error: TransportError) -> Error {
    let refused = if let TransportError::Refused { code } = &error {
        Reject::from_number(*code)
    } else {
        None
    };
    match refused {
        Some(code) => Error::no(No {
            doing: CONNECTING,
            code,
            members: Vec::new(),
            missing: Vec::new(),
            detail: String::new(),
        }),
        None => Error::transport(CONNECTING)(error),
    }
}

fn check_welcome(
    bytes: Vec<u8>,
    caller: &SpiffeId,
    holder: &KeyHolder,
    nonce: Nonce,
) -> Result<(), Reject> {
    let welcome = Envelope::<Welcome>::from_bytes(bytes)?.verify(&holder.key)?;
    if welcome.from == holder.id && welcome.to == *caller && welcome.nonce == nonce {
        Ok(())
    } else {
        Err(Reject::UnexpectedMessage)
    }
}

/// SHA-256 of this binary; of nothing where it cannot be read.
fn build() -> BuildDigest {
    static BUILD: OnceLock<BuildDigest> = OnceLock::new();
    *BUILD.get_or_init(|| {
        let binary = std::env::current_exe().and_then(std::fs::read);
        BuildDigest::from_bytes(Sha256::digest(binary.unwrap_or_default()).into())
    })
}

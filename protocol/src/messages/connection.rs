//! The first word on a connection from each side. TLS has judged the certificates by then; this is
//! where each side says which identity key it speaks with.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use crate::{
    codec::Text,
    envelope::Document,
    ids::{BuildDigest, Nonce, UnixMillis},
    limits,
    names::SpiffeId,
};

/// What a dialling process says first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Hello {
    /// Who speaks; must be the name in the certificate.
    pub from: SpiffeId,
    /// To whom; must be the coordinator's own name.
    pub to: SpiffeId,
    /// Random, answered in the welcome.
    pub nonce: Nonce,
    /// The software, as it calls itself.
    pub software: Text<{ limits::MAX_NAME }>,
    /// SHA-256 of the binary.
    pub build: BuildDigest,
    /// The sender's clock.
    pub time: UnixMillis,
}

impl Document for Hello {
    const KIND: &'static str = "hello";
    const LIMIT: usize = limits::SMALL_DOCUMENT;
}

/// What the coordinator answers once it has judged the peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Welcome {
    /// The coordinator.
    pub from: SpiffeId,
    /// The peer that is welcome.
    pub to: SpiffeId,
    /// The nonce of the hello.
    pub nonce: Nonce,
    /// The software, as it calls itself.
    pub software: Text<{ limits::MAX_NAME }>,
    /// The coordinator's clock.
    pub time: UnixMillis,
}

impl Document for Welcome {
    const KIND: &'static str = "welcome";
    const LIMIT: usize = limits::SMALL_DOCUMENT;
}

//! What a new machine says of itself to those who will name it: its keys, made there and never leaving
//! it, and a certificate request for any authority that issues X.509.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use crate::{
    codec::{Blob, Text},
    envelope::Document,
    ids::UnixMillis,
    keys::IdentityKey,
    limits,
    names::SpiffeId,
};

/// A machine's or a person's keys. Signed by `identity`, which shows that its private half is there;
/// who may be called `name` is for the operators to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Enrollment {
    /// The name that it asks for.
    pub name: SpiffeId,
    /// The key that it will speak with.
    pub identity: IdentityKey,
    /// PKCS #10 certificate request (RFC 2986), DER, for its TLS key and `name` as URI name.
    pub csr: Blob<{ limits::MAX_CSR }>,
    /// The software that made it.
    pub software: Text<{ limits::MAX_NAME }>,
    /// When.
    pub time: UnixMillis,
}

impl Document for Enrollment {
    const KIND: &'static str = "enrollment";
    const LIMIT: usize = limits::SMALL_DOCUMENT;
}

const _: () = assert!(Enrollment::LIMIT > limits::MAX_CSR + 1024);

//! What a new machine says of itself to those who will name it: its keys, made there and never leaving
//! it, and a certificate request for any authority that issues X.509.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use crate::{
    codec::{Blob, Text},
    envelope::{Document, Envelope, EnvelopeError, Verified},
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

impl Enrollment {
    /// The enrolment, if the key that it names has signed it. Whether that key may be called by this
    /// name, and whether the certificate request is one, are other questions.
    ///
    /// # Errors
    /// As [`Envelope::verify`]; [`EnvelopeError::UnknownSigner`] when it names another key.
    pub fn verify(envelope: Envelope<Self>) -> Result<Verified<Self>, EnvelopeError> {
        let signer = envelope.claimed_signer()?;
        let verified = envelope.verify(&signer)?;
        if verified.identity == signer {
            Ok(verified)
        } else {
            Err(EnvelopeError::UnknownSigner)
        }
    }
}

const _: () = assert!(Enrollment::LIMIT > limits::MAX_CSR + 1024);

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;
    use crate::keys::IdentitySecret;

    fn secret(seed: u8) -> IdentitySecret {
        IdentitySecret::from_seed(&Zeroizing::new([seed; 32]))
    }

    fn enrollment(names: &IdentitySecret) -> Enrollment {
        Enrollment {
            name: "spiffe://td/participant/a".parse().unwrap(),
            identity: names.identity(),
            csr: Blob::new(vec![0x30; limits::MAX_CSR]).unwrap(),
            software: Text::new(&"s".repeat(limits::MAX_NAME)).unwrap(),
            time: UnixMillis::new(1),
        }
    }

    #[test]
    fn counts_when_the_key_that_it_names_has_signed_it() {
        let own = secret(1);
        let envelope = Envelope::sign(&enrollment(&own), &own).unwrap();
        let verified = Enrollment::verify(envelope).unwrap();
        assert_eq!(verified.identity, own.identity());
    }

    #[test]
    fn refuses_another_key_than_the_one_that_signed() {
        let (own, other) = (secret(1), secret(2));
        let envelope = Envelope::sign(&enrollment(&other), &own).unwrap();
        let refused = Enrollment::verify(envelope).unwrap_err();
        assert_eq!(refused, EnvelopeError::UnknownSigner);
    }
}

//! Signed things: COSE_Sign1 (RFC 9052) with Ed25519 (RFC 9864). It decides who said which bytes
//! and never whether that person may.
//!
//! One shape only: protected header exactly `{1: -19, 4: signer's public key}`, empty unprotected
//! header, an attached payload, external AAD `firn/<kind>/v1`. So no signature of one kind is good
//! for another, and there is one byte string for each signed document.

use std::marker::PhantomData;

use coset::{CborSerializable, CoseSign1, CoseSign1Builder, HeaderBuilder, iana};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use crate::{
    codec::{self, Blob, List, Malformed},
    keys::{IdentityKey, IdentitySecret},
    limits,
    tagged::tagged_hash,
};

/// A thing that is signed: its kind separates its signatures and digests from all others.
pub trait Document: Serialize + DeserializeOwned {
    /// The word in `firn/<kind>/v1` and in the digest's tag.
    const KIND: &'static str;
    /// The most bytes that the encoded document may have.
    const LIMIT: usize;

    /// The encoded document.
    ///
    /// # Errors
    /// [`Malformed::TooLarge`] when it is over its own limit.
    fn to_payload(&self) -> Result<Vec<u8>, Malformed> {
        let payload = codec::encode(self)?;
        if payload.len() > Self::LIMIT {
            Err(Malformed::TooLarge)
        } else {
            Ok(payload)
        }
    }
}

/// The digest of a document's bytes: tagged hash `firn/<kind>`.
#[must_use]
pub fn digest_of<T: Document>(payload: &[u8]) -> [u8; 32] {
    tagged_hash(&format!("firn/{}", T::KIND), &[payload])
}

/// Why an envelope is not what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// The bytes, or the payload, do not decode.
    #[error("malformed: {0}")]
    Malformed(#[from] Malformed),
    /// A COSE_Sign1 with other headers than ours, or without a payload.
    #[error("not the one shape of COSE_Sign1 that is accepted")]
    Shape,
    /// Signed by another key than the one that may.
    #[error("signed by another key")]
    UnknownSigner,
    /// The signature does not verify.
    #[error("signature does not verify")]
    BadSignature,
    /// Fewer distinct signers than the quorum asks for, or one of them twice.
    #[error("not enough distinct signers")]
    QuorumNotMet,
}

/// A signed document as it travels: bytes that nobody has verified yet.
pub struct Envelope<T> {
    bytes: Vec<u8>,
    kind: PhantomData<fn() -> T>,
}

/// A document whose signature has been verified, with the bytes that prove it.
#[derive(Debug, Clone)]
pub struct Verified<T> {
    document: T,
    digest: [u8; 32],
    signer: IdentityKey,
    envelope: Envelope<T>,
}

impl<T: Document> Envelope<T> {
    /// The most bytes of an envelope of this kind.
    pub const LIMIT: usize = T::LIMIT.saturating_add(limits::ENVELOPE_OVERHEAD);

    /// Signs `document`.
    ///
    /// # Errors
    /// When the document is over its limit.
    pub fn sign(document: &T, secret: &IdentitySecret) -> Result<Self, Malformed> {
        let bytes = sign_payload(T::KIND, document.to_payload()?, secret)?;
        Ok(Self {
            bytes,
            kind: PhantomData,
        })
    }

    /// Takes the bytes as they came; [`Envelope::verify`] judges them.
    ///
    /// # Errors
    /// [`Malformed::TooLarge`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, Malformed> {
        if bytes.len() > Self::LIMIT {
            return Err(Malformed::TooLarge);
        }
        Ok(Self {
            bytes,
            kind: PhantomData,
        })
    }

    /// The signer that the envelope names, which proves nothing until verified: it serves to look
    /// up whose key to ask for.
    ///
    /// # Errors
    /// When the bytes are not an envelope.
    pub fn claimed_signer(&self) -> Result<IdentityKey, EnvelopeError> {
        Ok(open(&self.bytes)?.1)
    }

    /// The document, if `signer` signed it.
    ///
    /// # Errors
    /// Form, signer, signature and payload, in this order.
    pub fn verify(self, signer: &IdentityKey) -> Result<Verified<T>, EnvelopeError> {
        let payload = verify_payload(T::KIND, &self.bytes, signer)?;
        let document = codec::decode(&payload, T::LIMIT)?;
        let digest = digest_of::<T>(&payload);
        Ok(Verified {
            document,
            digest,
            signer: *signer,
            envelope: self,
        })
    }

    /// The document, if one of `signers` signed it.
    ///
    /// # Errors
    /// As [`Envelope::verify`].
    pub fn verify_any<'a>(
        self,
        signers: impl IntoIterator<Item = &'a IdentityKey>,
    ) -> Result<Verified<T>, EnvelopeError> {
        let claimed = self.claimed_signer()?;
        if !signers.into_iter().any(|signer| *signer == claimed) {
            return Err(EnvelopeError::UnknownSigner);
        }
        self.verify(&claimed)
    }
}

impl<T> Envelope<T> {
    /// The bytes that travel.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<T> Verified<T> {
    /// The tagged digest of the document.
    #[must_use]
    pub const fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Who signed.
    #[must_use]
    pub const fn signer(&self) -> &IdentityKey {
        &self.signer
    }

    /// The envelope that proves it.
    #[must_use]
    pub const fn envelope(&self) -> &Envelope<T> {
        &self.envelope
    }

    /// The envelope, for passing on.
    #[must_use]
    pub fn into_envelope(self) -> Envelope<T> {
        self.envelope
    }
}

impl<T> std::ops::Deref for Verified<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.document
    }
}

/// A document and the signatures of several people over its digest (k of m operators).
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Endorsed {
    document: Blob<{ limits::ROSTER_DOCUMENT }>,
    endorsements: List<Blob<{ ENDORSEMENT_LIMIT }>, { limits::MAX_ENDORSEMENTS }>,
}

/// Bytes of one endorsement: an envelope around a digest.
const ENDORSEMENT_LIMIT: usize = 32 + limits::ENVELOPE_OVERHEAD;

/// A document that a quorum has signed, with the bytes that prove it.
#[derive(Debug, Clone)]
pub struct Approved<T> {
    document: T,
    digest: [u8; 32],
    endorsed: Endorsed,
}

impl Endorsed {
    /// The most bytes of an endorsed document.
    pub const LIMIT: usize =
        limits::ROSTER_DOCUMENT + limits::MAX_ENDORSEMENTS * (ENDORSEMENT_LIMIT + 4) + 16;

    /// A document that nobody has signed yet.
    ///
    /// # Errors
    /// When the document is over its limit.
    pub fn unsigned<T: Document>(document: &T) -> Result<Self, Malformed> {
        let document = Blob::new(document.to_payload()?).ok_or(Malformed::TooLarge)?;
        Ok(Self {
            document,
            endorsements: List::empty(),
        })
    }

    /// Adds one signature; the order of signing does not matter, they are kept by signer.
    ///
    /// # Errors
    /// When there is no room, or the signer has signed already.
    pub fn endorse<T: Document>(self, secret: &IdentitySecret) -> Result<Self, EnvelopeError> {
        let digest = digest_of::<T>(self.document.as_bytes());
        let envelope = sign_payload(T::KIND, digest.to_vec(), secret)?;
        let mut endorsements = self.endorsements.into_vec();
        endorsements.push(Blob::new(envelope).ok_or(Malformed::TooLarge)?);
        let mut keyed = endorsements
            .into_iter()
            .map(|envelope| Ok((open(envelope.as_bytes())?.1, envelope)))
            .collect::<Result<Vec<_>, EnvelopeError>>()?;
        keyed.sort_by_key(|(signer, _)| *signer);
        if keyed.array_windows().any(|[left, right]| left.0 == right.0) {
            return Err(EnvelopeError::QuorumNotMet);
        }
        let endorsements = keyed.into_iter().map(|(_, envelope)| envelope).collect();
        let endorsements = List::new(endorsements).ok_or(Malformed::TooLarge)?;
        Ok(Self {
            document: self.document,
            endorsements,
        })
    }

    /// Reads the document without believing it, for showing it to somebody who is to sign it.
    ///
    /// # Errors
    /// When it does not decode.
    pub fn read<T: Document>(&self) -> Result<(T, [u8; 32]), Malformed> {
        let payload = self.document.as_bytes();
        Ok((codec::decode(payload, T::LIMIT)?, digest_of::<T>(payload)))
    }

    /// Who names himself a signer so far, ascending, which proves nothing until verified.
    ///
    /// # Errors
    /// When a signature is not an envelope.
    pub fn claimed_signers(&self) -> Result<Vec<IdentityKey>, EnvelopeError> {
        self.endorsements
            .iter()
            .map(|envelope| Ok(open(envelope.as_bytes())?.1))
            .collect()
    }

    /// Who of `signers` has signed so far, ascending. Every signature must verify and be of one of
    /// them: an extra bad one is a refusal, not noise.
    ///
    /// # Errors
    /// Form, signers, signatures.
    pub fn signers_among<T: Document>(
        &self,
        signers: &[IdentityKey],
    ) -> Result<Vec<IdentityKey>, EnvelopeError> {
        let digest = digest_of::<T>(self.document.as_bytes());
        let mut found: Vec<IdentityKey> = Vec::new();
        for envelope in &self.endorsements {
            let (_, signer) = open(envelope.as_bytes())?;
            if !signers.contains(&signer) {
                return Err(EnvelopeError::UnknownSigner);
            }
            // Ascending order of signers: one form, and none of them twice.
            if found.last().is_some_and(|previous| *previous >= signer) {
                return Err(EnvelopeError::QuorumNotMet);
            }
            let signed = verify_payload(T::KIND, envelope.as_bytes(), &signer)?;
            if signed != digest {
                return Err(EnvelopeError::BadSignature);
            }
            found.push(signer);
        }
        Ok(found)
    }

    /// The document, if at least `quorum` distinct keys of `signers` signed it, and nobody else.
    ///
    /// # Errors
    /// Form, signers, signatures, quorum.
    pub fn verify<T: Document>(
        self,
        signers: &[IdentityKey],
        quorum: usize,
    ) -> Result<Approved<T>, EnvelopeError> {
        let (document, digest) = self.read::<T>()?;
        let found = self.signers_among::<T>(signers)?;
        if quorum == 0 || found.len() < quorum {
            return Err(EnvelopeError::QuorumNotMet);
        }
        Ok(Approved {
            document,
            digest,
            endorsed: self,
        })
    }
}

impl<T> Approved<T> {
    /// The tagged digest of the document.
    #[must_use]
    pub const fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// The bytes that prove it.
    #[must_use]
    pub const fn endorsed(&self) -> &Endorsed {
        &self.endorsed
    }
}

impl<T> std::ops::Deref for Approved<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.document
    }
}

fn aad(kind: &str) -> Vec<u8> {
    format!("firn/{kind}/v1").into_bytes()
}

fn sign_payload(
    kind: &str,
    payload: Vec<u8>,
    secret: &IdentitySecret,
) -> Result<Vec<u8>, Malformed> {
    let protected = HeaderBuilder::new()
        .algorithm(iana::Algorithm::Ed25519)
        .key_id(secret.identity().as_bytes().to_vec())
        .build();
    CoseSign1Builder::new()
        .protected(protected)
        .payload(payload)
        .create_signature(&aad(kind), |message| secret.sign(message))
        .build()
        .to_vec()
        .map_err(|_| Malformed::Schema)
}

/// The protected header of the one accepted shape, up to the signer: `{1: -19, 4: h'32 bytes'}`.
const PROTECTED: [u8; 6] = [0xa2, 0x01, 0x32, 0x04, 0x58, 0x20];

/// Takes an envelope apart, checking its shape. coset is lenient, so form comes first and the
/// bytes must be what coset would write itself.
fn open(bytes: &[u8]) -> Result<(CoseSign1, IdentityKey), EnvelopeError> {
    codec::form::check(bytes)?;
    let cose = CoseSign1::from_slice(bytes).map_err(|_| Malformed::Schema)?;
    let protected = cose
        .protected
        .original_data
        .as_deref()
        .ok_or(EnvelopeError::Shape)?;
    let signer = protected
        .strip_prefix(&PROTECTED)
        .ok_or(EnvelopeError::Shape)?;
    let signer = <[u8; 32]>::try_from(signer).map_err(|_| EnvelopeError::Shape)?;
    if !cose.unprotected.is_empty() || cose.payload.is_none() || cose.signature.len() != 64 {
        return Err(EnvelopeError::Shape);
    }
    if cose.clone().to_vec().map_err(|_| Malformed::Schema)? != bytes {
        return Err(Malformed::NotCanonical.into());
    }
    Ok((cose, IdentityKey::from_bytes(signer)))
}

fn verify_payload(
    kind: &str,
    bytes: &[u8],
    signer: &IdentityKey,
) -> Result<Vec<u8>, EnvelopeError> {
    let (cose, claimed) = open(bytes)?;
    if claimed != *signer {
        return Err(EnvelopeError::UnknownSigner);
    }
    cose.verify_signature(&aad(kind), |signature, message| {
        signer
            .verifies(message, signature)
            .then_some(())
            .ok_or(EnvelopeError::BadSignature)
    })?;
    cose.payload.ok_or(EnvelopeError::Shape)
}

impl<T> Clone for Envelope<T> {
    fn clone(&self) -> Self {
        Self {
            bytes: self.bytes.clone(),
            kind: PhantomData,
        }
    }
}

impl<T> PartialEq for Envelope<T> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<T> Eq for Envelope<T> {}

impl<T> std::fmt::Debug for Envelope<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Envelope({} bytes)", self.bytes.len())
    }
}

impl<T> Serialize for Envelope<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.bytes)
    }
}

impl<'de, T: Document> Deserialize<'de> for Envelope<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = Blob::<{ limits::MAX_FRAME }>::deserialize(deserializer)?;
        Self::from_bytes(bytes.as_bytes().to_vec())
            .map_err(|_| serde::de::Error::custom("envelope larger than its kind allows"))
    }
}

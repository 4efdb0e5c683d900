//! Round two packages sealed to one recipient of one attempt: HPKE base mode (RFC 9180) with
//! X25519, HKDF-SHA256 and AES-256-GCM. The keys live for one attempt, so a machine stolen later
//! opens nothing that was recorded.

use frost_secp256k1_tr::keys::{SecretShare, SigningShare, VerifiableSecretSharingCommitment};
use hpke::{Deserializable, Kem, OpModeR, OpModeS, Serializable, aead::AesGcm256, kdf::HkdfSha256};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::{ThresholdError, frost_identifier, public::compressed};
use crate::{
    codec::{self, Blob},
    ids::{Identifier, MessageDigest, PlanDigest, Point, SealingKey, SessionId},
    messages::{SealedPackage, SealingSecret},
};

type SealingKem = hpke::kem::X25519HkdfSha256;

/// What a sealed package is bound to; the `info` of RFC 9180.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealingContext {
    /// The plan.
    pub plan: PlanDigest,
    /// The attempt.
    pub attempt: SessionId,
    /// Who seals.
    pub sender: Identifier,
    /// For whom.
    pub recipient: Identifier,
    /// Digest of the sender's round one, so that the share belongs to that commitment.
    pub sender_round1: MessageDigest,
}

impl SealingContext {
    fn info(&self) -> Result<Vec<u8>, ThresholdError> {
        let fields = (
            self.plan,
            self.attempt,
            self.sender,
            self.recipient,
            self.sender_round1,
        );
        codec::encode(&("firn/dkg-package/v1", fields)).map_err(|_| ThresholdError::BadEncoding)
    }
}

/// Makes the key that a recipient announces for one sender of one attempt.
///
/// # Errors
/// Never: X25519 keys have 32 bytes.
pub fn sealing_pair<R: CryptoRng>(
    rng: &mut R,
) -> Result<(SealingSecret, SealingKey), ThresholdError> {
    let (secret, public) = SealingKem::gen_keypair_with_rng(rng);
    let secret = Zeroizing::new(<[u8; 32]>::from(secret.to_bytes()));
    let public = SealingKey::from_bytes(public.to_bytes().into());
    Ok((SealingSecret::from_bytes(*secret), public))
}

/// Seals a dealt share.
///
/// # Errors
/// When the recipient's key is not one.
pub fn seal<R: CryptoRng>(
    context: &SealingContext,
    recipient_key: &SealingKey,
    share: &Zeroizing<[u8; 32]>,
    rng: &mut R,
) -> Result<SealedPackage, ThresholdError> {
    let key = <SealingKem as Kem>::PublicKey::from_bytes(recipient_key.as_bytes())
        .map_err(|_| ThresholdError::BadEncoding)?;
    let (encapsulated, ciphertext) =
        hpke::single_shot_seal_with_rng::<AesGcm256, HkdfSha256, SealingKem>(
            &OpModeS::Base,
            &key,
            &context.info()?,
            share.as_slice(),
            &[],
            rng,
        )
        .map_err(|_| ThresholdError::BadEncoding)?;
    Ok(SealedPackage {
        recipient: context.recipient,
        encapsulated: SealingKey::from_bytes(encapsulated.to_bytes().into()),
        ciphertext: Blob::new(ciphertext).ok_or(ThresholdError::BadEncoding)?,
    })
}

/// Opens a dealt share.
///
/// # Errors
/// When it was not sealed to this key in this context.
pub fn open(
    context: &SealingContext,
    secret: &SealingSecret,
    package: &SealedPackage,
) -> Result<Zeroizing<[u8; 32]>, ThresholdError> {
    let key = <SealingKem as Kem>::PrivateKey::from_bytes(secret.as_bytes())
        .map_err(|_| ThresholdError::BadEncoding)?;
    let encapsulated =
        <SealingKem as Kem>::EncappedKey::from_bytes(package.encapsulated.as_bytes())
            .map_err(|_| ThresholdError::BadEncoding)?;
    let opened = hpke::single_shot_open::<AesGcm256, HkdfSha256, SealingKem>(
        &OpModeR::Base,
        &key,
        &encapsulated,
        &context.info()?,
        package.ciphertext.as_bytes(),
        &[],
    )
    .map(Zeroizing::new)
    .map_err(|_| ThresholdError::BadEncoding)?;
    <[u8; 32]>::try_from(opened.as_slice())
        .map(Zeroizing::new)
        .map_err(|_| ThresholdError::BadEncoding)
}

/// The public key of a sealing secret, for whoever judges a complaint.
///
/// # Errors
/// Never: X25519 keys have 32 bytes.
pub fn sealing_key_of(secret: &SealingSecret) -> Result<SealingKey, ThresholdError> {
    let key = <SealingKem as Kem>::PrivateKey::from_bytes(secret.as_bytes())
        .map_err(|_| ThresholdError::BadEncoding)?;
    Ok(SealingKey::from_bytes(
        SealingKem::sk_to_pk(&key).to_bytes().into(),
    ))
}

/// Whether a dealt share is the one that its dealer's commitment promises to this recipient.
#[must_use]
pub fn dealt_share_matches(
    commitment: &[Point],
    recipient: Identifier,
    share: &Zeroizing<[u8; 32]>,
) -> bool {
    let check = || -> Result<(), ThresholdError> {
        let points = commitment
            .iter()
            .map(|point| compressed(point.as_bytes()))
            .collect::<Result<Vec<_>, _>>()?;
        let commitment = VerifiableSecretSharingCommitment::deserialize(points)?;
        let share = SigningShare::deserialize(share.as_slice())?;
        SecretShare::new(frost_identifier(recipient)?, share, commitment).verify()?;
        Ok(())
    };
    check().is_ok()
}

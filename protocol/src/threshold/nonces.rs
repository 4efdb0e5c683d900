//! A nonce pair, which makes at most one signature share: it is not cloned, printed or serialised,
//! and signing consumes it.

use std::collections::BTreeMap;

use frost_secp256k1_tr::{
    SigningPackage,
    round1::{self, NonceCommitment, SigningCommitments, SigningNonces},
    round2,
};
use rand_core::CryptoRng;

use super::{
    FrostRng, SigningShare, ThresholdError, frost_identifier,
    public::{compressed, point},
};
use crate::{
    bitcoin::DerivedKey,
    ids::{Identifier, Point, SignatureShare},
    messages::Commitment,
};

/// A hiding and a binding nonce. frost's type wipes itself when dropped, but frost also copies it
/// while it signs, so wiping is best effort.
pub struct NoncePair(SigningNonces);

impl NoncePair {
    /// Makes a pair and the commitment to it.
    ///
    /// # Errors
    /// Never for nonces that are not zero.
    pub fn commit<R: CryptoRng>(
        share: &SigningShare,
        rng: &mut R,
    ) -> Result<(Self, Commitment), ThresholdError> {
        let (nonces, commitments) =
            round1::commit(share.package().signing_share(), &mut FrostRng::new(rng));
        let commitment = Commitment {
            hiding: Point::from_bytes(point(&commitments.hiding().serialize()?)?),
            binding: Point::from_bytes(point(&commitments.binding().serialize()?)?),
        };
        Ok((Self(nonces), commitment))
    }

    /// Signs, for one address of the group or, without one, for the group key itself.
    ///
    /// # Errors
    /// When the list does not hold this pair's own commitment, or the address is another key's.
    pub fn sign(
        self,
        list: &SigningList,
        share: &SigningShare,
        address: Option<&DerivedKey>,
    ) -> Result<SignatureShare, ThresholdError> {
        let made = match address {
            Some(derived) => round2::sign(&list.0, &self.0, &share.at(derived)?)?,
            None => round2::sign(&list.0, &self.0, share.package())?,
        };
        let bytes = <[u8; 32]>::try_from(made.serialize().as_slice())
            .map_err(|_| ThresholdError::BadEncoding)?;
        Ok(SignatureShare::from_bytes(bytes))
    }
}

impl std::fmt::Debug for NoncePair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NoncePair")
    }
}

/// The commitments of exactly the members of a session, over one message.
#[derive(Debug, Clone)]
pub struct SigningList(pub(super) SigningPackage);

impl SigningList {
    /// Puts the list together. `message` is a 32-byte signature hash.
    ///
    /// # Errors
    /// When the members are not exactly `members` (frost would accept more, and strangers), or a
    /// commitment is not a point.
    pub fn new(
        members: &[Identifier],
        commitments: &[(Identifier, Commitment)],
        message: &[u8; 32],
    ) -> Result<Self, ThresholdError> {
        if !commitments
            .iter()
            .map(|(identifier, _)| identifier)
            .eq(members)
        {
            return Err(ThresholdError::WrongMembers);
        }
        let mut list = BTreeMap::new();
        for (identifier, commitment) in commitments {
            let hiding = nonce_commitment(&commitment.hiding)?;
            let binding = nonce_commitment(&commitment.binding)?;
            list.insert(
                frost_identifier(*identifier)?,
                SigningCommitments::new(hiding, binding),
            );
        }
        // A member twice would have been folded into one entry.
        if list.len() != members.len() {
            return Err(ThresholdError::WrongMembers);
        }
        Ok(Self(SigningPackage::new(list, message)))
    }
}

fn nonce_commitment(point: &Point) -> Result<NonceCommitment, ThresholdError> {
    NonceCommitment::deserialize(compressed(point.as_bytes())?)
        .map_err(|_| ThresholdError::BadEncoding)
}

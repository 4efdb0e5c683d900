//! Verification of BIP-340 signatures. Decides only whether one signature is valid for one key and
//! one message.
//!
//! Messages of 32 bytes, which is what Bitcoin signs, go through libsecp256k1's own verification,
//! the code that the network runs on. Its Rust binding takes no other length, while BIP-340 defines
//! every length; those go through the equation as the BIP writes it, on the same library's points.
//! Tests hold both against all of the BIP's vectors.

use ::bitcoin::secp256k1::{
    Message, Parity, PublicKey, Scalar, XOnlyPublicKey,
    constants::{GENERATOR_X, GENERATOR_Y},
    schnorr,
};

use super::extended_key::VERIFIER;
use crate::tagged::tagged_hash;

/// Whether `signature` is valid for the x-only `key` and a message of any length.
#[must_use]
pub fn verify_bip340(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    match message.try_into() {
        Ok(digest) => verify_digest(key, digest, signature),
        Err(_) => verify_any(key, message, signature).is_some(),
    }
}

fn verify_digest(key: &[u8; 32], digest: [u8; 32], signature: &[u8; 64]) -> bool {
    let Ok(key) = XOnlyPublicKey::from_slice(key) else {
        return false;
    };
    let Ok(signature) = schnorr::Signature::from_slice(signature) else {
        return false;
    };
    VERIFIER
        .verify_schnorr(&signature, &Message::from_digest(digest), &key)
        .is_ok()
}

/// BIP-340, "Verification", step by step; `None` is "fail". A challenge that is no scalar and a
/// product that is no point fail too, which the BIP does not say, but nobody can make them happen.
fn verify_any(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> Option<()> {
    let (r, s) = signature.split_first_chunk::<32>()?;
    let s = Scalar::from_be_bytes(s.try_into().ok()?).ok()?;
    let x_only = XOnlyPublicKey::from_slice(key).ok()?;
    let point = PublicKey::from_x_only_public_key(x_only, Parity::Even);
    let challenge = tagged_hash("BIP0340/challenge", &[r, key, message]);
    let e = Scalar::from_be_bytes(challenge).ok()?;
    // R = s * G - e * P; the sum fails if it is the point at infinity.
    let response = generator()?.mul_tweak(&VERIFIER, &s).ok()?;
    let owed = point.mul_tweak(&VERIFIER, &e).ok()?.negate(&VERIFIER);
    let (nonce, parity) = response.combine(&owed).ok()?.x_only_public_key();
    // An r that is no field element equals no coordinate.
    (parity == Parity::Even && nonce.serialize() == *r).then_some(())
}

fn generator() -> Option<PublicKey> {
    let uncompressed = [&[4][..], &GENERATOR_X, &GENERATOR_Y].concat();
    PublicKey::from_slice(&uncompressed).ok()
}

#[cfg(test)]
mod tests {
    use super::{verify_any, verify_bip340};

    /// The vectors of BIP-340, unchanged.
    const VECTORS: &str = include_str!("../../tests/data/bip340.csv");

    #[test]
    fn both_ways_agree_with_all_rows_of_bip340() {
        let mut rows = 0;
        for row in VECTORS.lines().skip(1) {
            let columns: Vec<&str> = row.splitn(8, ',').collect();
            let bytes = |column: usize| hex::decode(columns[column]).unwrap();
            let key = bytes(2).try_into().unwrap();
            let signature = bytes(5).try_into().unwrap();
            let expected = columns[6] == "TRUE";
            let message = bytes(4);
            assert_eq!(verify_bip340(&key, &message, &signature), expected, "{row}");
            assert_eq!(
                verify_any(&key, &message, &signature).is_some(),
                expected,
                "{row}"
            );
            rows += 1;
        }
        assert_eq!(rows, 19);
    }
}

//! Tagged hashes as BIP-340 defines them, the only hash construction on Firn's wire.

use sha2::{Digest, Sha256};

/// `SHA256(SHA256(tag) || SHA256(tag) || parts...)`, 32 bytes. The parts are hashed as one byte
/// string: a caller with several variable-length parts must make their boundaries plain itself.
#[must_use]
pub fn tagged_hash(tag: &str, parts: &[&[u8]]) -> [u8; 32] {
    let tag_hash = Sha256::digest(tag.as_bytes());
    let mut hasher = Sha256::new();
    hasher.update(tag_hash);
    hasher.update(tag_hash);
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::tagged_hash;

    #[test]
    fn equals_the_first_challenge_of_bip340() {
        // BIP-340 row 0 verifies only if this is the challenge hash; the empty message of BIP-341's
        // TapTweak over the generator's x coordinate is a second, independent fixed point.
        let generator_x =
            hex::decode("79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798")
                .unwrap();
        assert_eq!(
            hex::encode(tagged_hash("TapTweak", &[&generator_x])),
            "3cf5216d476a5e637bf0da674e50ddf55c403270dd36494dfcca438132fa30e7"
        );
        let (head, tail) = generator_x.split_at(7);
        assert_eq!(
            tagged_hash("TapTweak", &[head, tail]),
            tagged_hash("TapTweak", &[&generator_x])
        );
    }
}

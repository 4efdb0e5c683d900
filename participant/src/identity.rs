//! Who the participant is and whose keys count for it: its Ed25519 key, and the Authorities that its
//! operator pinned. It decides whether these two files are what they must be, and never writes them.

use std::path::{Path, PathBuf};

use firn_protocol::{
    codec::{self, Malformed},
    documents::Authorities,
    envelope::{Approved, Endorsed, EnvelopeError},
    ids::AuthoritiesDigest,
    keys::IdentitySecret,
};
use zeroize::Zeroizing;

use crate::private_files::{FileError, read_private, read_public};

/// 64 hexadecimal digits and a line's end.
const SEED_LIMIT: usize = 65;

/// Why the participant does not know who it is or whose keys count.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The identity key's file does not hold a seed.
    #[error("{} does not hold 64 hexadecimal digits", path.display())]
    NotASeed {
        /// The file.
        path: PathBuf,
    },
    /// The Authorities' file does not decode.
    #[error("{} does not hold Authorities: {reason}", path.display())]
    NotAuthorities {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: Malformed,
    },
    /// Other Authorities than the ones that were pinned.
    #[error("the Authorities are {found}, but the configuration pins {pinned}")]
    NotPinned {
        /// The digest in the configuration.
        pinned: AuthoritiesDigest,
        /// The digest of the document.
        found: AuthoritiesDigest,
    },
    /// Authorities that contradict themselves.
    #[error("the Authorities contradict themselves")]
    Unsound,
    /// Authorities without enough valid signatures of their own operators.
    #[error("the Authorities are not signed by their operators: {0}")]
    NotSigned(EnvelopeError),
}

impl IdentityError {
    /// The stable code of the reason.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::File(error) => error.code(),
            Self::NotASeed { .. } => "identity_key_invalid",
            Self::NotAuthorities { .. } => "authorities_malformed",
            Self::NotPinned { .. } => "authorities_not_pinned",
            Self::Unsound => "authorities_unsound",
            Self::NotSigned(_) => "authorities_not_signed",
        }
    }

    /// What an operator can do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::File(error) => error.advice(),
            Self::NotASeed { .. } => {
                "Bring back the file that was made with the identity key: 64 hexadecimal digits on one line."
            }
            Self::NotAuthorities { .. } => {
                "Fetch the Authorities file again; it is binary and must be copied as it is."
            }
            Self::NotPinned { .. } => {
                "Compare the digest with the operators by another way. Only if they confirm the new one, \
                 write it into `authorities_digest`."
            }
            Self::Unsound => "Have the Authorities written and signed again.",
            Self::NotSigned(_) => {
                "Collect the operators' missing signatures, and fetch the file again."
            }
        }
    }
}

/// The participant's identity key, from a file that holds its RFC 8032 seed in hexadecimal and that
/// only this user can read.
///
/// # Errors
/// [`IdentityError::File`], [`IdentityError::NotASeed`].
pub fn load_identity(path: &Path) -> Result<IdentitySecret, IdentityError> {
    let bytes = read_private(path, SEED_LIMIT)?
        .ok_or_else(|| FileError::io("opening", path)(std::io::ErrorKind::NotFound.into()))?;
    let digits = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let mut seed = Zeroizing::new([0; 32]);
    hex::decode_to_slice(digits, &mut *seed).map_err(|_| IdentityError::NotASeed {
        path: path.to_owned(),
    })?;
    Ok(IdentitySecret::from_seed(&seed))
}

/// The Authorities, from a file that holds them as they are endorsed. What makes them count is that the
/// operator of this machine pinned their digest; the signatures show that they are complete.
///
/// # Errors
/// File, form, pin, soundness and signatures, in this order.
pub fn load_authorities(
    path: &Path,
    pinned: AuthoritiesDigest,
) -> Result<(Approved<Authorities>, AuthoritiesDigest), IdentityError> {
    let malformed = |reason| IdentityError::NotAuthorities {
        path: path.to_owned(),
        reason,
    };
    let bytes = read_public(path, Endorsed::LIMIT)?;
    let endorsed: Endorsed = codec::decode(&bytes, Endorsed::LIMIT).map_err(malformed)?;
    let (authorities, digest) = endorsed.read::<Authorities>().map_err(malformed)?;
    let found = AuthoritiesDigest::from_bytes(digest);
    if found != pinned {
        return Err(IdentityError::NotPinned { pinned, found });
    }
    if !authorities.is_sound() {
        return Err(IdentityError::Unsound);
    }
    let operators = &authorities.operators;
    let approved = endorsed
        .verify(&operators.identities(), usize::from(operators.needed))
        .map_err(IdentityError::NotSigned)?;
    Ok((approved, found))
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::PermissionsExt,
    };

    use firn_protocol::{
        codec::{List, Maybe, Text},
        documents::{NamedKey, Quorum},
        envelope::Document,
        ids::AuthoritiesVersion,
    };

    use super::*;
    use crate::private_files::write_private;

    fn secret(number: u8) -> IdentitySecret {
        IdentitySecret::from_seed(&Zeroizing::new([number; 32]))
    }

    fn authorities(needed: u16) -> Authorities {
        let operator = |number: u8| NamedKey {
            name: Text::new("operator").unwrap(),
            key: secret(number).identity(),
        };
        Authorities {
            version: AuthoritiesVersion::new(1),
            previous: Maybe(None),
            trust_domain: "custody.example".parse().unwrap(),
            grant_authority: secret(20).identity(),
            policy_authority: secret(21).identity(),
            operators: Quorum {
                needed,
                keys: List::new(vec![operator(1), operator(2), operator(3)]).unwrap(),
            },
            approvers: List::empty(),
            requesters: List::empty(),
            coordinators: List::empty(),
        }
    }

    fn endorsed(authorities: &Authorities, signers: &[u8]) -> (Endorsed, AuthoritiesDigest) {
        let unsigned = Endorsed::unsigned(authorities).unwrap();
        let endorsed = signers.iter().fold(unsigned, |endorsed, signer| {
            endorsed.endorse::<Authorities>(&secret(*signer)).unwrap()
        });
        let digest =
            firn_protocol::envelope::digest_of::<Authorities>(&authorities.to_payload().unwrap());
        (endorsed, AuthoritiesDigest::from_bytes(digest))
    }

    #[test]
    fn loads_a_seed_of_64_digits_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("identity");
        let hex = "07".repeat(32);
        for (text, code) in [
            (hex.clone(), None),
            (format!("{hex}\n"), None),
            (format!("{hex} "), Some("identity_key_invalid")),
            (format!("{hex}\r\n"), Some("file_too_large")),
            (hex[..62].to_owned(), Some("identity_key_invalid")),
            (format!("0x{}", &hex[2..]), Some("identity_key_invalid")),
            (String::new(), Some("identity_key_invalid")),
        ] {
            write_private(&path, text.as_bytes()).unwrap();
            match (load_identity(&path), code) {
                (Ok(key), None) => assert_eq!(key.identity(), secret(7).identity()),
                (Err(error), Some(code)) => assert_eq!(error.code(), code, "{text:?}"),
                (result, code) => panic!("{text:?}: {result:?} for {code:?}"),
            }
        }
        write_private(&path, hex.as_bytes()).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let error = load_identity(&path).unwrap_err();
        assert_eq!(error.code(), "file_permissions");
        fs::remove_file(&path).unwrap();
        assert_eq!(load_identity(&path).unwrap_err().code(), "file_missing");
    }

    #[test]
    fn loads_authorities_only_as_pinned_sound_and_signed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("authorities");
        let sound = authorities(2);
        let twice = Authorities {
            operators: Quorum {
                needed: 4,
                ..sound.operators.clone()
            },
            ..sound.clone()
        };
        for (document, signers, pin_fits, code) in [
            (&sound, &[1, 2][..], true, None),
            (&sound, &[1, 2, 3], true, None),
            (&sound, &[1, 2], false, Some("authorities_not_pinned")),
            (&sound, &[1], true, Some("authorities_not_signed")),
            (&sound, &[1, 9], true, Some("authorities_not_signed")),
            (&sound, &[1, 2, 9], true, Some("authorities_not_signed")),
            (&twice, &[1, 2, 3], true, Some("authorities_unsound")),
        ] {
            let (endorsed, digest) = endorsed(document, signers);
            fs::write(&path, codec::encode(&endorsed).unwrap()).unwrap();
            let pinned = if pin_fits {
                digest
            } else {
                AuthoritiesDigest::from_bytes([0; 32])
            };
            match (load_authorities(&path, pinned), code) {
                (Ok((approved, found)), None) => {
                    assert_eq!(found, digest);
                    assert_eq!(*approved, *document);
                }
                (Err(error), Some(code)) => assert_eq!(error.code(), code, "{signers:?}"),
                (result, code) => panic!("{signers:?}: {result:?} for {code:?}"),
            }
        }
    }

    #[test]
    fn refuses_a_flipped_bit_in_every_byte_of_the_authorities() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("authorities");
        let (endorsed, digest) = endorsed(&authorities(2), &[1, 2]);
        let good = codec::encode(&endorsed).unwrap();
        for byte in 0..good.len() {
            let mut bad = good.clone();
            bad[byte] ^= 1 << (byte % 8);
            fs::write(&path, &bad).unwrap();
            assert!(load_authorities(&path, digest).is_err(), "{byte}");
        }
        fs::write(&path, &good[..good.len() - 1]).unwrap();
        let error = load_authorities(&path, digest).unwrap_err();
        assert_eq!(error.code(), "authorities_malformed");
    }
}

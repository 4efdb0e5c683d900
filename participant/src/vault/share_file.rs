//! The bytes of one sealed share. It decides whether bytes are a share file of this vault, for the share
//! that its label says, whole and unaltered; it never touches a disk.
//!
//! ```text
//! FIRNSHR1 | length of header, 2 bytes big endian | header, CBOR | nonce, 12 | ciphertext, 32 | tag, 16
//! ```
//!
//! AES-256-GCM (NIST SP 800-38D) under a key that only this file has; everything before the nonce is its
//! associated data, so a label cannot be changed and a file cannot stand for another.

use aes_gcm::{AeadInOut, Aes256Gcm, KeyInit, aead::inout::InOutBuf};
use firn_protocol::{
    codec,
    documents::Sealing,
    ids::{Identifier, KeyId, SessionId, ShareVersion},
};
use serde_tuple::{Deserialize_tuple, Serialize_tuple};
use zeroize::Zeroizing;

use super::{
    VaultError,
    key::{RootKey, Salt, VaultId},
};

const MAGIC: [u8; 8] = *b"FIRNSHR1";
const FORMAT: u16 = 1;
const SHARE_BYTES: usize = 32;
/// Bytes of a header; it has about 180.
const HEADER_LIMIT: usize = 256;

/// Bytes of a share file.
pub(super) const FILE_LIMIT: usize = MAGIC.len() + 2 + HEADER_LIMIT + 12 + SHARE_BYTES + 16;

/// Which share: whose, of which sharing of which key, and from which attempt of the ceremony.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShareLabel {
    /// The key.
    pub key_id: KeyId,
    /// The version of the sharing.
    pub share_version: ShareVersion,
    /// Whose share.
    pub member: Identifier,
    /// The attempt of the ceremony that made it.
    pub attempt: SessionId,
}

/// A share and its label, both authentic. The share is 32 bytes, a scalar, wiped when dropped.
pub struct OpenedShare {
    /// Which share.
    pub label: ShareLabel,
    /// Its bytes.
    pub share: Zeroizing<[u8; SHARE_BYTES]>,
}

impl std::fmt::Debug for OpenedShare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpenedShare({:?})", self.label)
    }
}

/// Why bytes are not a share file of this vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfit {
    /// Wrong in form, length or place.
    Damaged(&'static str),
    /// Right in form, but the key does not open it.
    CannotOpen,
}

/// Seals a share for its file.
pub(super) fn seal(
    key: &RootKey,
    label: &ShareLabel,
    share: &Zeroizing<[u8; SHARE_BYTES]>,
) -> Result<Vec<u8>, VaultError> {
    let mut random = [0; 44];
    getrandom::fill(&mut random).map_err(VaultError::Randomness)?;
    let [salt @ .., n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11] = random;
    let nonce = [n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11];
    let salt = Salt::from_bytes(salt);
    let header = codec::encode(&Header::new(key, salt, label))?;
    let length = u16::try_from(header.len()).map_err(|_| codec::Malformed::TooLarge)?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(&header);

    let mut buffer = share.clone();
    let tag = cipher(key, &salt)
        .encrypt_inout_detached(&nonce.into(), &bytes, InOutBuf::from(buffer.as_mut_slice()))
        // Only for texts of many gigabytes.
        .map_err(|_| codec::Malformed::TooLarge)?;
    bytes.extend_from_slice(&nonce);
    bytes.extend_from_slice(buffer.as_slice());
    bytes.extend_from_slice(&tag);
    Ok(bytes)
}

/// The share in a file's bytes.
pub(super) fn open(key: &RootKey, bytes: &[u8]) -> Result<OpenedShare, Unfit> {
    let parts = Parts::of(bytes)?;
    let header = parts.header;
    if header.format != FORMAT {
        return Err(Unfit::Damaged(
            "it is of a format that this version does not know",
        ));
    }
    if header.vault != key.vault() || header.method != key.method() {
        return Err(Unfit::Damaged("it was sealed for another vault"));
    }
    let mut share = Zeroizing::new(*parts.ciphertext);
    cipher(key, &header.salt)
        .decrypt_inout_detached(
            parts.nonce.into(),
            parts.associated,
            InOutBuf::from(share.as_mut_slice()),
            parts.tag.into(),
        )
        .map_err(|_| Unfit::CannotOpen)?;
    Ok(OpenedShare {
        label: header.label(),
        share,
    })
}

/// What is authenticated with the share.
#[derive(Debug, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
struct Header {
    format: u16,
    method: Sealing,
    /// Binds how the vault's key is derived: method, Argon2id costs and salt.
    vault: VaultId,
    salt: Salt,
    key_id: KeyId,
    share_version: ShareVersion,
    member: Identifier,
    attempt: SessionId,
}

impl Header {
    const fn new(key: &RootKey, salt: Salt, label: &ShareLabel) -> Self {
        Self {
            format: FORMAT,
            method: key.method(),
            vault: key.vault(),
            salt,
            key_id: label.key_id,
            share_version: label.share_version,
            member: label.member,
            attempt: label.attempt,
        }
    }

    const fn label(&self) -> ShareLabel {
        ShareLabel {
            key_id: self.key_id,
            share_version: self.share_version,
            member: self.member,
            attempt: self.attempt,
        }
    }
}

struct Parts<'a> {
    header: Header,
    associated: &'a [u8],
    nonce: &'a [u8; 12],
    ciphertext: &'a [u8; SHARE_BYTES],
    tag: &'a [u8; 16],
}

impl<'a> Parts<'a> {
    fn of(bytes: &'a [u8]) -> Result<Self, Unfit> {
        let too_short = Unfit::Damaged("it is too short");
        let after_magic = bytes
            .strip_prefix(&MAGIC)
            .ok_or(Unfit::Damaged("it is not a share file"))?;
        let (length, rest) = after_magic.split_first_chunk::<2>().ok_or(too_short)?;
        let length = usize::from(u16::from_be_bytes(*length));
        let (encoded, rest) = rest.split_at_checked(length).ok_or(too_short)?;
        let (nonce, rest) = rest.split_first_chunk::<12>().ok_or(too_short)?;
        let (ciphertext, rest) = rest.split_first_chunk::<SHARE_BYTES>().ok_or(too_short)?;
        let (tag, rest) = rest.split_first_chunk::<16>().ok_or(too_short)?;
        if !rest.is_empty() {
            return Err(Unfit::Damaged("it is too long"));
        }
        let associated = bytes
            .get(..MAGIC.len().saturating_add(2).saturating_add(length))
            .ok_or(too_short)?;
        let header = codec::decode(encoded, HEADER_LIMIT)
            .map_err(|_| Unfit::Damaged("its header does not decode"))?;
        Ok(Self {
            header,
            associated,
            nonce,
            ciphertext,
            tag,
        })
    }
}

fn cipher(key: &RootKey, salt: &Salt) -> Aes256Gcm {
    let key = key.file_key(salt);
    Aes256Gcm::new((&*key).into())
}

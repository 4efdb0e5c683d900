//! The vault's key: where its material comes from, and how all other keys follow from it. It decides
//! whether the material is the vault's before any share is touched, and never keeps the material.
//!
//! ```text
//! material = Argon2id(passphrase, salt), or the 32 bytes of the key file or credential
//! root     = tagged hash firn/vault-root  of (material, salt)
//! check    = tagged hash firn/vault-check of (root, digest of the header), stored beside the header
//! file key = tagged hash firn/vault-key   of (root, the file's own salt)
//! ```
//!
//! Every input of these hashes has a fixed length, so each has one reading and none can be extended.

use std::path::{Path, PathBuf};

use argon2::{Algorithm, Argon2, Block, Params, Version};
use firn_protocol::{
    byte_string,
    codec::{self, Maybe},
    documents::Sealing,
    tagged::tagged_hash,
};
use serde_tuple::{Deserialize_tuple, Serialize_tuple};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::{Passphrase, VaultError};
use crate::private_files::{self, read_credential, read_private, write_private};

byte_string!(
    /// Random bytes that make a derivation unique; not secret.
    Salt, 32
);
byte_string!(
    /// Digest of a vault's header: which vault a share was sealed for.
    VaultId, 32
);

const MAGIC: [u8; 8] = *b"FIRNVLT1";
const FORMAT: u16 = 1;
const KEY_BYTES: usize = 32;
/// Bytes of a header; it has about 60.
const HEADER_LIMIT: usize = 128;
/// Magic, header, the key's check and a checksum.
const FILE_LIMIT: usize = MAGIC.len() + HEADER_LIMIT + 32 + 32;

/// What opens a vault. It is not cloned, printed or serialised, and is used up by opening one.
pub enum Unlock {
    /// A passphrase, through Argon2id.
    Passphrase(Passphrase),
    /// A file of 32 random bytes for this user alone.
    KeyFile(PathBuf),
    /// 32 random bytes that the service manager gives.
    Credential(Credential),
}

impl Unlock {
    /// The way, as certificates name it.
    #[must_use]
    pub const fn method(&self) -> Sealing {
        match self {
            Self::Passphrase(_) => Sealing::Passphrase,
            Self::KeyFile(_) => Sealing::KeyFile,
            Self::Credential(_) => Sealing::Credential,
        }
    }
}

/// A credential's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential(PathBuf);

impl Credential {
    /// The credential `name` in `$CREDENTIALS_DIRECTORY`.
    ///
    /// # Errors
    /// [`VaultError::NoCredential`] where the variable is not set or the name is not a file's.
    pub fn from_environment(name: &str) -> Result<Self, VaultError> {
        let folder = std::env::var_os("CREDENTIALS_DIRECTORY").unwrap_or_default();
        Self::within(Path::new(&folder), name)
    }

    /// The credential `name` in `folder`, an absolute path.
    ///
    /// # Errors
    /// [`VaultError::NoCredential`] where the folder is not absolute or the name is not a file's.
    pub fn within(folder: &Path, name: &str) -> Result<Self, VaultError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let plain =
            (1..=255).contains(&name.len()) && name.bytes().all(allowed) && !name.starts_with('.');
        if !plain || !folder.is_absolute() {
            return Err(VaultError::NoCredential {
                name: name.chars().take(255).collect(),
            });
        }
        Ok(Self(folder.join(name)))
    }
}

/// Makes a key file: 32 random bytes, for this user alone.
///
/// # Errors
/// [`VaultError::KeyExists`], since a key that is overwritten takes all shares with it;
/// [`VaultError::File`]; [`VaultError::Randomness`].
pub fn make_key_file(path: &Path) -> Result<(), VaultError> {
    if path.symlink_metadata().is_ok() {
        return Err(VaultError::KeyExists {
            path: path.to_owned(),
        });
    }
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    getrandom::fill(&mut *key).map_err(VaultError::Randomness)?;
    Ok(write_private(path, &*key)?)
}

/// The costs of Argon2id (RFC 9106).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub(super) struct KdfCosts {
    memory_kib: u32,
    iterations: u32,
    lanes: u32,
}

/// Between which costs a header is believed, before anything is allocated or computed.
#[derive(Debug, Clone, Copy)]
pub(super) struct KdfPolicy {
    /// For a new vault.
    costs: KdfCosts,
    least: KdfCosts,
    most: KdfCosts,
}

impl KdfPolicy {
    /// New vaults take the second recommended option of RFC 9106, section 4: 64 MiB, 3 passes, 4 lanes.
    pub(super) const PRODUCTION: Self = Self {
        costs: KdfCosts {
            memory_kib: 64 << 10,
            iterations: 3,
            lanes: 4,
        },
        least: KdfCosts {
            memory_kib: 19 << 10,
            iterations: 2,
            lanes: 1,
        },
        most: KdfCosts {
            memory_kib: 1 << 20,
            iterations: 32,
            lanes: 16,
        },
    };

    /// As cheap as Argon2id can be, for tests alone.
    #[cfg(test)]
    pub(super) const FOR_TESTS: Self = Self {
        costs: KdfCosts {
            memory_kib: 8,
            iterations: 1,
            lanes: 1,
        },
        least: KdfCosts {
            memory_kib: 8,
            iterations: 1,
            lanes: 1,
        },
        ..Self::PRODUCTION
    };

    const fn allows(&self, costs: KdfCosts) -> bool {
        let (least, most) = (self.least, self.most);
        costs.memory_kib >= least.memory_kib
            && costs.memory_kib <= most.memory_kib
            && costs.iterations >= least.iterations
            && costs.iterations <= most.iterations
            && costs.lanes >= least.lanes
            && costs.lanes <= most.lanes
    }
}

const _: () = assert!(KdfPolicy::PRODUCTION.allows(KdfPolicy::PRODUCTION.costs));

/// How a vault is sealed: the content of its header file.
#[derive(Debug, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
struct Header {
    format: u16,
    method: Sealing,
    /// For a passphrase only.
    costs: Maybe<KdfCosts>,
    salt: Salt,
}

/// The vault's key, unlocked. It is not cloned, printed or serialised, and is wiped when dropped; what
/// registers and the stack keep of a hash's output on its way is beyond that.
pub(super) struct RootKey {
    root: Zeroizing<[u8; 32]>,
    vault: VaultId,
    method: Sealing,
}

impl RootKey {
    /// Makes a vault's header file for this material, and gives the key.
    pub(super) fn make(
        path: &Path,
        unlock: &Unlock,
        policy: &KdfPolicy,
    ) -> Result<Self, VaultError> {
        let mut salt = [0; 32];
        getrandom::fill(&mut salt).map_err(VaultError::Randomness)?;
        let method = unlock.method();
        let header = Header {
            format: FORMAT,
            method,
            costs: Maybe((method == Sealing::Passphrase).then_some(policy.costs)),
            salt: Salt::from_bytes(salt),
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&codec::encode(&header)?);
        let key = Self::derive(&header, vault_id(&bytes), unlock)?;
        bytes.extend_from_slice(&*key.check());
        let checksum = tagged_hash("firn/vault-checksum", &[&bytes]);
        bytes.extend_from_slice(&checksum);
        write_private(path, &bytes)?;
        Ok(key)
    }

    /// The key, if this material is the vault's; none where there is no header file.
    pub(super) fn open(
        path: &Path,
        unlock: &Unlock,
        policy: &KdfPolicy,
    ) -> Result<Option<Self>, VaultError> {
        let Some(bytes) = read_private(path, FILE_LIMIT)? else {
            return Ok(None);
        };
        let damaged = |what| VaultError::Damaged {
            path: path.to_owned(),
            what,
        };
        // The checksum has no key: it tells damage from a wrong passphrase, and is no protection.
        let (checked, checksum) = bytes
            .split_last_chunk::<32>()
            .ok_or_else(|| damaged("it is too short"))?;
        if tagged_hash("firn/vault-checksum", &[checked]) != *checksum {
            return Err(damaged("its checksum does not fit"));
        }
        let (authentic, check) = checked
            .split_last_chunk::<32>()
            .ok_or_else(|| damaged("it is too short"))?;
        let encoded = authentic
            .strip_prefix(&MAGIC)
            .ok_or_else(|| damaged("it is not a vault's header"))?;
        let header: Header = codec::decode(encoded, HEADER_LIMIT)
            .map_err(|_| damaged("its header does not decode"))?;
        let is_passphrase = header.method == Sealing::Passphrase;
        if header.format != FORMAT || header.costs.0.is_some() != is_passphrase {
            return Err(damaged("its header contradicts itself"));
        }
        if header.method != unlock.method() {
            return Err(VaultError::OtherMethod {
                sealed: header.method,
                unlocked: unlock.method(),
            });
        }
        if header.costs.0.is_some_and(|costs| !policy.allows(costs)) {
            return Err(VaultError::CostsOutOfBounds);
        }
        let key = Self::derive(&header, vault_id(authentic), unlock)?;
        if bool::from(key.check().ct_eq(check)) {
            Ok(Some(key))
        } else if is_passphrase {
            Err(VaultError::WrongPassphrase)
        } else {
            Err(VaultError::WrongKey)
        }
    }

    /// Which vault.
    pub(super) const fn vault(&self) -> VaultId {
        self.vault
    }

    /// How it was unlocked.
    pub(super) const fn method(&self) -> Sealing {
        self.method
    }

    /// The key of the one file that has this salt.
    pub(super) fn file_key(&self, salt: &Salt) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(tagged_hash(
            "firn/vault-key",
            &[&*self.root, salt.as_bytes()],
        ))
    }

    fn derive(header: &Header, vault: VaultId, unlock: &Unlock) -> Result<Self, VaultError> {
        let material = match (unlock, header.costs.0) {
            (Unlock::Passphrase(passphrase), Some(costs)) => {
                stretch(passphrase, &header.salt, costs)?
            }
            (Unlock::Passphrase(_), None) => return Err(VaultError::CostsOutOfBounds),
            (Unlock::KeyFile(path), _) => {
                let bytes = read_private(path, KEY_BYTES)?.ok_or_else(|| missing(path))?;
                key_material(path, &bytes)?
            }
            (Unlock::Credential(Credential(path)), _) => {
                key_material(path, &read_credential(path, KEY_BYTES)?)?
            }
        };
        let root = Zeroizing::new(tagged_hash(
            "firn/vault-root",
            &[&*material, header.salt.as_bytes()],
        ));
        Ok(Self {
            root,
            vault,
            method: header.method,
        })
    }

    fn check(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(tagged_hash(
            "firn/vault-check",
            &[&*self.root, self.vault.as_bytes()],
        ))
    }
}

fn vault_id(header: &[u8]) -> VaultId {
    VaultId::from_bytes(tagged_hash("firn/vault-header", &[header]))
}

fn missing(path: &Path) -> private_files::FileError {
    private_files::FileError::io("opening", path)(std::io::ErrorKind::NotFound.into())
}

fn key_material(path: &Path, bytes: &[u8]) -> Result<Zeroizing<[u8; 32]>, VaultError> {
    let not_a_key = |what| VaultError::NotAKey {
        path: path.to_owned(),
        what,
    };
    let key =
        <&[u8; KEY_BYTES]>::try_from(bytes).map_err(|_| not_a_key("it does not have 32 bytes"))?;
    // What an interrupted copy or a preallocated file looks like.
    if bool::from(key.ct_eq(&[0; KEY_BYTES])) {
        return Err(not_a_key("it has only zeros"));
    }
    Ok(Zeroizing::new(*key))
}

fn stretch(
    passphrase: &Passphrase,
    salt: &Salt,
    costs: KdfCosts,
) -> Result<Zeroizing<[u8; 32]>, VaultError> {
    let params = Params::new(
        costs.memory_kib,
        costs.iterations,
        costs.lanes,
        Some(KEY_BYTES),
    )
    .map_err(VaultError::Kdf)?;
    // Memory of our own: the crate's is not wiped when it is done.
    let mut memory = Zeroizing::new(Vec::new());
    let blocks = params.block_count();
    memory
        .try_reserve_exact(blocks)
        .map_err(|_| VaultError::OutOfMemory)?;
    memory.resize(blocks, Block::new());
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into_with_memory(
            passphrase.as_bytes(),
            salt.as_bytes(),
            &mut *key,
            memory.as_mut_slice(),
        )
        .map_err(VaultError::Kdf)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::{KdfCosts, KdfPolicy};

    #[test]
    fn believes_costs_of_19_mib_to_1_gib_2_to_32_passes_1_to_16_lanes() {
        for (memory_kib, iterations, lanes, good) in [
            (19 << 10, 2, 1, true),
            (1 << 20, 32, 16, true),
            ((19 << 10) - 1, 2, 1, false),
            ((1 << 20) + 1, 2, 1, false),
            (64 << 10, 1, 4, false),
            (64 << 10, 33, 4, false),
            (64 << 10, 3, 0, false),
            (64 << 10, 3, 17, false),
        ] {
            let costs = KdfCosts {
                memory_kib,
                iterations,
                lanes,
            };
            assert_eq!(KdfPolicy::PRODUCTION.allows(costs), good, "{costs:?}");
        }
    }
}

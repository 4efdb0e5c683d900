//! The vault: signing shares, sealed on this machine. It decides that a share comes back only whole, for
//! the label that is asked for and under the vault's own key; it never decides whether a share may be
//! used, which the ledger and the documents do.
//!
//! ```text
//! vault/vault.hdr                                    how the vault is sealed, and a check of its key
//! vault/pending/<key id>-<version>-<attempt>.share   made, and not yet agreed by all members
//! vault/active/<key id>-<version>.share              certified by all members
//! ```
//!
//! A folder says how far a share has come, so that becoming active is one rename. Files are written
//! whole or not at all. One process has the vault open: whoever holds the ledger's lock.

mod error;
mod key;
mod passphrase;
mod share_file;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;

use std::{
    fs,
    path::{Path, PathBuf},
};

use firn_protocol::{
    documents::Sealing,
    ids::{KeyId, SessionId, ShareVersion},
};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

pub use error::VaultError;
pub use key::{Credential, Unlock, make_key_file};
pub use passphrase::{Asking, PASSPHRASE_FILE, Passphrase};
pub use share_file::{OpenedShare, ShareLabel};

use crate::private_files::{
    FileError, UNFINISHED_SUFFIX, destroy, ensure_private_folder, names, read_private,
    require_private, sync_folder, unfinished, write_private,
};
use key::{KdfPolicy, RootKey};
use share_file::Unfit;

const HEADER_FILE: &str = "vault.hdr";
const SHARE_SUFFIX: &str = ".share";

/// How far a share has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Made in an attempt that not all members have certified to this one.
    Pending,
    /// Certified by all members.
    Active,
}

impl Stage {
    const ALL: [Self; 2] = [Self::Pending, Self::Active];

    const fn folder(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Active => "active",
        }
    }
}

/// What is in the vault.
#[derive(Debug, Default)]
pub struct Listing {
    /// Shares that open, in the order of stage and name.
    pub shares: Vec<(Stage, ShareLabel)>,
    /// Share files that do not open, and why.
    pub refused: Vec<(PathBuf, VaultError)>,
    /// What a crash left of files that were being written; nothing reads them.
    pub unfinished: Vec<PathBuf>,
    /// Files that have no place here; nothing reads them.
    pub strangers: Vec<PathBuf>,
}

/// An unlocked vault. It holds the key that all file keys follow from until it is dropped; a file's key
/// is computed when it is needed.
pub struct Vault {
    folder: PathBuf,
    key: RootKey,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Vault({})", self.folder.display())
    }
}

impl Vault {
    /// Whether there is a vault in `folder` already; where there is none, a passphrase is asked twice.
    #[must_use]
    pub fn exists(folder: &Path) -> bool {
        folder.join(HEADER_FILE).symlink_metadata().is_ok()
    }

    /// Unlocks the vault in `folder`, and makes it where there is none; the folder's parent must be
    /// there. Blocks for as long as Argon2id takes.
    ///
    /// # Errors
    /// [`VaultError`]: a folder or file that others can reach, a wrong passphrase or key, a damaged or
    /// missing header. Single shares that do not open are said in the log and by [`Vault::list`], and
    /// refused when they are asked for.
    pub fn open(folder: &Path, unlock: Unlock) -> Result<Self, VaultError> {
        Self::open_with(folder, unlock, &KdfPolicy::PRODUCTION)
    }

    /// As [`Vault::open`], with Argon2id costs that protect nothing.
    #[cfg(test)]
    pub(crate) fn open_for_tests(folder: &Path, unlock: Unlock) -> Result<Self, VaultError> {
        Self::open_with(folder, unlock, &KdfPolicy::FOR_TESTS)
    }

    fn open_with(folder: &Path, unlock: Unlock, policy: &KdfPolicy) -> Result<Self, VaultError> {
        ensure_private_folder(folder)?;
        let mut is_empty = true;
        for stage in Stage::ALL {
            let stage = folder.join(stage.folder());
            ensure_private_folder(&stage)?;
            for path in names(&stage)? {
                is_empty = false;
                let found =
                    fs::symlink_metadata(&path).map_err(FileError::io("looking at", &path))?;
                if !found.is_file() {
                    return Err(FileError::Strange { path }.into());
                }
                require_private(&path, &found)?;
            }
        }
        let path = folder.join(HEADER_FILE);
        let key = match RootKey::open(&path, &unlock, policy)? {
            Some(key) => key,
            None if is_empty => RootKey::make(&path, &unlock, policy)?,
            None => return Err(VaultError::HeaderMissing { path }),
        };
        let vault = Self {
            folder: folder.to_owned(),
            key,
        };
        vault.settle()?;
        Ok(vault)
    }

    /// How the shares are sealed, as certificates say it.
    #[must_use]
    pub const fn method(&self) -> Sealing {
        self.key.method()
    }

    /// Keeps a share that a ceremony has just made. When this returns the share is on disk and has been
    /// read back. Keeping the same share again changes nothing.
    ///
    /// # Errors
    /// [`VaultError::ShareConflict`] where there is another share of this attempt, or an active one of
    /// this version; [`VaultError::File`].
    pub fn store_pending(
        &self,
        label: ShareLabel,
        share: &Zeroizing<[u8; 32]>,
    ) -> Result<(), VaultError> {
        let (active, pending) = self.paths_of(&label);
        if self.read(&active)?.is_some() {
            return Err(VaultError::ShareConflict { path: active });
        }
        if self.read(&pending)?.is_none() {
            write_private(&pending, &share_file::seal(&self.key, &label, share)?)?;
        } else {
            // Durable also where a crash came between rename and sync.
            sync_folder(&self.stage(Stage::Pending))?;
        }
        // A share that cannot be read back was not kept.
        let kept = self.require(pending.clone())?;
        if kept.label == label && bool::from(kept.share.ct_eq(share.as_slice())) {
            Ok(())
        } else {
            Err(VaultError::ShareConflict { path: pending })
        }
    }

    /// Makes a pending share active, durably. Doing it again changes nothing, wherever a crash came.
    ///
    /// # Errors
    /// [`VaultError::ShareMissing`]; [`VaultError::ShareConflict`] where the active share of this version
    /// comes from another attempt; [`VaultError::Damaged`] or [`VaultError::CannotOpen`], since what does
    /// not open is not made active; [`VaultError::File`].
    pub fn promote(
        &self,
        key_id: KeyId,
        share_version: ShareVersion,
        attempt: SessionId,
    ) -> Result<(), VaultError> {
        let pending = self.pending_path(key_id, share_version, attempt);
        let active = self.active_path(key_id, share_version);
        match (self.read(&pending)?, self.read(&active)?) {
            (None, None) => return Err(VaultError::ShareMissing { path: pending }),
            (_, Some(there)) if there.label.attempt != attempt => {
                return Err(VaultError::ShareConflict { path: active });
            }
            (Some(_), None) => {
                fs::rename(&pending, &active).map_err(FileError::io("renaming to", &active))?;
            }
            // A crash left both names.
            (Some(left), Some(there)) => {
                if !bool::from(left.share.ct_eq(there.share.as_slice())) {
                    return Err(VaultError::ShareConflict { path: active });
                }
                sync_folder(&self.stage(Stage::Active))?;
                fs::remove_file(&pending).map_err(FileError::io("removing", &pending))?;
            }
            (None, Some(_)) => {}
        }
        // The new name first: a crash between the two leaves both names, never none.
        sync_folder(&self.stage(Stage::Active))?;
        Ok(sync_folder(&self.stage(Stage::Pending))?)
    }

    /// The active share of a version.
    ///
    /// # Errors
    /// [`VaultError::ShareMissing`], [`VaultError::Damaged`], [`VaultError::CannotOpen`],
    /// [`VaultError::File`].
    pub fn load_active(
        &self,
        key_id: KeyId,
        share_version: ShareVersion,
    ) -> Result<OpenedShare, VaultError> {
        self.require(self.active_path(key_id, share_version))
    }

    /// The pending share of an attempt.
    ///
    /// # Errors
    /// As [`Vault::load_active`].
    pub fn load_pending(
        &self,
        key_id: KeyId,
        share_version: ShareVersion,
        attempt: SessionId,
    ) -> Result<OpenedShare, VaultError> {
        self.require(self.pending_path(key_id, share_version, attempt))
    }

    /// Destroys the pending share of an attempt that was abandoned, and what a crash left of writing it.
    /// Overwriting is best effort: a disk that moves its blocks may keep the sealed bytes. Doing it again
    /// changes nothing.
    ///
    /// # Errors
    /// [`VaultError::File`].
    pub fn discard_pending(
        &self,
        key_id: KeyId,
        share_version: ShareVersion,
        attempt: SessionId,
    ) -> Result<(), VaultError> {
        let path = self.pending_path(key_id, share_version, attempt);
        destroy(&unfinished(&path))?;
        Ok(destroy(&path)?)
    }

    /// What is in the vault, each share opened to see that it does.
    ///
    /// # Errors
    /// [`VaultError::File`] where a folder cannot be listed.
    pub fn list(&self) -> Result<Listing, VaultError> {
        let mut listing = Listing::default();
        for stage in Stage::ALL {
            for path in names(&self.stage(stage))? {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if name.ends_with(UNFINISHED_SUFFIX) {
                    listing.unfinished.push(path);
                } else if !name.ends_with(SHARE_SUFFIX) {
                    listing.strangers.push(path);
                } else {
                    match self.require(path.clone()) {
                        Ok(opened) => listing.shares.push((stage, opened.label)),
                        Err(error) => listing.refused.push((path, error)),
                    }
                }
            }
        }
        Ok(listing)
    }

    /// Says what is not in order, and makes names durable that a crash may have left unsynced.
    fn settle(&self) -> Result<(), VaultError> {
        let listing = self.list()?;
        for path in &listing.unfinished {
            tracing::warn!(file = %path.display(), "a crash left this share file unfinished; it is not read");
        }
        for path in &listing.strangers {
            tracing::warn!(file = %path.display(), "a file that has no place in the vault; it is not read");
        }
        for (path, error) in &listing.refused {
            tracing::warn!(file = %path.display(), code = error.code(), advice = error.advice(), "{error}");
        }
        for stage in Stage::ALL {
            sync_folder(&self.stage(stage))?;
        }
        Ok(sync_folder(&self.folder)?)
    }

    fn require(&self, path: PathBuf) -> Result<OpenedShare, VaultError> {
        self.read(&path)?.ok_or(VaultError::ShareMissing { path })
    }

    /// The share in a file, if the file is whole, of this vault, and in the place of its label.
    fn read(&self, path: &Path) -> Result<Option<OpenedShare>, VaultError> {
        let Some(bytes) = read_private(path, share_file::FILE_LIMIT)? else {
            return Ok(None);
        };
        let path = path.to_owned();
        let opened = match share_file::open(&self.key, &bytes) {
            Ok(opened) => opened,
            Err(Unfit::Damaged(what)) => return Err(VaultError::Damaged { path, what }),
            Err(Unfit::CannotOpen) => return Err(VaultError::CannotOpen { path }),
        };
        let (active, pending) = self.paths_of(&opened.label);
        if path != active && path != pending {
            let what = "it is in the place of another share";
            return Err(VaultError::Damaged { path, what });
        }
        Ok(Some(opened))
    }

    fn stage(&self, stage: Stage) -> PathBuf {
        self.folder.join(stage.folder())
    }

    fn paths_of(&self, label: &ShareLabel) -> (PathBuf, PathBuf) {
        let (key_id, share_version) = (label.key_id, label.share_version);
        (
            self.active_path(key_id, share_version),
            self.pending_path(key_id, share_version, label.attempt),
        )
    }

    fn active_path(&self, key_id: KeyId, share_version: ShareVersion) -> PathBuf {
        let name = format!("{key_id}-{share_version}{SHARE_SUFFIX}");
        self.stage(Stage::Active).join(name)
    }

    fn pending_path(
        &self,
        key_id: KeyId,
        share_version: ShareVersion,
        attempt: SessionId,
    ) -> PathBuf {
        let name = format!("{key_id}-{share_version}-{attempt}{SHARE_SUFFIX}");
        self.stage(Stage::Pending).join(name)
    }
}

//! Files that a profile names. It decides whether somebody else could have read or changed a private one;
//! it never looks at what a file holds.

use std::{
    fs::{File, Metadata, OpenOptions},
    io::{self, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;
use zeroize::Zeroizing;

/// Why a file is not used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Somebody else owns it, or others may read or write it.
    #[error("{} has mode {mode:04o} and owner {owner}", path.display())]
    Permissions {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// The user id of its owner.
        owner: u32,
    },
    /// A folder or a device where a file should be.
    #[error("{} is not a file", path.display())]
    Strange {
        /// What is there.
        path: PathBuf,
    },
    /// More bytes than such a file may have.
    #[error("{} has more than {limit} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The most bytes that it may have.
        limit: usize,
    },
    /// It cannot be opened or read.
    #[error("{doing} {} failed: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl FileError {
    /// The stable code of the reason.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Permissions { .. } => "file_permissions",
            Self::Strange { .. } => "file_strange",
            Self::TooLarge { .. } => "file_too_large",
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => "file_missing",
            Self::Io { .. } => "file_io",
        }
    }

    /// What a person does next.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Permissions { .. } => {
                "find out who could read or change it, then give it to this user alone: `chmod 0600`"
            }
            Self::Strange { .. } => "put the file itself in its place",
            Self::TooLarge { .. } => "check that the path names the file that was meant",
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "check the path, and that its disk is mounted"
            }
            Self::Io { .. } => "check the disk and its log, and who this process runs as",
        }
    }

    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            doing,
            path,
            source,
        }
    }
}

/// The bytes of a file that only this user can read or write, wiped when dropped.
pub(crate) fn read_private(path: &Path, limit: usize) -> Result<Zeroizing<Vec<u8>>, FileError> {
    let (file, found) = open(path)?;
    if found.mode() & 0o077 != 0 || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(FileError::Permissions {
            path: path.to_owned(),
            mode: found.mode() & 0o7777,
            owner: found.uid(),
        });
    }
    read(path, file, &found, limit)
}

/// The bytes of a file that others may read, whose content is checked otherwise.
pub(crate) fn read_public(path: &Path, limit: usize) -> Result<Vec<u8>, FileError> {
    let (file, found) = open(path)?;
    Ok(read(path, file, &found, limit)?.to_vec())
}

/// Opens a file, and looks at what was opened rather than at what has the name later.
fn open(path: &Path) -> Result<(File, Metadata), FileError> {
    // Without blocking, so that a pipe in the place of a file cannot hold a start up.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(FileError::io("opening", path))?;
    let found = file.metadata().map_err(FileError::io("looking at", path))?;
    if found.is_file() {
        Ok((file, found))
    } else {
        Err(FileError::Strange {
            path: path.to_owned(),
        })
    }
}

fn read(
    path: &Path,
    mut file: File,
    found: &Metadata,
    limit: usize,
) -> Result<Zeroizing<Vec<u8>>, FileError> {
    let length = usize::try_from(found.len()).unwrap_or(usize::MAX);
    if length > limit {
        return Err(FileError::TooLarge {
            path: path.to_owned(),
            limit,
        });
    }
    // All at once: a buffer that grows would leave copies of a secret behind.
    let mut bytes = Zeroizing::new(vec![0; length]);
    file.read_exact(&mut bytes)
        .map_err(FileError::io("reading", path))?;
    Ok(bytes)
}

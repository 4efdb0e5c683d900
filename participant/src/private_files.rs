//! Files and folders that are this user's alone. It decides whether somebody else could have read or
//! changed one, and writes a file whole or not at all; it never looks at what a file holds.

use std::{
    fs::{self, DirBuilder, File, Metadata, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;
use zeroize::Zeroizing;

/// What the name of a file ends with until it is whole. A crash can leave such a file; nobody reads it.
pub const UNFINISHED_SUFFIX: &str = ".unfinished";

/// Why a file or folder is not used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Somebody else owns it, or others may read or write it.
    #[error("{} has mode {mode:04o} and owner {owner}", path.display())]
    Permissions {
        /// The file or folder.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// The user id of its owner.
        owner: u32,
    },
    /// A link, a device or a folder where a file should be, or something else where a folder should be.
    #[error("{} is not of the kind that belongs here", path.display())]
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
    /// A read, write, sync, rename or the like failed.
    #[error("{doing} {} failed: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On which file or folder.
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
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => "disk_full",
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => "file_missing",
            Self::Io { source, .. } if source.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                "disk_read_only"
            }
            Self::Io { .. } => "file_io",
        }
    }

    /// What an operator can do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Permissions { .. } => {
                "Find out who could read or change it, then give it to the participant's user alone: \
                 `chown` to that user, `chmod 0700` a folder, `chmod 0600` a file."
            }
            Self::Strange { .. } => {
                "Find out who put it there; put the file or folder itself in its place, not a link."
            }
            Self::TooLarge { .. } => "Check that the path names the file that was meant.",
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "Make room on the disk and try again; nothing was replaced."
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "Check the path in the configuration, and that its disk is mounted."
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                "Find out why the disk is read-only, and start again once it can be written."
            }
            Self::Io { .. } => "Check the disk and its log, and who the participant runs as.",
        }
    }

    /// An input or output error, with what was being done and on what.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            doing,
            path,
            source,
        }
    }
}

/// Makes a folder for this user alone, durably, or checks that it is one. Its parent must be there.
pub(crate) fn ensure_private_folder(path: &Path) -> Result<(), FileError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {
            sync_folder(path)?;
            sync_folder(&parent(path))?;
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(FileError::io("making", path)(error)),
    }
    let found = fs::symlink_metadata(path).map_err(FileError::io("looking at", path))?;
    if !found.is_dir() {
        return Err(FileError::Strange {
            path: path.to_owned(),
        });
    }
    require_private(path, &found)
}

/// The bytes of a file that only this user can read or write, wiped when dropped; none where there is
/// no file.
pub(crate) fn read_private(
    path: &Path,
    limit: usize,
) -> Result<Option<Zeroizing<Vec<u8>>>, FileError> {
    let Some((file, found)) = open(path, OFlags::NOFOLLOW)? else {
        return Ok(None);
    };
    require_private(path, &found)?;
    read_open(path, file, &found, limit).map(Some)
}

/// The bytes of a file that others may read, whose content is checked otherwise; links are followed.
pub(crate) fn read_public(path: &Path, limit: usize) -> Result<Zeroizing<Vec<u8>>, FileError> {
    let (file, found) = open(path, OFlags::empty())?
        .ok_or_else(|| FileError::io("opening", path)(io::ErrorKind::NotFound.into()))?;
    read_open(path, file, &found, limit)
}

/// The bytes of a credential of the service manager. It keeps credentials in a folder of its own on
/// memory, read-only and owned by root or by the service's user; access control lists show there as
/// group permissions, so reading by the group is not refused.
pub(crate) fn read_credential(path: &Path, limit: usize) -> Result<Zeroizing<Vec<u8>>, FileError> {
    let (file, found) = open(path, OFlags::NOFOLLOW)?
        .ok_or_else(|| FileError::io("opening", path)(io::ErrorKind::NotFound.into()))?;
    let mode = found.mode() & 0o7777;
    let owned = found.uid() == 0 || found.uid() == this_user();
    if mode & 0o037 != 0 || !owned {
        return Err(permissions(path, &found));
    }
    read_open(path, file, &found, limit)
}

/// Writes a file for this user alone, in place of the one of that name if there is one. When this
/// returns the file is durable under its name; before, the name stands for what it stood for.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let unfinished = write_unfinished(path, bytes)?;
    fs::rename(&unfinished, path).map_err(FileError::io("renaming to", path))?;
    sync_folder(&parent(path))
}

/// The first half of [`write_private`]: all bytes, durable, under a name that nobody reads.
pub(crate) fn write_unfinished(path: &Path, bytes: &[u8]) -> Result<PathBuf, FileError> {
    let unfinished = unfinished(path);
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(flags(OFlags::NOFOLLOW))
        .open(&unfinished)
        .map_err(FileError::io("making", &unfinished))?;
    // One that a crash left keeps its own mode, whatever that is.
    let found = file
        .metadata()
        .map_err(FileError::io("looking at", &unfinished))?;
    require_private(&unfinished, &found)?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(FileError::io("writing", &unfinished))?;
    Ok(unfinished)
}

/// The name of a file until it is whole.
pub(crate) fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(UNFINISHED_SUFFIX);
    PathBuf::from(name)
}

/// Overwrites a file and removes it, durably; nothing where there is none. Overwriting is best effort:
/// a disk that moves its blocks, a snapshot or a backup may keep the old bytes.
pub(crate) fn destroy(path: &Path) -> Result<(), FileError> {
    let opened = OpenOptions::new()
        .write(true)
        .custom_flags(flags(OFlags::NOFOLLOW))
        .open(path);
    let mut file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(FileError::io("opening", path)(error)),
    };
    let found = file.metadata().map_err(FileError::io("looking at", path))?;
    io::copy(&mut io::repeat(0).take(found.len()), &mut file)
        .and_then(|_| file.sync_all())
        .map_err(FileError::io("overwriting", path))?;
    fs::remove_file(path).map_err(FileError::io("removing", path))?;
    sync_folder(&parent(path))
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(path: &Path) -> Result<(), FileError> {
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(FileError::io("syncing", path))
}

/// The names in a folder, in order.
pub(crate) fn names(path: &Path) -> Result<Vec<PathBuf>, FileError> {
    let entries = fs::read_dir(path).map_err(FileError::io("listing", path))?;
    let mut names = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()
        .map_err(FileError::io("listing", path))?;
    names.sort_unstable();
    Ok(names)
}

/// Refuses what somebody else owns, or what others may read or write.
pub(crate) fn require_private(path: &Path, found: &Metadata) -> Result<(), FileError> {
    if found.mode() & 0o077 != 0 || found.uid() != this_user() {
        return Err(permissions(path, found));
    }
    Ok(())
}

fn permissions(path: &Path, found: &Metadata) -> FileError {
    FileError::Permissions {
        path: path.to_owned(),
        mode: found.mode() & 0o7777,
        owner: found.uid(),
    }
}

fn this_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Opens a file for reading, and looks at what was opened rather than at what has the name later.
fn open(path: &Path, how: OFlags) -> Result<Option<(File, Metadata)>, FileError> {
    // Without blocking, so that a pipe in the place of a file cannot hold a start up.
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(flags(how | OFlags::NONBLOCK))
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Err(FileError::Strange {
                path: path.to_owned(),
            });
        }
        Err(error) => return Err(FileError::io("opening", path)(error)),
    };
    let found = file.metadata().map_err(FileError::io("looking at", path))?;
    if found.is_file() {
        Ok(Some((file, found)))
    } else {
        Err(FileError::Strange {
            path: path.to_owned(),
        })
    }
}

fn read_open(
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

fn flags(flags: OFlags) -> i32 {
    flags.bits().cast_signed()
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_owned(),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{PermissionsExt, symlink},
    };

    use super::*;

    #[test]
    fn refuses_a_file_that_others_may_read_or_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write_private(&path, b"secret").unwrap();
        for (mode, good) in [
            (0o600, true),
            (0o400, true),
            (0o640, false),
            (0o660, false),
            (0o604, false),
            (0o602, false),
            (0o777, false),
        ] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let read = read_private(&path, 6);
            assert_eq!(read.is_ok(), good, "{mode:o}");
            if let Err(error) = read {
                assert_eq!(error.code(), "file_permissions");
            }
        }
    }

    #[test]
    fn lets_the_group_read_a_credential_and_nobody_write_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write_private(&path, b"secret").unwrap();
        for (mode, good) in [
            (0o400, true),
            (0o440, true),
            (0o460, false),
            (0o444, false),
            (0o402, false),
        ] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_credential(&path, 6).is_ok(), good, "{mode:o}");
        }
    }

    #[test]
    fn refuses_a_folder_that_others_may_enter() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        ensure_private_folder(&path).unwrap();
        for (mode, good) in [
            (0o700, true),
            (0o750, false),
            (0o701, false),
            (0o770, false),
        ] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(ensure_private_folder(&path).is_ok(), good, "{mode:o}");
        }
    }

    #[test]
    fn refuses_a_link_a_pipe_and_a_folder_in_the_place_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        write_private(&target, b"secret").unwrap();
        symlink(&target, &link).unwrap();
        assert_eq!(read_private(&link, 6).unwrap_err().code(), "file_strange");
        assert!(write_unfinished(&link, b"").is_ok());
        symlink(folder.path(), folder.path().join("d")).unwrap();
        assert_eq!(
            ensure_private_folder(&folder.path().join("d"))
                .unwrap_err()
                .code(),
            "file_strange"
        );
        assert_eq!(
            read_private(folder.path(), 6).unwrap_err().code(),
            "file_strange"
        );
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert_eq!(read_private(&pipe, 6).unwrap_err().code(), "file_strange");
    }

    #[test]
    fn refuses_a_file_over_its_limit_before_reading_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write_private(&path, b"secret").unwrap();
        assert!(read_private(&path, 6).unwrap().is_some());
        assert_eq!(read_private(&path, 5).unwrap_err().code(), "file_too_large");
        assert!(read_private(&folder.path().join("b"), 6).unwrap().is_none());
    }

    #[test]
    fn replaces_a_file_whole_and_passes_over_what_a_crash_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write_private(&path, b"first").unwrap();
        // A crash after this leaves the old file.
        write_unfinished(&path, b"sec").unwrap();
        assert_eq!(
            read_private(&path, 9).unwrap().unwrap().as_slice(),
            b"first"
        );
        write_private(&path, b"second").unwrap();
        assert_eq!(
            read_private(&path, 9).unwrap().unwrap().as_slice(),
            b"second"
        );
        assert_eq!(names(folder.path()).unwrap(), std::slice::from_ref(&path));
        destroy(&path).unwrap();
        destroy(&path).unwrap();
        assert!(names(folder.path()).unwrap().is_empty());
    }
}

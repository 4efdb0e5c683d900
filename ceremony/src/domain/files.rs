//! Files of a domain: what is private is private from its first byte on, and nothing that is there is
//! ever written over.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use firn_protocol::{
    codec,
    keys::{IdentityKey, IdentitySecret},
};
use serde::{Serialize, de::DeserializeOwned};
use zeroize::Zeroizing;

use crate::error::Error;

/// Makes a folder for this user alone; its parent must be there.
///
/// # Errors
/// [`Error::File`], also where it exists.
pub fn make_folder(path: &Path) -> Result<(), Error> {
    DirBuilder::new()
        .mode(0o700)
        .create(path)
        .map_err(Error::file("making", path))
}

/// Makes the folder of a new domain, or takes an empty one; then it is this user's alone.
///
/// # Errors
/// [`Error::FolderNotEmpty`]; [`Error::File`].
pub fn claim_empty_folder(path: &Path) -> Result<(), Error> {
    match fs::read_dir(path) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(Error::FolderNotEmpty {
                    path: path.to_owned(),
                });
            }
            let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            fs::set_permissions(path, private).map_err(Error::file("changing", path))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(path)
            .map_err(Error::file("making", path)),
        Err(error) => Err(Error::file("reading", path)(error)),
    }
}

/// Writes a new file that only this user can read.
///
/// # Errors
/// [`Error::File`], also where it exists.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_new(path, bytes, 0o600)
}

/// Writes a new file that holds no secret.
///
/// # Errors
/// [`Error::File`], also where it exists.
pub fn write_public(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_new(path, bytes, 0o644)
}

/// Puts other bytes into a file that holds no secret, all at once: whoever reads it sees the bytes from
/// before or these.
///
/// # Errors
/// [`Error::File`].
pub fn replace_public(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    write_public(&beside, bytes)?;
    fs::rename(&beside, path).map_err(|source| {
        // The error is what counts; a file that is left over does no harm.
        let _ = fs::remove_file(&beside);
        Error::file("replacing", path)(source)
    })
}

/// Reads a file of at most `limit` bytes, whatever it says about its size.
///
/// # Errors
/// [`Error::File`]; [`Error::BadFile`] where it is larger.
pub fn read_bounded(path: &Path, limit: usize, what: &'static str) -> Result<Vec<u8>, Error> {
    let file = fs::File::open(path).map_err(Error::file("reading", path))?;
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most)
        .read_to_end(&mut bytes)
        .map_err(Error::file("reading", path))?;
    if bytes.len() > limit {
        return Err(Error::BadFile {
            path: path.to_owned(),
            what,
        });
    }
    Ok(bytes)
}

/// Writes a new file that holds a value in its one encoding.
///
/// # Errors
/// [`Error::Document`]; [`Error::File`], also where it exists.
pub fn write_document<T: Serialize>(path: &Path, value: &T) -> Result<(), Error> {
    write_public(path, &codec::encode(value)?)
}

/// Reads a value back, from at most `limit` bytes.
///
/// # Errors
/// [`Error::File`]; [`Error::BadFile`] where it holds something else.
pub fn read_document<T: Serialize + DeserializeOwned>(
    path: &Path,
    limit: usize,
    what: &'static str,
) -> Result<T, Error> {
    let bytes = read_bounded(path, limit, what)?;
    codec::decode(&bytes, limit).map_err(|_| Error::BadFile {
        path: path.to_owned(),
        what,
    })
}

/// Writes an Ed25519 key into a new file that only this user can read: its seed, in hexadecimal.
///
/// # Errors
/// As [`write_private`].
pub fn write_identity(path: &Path, secret: &IdentitySecret) -> Result<IdentityKey, Error> {
    let mut text = Zeroizing::new(hex::encode(*secret.seed()));
    text.push('\n');
    write_private(path, text.as_bytes())?;
    Ok(secret.identity())
}

/// Reads an Ed25519 key that [`write_identity`] wrote.
///
/// # Errors
/// [`Error::File`]; [`Error::BadFile`] where it holds something else.
pub fn read_identity(path: &Path) -> Result<IdentitySecret, Error> {
    let text = fs::read_to_string(path).map_err(Error::file("reading", path))?;
    let text = Zeroizing::new(text);
    let mut seed = Zeroizing::new([0; 32]);
    hex::decode_to_slice(text.trim_end(), &mut *seed).map_err(|_| Error::BadFile {
        path: path.to_owned(),
        what: "an Ed25519 seed of 64 hexadecimal digits",
    })?;
    Ok(IdentitySecret::from_seed(&seed))
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Error> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .map_err(|source| not_written(path, source))
}

fn not_written(path: &Path, source: io::Error) -> Error {
    if source.kind() == ErrorKind::AlreadyExists {
        Error::FileExists {
            path: path.to_owned(),
        }
    } else {
        Error::file("writing", path)(source)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::clock::fresh_identity;

    #[test]
    fn a_key_is_read_back_from_a_file_that_nobody_else_can_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("identity.key");
        let secret = fresh_identity().unwrap();
        assert_eq!(write_identity(&path, &secret).unwrap(), secret.identity());
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(read_identity(&path).unwrap().identity(), secret.identity());
        assert!(write_identity(&path, &secret).is_err(), "written over");
    }

    #[test]
    fn refuses_a_folder_in_which_something_lies() {
        let folder = tempfile::tempdir().unwrap();
        claim_empty_folder(folder.path()).unwrap();
        claim_empty_folder(&folder.path().join("a/b")).unwrap();
        assert!(matches!(
            claim_empty_folder(folder.path()),
            Err(Error::FolderNotEmpty { .. })
        ));
    }

    #[test]
    fn refuses_a_key_file_of_another_length() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("a", "00"), ("b", ""), ("c", &"zz".repeat(32))] {
            let path = folder.path().join(name);
            write_private(&path, text.as_bytes()).unwrap();
            assert!(matches!(read_identity(&path), Err(Error::BadFile { .. })));
        }
    }
}

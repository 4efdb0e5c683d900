//! A PSBT as a file: the bytes of BIP-174, or the same in base64 as wallets print it. It decides only the
//! form; what the bytes mean is judged elsewhere.

use std::path::Path;

use base64ct::{Base64, Encoding};
use firn_protocol::limits;

use crate::{
    domain::files::{read_bounded, write_public},
    error::Error,
};

/// What every PSBT begins with.
const MAGIC: &[u8] = b"psbt\xff";
/// Base64 takes four bytes for three, and whoever prints it ends the line.
const FILE_LIMIT: usize = limits::MAX_PSBT / 3 * 4 + 16;

/// How a PSBT is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Its bytes.
    Binary,
    /// One line of base64.
    Base64,
}

/// The PSBT in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PsbtFile {
    /// Its bytes, not judged.
    pub(crate) bytes: Vec<u8>,
    /// How they are written down.
    pub(crate) form: Form,
}

impl PsbtFile {
    /// Reads a PSBT in either form.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::BadFile`] for what is neither.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        const WHAT: &str = "a PSBT, binary or base64";
        let found = read_bounded(path, FILE_LIMIT, WHAT)?;
        if found.starts_with(MAGIC) {
            return Ok(Self {
                bytes: found,
                form: Form::Binary,
            });
        }
        let text = std::str::from_utf8(&found).unwrap_or_default().trim();
        match Base64::decode_vec(text) {
            Ok(bytes) if bytes.starts_with(MAGIC) => Ok(Self {
                bytes,
                form: Form::Base64,
            }),
            _ => Err(Error::BadFile {
                path: path.to_owned(),
                what: WHAT,
            }),
        }
    }
}

impl Form {
    /// Writes a PSBT into a new file.
    ///
    /// # Errors
    /// [`Error::FileExists`]; [`Error::File`].
    pub(crate) fn write(self, path: &Path, psbt: &[u8]) -> Result<(), Error> {
        match self {
            Self::Binary => write_public(path, psbt),
            Self::Base64 => write_public(
                path,
                format!("{}\n", Base64::encode_string(psbt)).as_bytes(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Form, PsbtFile};
    use crate::error::Error;

    #[test]
    fn either_form_is_read_and_written_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let psbt = [b"psbt\xff".as_slice(), &[1, 2, 3, 0xfe]].concat();
        for (name, form) in [("binary", Form::Binary), ("text", Form::Base64)] {
            let path = folder.path().join(name);
            form.write(&path, &psbt).unwrap();
            let read = PsbtFile::read(&path).unwrap();
            assert_eq!((read.bytes, read.form), (psbt.clone(), form));
            assert!(matches!(
                form.write(&path, &psbt),
                Err(Error::FileExists { .. })
            ));
        }
        for (name, wrong) in [
            ("empty", b"".as_slice()),
            ("noise", b"cHNidP8=x"),
            ("other", b"aGVsbG8="),
            ("hex", b"70736274ff"),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, wrong).unwrap();
            assert!(
                matches!(PsbtFile::read(&path), Err(Error::BadFile { .. })),
                "{name}"
            );
        }
    }
}

//! A passphrase, and the ways in which one is given: a file, a descriptor or a terminal. It never comes
//! from the command line or from an environment variable, which others can see.

use std::{
    ffi::OsStr,
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::FileTypeExt,
    path::Path,
};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::VaultError;
use crate::private_files::{FileError, require_private};

/// The environment variable that names the file to read the passphrase from.
pub const PASSPHRASE_FILE: &str = "FIRN_PASSPHRASE_FILE";

const SHORTEST: usize = 12;
const LONGEST: usize = 1024;

/// Whether to ask a second time at a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// The vault is there, and will tell a mistyped passphrase.
    Once,
    /// The vault is new: a mistyped passphrase would be its passphrase for ever.
    Twice,
}

/// A passphrase: 12 to 1024 bytes of UTF-8 without control characters, taken as they are typed, with no
/// normalisation. It is not cloned, printed or serialised, and is wiped when dropped.
pub struct Passphrase(Zeroizing<Vec<u8>>);

impl Passphrase {
    /// The passphrase, without the line's end that an editor or a terminal adds.
    ///
    /// # Errors
    /// [`VaultError::NoPassphrase`] where it is too short, too long, or not text.
    pub fn new(mut bytes: Zeroizing<Vec<u8>>) -> Result<Self, VaultError> {
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        if bytes.len() < SHORTEST {
            return Err(VaultError::NoPassphrase("it has fewer than 12 bytes"));
        }
        if bytes.len() > LONGEST {
            return Err(VaultError::NoPassphrase("it has more than 1024 bytes"));
        }
        let text =
            std::str::from_utf8(&bytes).map_err(|_| VaultError::NoPassphrase("it is not UTF-8"))?;
        if text.chars().any(char::is_control) {
            return Err(VaultError::NoPassphrase("it has a control character"));
        }
        Ok(Self(bytes))
    }

    /// Reads it from the file that [`PASSPHRASE_FILE`] names, or else asks at the terminal.
    ///
    /// # Errors
    /// As [`Passphrase::from_file`] or [`Passphrase::from_terminal`].
    pub fn obtain(asking: Asking) -> Result<Self, VaultError> {
        match std::env::var_os(PASSPHRASE_FILE) {
            Some(path) if path != OsStr::new("") => Self::from_file(Path::new(&path)),
            _ => Self::from_terminal(asking),
        }
    }

    /// Reads it from a file for this user alone, or from a pipe such as `/dev/fd/3`.
    ///
    /// # Errors
    /// [`VaultError::File`] where it cannot be read or others could; [`VaultError::NoPassphrase`].
    pub fn from_file(path: &Path) -> Result<Self, VaultError> {
        let mut file = File::open(path).map_err(FileError::io("opening", path))?;
        let found = file.metadata().map_err(FileError::io("looking at", path))?;
        let kind = found.file_type();
        if kind.is_file() {
            require_private(path, &found)?;
        } else if !kind.is_fifo() {
            return Err(FileError::Strange {
                path: path.to_owned(),
            }
            .into());
        }
        let bytes = read_until(&mut file, |_| false).map_err(FileError::io("reading", path))?;
        Self::new(bytes)
    }

    /// Asks at the terminal, without showing what is typed.
    ///
    /// # Errors
    /// [`VaultError::NoPassphrase`] where there is no terminal or the second answer is another.
    pub fn from_terminal(asking: Asking) -> Result<Self, VaultError> {
        let no_terminal = |_: io::Error| VaultError::NoPassphrase("there is no terminal to ask at");
        let terminal = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/tty")
            .map_err(no_terminal)?;
        let hidden = HiddenInput::begin(&terminal).map_err(no_terminal)?;
        let first = ask(&terminal, "Passphrase of the vault: ").map_err(no_terminal)?;
        let again = match asking {
            Asking::Once => None,
            Asking::Twice => Some(ask(&terminal, "Once more: ").map_err(no_terminal)?),
        };
        drop(hidden);
        if again.is_some_and(|again| !bool::from(again.ct_eq(&first))) {
            return Err(VaultError::NoPassphrase("the two are not the same"));
        }
        Self::new(first)
    }

    /// The bytes, for the key derivation alone.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Shows again what is typed when it is dropped.
struct HiddenInput<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> HiddenInput<'a> {
    fn begin(terminal: &'a File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(terminal, OptionalActions::Flush, &hidden)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for HiddenInput<'_> {
    fn drop(&mut self) {
        if tcsetattr(self.terminal, OptionalActions::Flush, &self.before).is_err() {
            tracing::warn!("the terminal could not be set back to show what is typed");
        }
    }
}

fn ask(mut terminal: &File, prompt: &str) -> io::Result<Zeroizing<Vec<u8>>> {
    terminal.write_all(prompt.as_bytes())?;
    let line = read_until(&mut terminal, |bytes| bytes.contains(&b'\n'));
    terminal.write_all(b"\n")?;
    line
}

/// Reads until `enough`, the end, or one byte more than the longest passphrase and its line's end, into
/// a buffer that does not grow and so leaves no copies.
fn read_until(
    source: &mut impl Read,
    enough: impl Fn(&[u8]) -> bool,
) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(vec![0; LONGEST.saturating_add(2)]);
    let mut filled = 0_usize;
    while let Some(rest) = bytes.get_mut(filled..) {
        if rest.is_empty() {
            break;
        }
        match source.read(rest) {
            Ok(0) => break,
            Ok(read) => filled = filled.saturating_add(read),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if bytes.get(..filled).is_some_and(&enough) {
            break;
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::{fd::AsRawFd, unix::fs::PermissionsExt},
    };

    use super::*;

    fn refusal(result: Result<Passphrase, VaultError>) -> String {
        result.map(|_| ()).unwrap_err().code().to_owned()
    }

    #[test]
    fn takes_twelve_to_1024_bytes_of_text_without_its_line_end() {
        for (text, good) in [
            (b"twelve bytes".to_vec(), true),
            (b"twelve bytes\n".to_vec(), true),
            (b"eleven byte".to_vec(), false),
            (b"eleven byte\n".to_vec(), false),
            (b"two lines of it\n\n".to_vec(), false),
            (b"a nul in \0 the middle".to_vec(), false),
            (b"not UTF-8 at all \xff".to_vec(), false),
            (vec![b'a'; 1024], true),
            (vec![b'a'; 1025], false),
        ] {
            let passphrase = Passphrase::new(Zeroizing::new(text.clone()));
            assert_eq!(passphrase.is_ok(), good, "{text:?}");
        }
    }

    #[test]
    fn reads_a_private_file_and_refuses_one_that_others_may_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("passphrase");
        fs::write(&path, "correct horse battery\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let passphrase = Passphrase::from_file(&path).map_err(|e| e.code()).ok();
        assert_eq!(passphrase.unwrap().as_bytes(), b"correct horse battery");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        assert_eq!(refusal(Passphrase::from_file(&path)), "file_permissions");
        assert_eq!(
            refusal(Passphrase::from_file(Path::new("/dev/zero"))),
            "file_strange"
        );
    }

    #[test]
    fn reads_a_descriptor_and_never_more_than_the_bound() {
        for (length, good) in [(20, true), (2000, false)] {
            let (reader, mut writer) = io::pipe().unwrap();
            writer.write_all(&vec![b'a'; length]).unwrap();
            drop(writer);
            let path = format!("/dev/fd/{}", reader.as_raw_fd());
            let passphrase = Passphrase::from_file(Path::new(&path));
            assert_eq!(passphrase.is_ok(), good, "{length}");
        }
    }
}

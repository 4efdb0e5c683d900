//! What the process is: hardened against others on its machine, and able to say which build it is. It
//! never decides what the participant does.

use std::{fs::File, io};

use firn_protocol::{ids::BuildDigest, limits};
use rustix::{
    fs::Mode,
    process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit, umask},
};
use sha2::{Digest, Sha256};

/// What the software calls itself in certificates: `firn-participant <version>`.
pub const SOFTWARE: &str = concat!("firn-participant ", env!("CARGO_PKG_VERSION"));

const _: () = assert!(SOFTWARE.len() <= limits::MAX_NAME);

/// Why the process is not hardened, or does not know itself.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The system refuses a protection.
    #[error("{what} failed: {source}")]
    Hardening {
        /// Which one.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The running binary cannot be read.
    #[error("reading the running binary failed: {0}")]
    Binary(io::Error),
}

impl ProcessError {
    /// The stable code of the reason.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Hardening { .. } => "hardening_failed",
            Self::Binary(_) => "binary_unreadable",
        }
    }

    /// What an operator can do about it.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::Hardening { .. } => {
                "Check what the sandbox of the service manager or container forbids: prctl and setrlimit \
                 are needed."
            }
            Self::Binary(_) => "Check that /proc is mounted in the sandbox.",
        }
    }
}

/// Keeps other processes of the same user out of this one's memory, keeps its memory out of core files,
/// and makes new files this user's alone. To be called first, before any secret is read.
///
/// # Errors
/// [`ProcessError::Hardening`]; the process should not go on then.
pub fn harden() -> Result<(), ProcessError> {
    let refused = |what| {
        move |source: rustix::io::Errno| ProcessError::Hardening {
            what,
            source: source.into(),
        }
    };
    umask(Mode::RWXG | Mode::RWXO);
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Core, none).map_err(refused("forbidding core files"))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(refused("closing the memory to debuggers"))
}

/// SHA-256 of the running binary, read from what runs and not from a path that may have another by now.
///
/// # Errors
/// [`ProcessError::Binary`].
pub fn build_digest() -> Result<BuildDigest, ProcessError> {
    let mut hasher = Sha256::new();
    File::open("/proc/self/exe")
        .and_then(|mut binary| io::copy(&mut binary, &mut Sink(&mut hasher)))
        .map_err(ProcessError::Binary)?;
    Ok(BuildDigest::from_bytes(hasher.finalize().into()))
}

/// Hashes what is written.
struct Sink<'a>(&'a mut Sha256);

impl io::Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, process::Command};

    use rustix::process::{dumpable_behavior, getrlimit};

    use super::*;

    /// Hardening is for a whole process, so it is tried in one of its own.
    #[test]
    fn hardens_dumps_core_files_and_new_files() {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::tests::hardened_child", "--ignored"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(
            child.status.success() && said.contains("1 passed"),
            "{said}"
        );
    }

    #[test]
    #[ignore = "run by hardens_dumps_core_files_and_new_files in a process of its own"]
    fn hardened_child() {
        harden().unwrap();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
        let core = getrlimit(Resource::Core);
        assert_eq!((core.current, core.maximum), (Some(0), Some(0)));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "").unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        // A process that nobody else may look into still knows its own binary.
        build_digest().unwrap();
    }

    #[test]
    fn digests_the_running_binary() {
        let bytes = fs::read(std::env::current_exe().unwrap()).unwrap();
        let expected: [u8; 32] = Sha256::digest(&bytes).into();
        assert_eq!(*build_digest().unwrap().as_bytes(), expected);
    }
}

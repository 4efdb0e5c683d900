//! What the system says to one process instead of the truth: another time, a full disk, the end at an
//! exact write. It decides which calls lie; the program is the one that is shipped, loaded after
//! `tests/fixtures/fault.c`.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use tempfile::TempDir;
use tokio::process::Command;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/fault.c");

/// The calls of one process that lie, and how. By default none does.
#[derive(Debug, Clone, Default)]
pub struct Fault {
    /// Added to its wall clock.
    pub clock_seconds: i64,
    /// It is killed when it calls fdatasync for the n-th time, from 1.
    pub kill_before_sync: Option<u32>,
    /// It is killed when the n-th fdatasync has returned.
    pub kill_after_sync: Option<u32>,
    /// Calls of fdatasync count only once this file exists.
    pub count_from: Option<PathBuf>,
    /// While this file exists, what it writes to files fails with the error number in it.
    pub disk: Option<PathBuf>,
}

impl Fault {
    /// A wall clock that is wrong.
    #[must_use]
    pub fn clock(seconds: i64) -> Self {
        Self {
            clock_seconds: seconds,
            ..Self::default()
        }
    }

    /// Lets the command run with these faults.
    pub(super) fn apply(&self, command: &mut Command) {
        command.env("LD_PRELOAD", library());
        if self.clock_seconds != 0 {
            command.env("FAULT_CLOCK_SECONDS", self.clock_seconds.to_string());
        }
        for (name, call) in [
            ("FAULT_KILL_BEFORE_SYNC", self.kill_before_sync),
            ("FAULT_KILL_AFTER_SYNC", self.kill_after_sync),
        ] {
            if let Some(call) = call {
                command.env(name, call.to_string());
            }
        }
        for (name, file) in [
            ("FAULT_COUNT_FROM", &self.count_from),
            ("FAULT_DISK", &self.disk),
        ] {
            if let Some(file) = file {
                command.env(name, file);
            }
        }
    }
}

/// The library, built once for each test process by the C compiler that the build needs anyway.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = LIBRARY.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fault.so");
        let status = std::process::Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
            .arg(&path)
            .arg(SOURCE)
            .arg("-ldl")
            .status()
            .expect("this test needs a C compiler, as the build does");
        assert!(status.success(), "{SOURCE} does not compile");
        (folder, path)
    });
    path
}

/// Error numbers of Linux.
pub const ENOSPC: i32 = 28;
/// Read-only file system.
pub const EROFS: i32 = 30;

/// Lets the disk of whoever has `switch` in its [`Fault`] fail from now on.
pub fn fail_disk(switch: &Path, error: i32) {
    fs::write(switch, error.to_string()).unwrap();
}

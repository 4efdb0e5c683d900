//! The programs under test. It decides which files are started: those that cargo has just built in the
//! profile and target folder of the running test, never others that lie around.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const FIRN: &str = "firn";
const PARTICIPANT: &str = "firn-participant";
const COORDINATOR: &str = "firn-coordinator";

/// The programs, as absolute paths.
#[derive(Debug)]
pub struct Binaries {
    /// The operator's tool.
    pub firn: PathBuf,
    /// The participant.
    pub participant: PathBuf,
    /// The coordinator.
    pub coordinator: PathBuf,
}

/// The programs, built once for each test process.
///
/// # Panics
/// If they cannot be built.
#[must_use]
pub fn binaries() -> &'static Binaries {
    static BINARIES: OnceLock<Binaries> = OnceLock::new();
    BINARIES.get_or_init(build)
}

fn build() -> Binaries {
    // target/<profile>/deps/<this test>
    let this = env::current_exe().expect("the running test has a path");
    let folder = this
        .parent()
        .filter(|deps| deps.ends_with("deps"))
        .and_then(Path::parent)
        .expect("a test runs in target/<profile>/deps");
    let target = folder.parent().expect("target/<profile>");
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // The selection of `cargo run --bin firn` and of the demo, so that nothing is built twice with
    // other features; where nothing has changed this needs no network and takes a moment.
    let mut command = Command::new(cargo);
    // Cargo tells a test of its own package. A build script that hears of it would run again, and all
    // that stands on it be built again, now and once more by the next build outside of a test.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&*name);
        }
    }
    let status = command
        .args(["build", "--profile", profile])
        .args(["--bin", FIRN, "--bin", PARTICIPANT, "--bin", COORDINATOR])
        .arg("--target-dir")
        .arg(target)
        .current_dir(WORKSPACE)
        .stdin(Stdio::null())
        .status()
        .expect("cargo can be started");
    assert!(status.success(), "the programs under test do not build");
    let beside = |name: &str| {
        let path = folder.join(name);
        assert!(path.is_file(), "{} is not there", path.display());
        path
    };
    Binaries {
        firn: beside(FIRN),
        participant: beside(PARTICIPANT),
        coordinator: beside(COORDINATOR),
    }
}

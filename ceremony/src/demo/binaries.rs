//! The sibling binaries. It decides which files the demo starts: those beside this one, built from the
//! same source where the source is there.

use std::{
    env,
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;

use super::narrator::Narrator;
use crate::error::Error;

/// The programs that the demo starts.
#[derive(Debug, Clone)]
pub(super) struct Binaries {
    pub(super) participant: PathBuf,
    pub(super) coordinator: PathBuf,
}

const PARTICIPANT: &str = "firn-participant";
const COORDINATOR: &str = "firn-coordinator";

/// The root of the source that this binary was built from.
const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

impl Binaries {
    /// Finds the binaries beside this one, after building what is missing or older than its source.
    pub(super) async fn find(no_build: bool, narrator: &Narrator) -> Result<Self, Error> {
        let own = env::current_exe().map_err(Error::file("finding", "this binary"))?;
        let folder = own.parent().unwrap_or(Path::new("/"));
        if !no_build && let Some(mut cargo) = cargo(folder) {
            narrator.line("building the sibling binaries with cargo (quick when nothing changed)");
            let name = "cargo build".to_owned();
            let status = cargo.status().await.map_err(|error| Error::Process {
                name: name.clone(),
                reason: error.to_string(),
            })?;
            if !status.success() {
                let reason = format!("{status}");
                return Err(Error::Process { name, reason });
            }
        }
        Ok(Self {
            participant: beside(folder, PARTICIPANT)?,
            coordinator: beside(folder, COORDINATOR)?,
        })
    }
}

fn beside(folder: &Path, name: &str) -> Result<PathBuf, Error> {
    let path = folder.join(name);
    if path.is_file() {
        Ok(path)
    } else {
        Err(Error::Process {
            name: name.to_owned(),
            reason: format!(
                "not found in {}; build it with `cargo build` in the same profile as firn",
                folder.display()
            ),
        })
    }
}

/// The build that puts the siblings into `folder`; none where the source is not there, or this binary
/// does not lie where cargo would put it.
fn cargo(folder: &Path) -> Option<Command> {
    let manifest = Path::new(WORKSPACE).join("Cargo.toml");
    let target = folder.parent()?;
    // Cargo marks its target folders.
    if !manifest.is_file() || !target.join("CACHEDIR.TAG").is_file() {
        return None;
    }
    let profile = match folder.file_name()?.to_str()? {
        "debug" => "dev",
        profile => profile,
    };
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let found = std::process::Command::new(&program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !found.is_ok_and(|status| status.success()) {
        return None;
    }
    let mut command = Command::new(program);
    // `cargo run` tells us of our own package. A build script that hears of it would run again, and all
    // that stands on it be built again.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&*name);
        }
    }
    // The same selection of packages as `cargo run --bin firn`, so that nothing is built twice.
    command
        .args(["build", "--profile", profile])
        .args(["--bin", PARTICIPANT, "--bin", COORDINATOR])
        .arg("--manifest-path")
        .arg(manifest)
        .arg("--target-dir")
        .arg(target)
        // The workspace's own settings, not those of whoever runs this.
        .current_dir(WORKSPACE)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true);
    Some(command)
}

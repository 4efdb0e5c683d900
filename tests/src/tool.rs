//! The real `firn` as somebody types it. It decides as whom and how a command is started, and that with
//! `--json` there is exactly one object, however it ends.

use std::{
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Duration,
};

use firn_ceremony::domain::Party;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::{
    process::{Child, Command},
    time::timeout,
};

use crate::binaries::binaries;

/// Longer than any command that is not broken.
const DEADLINE: Duration = Duration::from_secs(120);

/// Somebody with a profile.
#[derive(Debug, Clone)]
pub struct Tool {
    profile: PathBuf,
}

/// How a command ended, and what it said.
#[derive(Debug, Clone)]
pub struct Said {
    /// Its exit code.
    pub code: i32,
    /// Its object.
    pub object: Value,
    /// What it said to people.
    pub told: String,
}

/// A command that has not ended.
#[derive(Debug)]
pub struct Running {
    child: Child,
    pid: Pid,
    typed: String,
}

impl Tool {
    /// Whoever has this profile.
    #[must_use]
    pub fn with(profile: &Path) -> Self {
        Self {
            profile: profile.to_owned(),
        }
    }

    /// An operator or requester of a domain.
    #[must_use]
    pub fn of(party: &Party) -> Self {
        Self::with(&party.folder.config())
    }

    /// What a script sees.
    pub async fn json(&self, arguments: &[&str]) -> Said {
        self.start(arguments).end().await
    }

    /// What a person sees: how it ended, and everything that was said.
    ///
    /// # Panics
    /// If it does not end.
    pub async fn text(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.command(arguments).output();
        let output = timeout(DEADLINE, output).await.expect("it ends").unwrap();
        let said = [output.stdout.as_slice(), &output.stderr].concat();
        (
            output.status.code().expect("it ends by itself"),
            String::from_utf8(said).unwrap(),
        )
    }

    /// A command for a script, while it runs.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(&self, arguments: &[&str]) -> Running {
        let mut command = self.command(arguments);
        command.arg("--json");
        let child = command.spawn().expect("the tool can be started");
        let pid = child.id().and_then(|pid| pid.try_into().ok());
        let pid = pid.and_then(Pid::from_raw).expect("it has just started");
        let typed = arguments.join(" ");
        Running { child, pid, typed }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&binaries().firn);
        command
            .args(arguments)
            .env("FIRN_PROFILE", &self.profile)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

impl Running {
    /// What Ctrl-C does.
    ///
    /// # Panics
    /// If it has ended.
    pub fn interrupt(&mut self) {
        let ended = self.child.try_wait().expect("a child can be waited for");
        assert!(ended.is_none(), "it has ended");
        kill_process(self.pid, Signal::INT).expect("it can be told");
    }

    /// Waits until it has ended.
    ///
    /// # Panics
    /// If it does not end by itself, or has not written exactly one object.
    pub async fn end(self) -> Said {
        let output = self.child.wait_with_output();
        let output = timeout(DEADLINE, output).await;
        let output: Output = output
            .unwrap_or_else(|_| panic!("does not end: firn {}", self.typed))
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let code = output.status.code();
        // Refuses anything before or behind one value.
        let object: Result<Value, _> = serde_json::from_slice(&output.stdout);
        let object = object.unwrap_or_else(|error| panic!("not one object: {error}: {told}"));
        assert!(object.is_object(), "{object}");
        Said {
            code: code.unwrap_or_else(|| panic!("it did not end by itself: {told}")),
            object,
            told,
        }
    }
}

impl Said {
    /// What it said, once it has ended well.
    ///
    /// # Panics
    /// If it has not.
    #[allow(clippy::must_use_candidate, reason = "that it holds may be all")]
    pub fn well(self) -> Value {
        assert_eq!(self.code, 0, "{}{:#}", self.told, self.object);
        self.object
    }

    /// The error with this exit code and stable code.
    ///
    /// # Panics
    /// If it ended in another way.
    #[allow(clippy::must_use_candidate, reason = "that it holds may be all")]
    pub fn failed(self, exit: i32, code: &str) -> Value {
        let error = &self.object["error"];
        let found = (self.code, error["code"].as_str());
        assert_eq!(found, (exit, Some(code)), "{}{:#}", self.told, self.object);
        // A person is told the same.
        assert!(self.told.contains(&format!("[{code}]")), "{}", self.told);
        error.clone()
    }
}

//! One process under test. It decides how it is started, traced and killed, and that it never outlives
//! the test.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use firn_ceremony::domain::Party;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep, timeout},
};

use super::fault::Fault;

/// How long anything may take before a test gives up. Nothing waits for it to pass.
const DEADLINE: Duration = Duration::from_secs(60);
/// Between two looks at a condition.
const PAUSE: Duration = Duration::from_millis(10);

/// The calls that touch files by name, and those that say what is done about memory and peers.
const TRACED: &str = "trace=open,openat,openat2,creat,rename,renameat,renameat2,link,linkat,symlink,\
                      symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,truncate,connect,bind,listen,prctl";

/// Looks at a condition again and again until it holds.
///
/// # Panics
/// If it does not hold within a minute.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(started.elapsed() < DEADLINE, "{what} did not happen");
        sleep(PAUSE).await;
    }
}

/// A running process; it is killed when this is dropped.
#[derive(Debug)]
pub struct Process {
    pid: Pid,
    child: Child,
}

impl Process {
    /// Starts `program` with the configuration in the party's folder, in that folder, with its log there.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(program: &Path, party: &Party) -> Self {
        let child = command(Command::new(program), party);
        let pid = pid_of(child.id().expect("it has just been started"));
        Self { pid, child }
    }

    /// The same with a system that lies to it.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start_with(program: &Path, party: &Party, fault: &Fault) -> Self {
        let mut faulty = Command::new(program);
        fault.apply(&mut faulty);
        let child = command(faulty, party);
        let pid = pid_of(child.id().expect("it has just been started"));
        Self { pid, child }
    }

    /// The same with these variables.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start_in(program: &Path, party: &Party, variables: &[(&str, PathBuf)]) -> Self {
        let mut with = Command::new(program);
        with.envs(variables.iter().map(|(name, value)| (name, value)));
        let child = command(with, party);
        let pid = pid_of(child.id().expect("it has just been started"));
        Self { pid, child }
    }

    /// The same in a mount namespace of its own, where the shell has run `mounts` before.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start_mounted(program: &Path, party: &Party, mounts: &str) -> Self {
        let mut unshare = Command::new("unshare");
        // As root a mount namespace is enough; others need a user namespace around it.
        let flags = if rustix::process::geteuid().is_root() {
            "-m"
        } else {
            "-rm"
        };
        unshare.args([flags, "sh", "-ec"]);
        unshare
            .arg(format!("{mounts}; exec \"$0\" \"$@\""))
            .arg(program);
        let child = command(unshare, party);
        let pid = pid_of(child.id().expect("it has just been started"));
        Self { pid, child }
    }

    /// Waits until it has ended by itself.
    pub async fn end(&mut self) -> ExitStatus {
        timeout(DEADLINE, self.child.wait())
            .await
            .expect("it ends by itself")
            .expect("a child can be waited for")
    }

    /// The same under strace, which writes what the process and its threads open to `trace`.
    ///
    /// # Panics
    /// If there is no strace: a test that cannot look must not pass.
    pub async fn start_traced(program: &Path, party: &Party, trace: &Path) -> Self {
        let found = Command::new("strace").arg("-V").output().await;
        assert!(
            found.is_ok_and(|output| output.status.success()),
            "this test needs strace; install it with `apt-get install strace`"
        );
        let mut strace = Command::new("strace");
        strace
            .args(["-f", "-y", "-s", "4096", "-e", TRACED, "-o"])
            .arg(trace)
            .arg("--")
            .arg(program);
        let child = command(strace, party);
        let tracer = child.id().expect("it has just been started");
        let children = PathBuf::from(format!("/proc/{tracer}/task/{tracer}/children"));
        let name = program.file_name().expect("a program").to_string_lossy();
        // Before it runs the program, strace forks once or twice to try what the system can do.
        let pid = until("the start of the traced process", async || {
            let listed = std::fs::read_to_string(&children).unwrap_or_default();
            listed
                .split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .find(|pid| command_name(*pid).is_some_and(|found| name.starts_with(&found)))
        })
        .await;
        Self {
            pid: pid_of(pid),
            child,
        }
    }

    /// The id of the process itself, also where it is traced.
    #[must_use]
    pub const fn pid(&self) -> Pid {
        self.pid
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be waited for")
    }

    /// Kills it at once, as a power cut would, and waits until it is gone.
    pub async fn kill(mut self) {
        self.signal(Signal::KILL);
        self.child.wait().await.expect("a child can be waited for");
    }

    /// Tells it something.
    pub fn tell(&mut self, signal: Signal) {
        self.signal(signal);
    }

    /// Asks it to stop, and waits until it has.
    pub async fn stop(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.child.wait().await.expect("a child can be waited for")
    }

    fn signal(&mut self, signal: Signal) {
        // One that has ended may have left its id to another process.
        if self.ended().is_none() {
            let _ = kill_process(self.pid, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Killing the tracer alone would let the traced process run on.
        self.signal(Signal::KILL);
    }
}

/// The name of a process's program, cut to 15 bytes by the system; anybody may read it.
#[must_use]
pub fn command_name(pid: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

fn pid_of(pid: u32) -> Pid {
    let pid = i32::try_from(pid).expect("process ids are small");
    Pid::from_raw(pid).expect("no process has the id 0")
}

fn command(mut command: Command, party: &Party) -> Child {
    let log = File::options()
        .create(true)
        .append(true)
        .open(party.folder.log())
        .expect("the log can be opened");
    let more = log.try_clone().expect("the log can be opened");
    command
        .arg("--config")
        .arg(party.folder.config())
        .current_dir(party.folder.path())
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(more)
        .kill_on_drop(true)
        .spawn()
        .expect("the program can be started")
}

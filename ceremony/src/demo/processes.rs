//! The real processes of the demo. It decides when each is started and stopped, and that none of them
//! outlives the demo, however it ends.

use std::{
    fs::File,
    net::SocketAddr,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use firn_protocol::{documents::Plan, envelope::Approved, ids::PlanDigest};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep, timeout},
};

use super::binaries::Binaries;
use crate::{
    domain::{Domain, Party},
    error::Error,
    local::LocalLine,
};

/// How long a process may take to be ready.
pub(super) const READY: Duration = Duration::from_secs(60);
/// How long a process may take to stop when it is asked to.
const STOP: Duration = Duration::from_secs(20);
/// Between two looks at a condition.
const PAUSE: Duration = Duration::from_millis(20);

/// A process, its name and its id; it is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    name: String,
    pid: u32,
    child: Child,
}

impl Process {
    fn start(program: &Path, party: &Party) -> Result<Self, Error> {
        let name = party.name().to_owned();
        let child = command(program, party)?
            .spawn()
            .map_err(|error| failed(&name, &error))?;
        let pid = child.id().unwrap_or_default();
        Ok(Self { name, pid, child })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) const fn pid(&self) -> u32 {
        self.pid
    }

    /// An error if it has ended by itself.
    pub(super) fn check(&mut self) -> Result<(), Error> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(Error::Process {
                name: self.name.clone(),
                reason: format!("ended too early: {status}"),
            }),
            Err(error) => Err(failed(&self.name, &error)),
        }
    }

    /// Kills it at once, as a power cut would.
    pub(super) async fn kill(mut self) -> Result<(), Error> {
        let killed = self.child.kill().await;
        killed.map_err(|error| failed(&self.name, &error))
    }

    /// Asks it to stop, and kills it when it does not; how it ended.
    async fn stop(mut self) -> Result<ExitStatus, Error> {
        if let Some(pid) = self
            .child
            .id()
            .and_then(|pid| i32::try_from(pid).ok())
            .and_then(Pid::from_raw)
        {
            // One that has just ended by itself cannot be told any more.
            let _ = kill_process(pid, Signal::TERM);
        }
        match timeout(STOP, self.child.wait()).await {
            Ok(status) => status.map_err(|error| failed(&self.name, &error)),
            Err(_) => {
                let name = self.name.clone();
                self.kill().await?;
                Err(Error::Deadline {
                    waiting_for: format!("the end of {name}"),
                    seconds: STOP.as_secs(),
                })
            }
        }
    }
}

/// All processes that run.
#[derive(Debug)]
pub(super) struct Processes {
    coordinator: Process,
    participants: Vec<Process>,
}

impl Processes {
    /// Starts the coordinator, waits until it listens, and starts every participant.
    pub(super) async fn start(
        binaries: &Binaries,
        domain: &Domain,
    ) -> Result<(Self, SocketAddr), Error> {
        domain.configure_coordinator()?;
        let mut coordinator = Process::start(&binaries.coordinator, domain.coordinator())?;
        let file = domain.coordinator().folder.address();
        let address = until("the coordinator's address", async || {
            coordinator.check()?;
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            Ok(text.trim_end().parse::<SocketAddr>().ok())
        })
        .await?;
        domain.configure_members(address)?;
        let participants = domain
            .members()
            .iter()
            .map(|member| Process::start(&binaries.participant, member))
            .collect::<Result<_, _>>()?;
        let processes = Self {
            coordinator,
            participants,
        };
        Ok((processes, address))
    }

    pub(super) const fn coordinator(&self) -> &Process {
        &self.coordinator
    }

    pub(super) fn participants(&self) -> &[Process] {
        &self.participants
    }

    /// An error if one of them has ended by itself.
    pub(super) fn check(&mut self) -> Result<(), Error> {
        self.coordinator.check()?;
        self.participants.iter_mut().try_for_each(Process::check)
    }

    /// Takes one participant out, for killing it.
    pub(super) fn take(&mut self, name: &str) -> Option<Process> {
        let place = self
            .participants
            .iter()
            .position(|process| process.name() == name)?;
        Some(self.participants.remove(place))
    }

    /// Asks all of them to stop, the coordinator last; whether each ended as it should.
    pub(super) async fn stop(self) -> Vec<(String, bool)> {
        let mut ended = Vec::new();
        for process in self.participants.into_iter().chain([self.coordinator]) {
            let name = process.name().to_owned();
            let status = process.stop().await;
            ended.push((name, status.is_ok_and(|status| status.success())));
        }
        ended
    }
}

/// Accepts a plan on a member's machine, as its operator would.
pub(super) async fn accept(member: &Party, plan: &Approved<Plan>) -> Result<(), Error> {
    let mut line = LocalLine::connect(&member.folder.control_socket()).await?;
    let digest = PlanDigest::from_bytes(plan.digest());
    line.accept(plan.endorsed(), digest).await.map(|_| ())
}

/// Looks at a condition again and again until it holds.
pub(super) async fn until<T>(
    what: &str,
    mut look: impl AsyncFnMut() -> Result<Option<T>, Error>,
) -> Result<T, Error> {
    let started = Instant::now();
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        if started.elapsed() >= READY {
            return Err(Error::Deadline {
                waiting_for: what.to_owned(),
                seconds: READY.as_secs(),
            });
        }
        sleep(PAUSE).await;
    }
}

/// The program with its configuration, in the party's own folder, writing to a log there.
fn command(program: &Path, party: &Party) -> Result<Command, Error> {
    let path = party.folder.log();
    let log = File::options()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(Error::file("opening", &path))?;
    let more = log.try_clone().map_err(Error::file("opening", &path))?;
    let mut command = Command::new(program);
    command
        .arg("--config")
        .arg(party.folder.config())
        .current_dir(party.folder.path())
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(more)
        .kill_on_drop(true);
    Ok(command)
}

fn failed(name: &str, error: &std::io::Error) -> Error {
    Error::Process {
        name: name.to_owned(),
        reason: error.to_string(),
    }
}

//! One member: a machine with a disk and a clock that survive, and a process that does not. The process
//! runs the participant's own service.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use firn_ledger::journal::{MemorySegments, SegmentBytes};
use firn_participant::{
    config::LimitsConfig,
    documents::Documents,
    rules::ParticipantRules,
    service::{Service, ServiceError, Setup},
    session::{Speaker, dkg::OwnSoftware},
    store::{MemoryFiles, MemoryStore},
    vault::{Unlock, Vault},
};
use firn_protocol::{codec::Text, ids::BuildDigest, tagged::tagged_hash};

use super::{
    domain::Domain,
    host::{Carried, Side, SimHost, SimLedger, SimStream, Time, Waiting, locked},
    network::StreamId,
    people::{COORDINATORS, MEMBERS},
    task::Task,
};

/// New segments are small, since every run copies them.
const SEGMENT_BYTES: u32 = 32 << 10;

/// What a crash leaves of what was written and not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// Nothing.
    Synced,
    /// All of it.
    Written,
}

/// What one of the process's tasks is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Job {
    /// The process starts.
    Start,
    /// A stream is served.
    Serve(StreamId),
}

/// One member's machine.
pub(super) struct Member {
    number: usize,
    folder: PathBuf,
    pub(super) files: MemoryFiles,
    /// Its clock.
    pub(super) time: Time,
    pub(super) process: Option<Process>,
    boots: u64,
}

/// A running process.
pub(super) struct Process {
    pub(super) store: MemoryStore<ParticipantRules>,
    ledger: SimLedger,
    service: Arc<Mutex<Option<Result<Arc<Service<SimHost>>, ServiceError>>>>,
    tasks: BTreeMap<Job, Task>,
    sides: BTreeMap<StreamId, Arc<Mutex<Side>>>,
    ended: Arc<AtomicBool>,
}

/// Why a member's process has ended by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The journal's disk failed.
    Disk,
    /// The vault's disk failed.
    Vault,
    /// It did not start; under this code.
    Start(String),
}

impl Member {
    /// A machine with this disk, switched off.
    #[must_use]
    pub(super) fn new(number: usize, folder: PathBuf, journal: MemorySegments, time: Time) -> Self {
        Self {
            number,
            folder,
            files: MemoryFiles::holding(journal),
            time,
            process: None,
            boots: 0,
        }
    }

    /// Whether its process runs and serves.
    #[must_use]
    pub(super) fn serves(&self) -> bool {
        self.process
            .as_ref()
            .is_some_and(|process| matches!(&*locked(&process.service), Some(Ok(_))))
    }

    /// Starts the process.
    ///
    /// # Errors
    /// What keeps it from starting; a disk that is full is full for the journal's first write too.
    pub(super) fn start(&mut self, domain: &Domain, seed: u64) -> Result<(), Ended> {
        self.boots += 1;
        let size = SegmentBytes::new(SEGMENT_BYTES).unwrap();
        let rules = ParticipantRules::default();
        let store = MemoryStore::open_sized(rules, self.files.clone(), size)
            .map_err(|error| Ended::Start(error.code().to_owned()))?;
        let setup = self
            .setup(domain)
            .map_err(|error| Ended::Start(error.code().to_owned()))?;
        let parts: [&[u8]; 3] = [
            &seed.to_be_bytes(),
            &self.number.to_be_bytes(),
            &self.boots.to_be_bytes(),
        ];
        let seed = tagged_hash("firn/simulated-boot", &parts);
        let ledger = SimLedger::default();
        let host = SimHost::new(ledger.clone(), self.time.clone(), seed);
        let ended = host.ended();
        let service = Arc::new(Mutex::new(None));
        let begun = Arc::clone(&service);
        let start = async move {
            let outcome = Service::begin(setup, host).await;
            *locked(&begun) = Some(outcome.map(Arc::new));
        };
        self.process = Some(Process {
            store,
            ledger,
            service,
            tasks: BTreeMap::from([(Job::Start, Task::new(start))]),
            sides: BTreeMap::new(),
            ended,
        });
        Ok(())
    }

    fn setup(&self, domain: &Domain) -> Result<Setup, ServiceError> {
        let person = MEMBERS[self.number];
        let key_file = Unlock::KeyFile(self.folder.join("vault.key"));
        let vault = Vault::open(&self.folder.join("vault"), key_file)?;
        Ok(Setup {
            name: person.id("participant"),
            speaker: Speaker::new(person.secret()),
            authorities: domain.authorities.clone(),
            authorities_digest: domain.authorities_digest,
            own: OwnSoftware {
                sealing: vault.method(),
                software: Text::new("firn").unwrap(),
                build: BuildDigest::from_bytes([0xb1; 32]),
            },
            vault,
            documents: Documents::open(&self.folder)?,
            limits: LimitsConfig {
                max_clock_skew_ms: 2_000,
                max_epoch_jump: 1_000,
                max_grant_life_ms: 86_400_000,
                step_timeout_ms: 10_000,
            },
        })
    }

    /// Ends the process at once; the disk becomes what a crash leaves.
    pub(super) fn crash(&mut self, disk: Disk) {
        self.process = None;
        let left = match disk {
            Disk::Synced => self.files.synced(),
            Disk::Written => self.files.written(),
        };
        self.files = MemoryFiles::holding(left);
    }
}

impl Process {
    /// The tasks that can run.
    pub(super) fn ready(&self) -> impl Iterator<Item = Job> {
        let woken = self.tasks.iter().filter(|(_, task)| task.is_woken());
        woken.map(|(job, _)| *job)
    }

    /// Whether a stream is still served.
    pub(super) fn has(&self, stream: StreamId) -> bool {
        self.tasks.contains_key(&Job::Serve(stream))
    }

    /// Whether something waits for the disk.
    pub(super) fn disk_waits(&self) -> bool {
        !locked(&self.ledger.queue).is_empty()
    }

    /// The next time at which a task gives up waiting.
    pub(super) fn deadline(&self) -> Option<u64> {
        let sides = self.sides.values();
        sides.filter_map(|side| locked(side).deadline).min()
    }

    /// Wakes the tasks whose patience has ended.
    pub(super) fn expire(&self, elapsed: u64) {
        for side in self.sides.values() {
            let mut side = locked(side);
            if side.deadline.is_some_and(|deadline| deadline <= elapsed) {
                side.wake();
            }
        }
    }

    /// Lets one task run, and gives what it sent.
    ///
    /// # Errors
    /// That the process has ended by itself; what it had sent is still sent.
    pub(super) fn run(&mut self, job: Job) -> (Vec<Carried>, Result<(), Ended>) {
        let done = self.tasks.get_mut(&job).is_some_and(Task::run);
        if done {
            self.tasks.remove(&job);
        }
        let mut sent = Vec::new();
        if let Job::Serve(stream) = job
            && let Some(side) = self.sides.get(&stream)
        {
            sent = std::mem::take(&mut locked(side).outbox);
            if done {
                self.sides.remove(&stream);
            }
        }
        let ended = if self.ended.load(Ordering::SeqCst) {
            Err(Ended::Vault)
        } else {
            match &*locked(&self.service) {
                Some(Err(error)) => Err(Ended::Start(error.code().to_owned())),
                Some(Ok(_)) | None => Ok(()),
            }
        };
        (sent, ended)
    }

    /// Writes and syncs what waits, in one batch, and answers.
    ///
    /// # Errors
    /// A disk that fails ends the process with nobody answered.
    pub(super) fn write(&mut self, time: &Time) -> Result<(), Ended> {
        let waiting = std::mem::take(&mut *locked(&self.ledger.queue));
        let (mut commands, mut replies, mut questions) = (Vec::new(), Vec::new(), Vec::new());
        for one in waiting {
            match one {
                Waiting::Commit(command, reply) => {
                    commands.push(command);
                    replies.push(reply);
                }
                Waiting::Query(question) => questions.push(question),
            }
        }
        let outcomes = self.store.commit_all(commands, time.now());
        let outcomes = outcomes.map_err(|_| Ended::Disk)?;
        for (reply, outcome) in replies.into_iter().zip(outcomes) {
            drop(reply.send(outcome));
        }
        let view = self.store.view();
        questions.into_iter().for_each(|question| question(&view));
        Ok(())
    }

    /// Brings something to the member's side of a stream; `opens` when it is the first of it.
    pub(super) fn arrive(
        &mut self,
        stream: StreamId,
        from: usize,
        opens: bool,
        carried: Carried,
        time: &Time,
    ) {
        let Some(Ok(service)) = &*locked(&self.service) else {
            return;
        };
        if opens {
            let side = Arc::new(Mutex::new(Side::default()));
            let peer = COORDINATORS[from].id("coordinator");
            let served =
                Arc::clone(service).converse(peer, SimStream::new(Arc::clone(&side), time.clone()));
            self.sides.insert(stream, side);
            self.tasks.insert(Job::Serve(stream), Task::new(served));
        }
        if let Some(side) = self.sides.get(&stream) {
            locked(side).arrive(carried);
        }
    }
}

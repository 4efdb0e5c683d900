//! A key that is made once: the ceremony is itself a run of the simulation. Every run that signs begins
//! with copies of its journals; vaults and documents are only read, so all share them.

use std::{
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use firn_ledger::journal::MemorySegments;
use firn_participant::{documents::Documents, vault::make_key_file};
use firn_protocol::sharing::ActiveSharing;
use tempfile::TempDir;

use super::{Client, Domain, MEMBERS, Operators, Setting, Simulation, Wanted};

/// A key in use.
pub struct Fixture {
    /// Authorities and plan.
    pub domain: Arc<Domain>,
    /// The key.
    pub sharing: Arc<ActiveSharing>,
    journals: Vec<MemorySegments>,
    elapsed: u64,
    folders: Vec<PathBuf>,
    _root: TempDir,
}

impl Fixture {
    /// The one key of this process.
    #[must_use]
    pub fn key() -> &'static Self {
        static KEY: LazyLock<Fixture> = LazyLock::new(Fixture::new);
        &KEY
    }

    fn new() -> Self {
        let domain = Arc::new(Domain::new());
        let (root, folders) = fresh_folders(&domain);
        let mut run = Simulation::new(
            Setting::quiet(0),
            Arc::clone(&domain),
            &folders,
            vec![MemorySegments::default(); MEMBERS.len()],
            0,
        );
        run.boot();
        let operators = Operators::new(Arc::clone(&domain), 0, false);
        run.add(Client::Operators(Box::new(operators)));
        run.run();
        run.settle();
        let Some(sharing) = run.operators(0).active() else {
            run.fail(&format!("no key: {:?}", run.operators(0).faults));
        };
        Self {
            domain,
            sharing: Arc::new(sharing),
            elapsed: run.elapsed(),
            journals: run.into_journals(),
            folders,
            _root: root,
        }
    }

    /// A run with this key, with every member connected, in which nobody asks yet.
    #[must_use]
    pub fn simulate(&self, setting: Setting) -> Simulation {
        let mut run = Simulation::new(
            setting,
            Arc::clone(&self.domain),
            &self.folders,
            self.journals.clone(),
            self.elapsed,
        );
        run.boot();
        run
    }

    /// A payment.
    #[must_use]
    pub fn payment(&self, request: u8, sats: u64) -> Wanted {
        Wanted::payment(&self.sharing, request, sats)
    }
}

/// Folders of members who have accepted the plan and have no share, gone when the first is dropped.
#[must_use]
pub fn fresh_folders(domain: &Domain) -> (TempDir, Vec<PathBuf>) {
    let memory = Path::new("/dev/shm");
    let root = if memory.is_dir() {
        TempDir::new_in(memory)
    } else {
        TempDir::new()
    };
    let root = root.unwrap();
    let folders: Vec<_> = MEMBERS
        .iter()
        .map(|person| {
            let folder = root.path().join(person.name());
            DirBuilder::new().mode(0o700).create(&folder).unwrap();
            make_key_file(&folder.join("vault.key")).unwrap();
            let documents = Documents::open(&folder).unwrap();
            documents.accept_plan(&domain.plan_endorsed).unwrap();
            folder
        })
        .collect();
    (root, folders)
}

//! What the store promises, over real folders and over files that count and fail.

mod disk;
mod index;
mod writing;

use std::{
    ops::ControlFlow,
    path::Path,
    sync::{Arc, Mutex},
};

use firn_ledger::{
    journal::{NewRecord, Record, RecordKind, SegmentBytes},
    table::Table,
};
use firn_protocol::ids::UnixMillis;
use tempfile::TempDir;

use super::*;

/// Rules to test with: a key may be set once.
#[derive(Clone, Copy)]
struct SetOnce;

const SET: RecordKind = RecordKind::new(1);

enum Command {
    /// Set a key to a value.
    Set(&'static str, Vec<u8>),
    /// Set a key named for this number.
    Number(u32),
    /// Ask whether a key is set, recording nothing.
    Ask(&'static str),
}

impl Rules for SetOnce {
    type Command = Command;
    type Answer = bool;
    type Refusal = &'static str;

    const STATE_VERSION: u32 = 1;

    fn admit(
        &self,
        state: &dyn Table,
        command: Command,
        moment: Moment,
    ) -> Result<Admitted<bool>, NotAdmitted<&'static str>> {
        if moment.last.is_some_and(|last| moment.now < last) {
            return Err(NotAdmitted::Refused("clock_behind"));
        }
        let (key, value) = match command {
            Command::Set(key, value) => (key.to_owned(), value),
            Command::Number(number) => (format!("{number:06}"), number.to_be_bytes().to_vec()),
            Command::Ask(key) => {
                let answer = state.get(key.as_bytes())?.is_some();
                return Ok(Admitted {
                    records: Vec::new(),
                    answer,
                });
            }
        };
        if state.get(key.as_bytes())?.is_some() {
            return Err(NotAdmitted::Refused("already_set"));
        }
        let body = [key.as_bytes(), b"=", &value].concat();
        let record = NewRecord::new(SET, body).map_err(|_| NotAdmitted::Refused("too_large"))?;
        Ok(Admitted {
            records: vec![record],
            answer: true,
        })
    }

    fn apply(&self, state: &mut dyn Table, record: &Record) -> Result<(), RuleViolation> {
        let mut parts = record.body().splitn(2, |byte| *byte == b'=');
        let (key, value) = (parts.next().unwrap(), parts.next().unwrap());
        if state.get(key)?.is_some() {
            return Err(RuleViolation::Unlawful("set twice".into()));
        }
        state.put(key, value.get(..64).unwrap_or(value))?;
        Ok(())
    }
}

/// Folders of one ledger, and what ended it.
struct Home {
    _folder: TempDir,
    options: Options,
    clock: FakeClock,
    fatal: Arc<Mutex<Vec<&'static str>>>,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::new(folder.path().join("data"), folder.path().join("anchor"));
        options.segment_bytes = SegmentBytes::new(4096).unwrap();
        let clock = FakeClock::default();
        clock.set(UnixMillis::new(1_000));
        Self {
            _folder: folder,
            options,
            clock,
            fatal: Arc::default(),
        }
    }

    fn open(&self) -> Result<Store<SetOnce>, StoreError> {
        Store::open(
            &self.options,
            SetOnce,
            Arc::new(self.clock.clone()),
            recorder(&self.fatal),
        )
    }

    /// Opens, closes, and gives the head.
    fn head(&self) -> Head {
        let store = self.open().unwrap();
        let head = store.opened_at();
        assert_eq!(store.close(), Some(head));
        head
    }

    fn refusal(&self) -> &'static str {
        match self.open() {
            Ok(store) => panic!("opened at {:?}", store.opened_at()),
            Err(error) => {
                assert!(!error.advice().is_empty() && !error.to_string().is_empty());
                error.code()
            }
        }
    }

    fn journal(&self) -> std::path::PathBuf {
        self.options.data.join("journal")
    }

    fn index(&self) -> std::path::PathBuf {
        self.options.data.join("index")
    }

    /// Opens, commits keys for these numbers, closes, and gives the head.
    async fn commit(&self, numbers: std::ops::Range<u32>) -> Head {
        let store = self.open().unwrap();
        for number in numbers {
            store
                .committer()
                .commit(Command::Number(number))
                .await
                .unwrap();
        }
        store.close().unwrap()
    }

    /// The whole state.
    async fn content(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let store = self.open().unwrap();
        let content = store
            .committer()
            .query(|view| content(view.state()))
            .await
            .unwrap();
        store.close().unwrap();
        content
    }
}

fn recorder(fatal: &Arc<Mutex<Vec<&'static str>>>) -> OnFatal {
    let fatal = Arc::clone(fatal);
    Box::new(move |error| fatal.lock().unwrap().push(error.code()))
}

fn content(state: &dyn Table) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    state
        .range(b"", None, &mut |key, value| {
            all.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        })
        .unwrap();
    all
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    std::fs::set_permissions(to, std::fs::metadata(from).unwrap().permissions()).unwrap();
    for file in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(file.file_name());
        if file.file_type().unwrap().is_dir() {
            copy_folder(&file.path(), &target);
        } else {
            std::fs::copy(file.path(), target).unwrap();
        }
    }
}

fn replace_folder(from: &Path, to: &Path) {
    std::fs::remove_dir_all(to).unwrap();
    copy_folder(from, to);
}

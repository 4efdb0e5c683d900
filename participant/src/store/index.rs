//! The index: the rules' state in a sled database, so that look-ups need no replay. It is never
//! believed on its own word: what is found on disk must add up to the digest stored with it, or it is
//! thrown away and computed again from the journal. Nothing here relies on sled's flush.

use std::{collections::BTreeMap, fs, path::Path, thread, time::Duration};

use firn_ledger::{
    journal::{RecordHash, Tip},
    table::{ContentDigest, MemoryTable, Table, TableError, Visit, check_bounds},
};
use firn_protocol::{
    ids::UnixMillis,
    merkle::{Frontier, TreeSize},
    tagged::tagged_hash,
};

use super::{
    StoreError,
    files::{ensure_private_folder, sync_folder},
};

/// A table that follows a journal.
pub trait StateTable: Table + Send + 'static {
    /// Takes all changes since the last call as the state at `tip`, which is durable.
    ///
    /// # Errors
    /// [`TableError::Storage`]; the process ends then.
    fn settle(&mut self, tip: &Tip) -> Result<(), TableError>;
}

impl StateTable for MemoryTable {
    fn settle(&mut self, _tip: &Tip) -> Result<(), TableError> {
        Ok(())
    }
}

const MAGIC: [u8; 8] = *b"FIRNIDX1";
/// Where the index says what it is; the rules' keys all begin with [`STATE`].
const META_KEY: &[u8] = b"meta";
const STATE: u8 = b's';
/// Memory that sled may use for what it has read.
const CACHE_BYTES: u64 = 64 << 20;
/// How often, and how far apart, a locked database is tried.
const LOCK_TRIES: u32 = 250;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// The rules' state in a sled database. Changes stay in memory until their records are durable, and
/// then reach sled in one atomic step together with the position they belong to: sled never holds
/// anything that the journal could lose.
#[derive(Debug)]
pub struct SledTable {
    database: sled::Db,
    version: u32,
    /// Changes since the last settling; none for a deleted key.
    changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// Of the whole content, changes included.
    digest: ContentDigest,
}

impl SledTable {
    /// Opens the index at `path`, with the position it stands for. An index that is missing, damaged
    /// or of another version is made anew, empty, for position 0; `expected` says whether one should
    /// be there.
    ///
    /// # Errors
    /// [`StoreError`] only if not even a new one can be made.
    pub fn open(path: &Path, version: u32, expected: bool) -> Result<(Self, Tip), StoreError> {
        let there = fs::symlink_metadata(path).is_ok();
        ensure_private_folder(path)?;
        match there.then(|| open_guarded(path, version)) {
            Some(Ok(opened)) => return Ok(opened),
            Some(Err(reason)) => {
                let index = path.display();
                tracing::warn!(code = "index_rebuilt", %index, reason, "rebuilding the index from the journal");
                remove(path)?;
                ensure_private_folder(path)?;
            }
            None if expected => {
                let index = path.display();
                tracing::warn!(code = "index_rebuilt", %index, "there is no index; building it from the journal");
            }
            None => {}
        }
        let mut table = Self {
            database: open_database(path).map_err(storage)?,
            version,
            changes: BTreeMap::new(),
            digest: ContentDigest::default(),
        };
        table.settle(&Tip::genesis())?;
        Ok((table, Tip::genesis()))
    }

    /// The digest of the whole content.
    #[must_use]
    pub const fn digest(&self) -> ContentDigest {
        self.digest
    }

    fn change(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), TableError> {
        if let Some(old) = self.get(key)? {
            self.digest.remove(key, &old);
        }
        if let Some(new) = value {
            self.digest.add(key, new);
        }
        self.changes.insert(key.to_vec(), value.map(<[u8]>::to_vec));
        Ok(())
    }
}

impl Table for SledTable {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, TableError> {
        if let Some(changed) = self.changes.get(key) {
            return Ok(changed.clone());
        }
        let found = self.database.get(state_key(key)).map_err(storage)?;
        Ok(found.map(|value| value.to_vec()))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), TableError> {
        check_bounds(key, value)?;
        self.change(key, Some(value))
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), TableError> {
        self.change(key, None)
    }

    fn range(
        &self,
        from: &[u8],
        below: Option<&[u8]>,
        visit: &mut Visit<'_>,
    ) -> Result<(), TableError> {
        let end = below.map_or_else(|| vec![STATE.saturating_add(1)], state_key);
        if state_key(from) >= end {
            return Ok(());
        }
        let within = |key: &[u8]| below.is_none_or(|below| key < below);
        let mut changes = self
            .changes
            .range(from.to_vec()..)
            .take_while(|(key, _)| within(key))
            .peekable();
        for entry in self.database.range(state_key(from)..end) {
            let (key, value) = entry.map_err(storage)?;
            let key = key.get(1..).unwrap_or_default();
            // Changed keys up to this one come first; a change of this very key replaces it.
            let mut replaced = false;
            while let Some((changed, new)) =
                changes.next_if(|(changed, _)| changed.as_slice() <= key)
            {
                replaced |= changed == key;
                if let Some(new) = new
                    && visit(changed, new).is_break()
                {
                    return Ok(());
                }
            }
            if !replaced && visit(key, &value).is_break() {
                return Ok(());
            }
        }
        for (changed, new) in changes {
            if let Some(new) = new
                && visit(changed, new).is_break()
            {
                return Ok(());
            }
        }
        Ok(())
    }
}

impl StateTable for SledTable {
    fn settle(&mut self, tip: &Tip) -> Result<(), TableError> {
        let mut batch = sled::Batch::default();
        for (key, value) in std::mem::take(&mut self.changes) {
            match value {
                Some(value) => batch.insert(state_key(&key), value),
                None => batch.remove(state_key(&key)),
            }
        }
        batch.insert(META_KEY, encode_meta(self.version, tip, self.digest));
        self.database.apply_batch(batch).map_err(storage)
    }
}

/// Opens what is there and reads all of it. sled can panic on a damaged file; on a thread of its own
/// that is one more reason to rebuild.
fn open_guarded(path: &Path, version: u32) -> Result<(SledTable, Tip), String> {
    let path = path.to_owned();
    let opening = thread::Builder::new()
        .name("index-open".into())
        .spawn(move || open_checked(&path, version));
    let opening = opening.map_err(|error| error.to_string())?;
    opening
        .join()
        .unwrap_or_else(|_| Err("the database panicked".into()))
}

fn open_checked(path: &Path, version: u32) -> Result<(SledTable, Tip), String> {
    let database = open_database(path).map_err(|error| error.to_string())?;
    let meta = database.get(META_KEY).map_err(|error| error.to_string())?;
    let meta = meta.ok_or("it does not say which position it stands for")?;
    let (tip, stored) = decode_meta(version, &meta).ok_or("it is of another version or damaged")?;
    let mut digest = ContentDigest::default();
    for entry in database.iter() {
        let (key, value) = entry.map_err(|error| error.to_string())?;
        match key.split_first() {
            Some((&STATE, key)) => digest.add(key, &value),
            _ if key == META_KEY => {}
            _ => return Err("it holds a foreign key".into()),
        }
    }
    if digest.to_bytes() != stored {
        return Err("its content does not add up to its digest".into());
    }
    Ok((
        SledTable {
            database,
            version,
            changes: BTreeMap::new(),
            digest,
        },
        tip,
    ))
}

fn open_database(path: &Path) -> sled::Result<sled::Db> {
    // Without a timer sled writes when its buffer is full and when it is closed; a crash before that
    // costs a longer replay.
    let config = sled::Config::new()
        .path(path)
        .cache_capacity(CACHE_BYTES)
        .flush_every_ms(None);
    let mut tries = 1_u32;
    loop {
        match config.open() {
            // The journal's lock keeps other processes out, so this is an earlier instance in this very
            // process, whose threads have not quite ended.
            Err(sled::Error::Io(error)) if is_locked(&error) && tries < LOCK_TRIES => {
                thread::sleep(LOCK_PAUSE);
                tries = tries.saturating_add(1);
            }
            outcome => return outcome,
        }
    }
}

/// Whether sled failed because its file is locked, which it says in words only.
fn is_locked(error: &std::io::Error) -> bool {
    error.to_string().contains("could not acquire lock")
}

/// Removes the index, which holds nothing that the journal does not.
fn remove(path: &Path) -> Result<(), StoreError> {
    let removed = fs::remove_dir_all(path);
    let parent = path.parent().map_or(Ok(()), sync_folder);
    removed.and(parent).map_err(StoreError::io(format!(
        "removing the index {}",
        path.display()
    )))
}

fn state_key(key: &[u8]) -> Vec<u8> {
    [&[STATE], key].concat()
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn storage(error: sled::Error) -> TableError {
    TableError::Storage(error.to_string())
}

/// Magic, version, size, time (a flag, then milliseconds), last record, digest, frontier, and a tagged
/// hash over them.
fn encode_meta(version: u32, tip: &Tip, digest: ContentDigest) -> Vec<u8> {
    encode_parts(version, tip, &digest.to_bytes())
}

fn encode_parts(version: u32, tip: &Tip, digest: &[u8; 32]) -> Vec<u8> {
    let (size, peaks) = tip.frontier().parts();
    let time = tip.last_time();
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&version.to_be_bytes());
    bytes.extend_from_slice(&size.leaves().to_be_bytes());
    bytes.push(u8::from(time.is_some()));
    bytes.extend_from_slice(&time.map_or(0, UnixMillis::value).to_be_bytes());
    bytes.extend_from_slice(tip.last_record().as_bytes());
    bytes.extend_from_slice(digest);
    peaks.iter().for_each(|peak| bytes.extend_from_slice(peak));
    let check = tagged_hash("firn/index", &[&bytes]);
    bytes.extend_from_slice(&check);
    bytes
}

fn decode_meta(version: u32, bytes: &[u8]) -> Option<(Tip, [u8; 32])> {
    let (_, rest) = bytes.split_first_chunk::<12>()?;
    let (size, rest) = rest.split_first_chunk::<8>()?;
    let ([timed], rest) = rest.split_first_chunk::<1>()?;
    let (time, rest) = rest.split_first_chunk::<8>()?;
    let (last, rest) = rest.split_first_chunk::<32>()?;
    let (digest, rest) = rest.split_first_chunk::<32>()?;
    let (peaks, _) = rest.split_last_chunk::<32>()?;
    let size = TreeSize::new(u64::from_be_bytes(*size));
    let frontier = Frontier::restore(size, peaks.as_chunks::<32>().0.to_vec()).ok()?;
    let time = (*timed == 1).then(|| UnixMillis::new(u64::from_be_bytes(*time)));
    let tip = Tip::from_parts(frontier, RecordHash::from_bytes(*last), time);
    // Encoding again checks magic, version and hash, and that nothing is left over.
    (encode_parts(version, &tip, digest) == bytes).then_some((tip, *digest))
}

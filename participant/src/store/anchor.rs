//! The anchor: the last known head, in two slots of one small file in another folder, on another disk
//! if the operator has one. It is a lower bound for where the journal ends, and may lag; it never says
//! that a journal is the newest.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use firn_ledger::journal::Head;
use firn_protocol::{
    merkle::{MerkleRoot, TreeSize},
    tagged::tagged_hash,
};

use super::{
    StoreError,
    files::{ensure_private_folder, no_follow, require_private, sync_folder},
};

const MAGIC: [u8; 8] = *b"FIRNANC1";
/// Apart by a page, so that a torn write of one slot leaves the other.
const SLOT_DISTANCE: usize = 4096;
const FILE_NAME: &str = "anchor";

/// What to do when there is no anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IfMissing {
    /// Make one: the journal is new, or the operator says that the old anchor is lost.
    Create,
    /// Refuse: there is a journal, so there was an anchor.
    Refuse,
}

/// The open anchor.
#[derive(Debug)]
pub(super) struct Anchor {
    path: PathBuf,
    file: File,
    /// What each slot holds; none if it does not verify.
    slots: [Option<Head>; 2],
}

impl Anchor {
    /// Opens the anchor in `folder`.
    pub(super) fn open(folder: &Path, missing: IfMissing) -> Result<Self, StoreError> {
        ensure_private_folder(folder)?;
        let path = folder.join(FILE_NAME);
        let io = |doing: &str| StoreError::io(format!("{doing} {}", path.display()));
        if fs::symlink_metadata(&path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            if missing == IfMissing::Refuse {
                return Err(StoreError::AnchorMissing { path });
            }
            create(folder, &path).map_err(io("making"))?;
        }
        require_private(&path)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(no_follow())
            .open(&path);
        let file = file.map_err(io("opening"))?;
        let slots = [read_slot(&file, 0), read_slot(&file, 1)];
        if slots == [None, None] {
            return Err(StoreError::AnchorDamaged { path });
        }
        if slots.contains(&None) {
            tracing::warn!(file = %path.display(), "one slot of the anchor does not verify; using the other");
        }
        Ok(Self { path, file, slots })
    }

    /// The last head that it holds.
    pub(super) fn head(&self) -> Head {
        let [left, right] = self.slots.map(|slot| slot.unwrap_or_else(Head::empty));
        if right.size > left.size { right } else { left }
    }

    /// Holds `head`, durably, in the place of the older of the two it has.
    pub(super) fn set(&mut self, head: Head) -> Result<(), StoreError> {
        if head.size <= self.head().size {
            return Ok(());
        }
        let [left, right] = self.slots.map(|slot| slot.map(|head| head.size));
        self.write(usize::from(right < left), head)
    }

    /// Holds `head` in both slots, one after the other, so that losing one loses nothing.
    pub(super) fn set_both(&mut self, head: Head) -> Result<(), StoreError> {
        self.set(head)?;
        for slot in 0..self.slots.len() {
            if self.slots.get(slot) != Some(&Some(head)) {
                self.write(slot, head)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, slot: usize, head: Head) -> Result<(), StoreError> {
        let place = slot.saturating_mul(SLOT_DISTANCE) as u64;
        let written = self
            .file
            .write_all_at(&encode_slot(head), place)
            .and_then(|()| self.file.sync_data());
        written.map_err(StoreError::io(format!("writing {}", self.path.display())))?;
        if let Some(held) = self.slots.get_mut(slot) {
            *held = Some(head);
        }
        Ok(())
    }
}

fn create(folder: &Path, path: &Path) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    let slot = encode_slot(Head::empty());
    let mut bytes = slot.clone();
    bytes.resize(SLOT_DISTANCE, 0);
    bytes.extend_from_slice(&slot);
    let mut options = OpenOptions::new();
    let options = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(no_follow());
    let mut file = options.open(&unfinished)?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    sync_folder(folder)
}

/// Magic, size, root and a tagged hash over them.
fn encode_slot(head: Head) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&head.size.leaves().to_be_bytes());
    bytes.extend_from_slice(head.root.as_bytes());
    let check = tagged_hash("firn/anchor", &[&bytes]);
    bytes.extend_from_slice(&check);
    bytes
}

fn read_slot(file: &File, number: usize) -> Option<Head> {
    let mut bytes = [0; 80];
    file.read_exact_at(&mut bytes, number.saturating_mul(SLOT_DISTANCE) as u64)
        .ok()?;
    let (_, rest) = bytes.split_first_chunk::<8>()?;
    let (size, rest) = rest.split_first_chunk::<8>()?;
    let (root, _) = rest.split_first_chunk::<32>()?;
    let head = Head {
        size: TreeSize::new(u64::from_be_bytes(*size)),
        root: MerkleRoot::from_bytes(*root),
    };
    (encode_slot(head) == bytes).then_some(head)
}

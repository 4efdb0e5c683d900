//! The journal's files. It decides who may open them and in which order things become durable; what
//! the bytes mean is decided in `firn_ledger`.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use firn_ledger::{
    folder::{Folder, LOCK_FILE, UNFINISHED_SUFFIX},
    journal::{SegmentHeader, SegmentNumber, SegmentSource},
};
use rustix::fs::{FlockOperation, OFlags, flock};

use super::StoreError;

/// What the writer needs of the files; tests count and fail each call.
pub trait SegmentFiles: SegmentSource + Send + 'static {
    /// Makes a segment: its header, then zeros. When this returns, the whole file is durable under its
    /// name; before, no file has that name.
    ///
    /// # Errors
    /// Whatever the system says; the process ends then.
    fn create(&mut self, header: &SegmentHeader) -> io::Result<()>;

    /// Writes into a segment, in one write.
    ///
    /// # Errors
    /// Whatever the system says; the process ends then.
    fn write(&mut self, segment: SegmentNumber, offset: usize, bytes: &[u8]) -> io::Result<()>;

    /// Makes all that was written into a segment durable.
    ///
    /// # Errors
    /// Whatever the system says; the process ends then.
    fn sync(&mut self, segment: SegmentNumber) -> io::Result<()>;
}

/// A journal's folder, open for writing by this process alone.
#[derive(Debug)]
pub struct FolderFiles {
    folder: Folder,
    /// Holds the lock for as long as it is open.
    _lock: File,
    current: Option<(SegmentNumber, File)>,
}

impl FolderFiles {
    /// Opens the folder, and makes it if it is not there; its parent must be.
    ///
    /// # Errors
    /// [`StoreError::InUse`], [`StoreError::Permissions`], [`StoreError::StrangeFile`] or
    /// [`StoreError::Io`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        ensure_private_folder(path)?;
        let folder =
            Folder::open(path).map_err(StoreError::io(format!("opening {}", path.display())))?;
        let lock = lock(&path.join(LOCK_FILE))?;
        let files = Self {
            folder,
            _lock: lock,
            current: None,
        };
        files.tidy()?;
        Ok(files)
    }

    /// Whether no segment was ever made here.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn is_new(&self) -> Result<bool, StoreError> {
        let listing = self
            .folder
            .listing()
            .map_err(StoreError::io("listing the journal's folder"))?;
        Ok(listing.segments.is_empty())
    }

    /// Refuses what has no place here, and removes segments whose creation a crash interrupted.
    fn tidy(&self) -> Result<(), StoreError> {
        let listing = self
            .folder
            .listing()
            .map_err(StoreError::io("listing the journal's folder"))?;
        if let Some(name) = listing.strangers.first() {
            // A link with a segment's name would otherwise make the journal look shorter than it is.
            return Err(StoreError::StrangeFile {
                path: self.folder.path().join(name),
            });
        }
        for number in listing.segments {
            require_private(&self.folder.segment_path(number))?;
        }
        for name in &listing.unfinished {
            let path = self.folder.path().join(name);
            tracing::warn!(file = %path.display(), "removing a segment that a crash left unfinished");
            fs::remove_file(&path)
                .map_err(StoreError::io(format!("removing {}", path.display())))?;
        }
        // Also makes a rename durable that was done, but not synced, when the process was killed.
        sync_folder(self.folder.path()).map_err(StoreError::io(format!(
            "syncing {}",
            self.folder.path().display()
        )))
    }

    fn file(&mut self, segment: SegmentNumber) -> io::Result<&File> {
        if self
            .current
            .as_ref()
            .is_none_or(|(number, _)| *number != segment)
        {
            let path = self.folder.segment_path(segment);
            let file = OpenOptions::new()
                .write(true)
                .custom_flags(no_follow())
                .open(path)?;
            self.current = Some((segment, file));
        }
        let (_, file) = self.current.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok(file)
    }
}

impl SegmentSource for FolderFiles {
    fn numbers(&mut self) -> io::Result<Vec<SegmentNumber>> {
        self.folder.numbers()
    }

    fn read(&mut self, number: SegmentNumber) -> io::Result<Vec<u8>> {
        self.folder.read(number)
    }
}

impl SegmentFiles for FolderFiles {
    fn create(&mut self, header: &SegmentHeader) -> io::Result<()> {
        let path = self.folder.segment_path(header.number());
        if fs::symlink_metadata(&path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let unfinished = path.with_file_name(header.number().file_name() + UNFINISHED_SUFFIX);
        // Zeros are written and not just allocated: an allocated but unwritten block changes the
        // filesystem's own records on its first write, and each fdatasync would have to wait for
        // those. A full disk shows here, not in the middle of a batch.
        let mut bytes = header.encode();
        bytes.resize(header.segment_bytes().as_usize(), 0);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unfinished)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, &path)?;
        sync_folder(self.folder.path())?;
        self.current = Some((header.number(), file));
        Ok(())
    }

    fn write(&mut self, segment: SegmentNumber, offset: usize, bytes: &[u8]) -> io::Result<()> {
        self.file(segment)?.write_all_at(bytes, offset as u64)
    }

    fn sync(&mut self, segment: SegmentNumber) -> io::Result<()> {
        self.file(segment)?.sync_data()
    }
}

/// Makes a folder for this user alone, durably, or checks that it is one.
pub(super) fn ensure_private_folder(path: &Path) -> Result<(), StoreError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {
            let made = sync_folder(path).and_then(|()| sync_folder(&parent(path)));
            made.map_err(StoreError::io(format!("syncing {}", path.display())))?;
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(StoreError::io(format!("making {}", path.display()))(error)),
    }
    require_private(path)
}

/// Refuses a file or folder that somebody else owns, or that others may read or write.
pub(super) fn require_private(path: &Path) -> Result<(), StoreError> {
    let found = fs::symlink_metadata(path)
        .map_err(StoreError::io(format!("looking at {}", path.display())))?;
    if found.is_symlink() {
        return Err(StoreError::StrangeFile {
            path: path.to_owned(),
        });
    }
    let (mode, owner) = (found.mode() & 0o7777, found.uid());
    if mode & 0o077 != 0 || owner != rustix::process::geteuid().as_raw() {
        return Err(StoreError::Permissions {
            path: path.to_owned(),
            mode,
            owner,
        });
    }
    Ok(())
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// The flag that refuses to open a link, as the standard library takes it.
pub(super) fn no_follow() -> i32 {
    OFlags::NOFOLLOW.bits().cast_signed()
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_owned(),
        None => path.to_owned(),
    }
}

/// Takes the lock that keeps a second process out; it ends with this process, however that ends.
fn lock(path: &Path) -> Result<File, StoreError> {
    let io = |doing: &str| StoreError::io(format!("{doing} {}", path.display()));
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(no_follow())
        .open(path)
        .map_err(io("opening"))?;
    require_private(path)?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let mut holder = String::new();
        let said = Read::by_ref(&mut file).take(64).read_to_string(&mut holder);
        let holder = if said.is_ok() && !holder.is_empty() {
            holder
        } else {
            "another process".into()
        };
        return Err(StoreError::InUse {
            lock: path.to_owned(),
            holder: holder.trim().to_owned(),
        });
    }
    file.set_len(0).map_err(io("clearing"))?;
    file.rewind().map_err(io("rewinding"))?;
    writeln!(file, "process {}", std::process::id()).map_err(io("writing"))?;
    Ok(file)
}

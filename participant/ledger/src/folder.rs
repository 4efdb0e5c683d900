//! A journal's folder, for reading only. It decides which files are segments; it creates, changes and
//! follows nothing.

use std::{
    fs, io,
    io::Read,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::journal::{SegmentBytes, SegmentNumber, SegmentSource};

/// The file that the participant locks in a journal's folder.
pub const LOCK_FILE: &str = "LOCK";
/// What the name of a segment ends in until it is whole and durable.
pub const UNFINISHED_SUFFIX: &str = ".new";

/// A folder of segments.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

/// The files of a journal's folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The segments, in ascending order.
    pub segments: Vec<SegmentNumber>,
    /// Segments whose creation a crash interrupted; they never held a record.
    pub unfinished: Vec<String>,
    /// Whatever has no place there.
    pub strangers: Vec<String>,
}

impl Folder {
    /// The folder at `path`, which must be a folder and not a link to one.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotADirectory`], or why it cannot be looked at.
    pub fn open(path: &Path) -> io::Result<Self> {
        if !fs::symlink_metadata(path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where a segment's file is.
    #[must_use]
    pub fn segment_path(&self, number: SegmentNumber) -> PathBuf {
        self.path.join(number.file_name())
    }

    /// Sorts the folder's files.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn listing(&self) -> io::Result<Listing> {
        let mut listing = Listing::default();
        for file in fs::read_dir(&self.path)? {
            let file = file?;
            let name = file.file_name().to_string_lossy().into_owned();
            // The type of a link is "link" here, whatever it points to.
            let plain = file.file_type()?.is_file();
            let unfinished = name
                .strip_suffix(UNFINISHED_SUFFIX)
                .and_then(SegmentNumber::from_file_name);
            match SegmentNumber::from_file_name(&name) {
                Some(number) if plain => listing.segments.push(number),
                None if plain && unfinished.is_some() => listing.unfinished.push(name),
                None if plain && name == LOCK_FILE => {}
                Some(_) | None => listing.strangers.push(name),
            }
        }
        listing.segments.sort_unstable();
        listing.unfinished.sort_unstable();
        listing.strangers.sort_unstable();
        Ok(listing)
    }
}

impl SegmentSource for Folder {
    fn numbers(&mut self) -> io::Result<Vec<SegmentNumber>> {
        Ok(self.listing()?.segments)
    }

    fn read(&mut self, number: SegmentNumber) -> io::Result<Vec<u8>> {
        let path = self.segment_path(number);
        let seen = fs::symlink_metadata(&path)?;
        let mut file = fs::File::open(&path)?;
        let opened = file.metadata()?;
        // A link put in place of the file between the two calls opens another inode.
        if !seen.is_file() || (seen.dev(), seen.ino()) != (opened.dev(), opened.ino()) {
            return Err(io::Error::other("a segment is not a plain file"));
        }
        if opened.len() > u64::from(SegmentBytes::MAX.bytes()) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut bytes = Vec::with_capacity(usize::try_from(opened.len()).unwrap_or_default());
        // A file that grows while it is read must not outgrow the bound.
        file.by_ref().take(opened.len()).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

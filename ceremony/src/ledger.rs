//! A participant's ledger at rest. It decides where in a participant's folder the ledger is; what is
//! sound is the ledger's own rules' to say.

use std::{
    io::{Error as IoError, ErrorKind},
    path::{Path, PathBuf},
};

use firn_ledger::{folder::Folder, journal::Report, rules};

use crate::error::Error;

/// From the ledger's own folder to a participant's whole folder.
const PLACES: [&str; 4] = ["", "journal", "ledger/journal", "data/ledger/journal"];

/// What was checked, and what was found.
#[derive(Debug)]
pub struct Checked {
    /// The ledger's folder.
    pub folder: PathBuf,
    /// What was found.
    pub report: Report,
}

/// Checks the ledger in `folder`: a participant's folder, its data folder or the ledger's own.
///
/// # Errors
/// [`Error::File`] where there is no ledger or it cannot be read.
pub fn check(folder: &Path) -> Result<Checked, Error> {
    for place in PLACES {
        let path = folder.join(place);
        let mut candidate = match Folder::open(&path) {
            Ok(candidate) => candidate,
            Err(error) if is_elsewhere(&error) => continue,
            Err(error) => return Err(Error::file("opening", path)(error)),
        };
        let listing = candidate.listing().map_err(Error::file("reading", &path))?;
        if listing.segments.is_empty() {
            continue;
        }
        let report = rules::check(&mut candidate, &[]);
        return Ok(Checked {
            folder: path,
            report,
        });
    }
    Err(Error::BadFile {
        path: folder.to_owned(),
        what: "a participant's ledger",
    })
}

fn is_elsewhere(error: &IoError) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::check;
    use crate::error::Error;

    #[test]
    fn says_where_there_is_no_ledger() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("data/ledger/journal")).unwrap();
        for path in [folder.path(), &folder.path().join("nowhere")] {
            assert!(matches!(check(path), Err(Error::BadFile { .. })));
        }
    }
}

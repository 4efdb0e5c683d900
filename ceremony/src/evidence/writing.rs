//! Writing a ceremony's folder. It decides that a folder comes into being whole or not at all, and that
//! what was kept once is never written over by another thing of the same name.

use std::{
    fs::{self, File},
    io::ErrorKind,
    path::{Path, PathBuf},
};

use firn_protocol::{
    codec,
    documents::Policy,
    envelope::{Endorsed, Envelope},
    messages::CeremonyRecord,
};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::Serialize;

use super::folder::{
    ACKNOWLEDGEMENTS, ACTIVATION, Acknowledgements, CEREMONY, Folder, PLAN, POLICY, REQUESTS,
    RequestEvidence,
};
use crate::{
    domain::files::{make_folder, replace_public, write_document},
    error::Error,
};

/// What a folder begins with, right after its ceremony.
#[derive(Debug, Clone, Copy)]
pub struct Beginning<'a> {
    /// The plan.
    pub plan: &'a Endorsed,
    /// The policy.
    pub policy: &'a Envelope<Policy>,
    /// What the coordinator gave back.
    pub ceremony: &'a CeremonyRecord,
    /// The activation, with as many signatures as there are; none where the record does not verify.
    pub activation: Option<&'a Endorsed>,
}

impl Folder {
    /// Makes the folder of a ceremony: all of it appears at once.
    ///
    /// # Errors
    /// [`Error::FileExists`] where something has its name; [`Error::File`].
    pub fn create(path: &Path, beginning: &Beginning<'_>) -> Result<Self, Error> {
        must_be_free(path)?;
        let beside = Self::at(beside(path));
        make_folder(beside.path())?;
        let written = beside
            .begin(beginning)
            .and_then(|()| put_in_place(beside.path(), path));
        if let Err(error) = written {
            // The error is what counts; a folder that is left over does no harm.
            let _ = fs::remove_dir_all(beside.path());
            return Err(error);
        }
        Ok(Self::at(path))
    }

    fn begin(&self, beginning: &Beginning<'_>) -> Result<(), Error> {
        write_document(&self.file(PLAN), beginning.plan)?;
        write_document(&self.file(POLICY), beginning.policy)?;
        write_document(&self.file(CEREMONY), beginning.ceremony)?;
        if let Some(activation) = beginning.activation {
            write_document(&self.file(ACTIVATION), activation)?;
        }
        make_folder(&self.file(REQUESTS))?;
        sync(self.path())
    }

    /// Puts the activation with its new signature in the place of the one before.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn put_activation(&self, activation: &Endorsed) -> Result<(), Error> {
        self.replace(ACTIVATION, activation)
    }

    /// Puts all acknowledgements in the place of those that were there.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn put_acknowledgements(&self, words: &Acknowledgements) -> Result<(), Error> {
        self.replace(ACKNOWLEDGEMENTS, words)
    }

    /// Keeps a request and its answer; says whether it is new. What is kept of a request already stays:
    /// asking again gives the same answer with less to show for it.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn add_request(&self, evidence: &RequestEvidence) -> Result<bool, Error> {
        let requests = self.file(REQUESTS);
        match fs::create_dir(&requests) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::file("making", &requests)(error)),
        }
        let id = claimed_request(evidence)?;
        match write_document(&self.request(&id), evidence) {
            Ok(()) => Ok(true),
            Err(Error::FileExists { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The acknowledgements that are kept so far.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::BadFile`].
    pub fn acknowledgements(&self) -> Result<Acknowledgements, Error> {
        let path = self.file(ACKNOWLEDGEMENTS);
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Acknowledgements::empty()),
            Err(error) => Err(Error::file("reading", path)(error)),
            Ok(_) => self.read(ACKNOWLEDGEMENTS, "acknowledgements"),
        }
    }

    fn replace<T: Serialize>(&self, name: &str, value: &T) -> Result<(), Error> {
        replace_public(&self.file(name), &codec::encode(value)?)?;
        sync(self.path())
    }
}

/// Keeps what came back and did not verify, beside where the folder would have been, as evidence of who
/// said what.
///
/// # Errors
/// [`Error::FileExists`]; [`Error::File`].
pub fn keep_rejected(path: &Path, beginning: &Beginning<'_>) -> Result<PathBuf, Error> {
    // A second one of the same name is another piece of evidence.
    for number in 1_u32..100 {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(if number == 1 {
            ".rejected".to_owned()
        } else {
            format!(".rejected-{number}")
        });
        let place = path.with_file_name(name);
        match Folder::create(&place, beginning) {
            Err(Error::FileExists { .. }) => {}
            Err(error) => return Err(error),
            Ok(_) => return Ok(place),
        }
    }
    Err(Error::FileExists {
        path: path.to_owned(),
    })
}

/// The request that an answer belongs to, by its receipts' own word; its file is named after it.
fn claimed_request(evidence: &RequestEvidence) -> Result<firn_protocol::ids::RequestId, Error> {
    let (_, grant, _) = evidence;
    let signer = grant.claimed_signer()?;
    Ok(grant.clone().verify(&signer)?.request_id)
}

fn must_be_free(path: &Path) -> Result<(), Error> {
    if path.symlink_metadata().is_ok() {
        return Err(Error::FileExists {
            path: path.to_owned(),
        });
    }
    Ok(())
}

/// Where a folder is made before it has its name: in the same folder, so that a rename suffices.
fn beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}

fn put_in_place(from: &Path, to: &Path) -> Result<(), Error> {
    renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).map_err(|error| {
        if error == rustix::io::Errno::EXIST {
            Error::FileExists {
                path: to.to_owned(),
            }
        } else {
            Error::file("making", to)(error.into())
        }
    })?;
    match to.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync(parent),
        Some(_) | None => sync(Path::new(".")),
    }
}

/// A name in a folder is durable only after the folder is.
fn sync(folder: &Path) -> Result<(), Error> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(Error::file("syncing", folder))
}

#[cfg(test)]
mod tests {
    use firn_protocol::codec::List;

    use super::*;
    use crate::evidence::tests::world::world;

    #[test]
    fn a_folder_appears_whole_and_over_nothing() {
        let world = world();
        let certified = world.active.certified();
        let record = CeremonyRecord {
            header: Envelope::from_bytes(vec![0]).unwrap(),
            round1: List::empty(),
            manifests: List::empty(),
            deliveries: List::empty(),
            certificates: certified.certificate_set().unwrap().certificates,
            proofs: List::empty(),
        };
        let beginning = Beginning {
            plan: certified.plan().endorsed(),
            policy: world.active.policy().envelope(),
            ceremony: &record,
            activation: Some(world.active.activation().endorsed()),
        };
        let scratch = tempfile::tempdir().unwrap();
        let place = scratch.path().join("made");
        let folder = Folder::create(&place, &beginning).unwrap();
        let documents = folder.key_documents().unwrap();
        assert_eq!(&documents.plan, certified.plan().endorsed());
        assert!(folder.acknowledgements().unwrap().is_empty());
        assert!(matches!(
            Folder::create(&place, &beginning),
            Err(Error::FileExists { .. })
        ));
        // A folder whose parent is not there is not made, and what was begun is gone.
        assert!(Folder::create(&scratch.path().join("no/such"), &beginning).is_err());

        let rejected = Beginning {
            activation: None,
            ..beginning
        };
        for name in ["made.rejected", "made.rejected-2"] {
            let kept = keep_rejected(&place, &rejected).unwrap();
            assert_eq!(kept, scratch.path().join(name));
            assert!(!kept.join(ACTIVATION).exists() && kept.join(CEREMONY).exists());
        }
        let names = fs::read_dir(scratch.path()).unwrap();
        assert_eq!(names.count(), 3, "nothing half made is left");
    }
}

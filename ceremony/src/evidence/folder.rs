//! The folder of a ceremony: what one is made of, strictly read. It decides whether a folder holds exactly
//! the files that it must, each a plain file in its own place; what they say is checked elsewhere.
//!
//! Everything in it is CBOR in its one encoding and bound by signatures. The folder proves what is in it;
//! it cannot show that nothing else was ever signed: the members' ledgers do.

use std::{
    fs::{self, OpenOptions},
    io::Read,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use firn_protocol::{
    codec::{self, List},
    documents::{Grant, Intent, Policy},
    envelope::{Endorsed, Envelope},
    ids::RequestId,
    limits,
    messages::{Acknowledgement, CeremonyRecord, KeyDocuments, RequestSigned},
};
use rustix::fs::OFlags;
use serde::{Serialize, de::DeserializeOwned};

use crate::error::Error;

/// The plan, endorsed.
pub const PLAN: &str = "plan.cbor";
/// The policy, signed.
pub const POLICY: &str = "policy.cbor";
/// The record of the ceremony.
pub const CEREMONY: &str = "ceremony.cbor";
/// The activation, endorsed.
pub const ACTIVATION: &str = "activation.cbor";
/// The members' acknowledgements of the activation.
pub const ACKNOWLEDGEMENTS: &str = "acknowledgements.cbor";
/// The folder of what was signed with the key.
pub const REQUESTS: &str = "requests";

/// The files that every folder has.
pub const FILES: [&str; 5] = [PLAN, POLICY, CEREMONY, ACTIVATION, ACKNOWLEDGEMENTS];

const EXTENSION: &str = ".cbor";
/// The head of the byte string around an envelope, and some.
const HEAD: usize = 16;
/// A whole answer with its intent and its grant.
const REQUEST_LIMIT: usize = limits::MAX_FRAME + limits::MAX_INTENT + limits::SMALL_DOCUMENT;

/// Acknowledgements as they are kept: ascending by member, no member twice.
pub type Acknowledgements = List<Envelope<Acknowledgement>, { limits::MAX_MEMBERS }>;

/// A request as it is kept: what was asked, the permission, and the answer. Approvals are not kept: no
/// policy asks for any yet, and nothing would bind them.
pub type RequestEvidence = (Envelope<Intent>, Envelope<Grant>, RequestSigned);

/// Something that is wrong with a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// Where.
    pub(super) name: String,
    /// What.
    pub(super) what: &'static str,
}

/// A folder at rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder(PathBuf);

/// The kind of a file, and how it is read.
pub(super) trait Kept: Serialize + DeserializeOwned {
    const LIMIT: usize;
}

impl Kept for Endorsed {
    const LIMIT: usize = Self::LIMIT;
}

impl Kept for Envelope<Policy> {
    const LIMIT: usize = Self::LIMIT + HEAD;
}

impl Kept for CeremonyRecord {
    const LIMIT: usize = limits::MAX_FRAME;
}

impl Kept for Acknowledgements {
    const LIMIT: usize = limits::MAX_MEMBERS * (Envelope::<Acknowledgement>::LIMIT + HEAD) + HEAD;
}

impl Kept for RequestEvidence {
    const LIMIT: usize = REQUEST_LIMIT;
}

impl Folder {
    /// The folder at `path`.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A file in it.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The file of a request.
    #[must_use]
    pub fn request(&self, id: &RequestId) -> PathBuf {
        self.0.join(REQUESTS).join(format!("{id}{EXTENSION}"))
    }

    /// Everything that says what the key is.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::BadFile`]. Whether it is true is for whoever verifies it.
    pub fn key_documents(&self) -> Result<KeyDocuments, Error> {
        let record = self.ceremony()?;
        Ok(KeyDocuments {
            plan: self.read(PLAN, "a plan")?,
            certificates: record.certificates,
            policy: self.read(POLICY, "a policy")?,
            activation: self.read(ACTIVATION, "an activation")?,
        })
    }

    /// The record of the ceremony.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::BadFile`].
    pub fn ceremony(&self) -> Result<CeremonyRecord, Error> {
        self.read(CEREMONY, "the record of a ceremony")
    }

    pub(super) fn read<T: Kept>(&self, name: &str, what: &'static str) -> Result<T, Error> {
        let path = self.file(name);
        let bytes = read_plain(&path, T::LIMIT).map_err(Error::file("reading", &path))?;
        codec::decode(&bytes, T::LIMIT).map_err(|_| Error::BadFile { path, what })
    }

    /// The ids of the requests that it keeps, ascending, and everything that does not belong there.
    ///
    /// # Errors
    /// [`Error::File`] where a folder cannot be read at all.
    pub(super) fn look(&self) -> Result<(Vec<RequestId>, Vec<Finding>), Error> {
        let mut findings = Vec::new();
        let mut seen = Vec::new();
        let mut has_requests = false;
        for (name, kind) in entries(&self.0)? {
            match (name.as_str(), kind) {
                (REQUESTS, Kind::Folder) => has_requests = true,
                (known, Kind::File) if FILES.contains(&known) => seen.push(name),
                (known, _) if FILES.contains(&known) => {
                    findings.push(Finding::of(name, "is no plain file"));
                }
                (REQUESTS, Kind::File | Kind::Other) => {
                    findings.push(Finding::of(name, "is no folder"));
                }
                (_, Kind::Folder) => findings.push(Finding::of(name, "is a folder too many")),
                (_, Kind::File | Kind::Other) => {
                    findings.push(Finding::of(name, "is a file too many"));
                }
            }
        }
        for name in FILES {
            if !seen.iter().any(|seen| seen == name)
                && !findings.iter().any(|finding| finding.name == name)
            {
                findings.push(Finding::of(name.to_owned(), "is missing"));
            }
        }
        let mut requests = Vec::new();
        if has_requests {
            for (name, kind) in entries(&self.0.join(REQUESTS))? {
                let inside = format!("{REQUESTS}/{name}");
                match (request_id(&name), kind) {
                    (Some(id), Kind::File) => requests.push(id),
                    (Some(_), Kind::Folder | Kind::Other) => {
                        findings.push(Finding::of(inside, "is no plain file"));
                    }
                    (None, _) => findings.push(Finding::of(
                        inside,
                        "is not named after a request: 64 hexadecimal digits and .cbor",
                    )),
                }
            }
        }
        findings.sort_by(|left, right| left.name.cmp(&right.name));
        Ok((requests, findings))
    }
}

impl Finding {
    const fn of(name: String, what: &'static str) -> Self {
        Self { name, what }
    }
}

/// The bytes of a plain file, if there are at most `limit`; a link is followed nowhere.
pub(super) fn read_plain(path: &Path, limit: usize) -> std::io::Result<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("not a plain file"));
    }
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    if bytes.len() > limit {
        return Err(std::io::Error::other("larger than such a file can be"));
    }
    Ok(bytes)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
    Other,
}

/// What lies in a folder, ascending by name. A link is a thing of its own here, whatever it points to.
fn entries(path: &Path) -> Result<Vec<(String, Kind)>, Error> {
    let error = || Error::file("reading", path);
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(error())? {
        let entry = entry.map_err(error())?;
        let kind = entry.file_type().map_err(error())?;
        let kind = if kind.is_file() {
            Kind::File
        } else if kind.is_dir() {
            Kind::Folder
        } else {
            Kind::Other
        };
        found.push((entry.file_name().to_string_lossy().into_owned(), kind));
    }
    found.sort_by(|left, right| left.0.cmp(&right.0));
    Ok(found)
}

/// The request that a file is named after: in small letters, so that it has one name.
fn request_id(name: &str) -> Option<RequestId> {
    let digits = name.strip_suffix(EXTENSION)?;
    let id = RequestId::from_hex(digits)?;
    (id.to_string() == digits).then_some(id)
}

//! Why the ledger does not open or does not go on. Each reason has a stable code, and says what an
//! operator can do; none is ever worked around in silence.

use std::{io, path::PathBuf};

use firn_ledger::{
    journal::{BoundBreach, Damage, Knower, ScanError, Sequence},
    table::TableError,
};
use firn_protocol::codec::Malformed;

use super::RuleViolation;

/// Why the ledger does not open or does not go on.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has the ledger open.
    #[error("{} is locked by {holder}", lock.display())]
    InUse {
        /// The locked file.
        lock: PathBuf,
        /// What it says of its holder.
        holder: String,
    },
    /// Somebody else can read or write what only the participant may.
    #[error("{} has mode {mode:04o} and owner {owner}", path.display())]
    Permissions {
        /// The file or folder.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// The user id of its owner.
        owner: u32,
    },
    /// A file that has no place in the journal's folder, or a link where a file should be.
    #[error("{} has no place here", path.display())]
    StrangeFile {
        /// The file.
        path: PathBuf,
    },
    /// A read, write, sync, rename or the like failed.
    #[error("{doing} failed: {source}")]
    Io {
        /// What was tried, and on which file.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// The journal is damaged.
    #[error("the journal is damaged at {0}")]
    Damaged(Damage),
    /// The index, the anchor or a witness knows of another or a longer history.
    #[error("{0}")]
    Breach(BoundBreach),
    /// There is a journal but no anchor.
    #[error("there is a journal, but no anchor at {}", path.display())]
    AnchorMissing {
        /// Where it should be.
        path: PathBuf,
    },
    /// Neither slot of the anchor verifies.
    #[error("neither slot of the anchor {} verifies", path.display())]
    AnchorDamaged {
        /// Where it is.
        path: PathBuf,
    },
    /// A record that verifies but breaks the rules.
    #[error("record {sequence} breaks the rules: {violation}")]
    Unlawful {
        /// The record.
        sequence: Sequence,
        /// The rule.
        violation: RuleViolation,
    },
    /// The index failed under way.
    #[error("{0}")]
    Index(#[from] TableError),
    /// A record that cannot be encoded, which its types rule out.
    #[error("a record cannot be encoded: {0}")]
    Encoding(#[from] Malformed),
}

impl StoreError {
    /// The stable code of the reason.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::InUse { .. } => "ledger_in_use",
            Self::Permissions { .. } => "ledger_permissions",
            Self::StrangeFile { .. } => "ledger_strange_file",
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "ledger_disk_full"
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                "ledger_read_only"
            }
            Self::Io { .. } => "ledger_io",
            Self::Damaged(_) => "ledger_damaged",
            Self::Breach(BoundBreach::Behind { bound, .. }) => match bound.knower {
                Knower::Index => "ledger_behind_index",
                Knower::Anchor => "ledger_behind_anchor",
                Knower::Witness => "ledger_behind_witness",
            },
            Self::Breach(BoundBreach::Diverged { .. }) => "ledger_diverged",
            Self::AnchorMissing { .. } => "anchor_missing",
            Self::AnchorDamaged { .. } => "anchor_damaged",
            Self::Unlawful { .. } => "ledger_unlawful_record",
            Self::Index(_) => "index_failed",
            Self::Encoding(_) => "ledger_encoding",
        }
    }

    /// What an operator can do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::InUse { .. } => {
                "Stop the other participant first. The lock ends with its process; never delete the file."
            }
            Self::Permissions { .. } => {
                "Find out who could read or change it, then give it to the participant's user alone \
                 (folders 0700, files 0600)."
            }
            Self::StrangeFile { .. } => {
                "Find out where it comes from and move it out of the folder."
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "Make room on the disk and start again; nothing acknowledged is lost."
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                "Find out why the disk is read-only: a system remounts it so when the disk fails. Start again \
                 once it can be written; nothing acknowledged is lost."
            }
            Self::Io { .. } => "Check the disk and its log; start again once the cause is known.",
            Self::Damaged(_) => {
                "Keep the folder as evidence, run `firn ledger check` on a copy, and replace this member \
                 by a reshare. Never cut the journal by hand."
            }
            Self::Breach(_) => {
                "The folder is older than what this participant has already said, or another's. Bring back \
                 the newest one; if it is lost, replace this member by a reshare."
            }
            Self::AnchorMissing { .. } => {
                "Bring the anchor's disk back. If it is lost for good, and the journal is known to be the \
                 newest, start once with `replace_lost_anchor`."
            }
            Self::AnchorDamaged { .. } => {
                "Check the anchor's disk. If the journal is known to be the newest, move the anchor away and \
                 start once with `replace_lost_anchor`."
            }
            Self::Unlawful { .. } => {
                "The journal was written by another version or under other rules. Start the version that \
                 wrote it."
            }
            Self::Index(_) => {
                "Start again; if it stays, move the index folder away, it is rebuilt."
            }
            Self::Encoding(_) => "This is a defect of the participant; report it.",
        }
    }

    /// An input or output error, with what was being done.
    pub(super) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }
}

impl From<ScanError> for StoreError {
    fn from(error: ScanError) -> Self {
        match error {
            ScanError::Unreadable(source) => Self::Io {
                doing: "reading the journal".into(),
                source,
            },
            ScanError::Damaged(damage) => Self::Damaged(damage),
            ScanError::Breach(breach) => Self::Breach(breach),
        }
    }
}

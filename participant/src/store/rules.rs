//! What the ledger asks of the rules that it serves. The rules decide which records are written and
//! what they mean; they never see a disk, and cannot answer anybody.

use std::fmt;

use firn_ledger::{
    journal::{NewRecord, Record},
    table::{Table, TableError},
};
use firn_protocol::ids::UnixMillis;

/// The time at which a command is judged. Its records get the clock's time, so a journal is only as
/// orderly as the rules: they refuse when the clock is behind the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// What the clock says.
    pub now: UnixMillis,
    /// The time of the journal's last record.
    pub last: Option<UnixMillis>,
}

/// A command that the rules admit.
#[derive(Debug)]
pub struct Admitted<A> {
    /// What is to be recorded, in order, whole or not at all. May be empty: what was answered before
    /// is answered again without a record.
    pub records: Vec<NewRecord>,
    /// What the asker is told once the records are durable.
    pub answer: A,
}

/// A command that leads to no record.
#[derive(Debug)]
pub enum NotAdmitted<R> {
    /// The rules refuse it.
    Refused(R),
    /// The state could not be read; the process ends.
    Unreadable(TableError),
}

impl<R> From<TableError> for NotAdmitted<R> {
    fn from(error: TableError) -> Self {
        Self::Unreadable(error)
    }
}

/// A record that breaks the rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleViolation {
    /// The state could not be read or changed.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The record contradicts the ones before it, or is of no known kind or form.
    #[error("{0}")]
    Unlawful(String),
}

/// The rules of one ledger. All that they remember is in the table, which holds what the records up
/// to now amount to and nothing else, so that it can be computed again from them.
pub trait Rules: Send + 'static {
    /// What a session asks to be written.
    type Command: Send + 'static;
    /// What it is told when that is durable.
    type Answer: Send + 'static;
    /// Why it is not written.
    type Refusal: fmt::Debug + Send + 'static;

    /// Counts the changes to what [`Rules::apply`] makes of a record: an index of another version is
    /// rebuilt.
    const STATE_VERSION: u32;

    /// Judges a command by the state as of every record before it, those of the same batch included.
    ///
    /// # Errors
    /// [`NotAdmitted::Refused`], or that the state cannot be read.
    fn admit(
        &self,
        state: &dyn Table,
        command: Self::Command,
        moment: Moment,
    ) -> Result<Admitted<Self::Answer>, NotAdmitted<Self::Refusal>>;

    /// Changes the state by one record: one that is about to be written, or one that is read again.
    ///
    /// # Errors
    /// [`RuleViolation`]: the journal does not open, or the process ends before anything is written.
    fn apply(&self, state: &mut dyn Table, record: &Record) -> Result<(), RuleViolation>;
}

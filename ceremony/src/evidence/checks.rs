//! What was checked, in words. It decides how a check is written down, and never what is checked.

use firn_protocol::{codec::Malformed, envelope::EnvelopeError, reject::Reject};
use serde::{Deserialize, Serialize};

/// One check of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The file, relative to the folder; `.` for the folder itself.
    pub file: String,
    /// What has to hold.
    pub check: String,
    /// Whether it does.
    pub holds: bool,
    /// What was found where it holds; why not where it does not. May be empty.
    pub detail: String,
}

/// Why a check does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Because(String);

impl Because {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl From<Reject> for Because {
    fn from(code: Reject) -> Self {
        Self(format!("{} [{}]", code.meaning(), code.name()))
    }
}

impl From<EnvelopeError> for Because {
    fn from(error: EnvelopeError) -> Self {
        Reject::from(error).into()
    }
}

impl From<Malformed> for Because {
    fn from(malformed: Malformed) -> Self {
        Reject::from(malformed).into()
    }
}

/// The checks of one file, in their order.
#[derive(Debug)]
pub(super) struct Checks<'a> {
    all: &'a mut Vec<Check>,
    file: String,
}

impl<'a> Checks<'a> {
    pub(super) fn of(all: &'a mut Vec<Check>, file: impl Into<String>) -> Self {
        let file = file.into();
        Self { all, file }
    }

    /// Writes down what came of a check; what was checked, where it holds.
    pub(super) fn take<T>(
        &mut self,
        check: &str,
        outcome: Result<T, impl Into<Because>>,
    ) -> Option<T> {
        match outcome {
            Ok(value) => {
                self.note(check, true, String::new());
                Some(value)
            }
            Err(because) => {
                self.note(check, false, because.into().0);
                None
            }
        }
    }

    /// The same, with a word on what was found.
    pub(super) fn found<T>(
        &mut self,
        check: &str,
        outcome: Result<T, impl Into<Because>>,
        words: impl FnOnce(&T) -> String,
    ) -> Option<T> {
        match outcome {
            Ok(value) => {
                self.note(check, true, words(&value));
                Some(value)
            }
            Err(because) => {
                self.note(check, false, because.into().0);
                None
            }
        }
    }

    /// Two things that must be the same; the rest of the file can be checked whatever comes of it.
    pub(super) fn is(&mut self, check: &str, holds: bool, otherwise: &str) -> bool {
        let detail = if holds {
            String::new()
        } else {
            otherwise.to_owned()
        };
        self.note(check, holds, detail);
        holds
    }

    /// A file that nothing can be said of.
    pub(super) fn unchecked(&mut self, because: &str) {
        self.note("is checked", false, because.to_owned());
    }

    fn note(&mut self, check: &str, holds: bool, detail: String) {
        self.all.push(Check {
            file: self.file.clone(),
            check: check.to_owned(),
            holds,
            detail,
        });
    }
}

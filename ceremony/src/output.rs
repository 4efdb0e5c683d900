//! What a person or a script sees of a command. It decides which stream a line goes to, and that with
//! `--json` the standard output holds exactly one object.

use std::{
    fmt::{self, Display},
    io::{IsTerminal, Write, stderr, stdout},
};

use firn_client::last_seen;
use firn_protocol::{ids::UnixMillis, messages::MissingMember};
use serde::Serialize;

use crate::error::Error;

/// Writes for a person, or for a script.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    json: bool,
}

#[derive(Serialize)]
struct Failure<'a> {
    error: FailureBody<'a>,
}

#[derive(Serialize)]
struct FailureBody<'a> {
    code: &'a str,
    message: String,
    advice: Option<&'a str>,
    /// Members that could not be asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<Missing>,
}

/// A member that could not be asked.
#[derive(Debug, Serialize)]
pub(crate) struct Missing {
    name: String,
    /// When the coordinator saw it last; none where it never has.
    since_ms: Option<u64>,
    #[serde(skip)]
    last_seen: String,
}

impl From<&MissingMember> for Missing {
    fn from(member: &MissingMember) -> Self {
        Self {
            name: member.name.to_string(),
            since_ms: member.since.0.map(UnixMillis::value),
            last_seen: last_seen(member),
        }
    }
}

impl Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.name, self.last_seen)
    }
}

impl Output {
    /// For a script where `json` is set, for a person otherwise.
    #[must_use]
    pub const fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether a script reads.
    #[must_use]
    pub const fn is_json(self) -> bool {
        self.json
    }

    /// Whether a person looks at the lines as they come.
    #[must_use]
    pub fn is_watched(self) -> bool {
        if self.json {
            stderr().is_terminal()
        } else {
            stdout().is_terminal()
        }
    }

    /// A line for a person: on the standard output, or beside it where that is a script's.
    pub fn say(self, line: impl Display) {
        // Whoever has closed the stream does not want the line.
        let _ = if self.json {
            writeln!(stderr(), "{line}")
        } else {
            writeln!(stdout(), "{line}")
        };
    }

    /// A name and what it stands for, in two columns.
    pub fn fact(self, name: impl Display, value: impl Display) {
        let name = name.to_string();
        self.say(format_args!("{name:<14} {value}"));
    }

    /// The one object of a command that a script reads; nothing for a person.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn object<T: Serialize>(self, value: &T) -> Result<(), Error> {
        if !self.json {
            return Ok(());
        }
        let text = serde_json::to_string_pretty(value).map_err(|_| Error::Write)?;
        writeln!(stdout(), "{text}").map_err(|_| Error::Write)
    }

    /// Why a command failed, and what to do next.
    pub fn failed(self, error: &Error) {
        let advice = error.advice();
        let _ = writeln!(stderr(), "firn: {error} [{}]", error.code());
        if let Some(advice) = advice {
            let _ = writeln!(stderr(), "      {advice}");
        }
        // A command that has written its object has said there what did not hold.
        if self.json && !error.is_reported() {
            let (code, message) = (error.code(), error.to_string());
            let error = FailureBody {
                code,
                message,
                advice,
                missing: error.missing().iter().map(Missing::from).collect(),
            };
            let _ = self.object(&Failure { error });
        }
    }
}

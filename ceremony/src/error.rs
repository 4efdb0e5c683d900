//! Why a command failed: the stable code, what to do next, and the exit code that scripts go by.

use std::{io, path::PathBuf, process::ExitCode};

use firn_client::WhatNext;
use firn_protocol::{
    bitcoin::{KeyError, PsbtError},
    codec::Malformed,
    envelope::EnvelopeError,
    messages::MissingMember,
    names::BadName,
    reject::Reject,
};
use firn_transport::{CertificateRefusal, TransportError};

/// How a command ends. The numbers are an interface: scripts decide by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// Refused for good: asking the same again is useless.
    Refused,
    /// The command was not used as it must be.
    Usage,
    /// Try again, with the same request id.
    TryAgain,
    /// It is not known whether it was done: ask.
    OutcomeUnknown,
    /// The same name stands for something else already.
    Conflict,
}

impl Exit {
    /// The number.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Refused => 1,
            Self::Usage => 2,
            Self::TryAgain => 3,
            Self::OutcomeUnknown => 4,
            Self::Conflict => 5,
        }
    }

    /// How a command ends that was refused with this code.
    #[must_use]
    pub const fn of(code: Reject) -> Self {
        Self::after(WhatNext::of(code))
    }

    const fn after(next: WhatNext) -> Self {
        match next {
            WhatNext::GiveUp => Self::Refused,
            WhatNext::Usage => Self::Usage,
            WhatNext::RetrySameRequest => Self::TryAgain,
            WhatNext::AskOutcome => Self::OutcomeUnknown,
            WhatNext::Conflict => Self::Conflict,
        }
    }
}

impl From<WhatNext> for Exit {
    fn from(next: WhatNext) -> Self {
        Self::after(next)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.number())
    }
}

/// Everything that can go wrong in a command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder cannot be used.
    #[error("{doing} {}: {source}", path.display())]
    File {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file that was to be written is there already.
    #[error("{} is there already", path.display())]
    FileExists {
        /// Which.
        path: PathBuf,
    },
    /// A folder that must be new or empty is not.
    #[error("{} is not empty", path.display())]
    FolderNotEmpty {
        /// Which.
        path: PathBuf,
    },
    /// A file does not hold what it must.
    #[error("{} does not hold {what}", path.display())]
    BadFile {
        /// Which.
        path: PathBuf,
        /// What it must hold.
        what: &'static str,
    },
    /// A file that a person wrote says something that it cannot say.
    #[error("{}:{line}: {what}", path.display())]
    Invalid {
        /// Which.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        what: String,
    },
    /// A signed document, or what belongs to it, is not what it is taken for.
    #[error("{}: {what}", path.display())]
    Unfit {
        /// Its file.
        path: PathBuf,
        /// What does not fit.
        what: String,
    },
    /// Rules that do not rule on something that they must rule on.
    #[error("{}: there is no [{rule}], and without that rule nothing may be signed", path.display())]
    RuleMissing {
        /// The rules' file.
        path: PathBuf,
        /// Which rule.
        rule: &'static str,
    },
    /// A certificate that does not do for whom it is to be.
    #[error("{}: {source}", path.display())]
    Certificate {
        /// Its file.
        path: PathBuf,
        /// Why.
        source: TransportError,
    },
    /// A certificate that no peer would take.
    #[error("{}: the certificate is {refusal}", path.display())]
    CertificateRefused {
        /// Its file.
        path: PathBuf,
        /// Why.
        refusal: CertificateRefusal,
    },
    /// A fingerprint is not the one that was compared.
    #[error("the fingerprint of {what} is not the one given; it is {found}")]
    FingerprintDiffers {
        /// Of what.
        what: String,
        /// What it is.
        found: String,
    },
    /// A person was asked and did not agree.
    #[error("{what}: not confirmed")]
    NotConfirmed {
        /// What was asked about.
        what: String,
    },
    /// A person would have to be asked, and there is none.
    #[error("nobody can be asked here whether {what} is the right one: give {option}")]
    NobodyToAsk {
        /// What would be compared.
        what: String,
        /// What to give instead.
        option: &'static str,
    },
    /// The daemon of this machine said no.
    #[error("the daemon: {message}")]
    Daemon {
        /// Its stable code, of the protocol or of the participant's own.
        code: String,
        /// What happened.
        message: String,
        /// What to do next.
        advice: String,
    },
    /// The system gives no random bytes.
    #[error("the system gives no random bytes")]
    Randomness,
    /// Standard output cannot be written.
    #[error("the standard output cannot be written")]
    Write,
    /// A certificate or key cannot be made.
    #[error("a certificate cannot be issued: {0}")]
    Issue(#[from] rcgen::Error),
    /// A name is not one.
    #[error(transparent)]
    Name(#[from] BadName),
    /// A value that the command was given is out of bounds.
    #[error("{what}")]
    Usage {
        /// What is wrong with it.
        what: String,
    },
    /// A document cannot be written.
    #[error("a document cannot be written: {0}")]
    Document(#[from] Malformed),
    /// A document cannot be signed.
    #[error("a document cannot be signed: {0}")]
    Endorse(#[from] EnvelopeError),
    /// A payment cannot be put together.
    #[error("the payment cannot be put together: {0}")]
    Payment(#[from] PsbtError),
    /// A key has no such child.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// There is no connection, or it was lost before the request was sent.
    #[error("{doing}: {source}")]
    Transport {
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        source: TransportError,
    },
    /// The connection was lost after the request was sent.
    #[error("{doing}: sent, but no answer came: {reason}")]
    OutcomeUnknown {
        /// What was asked for.
        doing: &'static str,
        /// Why there is no answer.
        reason: String,
    },
    /// The members have said how it stands, and it is not over.
    #[error("{doing}: no answer came; the members say: {what}")]
    Unsettled {
        /// What was asked for.
        doing: &'static str,
        /// How it stands.
        what: &'static str,
    },
    /// Somebody said no.
    #[error("{doing}: refused: {}{}", code.meaning(), said(.detail))]
    Refused {
        /// What was asked for.
        doing: &'static str,
        /// The reason.
        code: Reject,
        /// Who, which step, or whatever else is known; may be empty.
        detail: String,
    },
    /// The requester's library says why.
    #[error(transparent)]
    Requester(Box<firn_client::Error>),
    /// What came back does not verify.
    #[error("{what} does not verify: {}", code.meaning())]
    Unverified {
        /// What came back.
        what: &'static str,
        /// Which rule it breaks.
        code: Reject,
    },
    /// A process of the demo could not be started, or ended.
    #[error("{name}: {reason}")]
    Process {
        /// Which.
        name: String,
        /// What happened.
        reason: String,
    },
    /// Something that must happen did not happen in time.
    #[error("{waiting_for} did not happen within {seconds} s")]
    Deadline {
        /// What.
        waiting_for: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// Somebody stopped the command.
    #[error("interrupted; every process that was started has been stopped")]
    Interrupted,
    /// Some verdicts of a finished run do not hold.
    #[error("did not hold: {}", failed.join("; "))]
    NotHeld {
        /// Which.
        failed: Vec<String>,
    },
}

/// How a command ends that the daemon refused: its own codes are about its machine, whose operator
/// has to act first.
fn of_daemon(name: &str) -> Exit {
    Reject::ALL
        .iter()
        .find(|code| code.name() == name)
        .map_or(Exit::Refused, |code| Exit::of(*code))
}

impl From<firn_client::Error> for Error {
    fn from(error: firn_client::Error) -> Self {
        use firn_client::Error as Client;
        match error {
            Client::Randomness => Self::Randomness,
            Client::Usage { what } => Self::Usage { what },
            Client::Document(malformed) => Self::Document(malformed),
            Client::Payment(error) => Self::Payment(error),
            Client::Key(error) => Self::Key(error),
            Client::Transport { doing, source } => Self::Transport { doing, source },
            Client::OutcomeUnknown { doing, tried } => {
                let reasons: Vec<String> = tried.iter().map(ToString::to_string).collect();
                Self::OutcomeUnknown {
                    doing,
                    reason: reasons.join("; "),
                }
            }
            Client::Unverified { what, code } => Self::Unverified { what, code },
            other @ (Client::Profile(_)
            | Client::Unfit { .. }
            | Client::Unreachable { .. }
            | Client::Refused(_)
            | Client::NotNow(_)
            | Client::Conflict(_)) => Self::Requester(Box::new(other)),
        }
    }
}

fn said(detail: &str) -> String {
    if detail.is_empty() {
        String::new()
    } else {
        format!(" ({detail})")
    }
}

impl Error {
    /// A system error, with what was being done and on what.
    pub(crate) fn file(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File {
            doing,
            path,
            source,
        }
    }

    /// A transport error before anything was sent.
    pub(crate) fn transport(doing: &'static str) -> impl FnOnce(TransportError) -> Self {
        move |source| Self::Transport { doing, source }
    }

    /// What came back breaks a rule.
    pub(crate) fn unverified(what: &'static str) -> impl FnOnce(Reject) -> Self {
        move |code| Self::Unverified { what, code }
    }

    /// The stable code of the reason.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::File { .. } => "file",
            Self::FileExists { .. } => "file_exists",
            Self::Invalid { .. } => "file_invalid",
            Self::Unfit { .. } => "unfit",
            Self::RuleMissing { .. } => Reject::PolicyMissingRule.name(),
            Self::FingerprintDiffers { .. } => "fingerprint_differs",
            Self::NotConfirmed { .. } => "not_confirmed",
            Self::NobodyToAsk { .. } => "nobody_to_ask",
            Self::Daemon { code, .. } => code,
            Self::FolderNotEmpty { .. } => "folder_not_empty",
            Self::BadFile { .. } => "bad_file",
            Self::Randomness => "no_randomness",
            Self::Write => "output",
            Self::Issue(_) => "certificate_not_issued",
            Self::Name(_) => "bad_name",
            Self::Usage { .. } => "usage",
            Self::Document(_) | Self::Endorse(_) => "document",
            Self::Payment(_) | Self::Key(_) => "payment",
            Self::Transport { source, .. } | Self::Certificate { source, .. } => source.code(),
            Self::CertificateRefused { refusal, .. } => refusal.code(),
            Self::OutcomeUnknown { .. } => "outcome_unknown",
            Self::Unsettled { .. } => "unsettled",
            Self::Refused { code, .. } | Self::Unverified { code, .. } => code.name(),
            Self::Requester(error) => error.code(),
            Self::Process { .. } => "process",
            Self::Deadline { .. } => "deadline",
            Self::Interrupted => "interrupted",
            Self::NotHeld { .. } => "not_held",
        }
    }

    /// What a person does next.
    #[must_use]
    pub fn advice(&self) -> Option<&str> {
        match self {
            Self::FileExists { .. } => {
                Some("name another file, or move that one away: nothing is ever written over")
            }
            Self::Invalid { .. } => Some("correct the line; nothing was done"),
            Self::Unfit { .. } => Some("fetch it again from whoever made it; do not use this one"),
            Self::RuleMissing { .. } => {
                Some("add the rule; `firn policy example` prints rules that are complete")
            }
            Self::FingerprintDiffers { .. } => Some(
                "compare again by voice; if it stays different, somebody changed the file: stop",
            ),
            Self::NotConfirmed { .. } => Some("nothing was done; compare again, then repeat it"),
            Self::NobodyToAsk { .. } => {
                Some("compare with the others first: the words by voice, or the hexadecimal digits")
            }
            Self::Daemon { advice, .. } => Some(advice),
            Self::FolderNotEmpty { .. } => Some("name a folder that is empty or not there yet"),
            Self::Transport { source, .. } | Self::Certificate { source, .. } => {
                Some(source.advice())
            }
            Self::CertificateRefused { refusal, .. } => Some(refusal.advice()),
            Self::OutcomeUnknown { .. } | Self::Unsettled { .. } => {
                Some("ask again with the same request id: it is safe")
            }
            Self::Refused { code, .. } => Some(code.advice()),
            Self::Requester(error) => error.advice(),
            Self::Unverified { .. } => Some("keep what came back as evidence, and do not use it"),
            Self::Process { .. } => Some("read the process's log in its own folder"),
            Self::Deadline { .. } => Some("read the logs in the folders of the processes"),
            Self::File { .. }
            | Self::BadFile { .. }
            | Self::Randomness
            | Self::Write
            | Self::Issue(_)
            | Self::Name(_)
            | Self::Usage { .. }
            | Self::Document(_)
            | Self::Endorse(_)
            | Self::Payment(_)
            | Self::Key(_)
            | Self::Interrupted
            | Self::NotHeld { .. } => None,
        }
    }

    /// How the command ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage { .. }
            | Self::Name(_)
            | Self::FileExists { .. }
            | Self::FolderNotEmpty { .. }
            | Self::Invalid { .. }
            | Self::RuleMissing { .. }
            | Self::NobodyToAsk { .. } => Exit::Usage,
            Self::Transport { .. }
            | Self::Unsettled { .. }
            | Self::Deadline { .. }
            | Self::Interrupted => Exit::TryAgain,
            Self::OutcomeUnknown { .. } => Exit::OutcomeUnknown,
            Self::Refused { code, .. } => Exit::of(*code),
            Self::Requester(error) => error.what_next().into(),
            Self::Daemon { code, .. } => of_daemon(code),
            Self::Unfit { .. }
            | Self::Certificate { .. }
            | Self::CertificateRefused { .. }
            | Self::FingerprintDiffers { .. }
            | Self::NotConfirmed { .. }
            | Self::File { .. }
            | Self::BadFile { .. }
            | Self::Randomness
            | Self::Write
            | Self::Issue(_)
            | Self::Document(_)
            | Self::Endorse(_)
            | Self::Payment(_)
            | Self::Key(_)
            | Self::Unverified { .. }
            | Self::Process { .. }
            | Self::NotHeld { .. } => Exit::Refused,
        }
    }

    /// Who could not be asked, where that is why the command failed.
    pub(crate) fn missing(&self) -> &[MissingMember] {
        if let Self::Requester(error) = self {
            error.missing()
        } else {
            &[]
        }
    }

    /// Whether the command has said it in its own object already.
    pub(crate) const fn is_reported(&self) -> bool {
        matches!(self, Self::NotHeld { .. })
    }
}

#[cfg(test)]
mod tests {
    use firn_protocol::reject::Reject;

    use super::Exit;

    #[test]
    fn scripts_are_told_whether_asking_again_helps() {
        for (code, exit) in [
            (Reject::RequestConflict, 5),
            (Reject::QuorumUnavailable, 3),
            (Reject::Busy, 3),
            (Reject::Deadline, 3),
            (Reject::AttemptsExhausted, 3),
            (Reject::StaleEpoch, 1),
            (Reject::PolicyFee, 1),
            (Reject::PsbtMalformed, 1),
        ] {
            assert_eq!(Exit::of(code).number(), exit, "{code}");
        }
    }
}

//! Why something did not come about: the stable code, what a person does, and what a program does next.
//! It decides which no is for good, and never takes silence for one.

use std::fmt;

use firn_protocol::{
    bitcoin::{KeyError, PsbtError},
    codec::Malformed,
    messages::MissingMember,
    names::{Name, SpiffeId},
    reject::{Class, Reject},
};
use firn_transport::TransportError;

use crate::{date::date, profile::ProfileError};

/// What a program does next. Each is one exit code of the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WhatNext {
    /// Asking for the same again is useless.
    GiveUp,
    /// What was given is not what it must be; nothing was sent.
    Usage,
    /// Ask again, with the same request id and the same content.
    RetrySameRequest,
    /// Something was sent and its effect is not known: ask for the outcome.
    AskOutcome,
    /// The same name stands for something else already.
    Conflict,
}

impl WhatNext {
    /// What follows from a refusal with this code.
    #[must_use]
    pub const fn of(code: Reject) -> Self {
        if matches!(
            code,
            Reject::RequestConflict | Reject::IntentAlreadySigned | Reject::EpochOwnerConflict
        ) {
            return Self::Conflict;
        }
        if matches!(
            code,
            Reject::SessionSeen | Reject::AttemptsExhausted | Reject::GrantNotYetValid
        ) {
            return Self::RetrySameRequest;
        }
        match code.class() {
            Class::Malformed | Class::Unauthorised | Class::Replayed | Class::Policy => {
                Self::GiveUp
            }
            Class::OutOfOrder | Class::Busy | Class::Internal => Self::RetrySameRequest,
        }
    }
}

/// A member's no, by its own signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberNo {
    /// Which member.
    pub member: Name,
    /// Why.
    pub code: Reject,
    /// When to try again, in milliseconds; none where the member says that it is useless.
    pub retry_after_ms: Option<u32>,
}

/// A no: the code, and on whose word.
///
/// It says that asking again is useless, or useful later. It does not say that nothing was ever signed
/// under the same request id: before a payment is made in another way, ask for the outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct No {
    /// What was asked for.
    pub doing: &'static str,
    /// The reason that most members gave, or the coordinator's own.
    pub code: Reject,
    /// The members' own words. Where there are none, the code is the coordinator's word alone.
    pub members: Vec<MemberNo>,
    /// Who could not be asked and since when, by the coordinator's word.
    pub missing: Vec<MissingMember>,
    /// In the coordinator's words, for a person; may be empty.
    pub detail: String,
}

impl No {
    /// Who said no and why, who could not be reached, and what else the coordinator says.
    #[must_use]
    pub fn described(&self) -> String {
        let members = self
            .members
            .iter()
            .map(|no| format!("{} says {}", no.member, no.code));
        let missing = self
            .missing
            .iter()
            .map(|member| format!("{} cannot be reached, {}", member.name, last_seen(member)));
        let detail = Some(self.detail.clone()).filter(|detail| !detail.is_empty());
        let all: Vec<String> = members.chain(missing).chain(detail).collect();
        all.join("; ")
    }

    /// The longest that a member asks to wait, in milliseconds.
    #[must_use]
    pub fn retry_after_ms(&self) -> Option<u32> {
        self.members.iter().filter_map(|no| no.retry_after_ms).max()
    }
}

/// When the coordinator saw a member last, in words.
#[must_use]
pub fn last_seen(member: &MissingMember) -> String {
    member.since.0.map_or_else(
        || "not seen since the coordinator started".to_owned(),
        |since| format!("last seen {}", date(since)),
    )
}

impl fmt::Display for No {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: refused: {}", self.doing, self.code.meaning())?;
        match self.described() {
            nothing if nothing.is_empty() => Ok(()),
            described => write!(f, " ({described})"),
        }
    }
}

/// What one coordinator did with what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// Which.
    pub coordinator: SpiffeId,
    /// The stable code of what happened.
    pub code: &'static str,
    /// The same for a person.
    pub reason: String,
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.coordinator.name();
        write!(f, "{name}: {} [{}]", self.reason, self.code)
    }
}

/// Everything that can go wrong between a requester and its key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system gives no random bytes.
    #[error("the system gives no random bytes")]
    Randomness,
    /// The profile, or a file that it names, cannot be used.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A value that was given is out of bounds.
    #[error("{what}")]
    Usage {
        /// What is wrong with it.
        what: String,
    },
    /// Things that were given do not fit each other. Nothing was sent.
    #[error("{what}: {}", code.meaning())]
    Unfit {
        /// What was looked at.
        what: &'static str,
        /// Which rule it breaks.
        code: Reject,
    },
    /// A document cannot be written.
    #[error("a document cannot be written: {0}")]
    Document(#[from] Malformed),
    /// Signatures do not fit into a PSBT.
    #[error("the payment cannot be put together: {0}")]
    Payment(#[from] PsbtError),
    /// A key has no such child.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// There is no connection, or it was lost before anything was sent.
    #[error("{doing}: {source}")]
    Transport {
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        source: TransportError,
    },
    /// No coordinator answers, and nothing was sent that could have an effect.
    #[error("{doing}: no coordinator answers: {}", listed(.tried))]
    Unreachable {
        /// What was tried.
        doing: &'static str,
        /// What each of them did; never empty.
        tried: Vec<Tried>,
    },
    /// It was sent, and no answer came that proves itself.
    #[error("{doing}: sent, but no answer came: {}", listed(.tried))]
    OutcomeUnknown {
        /// What was asked for.
        doing: &'static str,
        /// What each coordinator did.
        tried: Vec<Tried>,
    },
    /// No, and asking for the same again is useless.
    #[error("{0}")]
    Refused(Box<No>),
    /// Not now; the same request may be asked again.
    #[error("{0}")]
    NotNow(Box<No>),
    /// The request id, the intent or the epoch stands for something else already.
    #[error("{0}")]
    Conflict(Box<No>),
    /// What came back does not verify.
    #[error("{what} does not verify: {}", code.meaning())]
    Unverified {
        /// What came back.
        what: &'static str,
        /// Which rule it breaks.
        code: Reject,
    },
}

fn listed(tried: &[Tried]) -> String {
    let all: Vec<String> = tried.iter().map(Tried::to_string).collect();
    all.join("; ")
}

impl Error {
    /// A no, as the variant that its code calls for.
    #[must_use]
    pub fn no(no: No) -> Self {
        match WhatNext::of(no.code) {
            WhatNext::Conflict => Self::Conflict(Box::new(no)),
            WhatNext::RetrySameRequest | WhatNext::AskOutcome => Self::NotNow(Box::new(no)),
            WhatNext::GiveUp | WhatNext::Usage => Self::Refused(Box::new(no)),
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

    /// What was given breaks a rule.
    pub(crate) fn unfit(what: &'static str) -> impl FnOnce(Reject) -> Self {
        move |code| Self::Unfit { what, code }
    }

    /// Who could not be asked, where that is why there is a no.
    #[must_use]
    pub fn missing(&self) -> &[MissingMember] {
        match self {
            Self::Refused(no) | Self::NotNow(no) | Self::Conflict(no) => &no.missing,
            Self::Randomness
            | Self::Profile(_)
            | Self::Usage { .. }
            | Self::Unfit { .. }
            | Self::Document(_)
            | Self::Payment(_)
            | Self::Key(_)
            | Self::Transport { .. }
            | Self::Unreachable { .. }
            | Self::OutcomeUnknown { .. }
            | Self::Unverified { .. } => &[],
        }
    }

    /// The stable code of the reason.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Randomness => "no_randomness",
            Self::Profile(error) => error.code(),
            Self::Usage { .. } => "usage",
            Self::Document(_) => "document",
            Self::Payment(_) | Self::Key(_) => "payment",
            Self::Transport { source, .. } => source.code(),
            Self::Unreachable { tried, .. } => tried.last().map_or("unreachable", |last| last.code),
            Self::OutcomeUnknown { .. } => "outcome_unknown",
            Self::Refused(no) | Self::NotNow(no) | Self::Conflict(no) => no.code.name(),
            Self::Unfit { code, .. } | Self::Unverified { code, .. } => code.name(),
        }
    }

    /// What a person does next.
    #[must_use]
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Profile(error) => Some(error.advice()),
            Self::Transport { source, .. } => Some(source.advice()),
            Self::Unreachable { .. } => {
                Some("start a coordinator, or check the way to it; nothing was sent")
            }
            Self::OutcomeUnknown { .. } => {
                Some("ask for the outcome, or ask again with the same request id: both are safe")
            }
            Self::Refused(no) | Self::NotNow(no) | Self::Conflict(no) => Some(no.code.advice()),
            Self::Unfit { code, .. } => Some(code.advice()),
            Self::Unverified { .. } => Some("keep what came back as evidence, and do not use it"),
            Self::Randomness
            | Self::Usage { .. }
            | Self::Document(_)
            | Self::Payment(_)
            | Self::Key(_) => None,
        }
    }

    /// What a program does next.
    #[must_use]
    pub fn what_next(&self) -> WhatNext {
        match self {
            Self::Profile(_)
            | Self::Usage { .. }
            | Self::Unfit { .. }
            | Self::Key(_)
            | Self::Payment(_) => WhatNext::Usage,
            Self::Transport { source, .. } => after(source),
            Self::Unreachable { .. } | Self::NotNow(_) => WhatNext::RetrySameRequest,
            Self::OutcomeUnknown { .. } => WhatNext::AskOutcome,
            Self::Refused(_) | Self::Unverified { .. } | Self::Randomness | Self::Document(_) => {
                WhatNext::GiveUp
            }
            Self::Conflict(_) => WhatNext::Conflict,
        }
    }
}

/// Our own files are for the operator to put right; everything else may be better the next time.
fn after(source: &TransportError) -> WhatNext {
    let own = matches!(
        source,
        TransportError::Read { .. }
            | TransportError::BadPem { .. }
            | TransportError::KeyMode { .. }
            | TransportError::KeyMismatch
            | TransportError::OtherName { .. }
            | TransportError::Expired { .. }
            | TransportError::NotYetValid { .. }
            | TransportError::OwnCertificate(_)
            | TransportError::OwnRole(_)
            | TransportError::TlsConfiguration(_)
    );
    if own {
        WhatNext::Usage
    } else {
        WhatNext::RetrySameRequest
    }
}

#[cfg(test)]
mod tests {
    use firn_protocol::{codec::Maybe, ids::UnixMillis, messages::MissingMember, reject::Reject};

    use super::{Error, No, WhatNext};

    fn no(code: Reject) -> Error {
        Error::no(No {
            doing: "asking",
            code,
            members: Vec::new(),
            missing: Vec::new(),
            detail: String::new(),
        })
    }

    #[test]
    fn a_program_is_told_whether_asking_again_helps() {
        for (code, next) in [
            (Reject::RequestConflict, WhatNext::Conflict),
            (Reject::IntentAlreadySigned, WhatNext::Conflict),
            (Reject::EpochOwnerConflict, WhatNext::Conflict),
            (Reject::QuorumUnavailable, WhatNext::RetrySameRequest),
            (Reject::Busy, WhatNext::RetrySameRequest),
            (Reject::Deadline, WhatNext::RetrySameRequest),
            (Reject::AttemptsExhausted, WhatNext::RetrySameRequest),
            (Reject::GrantNotYetValid, WhatNext::RetrySameRequest),
            (Reject::ClockSkew, WhatNext::RetrySameRequest),
            (Reject::StaleEpoch, WhatNext::GiveUp),
            (Reject::PolicyFee, WhatNext::GiveUp),
            (Reject::PsbtMalformed, WhatNext::GiveUp),
        ] {
            let error = no(code);
            assert_eq!((error.what_next(), error.code()), (next, code.name()));
        }
    }

    #[test]
    fn who_is_missing_is_said_with_when_it_was_seen_last() {
        let missing = |name: &str, since| MissingMember {
            name: name.parse().unwrap(),
            since: Maybe(since),
        };
        let error = Error::no(No {
            doing: "asking",
            code: Reject::QuorumUnavailable,
            members: Vec::new(),
            missing: vec![
                missing("p1", Some(UnixMillis::new(1_700_000_000_000))),
                missing("p2", None),
            ],
            detail: String::new(),
        });
        let said = error.to_string();
        for part in [
            "p1 cannot be reached, last seen 2023-11-14 22:13:20 UTC",
            "p2 cannot be reached, not seen since the coordinator started",
        ] {
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(error.missing().len(), 2);
    }

    #[test]
    fn every_code_of_the_protocol_has_a_variant_that_says_the_same() {
        for code in Reject::ALL {
            let next = WhatNext::of(*code);
            assert_eq!(no(*code).what_next(), next, "{code}");
            assert!(
                !matches!(next, WhatNext::Usage | WhatNext::AskOutcome),
                "{code}"
            );
        }
    }
}

//! The coordinator's side of each conversation, as pure machines: they take a message and say what
//! to send and what comes next. They never touch a socket, a clock or a disk.

pub mod dkg;
#[cfg(test)]
pub(crate) mod fake;
pub mod outcome;
pub mod proof;
pub mod request;
pub mod round;
pub mod sign;

use firn_protocol::{
    envelope::{Document, Envelope, Verified},
    ids::{Identifier, SessionId},
    keys::IdentityKey,
    messages::{FromMember, Refusal, ToMember},
    reject::{Class, Reject},
};

/// A member of a session, and the key that its words are checked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionMember {
    /// FROST identifier.
    pub identifier: Identifier,
    /// Who speaks.
    pub identity: IdentityKey,
}

/// A message for one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Send {
    /// For whom.
    pub to: Identifier,
    /// What.
    pub message: ToMember,
}

/// How one member failed an attempt.
#[derive(Debug, Clone)]
pub enum Failing {
    /// It said no, and signed it.
    Refused(Box<Verified<Refusal>>),
    /// What it sent is wrong: only its own software or its owner can be the reason.
    Misbehaved(Reject),
    /// It did not answer, or its connection was lost.
    Silent(Reject),
}

impl Failing {
    /// The code to report it under.
    #[must_use]
    pub fn code(&self) -> Reject {
        match self {
            Self::Refused(refusal) => refusal.code,
            Self::Misbehaved(code) | Self::Silent(code) => *code,
        }
    }
}

/// A member and how it failed.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Which member.
    pub member: Identifier,
    /// How.
    pub failing: Failing,
}

impl Fault {
    /// A member that sent what it must not.
    #[must_use]
    pub const fn misbehaved(member: Identifier, code: Reject) -> Self {
        Self {
            member,
            failing: Failing::Misbehaved(code),
        }
    }

    /// A member that did not answer.
    #[must_use]
    pub const fn silent(member: Identifier, code: Reject) -> Self {
        Self {
            member,
            failing: Failing::Silent(code),
        }
    }
}

/// What a machine wants after an input.
#[derive(Debug)]
pub enum Turn<C: Conversation> {
    /// It goes on, and wants these sent.
    Goes(C, Vec<Send>),
    /// It has ended.
    Ended(C::Outcome),
}

/// How far the step of a conversation has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepProgress {
    /// The step, in a word that people know.
    pub step: &'static str,
    /// Members that have done it.
    pub done: usize,
    /// Members that must.
    pub of: usize,
}

/// A machine that talks with members, each over a stream of its own.
pub trait Conversation: Sized {
    /// What comes of it.
    type Outcome;

    /// The most bytes that a member may send in one frame.
    const FRAME_LIMIT: usize;

    /// Where it stands; a new step has a new deadline.
    fn progress(&self) -> StepProgress;

    /// Takes a message that came on `from`'s stream.
    fn handle(self, from: Identifier, message: FromMember) -> Turn<Self>;

    /// Takes the news that a member's stream brings nothing any more: it was lost or its bytes do
    /// not decode.
    fn fail(self, fault: Fault) -> Turn<Self>;

    /// Takes the news that the deadline of the step has passed.
    fn expire(self) -> Turn<Self>;
}

/// A member's word, if it is in an envelope that the member signed.
///
/// # Errors
/// A fault of `from`: whoever carries the stream vouches for nothing, but the stream is this
/// member's, so what is on it and is not signed by it is its fault.
pub(crate) fn word_of<T: Document>(
    members: &[SessionMember],
    from: Identifier,
    envelope: Envelope<T>,
) -> Result<Verified<T>, Fault> {
    let member = members
        .iter()
        .find(|member| member.identifier == from)
        .ok_or(Fault::misbehaved(from, Reject::NotAMember))?;
    envelope
        .verify(&member.identity)
        .map_err(|error| Fault::misbehaved(from, error.into()))
}

/// Reads a member's refusal. One that is about something else is itself a fault.
pub(crate) fn refusal_of(
    members: &[SessionMember],
    from: Identifier,
    session: SessionId,
    envelope: Envelope<Refusal>,
) -> Fault {
    match word_of(members, from, envelope) {
        Ok(refusal) if refusal.session.0.is_some_and(|named| named != session) => {
            Fault::misbehaved(from, Reject::SessionMismatch)
        }
        Ok(refusal) => Fault {
            member: from,
            failing: Failing::Refused(Box::new(refusal)),
        },
        Err(fault) => fault,
    }
}

/// What a message is that belongs to no step that is due: a refusal, or a fault.
pub(crate) fn off_script(
    members: &[SessionMember],
    from: Identifier,
    session: SessionId,
    message: FromMember,
) -> Fault {
    if let FromMember::Refusal(envelope) = message {
        refusal_of(members, from, session, envelope)
    } else {
        Fault::misbehaved(from, Reject::UnexpectedMessage)
    }
}

/// Whether asking the same member for the same thing again is useless. The rest may pass: a member
/// that is busy, late, restarting or has seen this session before.
#[must_use]
pub fn is_final(code: Reject) -> bool {
    match code.class() {
        Class::Malformed | Class::Unauthorised | Class::Policy => true,
        Class::Replayed => !matches!(code, Reject::SessionSeen | Reject::AttemptsExhausted),
        Class::OutOfOrder | Class::Busy | Class::Internal => false,
    }
}

#[cfg(test)]
mod tests {
    use firn_protocol::reject::Reject;

    use super::is_final;

    #[test]
    fn only_what_cannot_pass_is_final() {
        for (code, last) in [
            (Reject::Schema, true),
            (Reject::StaleEpoch, true),
            (Reject::PolicyFee, true),
            (Reject::RequestConflict, true),
            (Reject::IntentAlreadySigned, true),
            (Reject::SessionSeen, false),
            (Reject::AttemptsExhausted, false),
            (Reject::Deadline, false),
            (Reject::Busy, false),
            (Reject::Frozen, false),
        ] {
            assert_eq!(is_final(code), last, "{code}");
        }
    }
}

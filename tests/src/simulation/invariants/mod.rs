//! What must hold at every step of every run, each rule in a file of its own. A rule sees what members
//! send, what their disks hold, and what requesters are told; it never looks into a process.

mod epochs;
mod journal;
mod nonces;
mod records;
mod requests;

use std::cell::OnceCell;

use firn_ledger::{
    journal::check_with,
    rules::{Body, CeremonyStep},
};
use firn_participant::store::{MemoryFiles, View};
use firn_protocol::{
    documents::Receipt,
    envelope::{Document, Envelope, Verified},
    ids::{MessageDigest, SessionId},
    messages::{Commitments, FromMember, RequestSigned, ShareList, message_digest},
    reject::Reject,
};

use super::domain::Wanted;

/// What has just happened.
pub(super) enum Seen<'a> {
    /// A member has sent this.
    Sent {
        member: usize,
        word: &'a Word,
        journal: &'a Journal<'a>,
    },
    /// A member's ledger has answered those that waited.
    Durable {
        member: usize,
        view: &'a View<'a>,
        journal: &'a Journal<'a>,
    },
    /// A member's process has opened its journal.
    Opened { member: usize, view: &'a View<'a> },
    /// A requester has its signatures.
    Answered {
        wanted: &'a Wanted,
        signed: &'a RequestSigned,
    },
}

/// What a member has sent, read once.
#[derive(Debug)]
pub(super) enum Word {
    Commitments(Verified<Commitments>),
    Shares(Verified<ShareList>),
    Receipt(Envelope<Receipt>),
    /// A message of a ceremony: its attempt, its step, and its digest where the ledger has that.
    Ceremony(SessionId, CeremonyStep, Option<MessageDigest>),
    Refusal(Reject),
    /// Nothing that a rule is about.
    Other(&'static str),
}

impl Word {
    pub(super) fn of(message: FromMember) -> Self {
        match message {
            FromMember::Commitments(envelope) => Self::Commitments(said(envelope)),
            FromMember::Shares(envelope) => Self::Shares(said(envelope)),
            FromMember::Receipt(envelope) => Self::Receipt(envelope),
            FromMember::Refusal(envelope) => Self::Refusal(said(envelope).code),
            FromMember::DkgRound1(envelope) => {
                let digest = message_digest(envelope.as_bytes());
                Self::Ceremony(said(envelope).attempt, CeremonyStep::Round1, Some(digest))
            }
            FromMember::DkgRound2(round2) => {
                Self::Ceremony(said(round2.manifest).attempt, CeremonyStep::Round2, None)
            }
            FromMember::Certificate(envelope) => {
                Self::Ceremony(said(envelope).attempt, CeremonyStep::Certificate, None)
            }
            FromMember::Acknowledgement(_) => Self::Other("acknowledgement"),
            FromMember::Outcome(_) => Self::Other("outcome"),
            FromMember::KeyDocuments(_) => Self::Other("key documents"),
            FromMember::Status(_) => Self::Other("status"),
            FromMember::Complaint(_) => Self::Other("complaint"),
        }
    }

    /// The word for it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Commitments(_) => "commitments",
            Self::Shares(_) => "shares",
            Self::Receipt(_) => "receipt",
            Self::Ceremony(_, step, _) => step.name(),
            Self::Refusal(code) => code.name(),
            Self::Other(name) => name,
        }
    }
}

fn said<T: Document>(envelope: Envelope<T>) -> Verified<T> {
    let signer = envelope.claimed_signer().unwrap();
    envelope.verify(&signer).unwrap()
}

/// What a power cut would leave of a member's journal now, read when a rule asks.
pub(super) struct Journal<'a> {
    files: &'a MemoryFiles,
    bodies: OnceCell<Vec<Body>>,
}

impl<'a> Journal<'a> {
    pub(super) const fn new(files: &'a MemoryFiles) -> Self {
        Self {
            files,
            bodies: OnceCell::new(),
        }
    }

    /// The records that are synced.
    fn synced(&self) -> &[Body] {
        self.bodies.get_or_init(|| {
            let mut bodies = Vec::new();
            check_with(&mut self.files.synced(), &[], |record| {
                bodies.push(Body::of(record).map_err(|error| error.to_string())?);
                Ok(())
            });
            bodies
        })
    }
}

/// A rule.
pub(super) trait Invariant {
    /// What it says.
    fn rule(&self) -> &'static str;

    /// Looks at what has happened.
    ///
    /// # Errors
    /// How the rule was broken.
    fn see(&mut self, seen: &Seen<'_>) -> Result<(), String>;
}

/// All rules, at the beginning of a run.
pub(super) fn all() -> Vec<Box<dyn Invariant>> {
    vec![
        Box::new(nonces::OneUse::default()),
        Box::new(records::RecordFirst),
        Box::new(requests::OneEffect::default()),
        Box::new(journal::NeverShorter::default()),
        Box::new(epochs::NeverLower::default()),
    ]
}

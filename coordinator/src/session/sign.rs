//! One attempt to sign a request: open, commitments, package, shares, final, receipts. It decides
//! who failed, and never whether to try again; that is the request's to say.

use std::{collections::BTreeMap, sync::Arc};

use firn_protocol::{
    bitcoin::verify_bip340,
    codec::List,
    documents::{InputSignature, Outcome, Receipt},
    envelope::{Envelope, Verified},
    ids::{Flow, Identifier, SessionId},
    limits,
    messages::{Final, FromMember, SignOpen, SigningRecord, ToMember},
    reject::Reject,
    session::Subject,
};
use rand_core::CryptoRng;

use super::{
    Conversation, Fault, Send, SessionMember, StepProgress, Turn, refusal_of,
    request::RequestTerms,
    round::{
        AfterCommitments, AfterShares, AwaitCommitments, AwaitShares, RoundFailed, RoundTerms,
        SignedRound,
    },
    word_of,
};
use crate::voice::{SessionTerms, Voice};

/// How an attempt ended.
#[derive(Debug)]
pub enum AttemptOutcome {
    /// With signatures that verify.
    Signed(Box<SignedRequest>),
    /// Without.
    Failed(RoundFailed),
}

/// The signatures of a request and who has vouched for them.
#[derive(Debug)]
pub struct SignedRequest {
    /// The session that made them: this one, or one before.
    pub session: SessionId,
    /// One for each item.
    pub signatures: Vec<InputSignature>,
    /// Receipts for that session, by member.
    pub receipts: BTreeMap<Identifier, Verified<Receipt>>,
    /// What they were made of; none where members had them in store.
    pub evidence: Option<SigningRecord>,
    /// Members that did not give a receipt, and why.
    pub faults: Vec<Fault>,
}

/// One attempt.
#[derive(Debug)]
pub struct SignAttempt {
    context: Context,
    state: State,
}

/// What does not change while an attempt goes on.
#[derive(Debug)]
struct Context {
    request: Arc<RequestTerms>,
    voice: Arc<Voice>,
    members: Vec<SessionMember>,
    session: SessionId,
}

#[derive(Debug)]
enum State {
    Commitments(AwaitCommitments),
    /// A member has the answer in store: the others are heard out for theirs.
    Stored(Stored),
    Shares(AwaitShares),
    Receipts(AwaitReceipts),
}

#[derive(Debug)]
struct Stored {
    first: Identifier,
    receipts: BTreeMap<Identifier, Verified<Receipt>>,
    waiting: Vec<Identifier>,
}

#[derive(Debug)]
struct AwaitReceipts {
    signed: Box<SignedRound>,
    receipts: BTreeMap<Identifier, Verified<Receipt>>,
    faults: Vec<Fault>,
    waiting: Vec<Identifier>,
}

impl SignAttempt {
    /// Opens an attempt with exactly these members.
    ///
    /// # Errors
    /// When `members` are not t members of the roster.
    pub fn open<R: CryptoRng>(
        request: &Arc<RequestTerms>,
        members: &[Identifier],
        voice: &Arc<Voice>,
        rng: &mut R,
    ) -> Result<(Self, Vec<Send>), Reject> {
        let terms = SessionTerms {
            flow: Flow::Sign,
            subject: Subject::Request(request.subject.clone()),
            key_id: request.key_id,
            share_version: request.share_version,
            epoch: request.epoch,
        };
        let header = voice.open_session(terms, members, rng)?;
        let chosen = request.session_members(&header.members)?;
        let open = SignOpen {
            header: header.envelope().clone(),
            intent: request.request.intent.clone(),
            grant: request.request.grant.clone(),
            approvals: request.request.approvals.clone(),
        };
        let session = header.session_id();
        let round = RoundTerms {
            header,
            members: chosen.clone(),
            items: request.items.clone(),
        };
        let context = Context {
            request: Arc::clone(request),
            voice: Arc::clone(voice),
            members: chosen,
            session,
        };
        let opening = context.to_all(&ToMember::SignOpen(open));
        let state = State::Commitments(AwaitCommitments::new(round));
        Ok((Self { context, state }, opening))
    }

    /// The session's id.
    #[must_use]
    pub const fn session(&self) -> SessionId {
        self.context.session
    }
}

impl Context {
    fn to_all(&self, message: &ToMember) -> Vec<Send> {
        self.members
            .iter()
            .map(|member| Send {
                to: member.identifier,
                message: message.clone(),
            })
            .collect()
    }

    fn goes(self, state: State, send: Vec<Send>) -> Turn<SignAttempt> {
        Turn::Goes(
            SignAttempt {
                context: self,
                state,
            },
            send,
        )
    }

    fn failed(failed: impl Into<RoundFailed>) -> Turn<SignAttempt> {
        Turn::Ended(AttemptOutcome::Failed(failed.into()))
    }

    /// A receipt that this request was signed, with signatures that verify.
    fn stored_receipt(
        &self,
        from: Identifier,
        envelope: Envelope<Receipt>,
    ) -> Result<Verified<Receipt>, Fault> {
        let receipt = word_of(&self.members, from, envelope)?;
        let request = &self.request;
        let about_it = receipt.key_id == request.key_id
            && receipt.request_id == request.subject.request_id
            && receipt.intent == request.subject.intent;
        if !about_it {
            return Err(Fault::misbehaved(from, Reject::RequestConflict));
        }
        match &receipt.outcome {
            Outcome::Refused(refused) => Err(Fault::misbehaved(from, refused.code)),
            Outcome::Completed(completed) => {
                let fits = completed.signatures.len() == request.items.len()
                    && request
                        .items
                        .iter()
                        .zip(&completed.signatures)
                        .all(|(item, made)| {
                            made.input == item.input
                                && verify_bip340(
                                    item.key.output_key(),
                                    &item.message,
                                    made.signature.as_bytes(),
                                )
                        });
                if fits {
                    Ok(receipt)
                } else {
                    Err(Fault::misbehaved(from, Reject::FinalSignature))
                }
            }
        }
    }

    fn on_opened(
        self,
        round: AwaitCommitments,
        from: Identifier,
        message: FromMember,
    ) -> Turn<SignAttempt> {
        match message {
            FromMember::Commitments(envelope) => match round.take(from, envelope, &self.voice) {
                Ok(AfterCommitments::More(round)) => {
                    self.goes(State::Commitments(round), Vec::new())
                }
                Ok(AfterCommitments::Package(round, package)) => {
                    let send = self.to_all(&ToMember::Package(package));
                    self.goes(State::Shares(*round), send)
                }
                Err(failed) => Self::failed(failed),
            },
            FromMember::Receipt(envelope) => match self.stored_receipt(from, envelope) {
                Ok(receipt) => {
                    let answered: Vec<_> = round.answered().chain([from]).collect();
                    self.hear_out(from, receipt, &answered)
                }
                Err(fault) => Self::failed(fault),
            },
            other => Self::failed(self.off_script(from, other)),
        }
    }

    fn on_package_sent(
        self,
        round: AwaitShares,
        from: Identifier,
        message: FromMember,
    ) -> Turn<SignAttempt> {
        match message {
            FromMember::Shares(envelope) => match round.take(from, envelope) {
                Ok(AfterShares::More(round)) => self.goes(State::Shares(round), Vec::new()),
                Ok(AfterShares::Signed(signed)) => self.finish(signed),
                Err(failed) => Self::failed(failed),
            },
            // Another attempt of the same request has been faster.
            FromMember::Receipt(envelope) => match self.stored_receipt(from, envelope) {
                Ok(receipt) => self.hear_out(from, receipt, &[from]),
                Err(fault) => Self::failed(fault),
            },
            other => Self::failed(self.off_script(from, other)),
        }
    }

    /// A refusal, or a message that belongs to another step.
    fn off_script(&self, from: Identifier, message: FromMember) -> Fault {
        match message {
            FromMember::Refusal(envelope) => {
                refusal_of(&self.members, from, self.session, envelope)
            }
            FromMember::Commitments(_)
            | FromMember::Shares(_)
            | FromMember::Receipt(_)
            | FromMember::KeyDocuments(_)
            | FromMember::Acknowledgement(_)
            | FromMember::DkgRound1(_)
            | FromMember::DkgRound2(_)
            | FromMember::Certificate(_)
            | FromMember::Complaint(_) => Fault::misbehaved(from, Reject::UnexpectedMessage),
        }
    }

    fn hear_out(
        self,
        from: Identifier,
        receipt: Verified<Receipt>,
        answered: &[Identifier],
    ) -> Turn<SignAttempt> {
        let waiting = self
            .members
            .iter()
            .map(|member| member.identifier)
            .filter(|member| !answered.contains(member))
            .collect();
        let stored = Stored {
            first: from,
            receipts: BTreeMap::from([(from, receipt)]),
            waiting,
        };
        self.on_stored(stored, from)
    }

    /// `heard` has answered, in whatever way.
    fn on_stored(self, mut stored: Stored, heard: Identifier) -> Turn<SignAttempt> {
        stored.waiting.retain(|member| *member != heard);
        if stored.waiting.is_empty() {
            self.end_stored(stored)
        } else {
            self.goes(State::Stored(stored), Vec::new())
        }
    }

    fn end_stored(self, mut stored: Stored) -> Turn<SignAttempt> {
        let Some(first) = stored.receipts.get(&stored.first) else {
            return Self::failed(Reject::Internal);
        };
        let session = first.session;
        let signatures = match &first.outcome {
            Outcome::Completed(completed) => completed.signatures.to_vec(),
            Outcome::Refused(_) => Vec::new(),
        };
        // Two concurrent attempts may both have been completed; one answer is about one of them.
        stored
            .receipts
            .retain(|_, receipt| receipt.session == session);
        Turn::Ended(AttemptOutcome::Signed(Box::new(SignedRequest {
            session,
            signatures,
            receipts: stored.receipts,
            evidence: None,
            faults: Vec::new(),
        })))
    }

    fn finish(self, signed: Box<SignedRound>) -> Turn<SignAttempt> {
        let Some(signatures) = List::new(signed.signatures.clone()) else {
            return Self::failed(Reject::TooLarge);
        };
        let send = self.to_all(&ToMember::Final(Final {
            session: self.session,
            signatures,
        }));
        let waiting = self
            .members
            .iter()
            .map(|member| member.identifier)
            .collect();
        let state = AwaitReceipts {
            signed,
            receipts: BTreeMap::new(),
            faults: Vec::new(),
            waiting,
        };
        self.goes(State::Receipts(state), send)
    }

    /// The signatures stand whatever the receipts are: a bad receipt is noted, no more.
    fn on_receipt(
        self,
        mut state: AwaitReceipts,
        from: Identifier,
        answer: Result<Verified<Receipt>, Fault>,
    ) -> Turn<SignAttempt> {
        state.waiting.retain(|member| *member != from);
        match answer {
            Ok(receipt) if receipt.session == self.session => {
                state.receipts.insert(from, receipt);
            }
            // Completed in another attempt of the request, with other signatures.
            Ok(_) => state
                .faults
                .push(Fault::silent(from, Reject::SessionMismatch)),
            Err(fault) => state.faults.push(fault),
        }
        if state.waiting.is_empty() {
            self.end_signed(state)
        } else {
            self.goes(State::Receipts(state), Vec::new())
        }
    }

    fn end_signed(self, state: AwaitReceipts) -> Turn<SignAttempt> {
        match state.signed.record() {
            Ok(record) => Turn::Ended(AttemptOutcome::Signed(Box::new(SignedRequest {
                session: self.session,
                signatures: state.signed.signatures,
                receipts: state.receipts,
                evidence: Some(record),
                faults: state.faults,
            }))),
            Err(code) => Self::failed(code),
        }
    }

    fn silent(waiting: impl IntoIterator<Item = Identifier>) -> Vec<Fault> {
        waiting
            .into_iter()
            .map(|member| Fault::silent(member, Reject::Deadline))
            .collect()
    }

    fn missing(&self, answered: impl Iterator<Item = Identifier>) -> Vec<Identifier> {
        let answered: Vec<_> = answered.collect();
        let all = self.members.iter().map(|member| member.identifier);
        all.filter(|member| !answered.contains(member)).collect()
    }
}

impl Conversation for SignAttempt {
    type Outcome = AttemptOutcome;

    const FRAME_LIMIT: usize = limits::MAX_COMMITMENTS + limits::SMALL_DOCUMENT;

    fn progress(&self) -> StepProgress {
        let of = self.context.members.len();
        let (step, done) = match &self.state {
            State::Commitments(round) => ("commitments", round.answered().count()),
            State::Stored(stored) => ("stored receipts", stored.receipts.len()),
            State::Shares(round) => ("shares", round.answered().count()),
            State::Receipts(state) => ("receipts", state.receipts.len()),
        };
        StepProgress { step, done, of }
    }

    fn handle(self, from: Identifier, message: FromMember) -> Turn<Self> {
        let Self { context, state } = self;
        match state {
            State::Commitments(round) => context.on_opened(round, from, message),
            State::Shares(round) => context.on_package_sent(round, from, message),
            State::Stored(mut stored) => {
                if let FromMember::Receipt(envelope) = message
                    && let Ok(receipt) = context.stored_receipt(from, envelope)
                {
                    stored.receipts.insert(from, receipt);
                }
                context.on_stored(stored, from)
            }
            State::Receipts(state) => {
                let answer = match message {
                    FromMember::Receipt(envelope) => context.stored_receipt(from, envelope),
                    other => Err(context.off_script(from, other)),
                };
                context.on_receipt(state, from, answer)
            }
        }
    }

    fn fail(self, fault: Fault) -> Turn<Self> {
        let Self { context, state } = self;
        match state {
            State::Commitments(_) | State::Shares(_) => Context::failed(fault),
            State::Stored(stored) => context.on_stored(stored, fault.member),
            // A stream that ends after its receipt is a stream that is done.
            State::Receipts(state) if !state.waiting.contains(&fault.member) => {
                context.goes(State::Receipts(state), Vec::new())
            }
            State::Receipts(state) => context.on_receipt(state, fault.member, Err(fault)),
        }
    }

    fn expire(self) -> Turn<Self> {
        let Self { context, state } = self;
        match state {
            State::Commitments(round) => {
                Context::failed(Context::silent(context.missing(round.answered())))
            }
            State::Shares(round) => {
                Context::failed(Context::silent(context.missing(round.answered())))
            }
            State::Stored(stored) => context.end_stored(stored),
            State::Receipts(mut state) => {
                state
                    .faults
                    .extend(Context::silent(std::mem::take(&mut state.waiting)));
                context.end_signed(state)
            }
        }
    }
}

//! One attempt to sign a request: open, commitments, package, shares, final, receipts. It decides
//! who failed, and never whether to try again; that is the request's to say.

mod receipts;

use std::{collections::BTreeMap, sync::Arc};

use firn_protocol::{
    codec::List,
    documents::{InputSignature, Receipt},
    envelope::{Envelope, Verified},
    ids::{Flow, Identifier, SessionId},
    limits,
    messages::{Commitments, Final, FromMember, ShareList, SignOpen, SigningRecord, ToMember},
    reject::Reject,
    session::Subject,
};
use rand_core::CryptoRng;

use super::{
    Conversation, Failing, Fault, Send, SessionMember, StepProgress, Turn, is_final, off_script,
    request::RequestTerms,
    round::{
        AfterCommitments, AfterShares, AwaitCommitments, AwaitShares, RoundFailed, RoundTerms,
        SignedRound,
    },
};
use crate::voice::{SessionTerms, Voice};

const COMMITMENTS: &str = "commitments";

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
    /// A member has refused for good: the others are heard out, since most refuse what one does, and
    /// only enough of them together make it final.
    Refused(Refused),
    /// A member has the answer in store: the others are heard out for theirs.
    Stored(Stored),
    Shares(AwaitShares),
    Receipts(AwaitReceipts),
}

#[derive(Debug)]
struct Refused {
    faults: Vec<Fault>,
    waiting: Vec<Identifier>,
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
    /// Of members that have completed the request in another attempt.
    others: BTreeMap<Identifier, Verified<Receipt>>,
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

    fn on_commitments(
        self,
        round: AwaitCommitments,
        from: Identifier,
        envelope: Envelope<Commitments>,
    ) -> Turn<SignAttempt> {
        match round.take(from, envelope, &self.voice) {
            Ok(AfterCommitments::More(round)) => self.goes(State::Commitments(*round), Vec::new()),
            Ok(AfterCommitments::Package(round, package)) => {
                let send = self.to_all(&ToMember::Package(package));
                self.goes(State::Shares(*round), send)
            }
            Err(failed) => Self::failed(failed),
        }
    }

    fn on_shares(
        self,
        round: AwaitShares,
        from: Identifier,
        envelope: Envelope<ShareList>,
    ) -> Turn<SignAttempt> {
        match round.take(from, envelope) {
            Ok(AfterShares::More(round)) => self.goes(State::Shares(*round), Vec::new()),
            Ok(AfterShares::Signed(signed)) => self.finish(signed),
            Err(failed) => Self::failed(failed),
        }
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
            others: BTreeMap::new(),
            faults: Vec::new(),
            waiting,
        };
        self.goes(State::Receipts(state), send)
    }

    fn off_script(&self, from: Identifier, message: FromMember) -> Fault {
        off_script(&self.members, from, self.session, message)
    }

    /// A member has not committed itself but refused, or done what it must not.
    fn on_early_fault(self, fault: Fault, answered: &[Identifier]) -> Turn<SignAttempt> {
        let is_refusal = matches!(fault.failing, Failing::Refused(_));
        if !is_refusal || !is_final(fault.failing.code()) {
            return Self::failed(fault);
        }
        let refused = Refused {
            faults: Vec::new(),
            waiting: self.missing(answered.iter().copied()),
        };
        let from = fault.member;
        self.on_refused(refused, from, Some(fault))
    }

    /// `heard` has answered, in whatever way.
    fn on_refused(
        self,
        mut refused: Refused,
        heard: Identifier,
        fault: Option<Fault>,
    ) -> Turn<SignAttempt> {
        refused.waiting.retain(|member| *member != heard);
        refused.faults.extend(fault);
        if refused.waiting.is_empty() {
            Self::failed(refused.faults)
        } else {
            self.goes(State::Refused(refused), Vec::new())
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
            State::Commitments(round) => (COMMITMENTS, round.answered().count()),
            // The same step, with the time that is left of it.
            State::Refused(refused) => (COMMITMENTS, of.saturating_sub(refused.waiting.len())),
            State::Stored(stored) => ("stored receipts", stored.receipts.len()),
            State::Shares(round) => ("shares", round.answered().count()),
            State::Receipts(state) => ("receipts", state.receipts.len()),
        };
        StepProgress { step, done, of }
    }

    fn handle(self, from: Identifier, message: FromMember) -> Turn<Self> {
        let Self { context, state } = self;
        match (state, message) {
            (State::Commitments(round), FromMember::Commitments(envelope)) => {
                context.on_commitments(round, from, envelope)
            }
            (State::Shares(round), FromMember::Shares(envelope)) => {
                context.on_shares(round, from, envelope)
            }
            (State::Commitments(round), FromMember::Receipt(envelope)) => {
                let answered: Vec<_> = round.answered().collect();
                context.on_early_receipt(from, envelope, &answered)
            }
            // Another attempt of the same request has been faster. Whoever has sent its share waits for
            // the signatures, which will not come: it says no more.
            (State::Shares(round), FromMember::Receipt(envelope)) => {
                let answered: Vec<_> = round.answered().collect();
                context.on_early_receipt(from, envelope, &answered)
            }
            (State::Stored(stored), message) => context.on_heard(stored, from, message),
            (State::Receipts(state), FromMember::Receipt(envelope)) => {
                let answer = context.stored_receipt(from, envelope);
                context.on_receipt(state, from, answer)
            }
            (State::Receipts(state), message) => {
                let fault = context.off_script(from, message);
                context.on_receipt(state, from, Err(fault))
            }
            (State::Commitments(round), message) => {
                let fault = context.off_script(from, message);
                let answered: Vec<_> = round.answered().collect();
                context.on_early_fault(fault, &answered)
            }
            (State::Refused(refused), FromMember::Commitments(_)) => {
                context.on_refused(refused, from, None)
            }
            (State::Refused(refused), message) => {
                let fault = context.off_script(from, message);
                context.on_refused(refused, from, Some(fault))
            }
            (State::Shares(_), message) => Context::failed(context.off_script(from, message)),
        }
    }

    fn fail(self, fault: Fault) -> Turn<Self> {
        let Self { context, state } = self;
        match state {
            State::Commitments(_) | State::Shares(_) => Context::failed(fault),
            State::Refused(refused) if !refused.waiting.contains(&fault.member) => {
                context.goes(State::Refused(refused), Vec::new())
            }
            State::Refused(refused) => context.on_refused(refused, fault.member, Some(fault)),
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
            State::Refused(mut refused) => {
                refused.faults.extend(Context::silent(refused.waiting));
                Context::failed(refused.faults)
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

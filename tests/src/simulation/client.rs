//! Those who ask: a requester that keeps to its own procedure until it knows, and the operators of a
//! ceremony.

use std::{collections::BTreeSet, sync::Arc};

use firn_client::{
    RequestOutcome, WhatNext,
    evidence::{OutcomeTerms, Statements},
};
use firn_coordinator::session::dkg::CeremonyFault;
use firn_protocol::{
    codec::{List, Maybe},
    ids::{Nonce, UnixMillis},
    messages::{FromMember, OutcomeQuery, OutcomeReport, RequestFailed, RequestSigned, ToMember},
    reject::Reject,
    sharing::{ActiveSharing, CertifiedSharing},
};

use super::{
    coordinator::{Answered, Asked},
    domain::{Domain, Wanted},
    people::COORDINATORS,
};

/// How often a requester that wants to know asks.
const TRIES: u32 = 120;
/// How often operators try; a plan has 64 attempts at each member.
const CEREMONY_TRIES: u32 = 60;
/// Members that have to refuse for good before no quorum is left.
const BLOCKING: usize = 2;

/// What a requester knows in the end.
#[derive(Debug)]
pub enum Verdict {
    /// The signatures.
    Signed(Box<RequestSigned>),
    /// Nothing is signed and nothing can be: so many members refuse for good that no quorum is left, and
    /// no question stayed without an answer or the members have said that no share has left.
    No(Reject),
    /// A failure that may pass, to whoever asks only once.
    TryAgain(Box<RequestFailed>),
    /// Nothing, after all its tries: an operator would have to find out.
    Undecided,
}

/// How long a requester goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// It takes the first answer.
    Once,
    /// It asks again, through the next coordinator, until it knows; after silence it asks the members
    /// what became of the request.
    UntilDecided,
}

/// A custody service with one request. It does as `firn_client` does: it believes signatures and what
/// members have signed, and no coordinator.
pub struct Requester {
    /// What it wants.
    pub wanted: Wanted,
    persistence: Persistence,
    through: usize,
    tries: u32,
    /// Something was sent and not answered.
    silence: bool,
    /// The next question is what became of it.
    inquires: bool,
    /// Members refuse for good with this code, no quorum is left.
    blocked: Option<Reject>,
    /// Failures that it was told of before it knew.
    pub failures: Vec<Reject>,
    /// Questions of what became of it that were answered by what the members have stored.
    pub recovered: bool,
    verdict: Option<Verdict>,
}

impl Requester {
    /// A service that begins with this coordinator.
    #[must_use]
    pub const fn new(wanted: Wanted, through: usize, persistence: Persistence) -> Self {
        Self {
            wanted,
            persistence,
            through,
            tries: 0,
            silence: false,
            inquires: false,
            blocked: None,
            failures: Vec::new(),
            recovered: false,
            verdict: None,
        }
    }

    /// What it knows.
    #[must_use]
    pub const fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    fn question(&mut self, now: UnixMillis) -> (usize, Asked) {
        self.tries += 1;
        if self.inquires {
            let query = OutcomeQuery {
                key_id: self.wanted.sharing().certified().key_id(),
                request_id: self.wanted.request_id,
                nonce: self.nonce(),
                time: now,
            };
            let query = ToMember::OutcomeQuery(self.wanted.owner.sign(&query));
            return (self.through, Asked::Tell(Box::new(query)));
        }
        let terms = self.wanted.terms(self.wanted.request(now));
        (self.through, Asked::Sign(Box::new(terms)))
    }

    /// One for each question.
    fn nonce(&self) -> Nonce {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&self.tries.to_be_bytes());
        Nonce::from_bytes(bytes)
    }

    fn hear(&mut self, answer: Option<Answered>) {
        match answer {
            Some(Answered::Signed(signed)) => self.verdict = Some(Verdict::Signed(signed)),
            Some(Answered::Failed(failed)) => self.hear_no(failed),
            Some(Answered::Told(said)) => {
                self.inquires = false;
                self.judge(said.into_values().flatten());
                // Whoever passed the question on is there.
                return self.count();
            }
            Some(answer @ (Answered::Certified(_) | Answered::CeremonyFailed(_))) => {
                panic!("not an answer to a request: {answer:?}")
            }
            // Silence to an inquiry is no more than silence.
            None if self.inquires => {}
            None => (self.silence, self.inquires) = (true, true),
        }
        self.turn();
        self.count();
    }

    fn turn(&mut self) {
        self.through = (self.through + 1) % COORDINATORS.len();
    }

    fn count(&mut self) {
        if self.verdict.is_none() && self.tries >= TRIES {
            self.verdict = Some(Verdict::Undecided);
        }
    }

    fn hear_no(&mut self, failed: Box<RequestFailed>) {
        self.failures.push(failed.code);
        let plan = self.wanted.sharing().certified().plan();
        let refusals = failed.refusals.iter().filter_map(|(member, refusal)| {
            let entry = plan.member_at(*member)?;
            Some(refusal.clone().verify(&entry.identity).ok()?.code)
        });
        // The control plane gives a fresh grant for the same request; a clock that is ahead needs time.
        let for_good = |code: &Reject| {
            let useless = matches!(WhatNext::of(*code), WhatNext::GiveUp | WhatNext::Conflict);
            useless && *code != Reject::GrantExpired
        };
        let against: Vec<_> = refusals.filter(for_good).collect();
        match against.first() {
            Some(code) if against.len() >= BLOCKING && self.silence => {
                // What was sent before may have had an effect: the members know.
                (self.blocked, self.inquires) = (Some(*code), true);
            }
            Some(code) if against.len() >= BLOCKING => self.verdict = Some(Verdict::No(*code)),
            _ if self.persistence == Persistence::Once => {
                self.verdict = Some(Verdict::TryAgain(failed));
            }
            _ => {}
        }
    }

    fn judge(&mut self, words: impl Iterator<Item = FromMember>) {
        let (mut statements, mut refusals) = (Vec::new(), Vec::new());
        for word in words {
            match word {
                FromMember::Outcome(statement) => statements.push(statement),
                FromMember::Refusal(refusal) => refusals.push(refusal),
                FromMember::Commitments(_)
                | FromMember::Shares(_)
                | FromMember::Receipt(_)
                | FromMember::KeyDocuments(_)
                | FromMember::Acknowledgement(_)
                | FromMember::Status(_)
                | FromMember::DkgRound1(_)
                | FromMember::DkgRound2(_)
                | FromMember::Certificate(_)
                | FromMember::Complaint(_) => panic!("not an answer to an inquiry"),
            }
        }
        // A fenced owner is told nothing: the request is the new owner's to ask about.
        let fenced = |code: Reject| matches!(code, Reject::StaleEpoch | Reject::EpochOwnerConflict);
        let against = refusals.iter().filter(|refusal| {
            let signer = refusal.claimed_signer().unwrap();
            fenced((*refusal).clone().verify(&signer).unwrap().code)
        });
        if against.count() >= BLOCKING {
            self.verdict = Some(Verdict::No(Reject::EpochOwnerConflict));
            return;
        }
        let mut heard = Statements::new(OutcomeTerms {
            sharing: self.wanted.sharing(),
            request_id: self.wanted.request_id,
            nonce: self.nonce(),
            signable: Some(self.wanted.signable()),
            granted_until: None,
        });
        heard.add(&OutcomeReport {
            statements: List::new(statements).unwrap(),
            refusals: List::empty(),
            missing: List::empty(),
        });
        match heard.judge() {
            RequestOutcome::Signed(signed) => {
                self.recovered = true;
                self.verdict = Some(Verdict::Signed(Box::new(RequestSigned {
                    session: signed.session,
                    signatures: List::new(signed.signatures).unwrap(),
                    receipts: List::new(signed.receipts).unwrap(),
                    evidence: Maybe(None),
                })));
            }
            RequestOutcome::Conflict(_) => {
                self.verdict = Some(Verdict::No(Reject::RequestConflict));
            }
            // No share has left, and no quorum is left that would let one out.
            RequestOutcome::NotSigned(_) => {
                self.silence = false;
                self.verdict = self.blocked.map(Verdict::No);
            }
            // It counts as signed: asking again gives the same transaction.
            RequestOutcome::Released(_) | RequestOutcome::Undetermined(_) => {}
        }
    }
}

/// The operators of a ceremony: they run the plan until it is certified, then deliver the activation
/// until every member has acknowledged it.
pub struct Operators {
    domain: Arc<Domain>,
    through: usize,
    tries: u32,
    patient: bool,
    certified: Option<Box<CertifiedSharing>>,
    acknowledged: BTreeSet<usize>,
    /// Why attempts failed.
    pub faults: Vec<CeremonyFault>,
    /// They have given up.
    pub gave_up: bool,
}

impl Operators {
    /// Operators who begin with this coordinator; impatient ones take the first failure.
    #[must_use]
    pub const fn new(domain: Arc<Domain>, through: usize, patient: bool) -> Self {
        Self {
            domain,
            through,
            tries: 0,
            patient,
            certified: None,
            acknowledged: BTreeSet::new(),
            faults: Vec::new(),
            gave_up: false,
        }
    }

    /// The sharing that all members have certified.
    #[must_use]
    pub fn certified(&self) -> Option<&CertifiedSharing> {
        self.certified.as_deref()
    }

    /// The key in use, if every member has acknowledged that.
    #[must_use]
    pub fn active(&self) -> Option<ActiveSharing> {
        let certified = self.certified()?;
        let members = certified.plan().roster.len();
        let documents = self.domain.documents(certified);
        let (authorities, digest) = (&self.domain.authorities, self.domain.authorities_digest);
        (self.acknowledged.len() == members)
            .then(|| ActiveSharing::verify(&documents, authorities, digest).unwrap())
    }

    fn is_done(&self) -> bool {
        let all =
            |certified: &CertifiedSharing| self.acknowledged.len() == certified.plan().roster.len();
        self.gave_up || self.certified().is_some_and(all)
    }

    fn turn(&mut self) {
        self.through = (self.through + 1) % COORDINATORS.len();
    }

    fn question(&mut self) -> (usize, Asked) {
        self.tries += 1;
        let asked = match &self.certified {
            None => Asked::Run(Box::new(self.domain.plan.clone())),
            Some(certified) => {
                let documents = self.domain.documents(certified);
                let deliver = firn_protocol::messages::Deliver { documents };
                Asked::Tell(Box::new(ToMember::Deliver(deliver)))
            }
        };
        (self.through, asked)
    }

    fn hear(&mut self, answer: Option<Answered>) {
        match answer {
            Some(Answered::Certified(certified)) => self.certified = Some(certified),
            Some(Answered::CeremonyFailed(fault)) => {
                self.faults.push(fault);
                self.gave_up |= !self.patient;
            }
            Some(Answered::Told(said)) => {
                for (member, word) in said {
                    if let Ok(FromMember::Acknowledgement(_)) = word {
                        self.acknowledged.insert(member);
                    }
                }
            }
            Some(answer) => panic!("not an answer to operators: {answer:?}"),
            None => self.gave_up |= !self.patient,
        }
        self.turn();
        self.gave_up |= self.tries >= CEREMONY_TRIES;
    }
}

/// Whoever asks.
pub enum Client {
    /// A custody service.
    Requester(Box<Requester>),
    /// The operators.
    Operators(Box<Operators>),
}

impl Client {
    pub(super) fn is_done(&self) -> bool {
        match self {
            Self::Requester(requester) => requester.verdict.is_some(),
            Self::Operators(operators) => operators.is_done(),
        }
    }

    pub(super) fn question(&mut self, now: UnixMillis) -> (usize, Asked) {
        match self {
            Self::Requester(requester) => requester.question(now),
            Self::Operators(operators) => operators.question(),
        }
    }

    /// Nothing was sent: the coordinator is not there.
    pub(super) fn turn(&mut self) {
        match self {
            Self::Requester(requester) => requester.turn(),
            Self::Operators(operators) => operators.turn(),
        }
    }

    /// An answer, or none to what was sent.
    pub(super) fn hear(&mut self, answer: Option<Answered>) {
        match self {
            Self::Requester(requester) => requester.hear(answer),
            Self::Operators(operators) => operators.hear(answer),
        }
    }
}

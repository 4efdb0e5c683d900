//! One request over all its attempts, in the manner of ROAST (Ruffing and others, 2022): whoever
//! fails is left out and others are asked, until t members have answered or no quorum is left. It
//! decides whom to ask and when to give up; it never decides what may be signed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use firn_protocol::{
    codec::{List, Maybe, Text},
    documents::RosterEntry,
    envelope::Envelope,
    ids::{Epoch, Identifier, KeyId, ShareVersion, Threshold, UnixMillis},
    messages::{MissingMember, Refusal, RequestFailed, RequestSigned, SignRequest},
    reject::Reject,
    session::RequestSubject,
};
use rand_core::CryptoRng;

use super::{
    Failing, Fault, SessionMember, is_final,
    round::{Item, RoundFailed},
    sign::SignedRequest,
};

/// How often one member may be silent or busy before it is left out of a request.
const TRANSIENT_FAILURES: u32 = 2;
/// Attempts beyond one for each quorum that a single bad member can spoil.
const SPARE_ATTEMPTS: usize = 2;
/// The longest that a member's advice to try again later is followed.
const LONGEST_WAIT_MS: u64 = 2_000;

/// What a request is about, the same for all its attempts.
#[derive(Debug)]
pub struct RequestTerms {
    /// What the requester sent.
    pub request: SignRequest,
    /// What it counts under.
    pub subject: RequestSubject,
    /// The key.
    pub key_id: KeyId,
    /// Its sharing.
    pub share_version: ShareVersion,
    /// The owner's epoch.
    pub epoch: Epoch,
    /// How many members sign.
    pub threshold: Threshold,
    /// The key's members, ascending.
    pub roster: Vec<RosterEntry>,
    /// What is signed, ascending by input.
    pub items: Vec<Item>,
}

impl RequestTerms {
    /// The keys of exactly t members of the roster.
    ///
    /// # Errors
    /// [`Reject::SessionMembers`] when they are not that.
    pub fn session_members(&self, members: &[Identifier]) -> Result<Vec<SessionMember>, Reject> {
        let chosen: Vec<_> = self
            .roster
            .iter()
            .filter(|entry| members.contains(&entry.identifier))
            .map(|entry| SessionMember {
                identifier: entry.identifier,
                identity: entry.identity,
            })
            .collect();
        let wanted = usize::from(self.threshold.value());
        if chosen.len() == wanted && members.len() == wanted {
            Ok(chosen)
        } else {
            Err(Reject::SessionMembers)
        }
    }
}

/// A member that could be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Which.
    pub member: Identifier,
    /// Whether it has failed other requests lately: then others are asked first.
    pub suspect: bool,
}

/// What a request does next.
#[derive(Debug)]
pub enum Move {
    /// Open an attempt with these members, not before this time.
    Attempt(Vec<Identifier>, UnixMillis),
    /// Give up.
    GiveUp(Box<RequestFailed>),
}

#[derive(Debug, Default, Clone, Copy)]
struct Standing {
    failures: u32,
    out: Option<Reject>,
    /// It has not answered, or its connection was lost: it counts as missing, whatever QUIC knows.
    is_silent: bool,
    /// It has refused for good, or done what it must not.
    is_against: bool,
    not_before: Option<UnixMillis>,
}

/// A request and what its members have answered so far.
#[derive(Debug)]
pub struct Request {
    terms: Arc<RequestTerms>,
    standings: BTreeMap<Identifier, Standing>,
    refusals: BTreeMap<Identifier, Envelope<Refusal>>,
    attempts_left: usize,
    /// The failure that nobody was named for, or that passes: what to report when nothing is final.
    last: Option<Reject>,
}

impl Request {
    /// A request that nobody has been asked about.
    #[must_use]
    pub fn new(terms: Arc<RequestTerms>) -> Self {
        let spare = terms
            .roster
            .len()
            .saturating_sub(usize::from(terms.threshold.value()))
            .saturating_add(1);
        Self {
            terms,
            standings: BTreeMap::new(),
            refusals: BTreeMap::new(),
            attempts_left: spare.saturating_add(SPARE_ATTEMPTS),
            last: None,
        }
    }

    /// What it is about.
    #[must_use]
    pub const fn terms(&self) -> &Arc<RequestTerms> {
        &self.terms
    }

    /// Whom to ask now, of those that are connected: first those that have not failed, in random
    /// order, so that the load is shared.
    pub fn choose<R: CryptoRng>(
        &mut self,
        connected: &[Candidate],
        now: UnixMillis,
        rng: &mut R,
    ) -> Move {
        let wanted = usize::from(self.terms.threshold.value());
        let mut able: Vec<_> = connected
            .iter()
            .filter(|candidate| {
                self.terms
                    .roster
                    .iter()
                    .any(|m| m.identifier == candidate.member)
            })
            .map(|candidate| (self.standing(candidate.member), candidate))
            .filter(|(standing, _)| standing.out.is_none())
            .map(|(standing, candidate)| {
                let rank = (standing.failures, candidate.suspect, rng.next_u64());
                (rank, candidate.member, standing.not_before)
            })
            .collect();
        let connected: BTreeSet<_> = connected.iter().map(|candidate| candidate.member).collect();
        if able.len() < wanted || self.attempts_left == 0 {
            return Move::GiveUp(Box::new(self.give_up(&connected)));
        }
        able.sort_unstable();
        able.truncate(wanted);
        self.attempts_left = self.attempts_left.saturating_sub(1);
        let wait = able
            .iter()
            .filter_map(|(_, _, not_before)| *not_before)
            .max();
        let latest = now.plus(LONGEST_WAIT_MS);
        let start = wait.map_or(now, |time| time.clamp(now, latest));
        let mut members: Vec<_> = able.into_iter().map(|(_, member, _)| member).collect();
        members.sort_unstable();
        Move::Attempt(members, start)
    }

    /// Notes why an attempt failed.
    pub fn failed(&mut self, failed: &RoundFailed, now: UnixMillis) {
        let is_mistake = |fault: &Fault| matches!(fault.failing, Failing::Misbehaved(_));
        self.last = match failed.faults.first() {
            // What a member did wrong is not what is wrong with the request.
            Some(fault) if is_mistake(fault) => None,
            Some(_) | None => Some(failed.code),
        };
        for fault in &failed.faults {
            self.note(fault, now);
        }
    }

    fn note(&mut self, fault: &Fault, now: UnixMillis) {
        let standing = self.standings.entry(fault.member).or_default();
        standing.failures = standing.failures.saturating_add(1);
        let code = fault.failing.code();
        let last_straw = standing.failures >= TRANSIENT_FAILURES;
        standing.is_silent = matches!(fault.failing, Failing::Silent(_));
        standing.is_against = match fault.failing {
            Failing::Misbehaved(_) => true,
            Failing::Refused(_) => is_final(code),
            Failing::Silent(_) => false,
        };
        match &fault.failing {
            Failing::Misbehaved(_) => standing.out = Some(code),
            // Its whole patience has been spent on it already.
            Failing::Silent(Reject::Deadline) => standing.out = Some(code),
            Failing::Silent(_) => standing.out = last_straw.then_some(code),
            Failing::Refused(refusal) => {
                standing.out = (is_final(code) || last_straw).then_some(code);
                standing.not_before = refusal
                    .retry_after_ms
                    .0
                    .map(|wait| now.plus(u64::from(wait)));
                self.refusals
                    .insert(fault.member, refusal.envelope().clone());
            }
        }
    }

    fn standing(&self, member: Identifier) -> Standing {
        self.standings.get(&member).copied().unwrap_or_default()
    }

    /// What is true of the request: that too many members refuse it for good for any quorum to sign it;
    /// failing that, that too few are there; failing that, what has kept them from it this time. A single
    /// member's no, or its mistake, says nothing final while others could sign.
    fn reason(&self, present: &BTreeSet<Identifier>) -> Reject {
        let quorum = usize::from(self.terms.threshold.value());
        let everybody = self.terms.roster.len();
        let mut counts = BTreeMap::<Reject, usize>::new();
        for member in self.refusals.keys() {
            if let Some(code) = self.standing(*member).out.filter(|code| is_final(*code)) {
                let count = counts.entry(code).or_default();
                *count = count.saturating_add(1);
            }
        }
        let refusing: usize = counts.values().sum();
        if everybody.saturating_sub(refusing) < quorum
            && let Some((code, _)) = counts.into_iter().max_by_key(|(_, count)| *count)
        {
            return code;
        }
        let willing = present
            .iter()
            .filter(|member| !self.standing(**member).is_against);
        if willing.count() < quorum && present.len() < everybody {
            return Reject::QuorumUnavailable;
        }
        let passing = self.last.filter(|code| !is_final(*code));
        passing.unwrap_or(Reject::SessionFailed)
    }

    fn give_up(&self, connected: &BTreeSet<Identifier>) -> RequestFailed {
        let roster = self.terms.roster.iter();
        let present: BTreeSet<_> = roster
            .map(|entry| entry.identifier)
            .filter(|member| connected.contains(member) && !self.standing(*member).is_silent)
            .collect();
        let code = self.reason(&present);
        let missing = self
            .terms
            .roster
            .iter()
            .filter(|member| !present.contains(&member.identifier))
            .map(|member| MissingMember {
                name: member.name.clone(),
                since: Maybe(None),
            })
            .collect();
        let refusals = self
            .refusals
            .iter()
            .map(|(member, word)| (*member, word.clone()))
            .collect();
        let left_out: Vec<_> = self
            .standings
            .iter()
            .filter_map(|(member, standing)| Some(format!("{member}: {}", standing.out?)))
            .collect();
        let detail = if left_out.is_empty() {
            format!("{} {}", code.meaning(), code.advice())
        } else {
            format!("Left out: {}.", left_out.join(", "))
        };
        RequestFailed {
            code,
            refusals: List::new(refusals).unwrap_or(List::empty()),
            missing: List::new(missing).unwrap_or(List::empty()),
            detail: shortened(&detail),
        }
    }
}

/// A failure before any member was asked.
#[must_use]
pub fn failed_early(code: Reject, detail: &str) -> RequestFailed {
    RequestFailed {
        code,
        refusals: List::empty(),
        missing: List::empty(),
        detail: shortened(detail),
    }
}

/// What the requester gets.
///
/// # Errors
/// Never: a session fits the lists.
pub fn answer(signed: SignedRequest) -> Result<RequestSigned, Reject> {
    let receipts = signed
        .receipts
        .into_iter()
        .map(|(member, receipt)| (member, receipt.into_envelope()))
        .collect();
    Ok(RequestSigned {
        session: signed.session,
        signatures: List::new(signed.signatures).ok_or(Reject::TooLarge)?,
        receipts: List::new(receipts).ok_or(Reject::TooLarge)?,
        evidence: Maybe(signed.evidence),
    })
}

/// As much of the text as a message may hold; our own texts are ASCII.
fn shortened<const MAX: usize>(text: &str) -> Text<MAX> {
    let whole: String = text.chars().filter(|c| !c.is_control()).collect();
    let mut end = whole.len().min(MAX);
    while !whole.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    whole
        .get(..end)
        .and_then(Text::new)
        .unwrap_or_else(empty_text)
}

#[expect(clippy::expect_used, reason = "the empty text is within every bound")]
fn empty_text<const MAX: usize>() -> Text<MAX> {
    Text::new("").expect("the empty text is within every bound")
}

#[cfg(test)]
mod tests;

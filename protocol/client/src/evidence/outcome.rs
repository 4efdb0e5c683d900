//! What became of a request, by the members' signed statements. It decides which statements count and
//! what they prove together; who carried them is of no account.

use std::collections::{BTreeMap, BTreeSet};

use firn_protocol::{
    documents::{InputSignature, Outcome, Receipt},
    envelope::{Envelope, Verified},
    ids::{
        Epoch, Identifier, IntentDigest, KeyId, Nonce, PolicyDigest, RequestId, SessionId,
        UnixMillis,
    },
    messages::{KnownRequest, MissingMember, OutcomeReport, OutcomeStatement, RequestProgress},
    names::Name,
    reject::Reject,
    sharing::ActiveSharing,
    signable::Signable,
};

use super::signing::check_each;
use crate::{
    conversation::member_noes,
    error::{MemberNo, WhatNext},
};

/// The most skew that a member can be told to allow, in milliseconds.
pub const MOST_SKEW_MS: u64 = 60_000;

/// What was asked.
#[derive(Debug, Clone, Copy)]
pub struct OutcomeTerms<'a> {
    /// The key.
    pub sharing: &'a ActiveSharing,
    /// The request.
    pub request_id: RequestId,
    /// The nonce of the query.
    pub nonce: Nonce,
    /// What the request id stands for, where whoever asks knows it.
    pub signable: Option<&'a Signable>,
    /// The end of the last grant that was ever given for the request, where whoever asks knows it.
    pub granted_until: Option<UnixMillis>,
}

/// What became of a request.
#[derive(Debug, Clone)]
pub enum RequestOutcome {
    /// It is signed.
    Signed(SignedOutcome),
    /// No signature existed when the members were asked.
    NotSigned(NotSigned),
    /// A share has left somewhere and no signature is known here: it counts as signed. Asking again with
    /// the same request id and content gives the same transaction, never a second one.
    Released(ReleasedOutcome),
    /// The request id stands for something else than what was asked about.
    Conflict(ConflictingOutcome),
    /// Too few members have answered: nothing is proven, in either direction.
    Undetermined(Undetermined),
}

impl RequestOutcome {
    /// The stable name of the answer.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Signed(_) => "signed",
            Self::NotSigned(_) => "not_signed",
            Self::Released(_) => "released",
            Self::Conflict(_) => "conflicting",
            Self::Undetermined(_) => "undetermined",
        }
    }

    /// What a program does next; nothing where the signatures are here and proven.
    #[must_use]
    pub const fn what_next(&self) -> Option<WhatNext> {
        match self {
            Self::Signed(signed) => match signed.proof {
                Proof::Signatures | Proof::Members => None,
                Proof::Claim => Some(WhatNext::AskOutcome),
            },
            Self::NotSigned(not_signed) => Some(match not_signed.prospect {
                Prospect::Over => WhatNext::GiveUp,
                Prospect::Open { .. } | Prospect::WhileGranted => WhatNext::RetrySameRequest,
            }),
            Self::Released(_) => Some(WhatNext::RetrySameRequest),
            Self::Conflict(_) => Some(WhatNext::Conflict),
            Self::Undetermined(_) => Some(WhatNext::AskOutcome),
        }
    }
}

/// A signed request.
#[derive(Debug, Clone)]
pub struct SignedOutcome {
    /// One signature for each own input, ascending by input.
    pub signatures: Vec<InputSignature>,
    /// What was signed.
    pub intent: IntentDigest,
    /// The policy that it was judged by.
    pub policy: PolicyDigest,
    /// The owner's epoch.
    pub epoch: Epoch,
    /// The session that signed it.
    pub session: SessionId,
    /// The members' receipts that say so, ascending by member.
    pub receipts: Vec<(Identifier, Envelope<Receipt>)>,
    /// How far that has been verified.
    pub proof: Proof,
}

/// How far signatures have been verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// They are the key's own over what was asked about. No machine needs to be believed.
    Signatures,
    /// The intent was not given, so they are as good as the receipts: more members say so than may lie.
    Members,
    /// The intent was not given, and as few members say so as may lie.
    Claim,
}

/// A request without a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotSigned {
    /// The members that say that no share of theirs has left: at least t.
    pub stated_by: Vec<Name>,
    /// Members that did let a share out; too few of them for a signature.
    pub released_by: Vec<Name>,
    /// Whether a signature may still follow.
    pub prospect: Prospect,
}

/// Whether a signature may still follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prospect {
    /// Attempts are open: it may be signed at any moment.
    Open {
        /// How many, over all members that have answered.
        attempts: u32,
    },
    /// No attempt is open now; whoever holds a grant that lives may begin one.
    WhileGranted,
    /// Never: every grant for it has ended on the clocks of t members.
    Over,
}

/// A request of which a share has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleasedOutcome {
    /// The members that let a share out.
    pub released_by: Vec<Name>,
    /// The members that say that no share of theirs has left: fewer than t.
    pub stated_by: Vec<Name>,
    /// Who has not said anything.
    pub missing: Vec<MissingMember>,
}

/// A request id that stands for something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictingOutcome {
    /// What each of these members knows it to stand for.
    pub known: Vec<(Name, IntentDigest)>,
}

/// Why nothing is proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undetermined {
    /// The members that say that no share of theirs has left.
    pub stated_by: Vec<Name>,
    /// How many of them it would take.
    pub needed: usize,
    /// Members that refused to say.
    pub refused: Vec<MemberNo>,
    /// Who could not be asked and since when; since when is the coordinators' word.
    pub missing: Vec<MissingMember>,
    /// Statements that did not count, each by the rule that it breaks.
    pub ignored: Vec<Reject>,
}

/// Members' words on one request, from one or more coordinators. Each member counts once.
///
/// # The arithmetic
///
/// A signature takes the shares of t of the n members. A member writes "released" to its disk before a
/// share leaves, so a member that says that none has left speaks the truth unless it lies, or was rolled
/// back or cloned; of those there are at most f = 2t - n - 1 (the bound under which any promise about the
/// key as a whole holds). If s members say that no share of theirs has left, then at least s - f have
/// let none out, and at most n - s + f have. No signature exists if these are fewer than t:
///
/// ```text
/// n - s + f < t    which is    s > n - t + f = t - 1    which is    s >= t
/// ```
///
/// So t such statements prove that no signature existed when the first of them was made. They do not
/// prove that none can follow: whoever carries may still open an attempt while a grant lives. A member
/// looks at the grant's end again when a share is about to leave, by a clock that never goes back; t
/// statements made after the end of the last grant, and later by more than the most skew that a member
/// can be told to allow, prove that none will ever follow.
#[derive(Debug)]
pub struct Statements<'a> {
    terms: OutcomeTerms<'a>,
    words: BTreeMap<Identifier, Word>,
    refused: BTreeMap<Name, MemberNo>,
    since: BTreeMap<Name, UnixMillis>,
    ignored: Vec<Reject>,
}

#[derive(Debug)]
struct Word {
    name: Name,
    statement: Verified<OutcomeStatement>,
    receipt: Option<Verified<Receipt>>,
}

/// In this order a member's request goes on; it never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    NoneLeft,
    /// The member does not say that no share has left.
    Silent,
    Released,
    Completed,
}

impl<'a> Statements<'a> {
    /// Nobody has said anything yet.
    #[must_use]
    pub const fn new(terms: OutcomeTerms<'a>) -> Self {
        Self {
            terms,
            words: BTreeMap::new(),
            refused: BTreeMap::new(),
            since: BTreeMap::new(),
            ignored: Vec::new(),
        }
    }

    /// Takes what a coordinator has collected: what proves itself counts, the rest is noted.
    pub fn add(&mut self, report: &OutcomeReport) {
        for word in &report.statements {
            match self.verify(word) {
                Ok((member, word)) => self.keep(member, word),
                Err(code) => self.ignored.push(code),
            }
        }
        let request_id = self.terms.request_id;
        let noes = member_noes(&report.refusals, self.terms.sharing, |refusal| {
            refusal.request_id.0.is_none_or(|id| id == request_id)
        });
        for no in noes {
            self.refused.insert(no.member.clone(), no);
        }
        for missing in &report.missing {
            if let Some(since) = missing.since.0 {
                self.since.insert(missing.name.clone(), since);
            }
        }
    }

    /// The code that members refuse to say with, where some do and nobody has said anything.
    #[must_use]
    pub fn refused(&self) -> Option<(Reject, Vec<MemberNo>)> {
        let first = self.refused.values().next()?;
        self.words
            .is_empty()
            .then(|| (first.code, self.refused.values().cloned().collect()))
    }

    /// Who has not said anything, and since when they have been away.
    #[must_use]
    pub fn missing(&self) -> Vec<MissingMember> {
        let plan = self.terms.sharing.certified().plan();
        plan.roster
            .iter()
            .filter(|entry| !self.words.contains_key(&entry.identifier))
            .filter(|entry| !self.refused.contains_key(&entry.name))
            .map(|entry| MissingMember {
                name: entry.name.clone(),
                since: firn_protocol::codec::Maybe(self.since.get(&entry.name).copied()),
            })
            .collect()
    }

    /// What all of it proves.
    #[must_use]
    pub fn judge(&self) -> RequestOutcome {
        if let Some(signed) = self.signed() {
            return RequestOutcome::Signed(signed);
        }
        if let Some(known) = self.conflict() {
            return RequestOutcome::Conflict(ConflictingOutcome { known });
        }
        let plan = self.terms.sharing.certified().plan();
        let needed = usize::from(plan.threshold.value());
        let at = |stage: Stage| -> Vec<&Word> {
            let words = self.words.values();
            words.filter(|word| word.stage() == stage).collect()
        };
        let none_left = at(Stage::NoneLeft);
        let released: Vec<&Word> = [at(Stage::Released), at(Stage::Completed)].concat();
        if none_left.len() >= needed {
            return RequestOutcome::NotSigned(NotSigned {
                prospect: self.prospect(&none_left, needed),
                stated_by: names(&none_left),
                released_by: names(&released),
            });
        }
        if !released.is_empty() {
            return RequestOutcome::Released(ReleasedOutcome {
                released_by: names(&released),
                stated_by: names(&none_left),
                missing: self.missing(),
            });
        }
        RequestOutcome::Undetermined(Undetermined {
            stated_by: names(&none_left),
            needed,
            refused: self.refused.values().cloned().collect(),
            missing: self.missing(),
            ignored: self.ignored.clone(),
        })
    }

    fn keep(&mut self, member: Identifier, word: Word) {
        self.refused.remove(&word.name);
        let rank = |word: &Word| (word.stage(), word.statement.time);
        match self.words.get(&member) {
            Some(known) if rank(known) >= rank(&word) => {}
            _ => {
                self.words.insert(member, word);
            }
        }
    }

    fn verify(&self, word: &Envelope<OutcomeStatement>) -> Result<(Identifier, Word), Reject> {
        let certified = self.terms.sharing.certified();
        let plan = certified.plan();
        let signer = word.claimed_signer()?;
        let member = plan.member(&signer).ok_or(Reject::NotAMember)?;
        let statement = word.clone().verify(&member.identity)?;
        if statement.member != member.identifier {
            return Err(Reject::NotAMember);
        }
        let about_it = statement.key_id == certified.key_id()
            && statement.request_id == self.terms.request_id
            && statement.nonce == self.terms.nonce;
        if !about_it {
            return Err(Reject::UnexpectedMessage);
        }
        statement.checkpoint.clone().verify(&member.identity)?;
        let receipt = match &statement.known.0 {
            Some(known) => known
                .receipt
                .0
                .as_ref()
                .map(|receipt| {
                    let receipt = receipt.clone().verify(&member.identity)?;
                    check_receipt(&receipt, known, certified.key_id(), self.terms.request_id)?;
                    Ok::<_, Reject>(receipt)
                })
                .transpose()?,
            None => None,
        };
        let word = Word {
            name: member.name.clone(),
            statement,
            receipt,
        };
        Ok((member.identifier, word))
    }

    /// The signatures that most receipts vouch for. Where the intent is known, only such as verify.
    fn signed(&self) -> Option<SignedOutcome> {
        let receipts: Vec<(Identifier, &Verified<Receipt>)> = self
            .words
            .iter()
            .filter_map(|(member, word)| Some((*member, word.completed()?)))
            .filter(|(_, receipt)| self.fits(receipt))
            .collect();
        let sessions: BTreeSet<SessionId> = receipts.iter().map(|(_, r)| r.session).collect();
        let groups = sessions.into_iter().map(|session| {
            let group = receipts.iter().filter(|(_, r)| r.session == session);
            group.copied().collect::<Vec<_>>()
        });
        // Two attempts may both have been completed; one answer is about one of them.
        let group = groups.max_by_key(Vec::len)?;
        let (_, first) = group.first()?;
        let signatures = signatures_of(first)?.to_vec();
        let vouching: Vec<_> = group
            .iter()
            .filter(|(_, receipt)| signatures_of(receipt) == Some(&*signatures))
            .map(|(member, receipt)| (*member, receipt.envelope().clone()))
            .collect();
        let plan = self.terms.sharing.certified().plan();
        let liars = plan.threshold.tolerated_liars(plan.roster.len());
        let proof = if self.terms.signable.is_some() {
            Proof::Signatures
        } else if vouching.len() > liars {
            Proof::Members
        } else {
            Proof::Claim
        };
        Some(SignedOutcome {
            intent: first.intent,
            policy: first.policy,
            epoch: first.epoch,
            session: first.session,
            signatures,
            receipts: vouching,
            proof,
        })
    }

    /// Whether a completed receipt is about the intent and its signatures are the key's, as far as the
    /// intent is known.
    fn fits(&self, receipt: &Receipt) -> bool {
        match (self.terms.signable, signatures_of(receipt)) {
            (_, None) => false,
            (None, Some(signatures)) => !signatures.is_empty(),
            (Some(signable), Some(signatures)) => {
                receipt.intent == signable.intent_digest()
                    && check_each(signatures, signable.items(), self.terms.sharing).is_ok()
            }
        }
    }

    /// What members know the request id to stand for, where that is not one and the same thing.
    fn conflict(&self) -> Option<Vec<(Name, IntentDigest)>> {
        let known: Vec<_> = self
            .words
            .values()
            .filter_map(|word| {
                let known = word.statement.known.0.as_ref()?;
                Some((word.name.clone(), known.intent))
            })
            .collect();
        let meant = self.terms.signable.map(Signable::intent_digest);
        let first = meant.or_else(|| known.first().map(|(_, intent)| *intent))?;
        known
            .iter()
            .any(|(_, intent)| *intent != first)
            .then_some(known)
    }

    fn prospect(&self, none_left: &[&Word], needed: usize) -> Prospect {
        let ended = self.terms.granted_until.map(|end| end.plus(MOST_SKEW_MS));
        let after = none_left
            .iter()
            .filter(|word| ended.is_some_and(|ended| word.statement.time >= ended));
        if after.count() >= needed {
            return Prospect::Over;
        }
        let attempts = self.words.values().fold(0_u32, |sum, word| {
            let known = word.statement.known.0.as_ref();
            sum.saturating_add(known.map_or(0, |known| known.open_attempts))
        });
        if attempts > 0 {
            Prospect::Open { attempts }
        } else {
            Prospect::WhileGranted
        }
    }
}

impl Word {
    fn stage(&self) -> Stage {
        let Some(known) = &self.statement.known.0 else {
            return Stage::NoneLeft;
        };
        match known.progress {
            RequestProgress::Open => Stage::NoneLeft,
            RequestProgress::Released => Stage::Released,
            RequestProgress::Completed => Stage::Completed,
            RequestProgress::Refused => Stage::Silent,
        }
    }

    fn completed(&self) -> Option<&Verified<Receipt>> {
        let receipt = self.receipt.as_ref()?;
        (self.stage() == Stage::Completed).then_some(receipt)
    }
}

fn names(words: &[&Word]) -> Vec<Name> {
    words.iter().map(|word| word.name.clone()).collect()
}

fn signatures_of(receipt: &Receipt) -> Option<&[InputSignature]> {
    match &receipt.outcome {
        Outcome::Completed(completed) => Some(&completed.signatures),
        Outcome::Refused(_) => None,
    }
}

fn check_receipt(
    receipt: &Receipt,
    known: &KnownRequest,
    key_id: KeyId,
    request_id: RequestId,
) -> Result<(), Reject> {
    if receipt.key_id != key_id {
        return Err(Reject::GrantKeyMismatch);
    }
    if receipt.request_id != request_id {
        return Err(Reject::GrantRequestMismatch);
    }
    if receipt.intent != known.intent {
        return Err(Reject::GrantIntentMismatch);
    }
    Ok(())
}

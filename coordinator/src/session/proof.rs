//! Proofs of life: a fresh sharing signs a challenge that every member computes itself. It decides
//! which members prove together and who broke a proof; the key is usable only after activation.

use std::sync::Arc;

use firn_protocol::{
    codec::List,
    documents::InputSignature,
    ids::{Flow, Identifier, MessageDigest},
    limits,
    messages::{Final, FromMember, ProofOpen, ProofRecord, ToMember, message_digest},
    reject::Reject,
    sharing::CertifiedSharing,
    signable::Item as Challenge,
};
use rand_core::CryptoRng;

use super::{
    Conversation, Fault, Send, StepProgress, Turn,
    dkg::{CeremonyFault, blame, plan_members, session_terms},
    off_script,
    round::{
        AfterCommitments, AfterShares, AwaitCommitments, AwaitShares, Item, RoundFailed,
        RoundTerms, SignedRound,
    },
    word_of,
};
use crate::voice::Voice;

/// Up to this many subsets, every one of them proves; beyond, enough to cover every member.
const EVERY_SUBSET_UP_TO: usize = 10;

/// The subsets of `threshold` members that make a proof each, ascending inside.
#[must_use]
pub fn subsets(members: &[Identifier], threshold: usize) -> Vec<Vec<Identifier>> {
    if count_subsets(members.len(), threshold) <= EVERY_SUBSET_UP_TO {
        every_subset(members, threshold)
    } else {
        covering(members, threshold)
    }
}

/// The binomial coefficient, or the largest number where it does not fit.
fn count_subsets(members: usize, chosen: usize) -> usize {
    (0..chosen.min(members.saturating_sub(chosen))).fold(1, |count: usize, step| {
        let grown = count.saturating_mul(members.saturating_sub(step));
        grown
            .checked_div(step.saturating_add(1))
            .unwrap_or(usize::MAX)
    })
}

fn every_subset(members: &[Identifier], threshold: usize) -> Vec<Vec<Identifier>> {
    let Some(rest_of) = threshold.checked_sub(1) else {
        return vec![Vec::new()];
    };
    // Without this, members too few for a subset would be tried in every combination.
    if members.len() < threshold {
        return Vec::new();
    }
    let mut all = Vec::new();
    for (place, first) in members.iter().enumerate() {
        let later = members.get(place.saturating_add(1)..).unwrap_or_default();
        for rest in every_subset(later, rest_of) {
            all.push(std::iter::once(*first).chain(rest).collect());
        }
    }
    all
}

/// Windows that touch every member; the last one reaches back to be whole.
fn covering(members: &[Identifier], threshold: usize) -> Vec<Vec<Identifier>> {
    let mut windows: Vec<_> = members
        .chunks_exact(threshold.max(1))
        .map(<[_]>::to_vec)
        .collect();
    if windows.len().saturating_mul(threshold) < members.len() {
        let start = members.len().saturating_sub(threshold);
        windows.extend(members.get(start..).map(<[_]>::to_vec));
    }
    windows
}

/// One proof of life.
#[derive(Debug)]
pub struct ProofAttempt {
    context: Context,
    state: State,
}

#[derive(Debug)]
struct Context {
    voice: Arc<Voice>,
    terms: RoundTerms,
}

#[derive(Debug)]
enum State {
    Commitments(AwaitCommitments),
    Shares(AwaitShares),
    Acknowledgements(AwaitAcknowledgements),
}

#[derive(Debug)]
struct AwaitAcknowledgements {
    signed: Box<SignedRound>,
    signature: InputSignature,
    acknowledged: Vec<Identifier>,
}

const STEP: &str = "proof of life";

impl ProofAttempt {
    /// Opens a proof by exactly these members.
    ///
    /// # Errors
    /// When the sharing was not made by a DKG.
    pub fn open<R: CryptoRng>(
        sharing: &CertifiedSharing,
        members: &[Identifier],
        voice: &Arc<Voice>,
        rng: &mut R,
    ) -> Result<(Self, Vec<Send>), Reject> {
        let plan = sharing.plan();
        let terms = session_terms(plan, Flow::ProofOfLife).ok_or(Reject::UnexpectedMessage)?;
        let header = voice.open_session(terms, members, rng)?;
        let challenge = Challenge::proof_of_life(
            sharing.plan_digest(),
            sharing.share_version(),
            &header.members,
            &header.nonce,
        )?;
        let item = Item::of(&challenge, sharing.public())?;
        let mut members = plan_members(plan);
        members.retain(|member| header.members.contains(&member.identifier));
        let open = ToMember::ProofOpen(ProofOpen {
            header: header.envelope().clone(),
        });
        let terms = RoundTerms {
            header,
            members,
            items: vec![item],
        };
        let context = Context {
            voice: Arc::clone(voice),
            terms: terms.clone(),
        };
        let opening = context.to_all(&open);
        let state = State::Commitments(AwaitCommitments::new(terms));
        Ok((Self { context, state }, opening))
    }
}

impl Context {
    fn to_all(&self, message: &ToMember) -> Vec<Send> {
        self.terms
            .members
            .iter()
            .map(|member| Send {
                to: member.identifier,
                message: message.clone(),
            })
            .collect()
    }

    fn goes(self, state: State, send: Vec<Send>) -> Turn<ProofAttempt> {
        Turn::Goes(
            ProofAttempt {
                context: self,
                state,
            },
            send,
        )
    }

    fn finish(self, signed: Box<SignedRound>) -> Turn<ProofAttempt> {
        let made = (
            signed.signatures.first().copied(),
            List::new(signed.signatures.clone()),
        );
        let (Some(signature), Some(signatures)) = made else {
            return failed(Reject::Internal);
        };
        let session = self.terms.session();
        let send = self.to_all(&ToMember::Final(Final {
            session,
            signatures,
        }));
        let state = AwaitAcknowledgements {
            signed,
            signature,
            acknowledged: Vec::new(),
        };
        self.goes(State::Acknowledgements(state), send)
    }

    fn off_script(&self, from: Identifier, message: FromMember) -> Turn<ProofAttempt> {
        failed(off_script(
            &self.terms.members,
            from,
            self.terms.session(),
            message,
        ))
    }

    fn on_acknowledgement(
        self,
        mut state: AwaitAcknowledgements,
        from: Identifier,
        message: FromMember,
    ) -> Turn<ProofAttempt> {
        let FromMember::Acknowledgement(envelope) = message else {
            return self.off_script(from, message);
        };
        let what: MessageDigest = message_digest(state.signature.signature.as_bytes());
        match word_of(&self.terms.members, from, envelope) {
            Ok(word) if word.member == from && word.what == what => {
                if !state.acknowledged.contains(&from) {
                    state.acknowledged.push(from);
                }
            }
            Ok(_) => return failed(Fault::misbehaved(from, Reject::UnexpectedMessage)),
            Err(fault) => return failed(fault),
        }
        if state.acknowledged.len() < self.terms.members.len() {
            return self.goes(State::Acknowledgements(state), Vec::new());
        }
        match state.signed.record() {
            Ok(record) => Turn::Ended(Ok(Box::new(ProofRecord {
                header: record.header,
                commitments: record.commitments,
                package: record.package,
                shares: record.shares,
                signature: state.signature,
            }))),
            Err(code) => failed(code),
        }
    }
}

fn failed(failed: impl Into<RoundFailed>) -> Turn<ProofAttempt> {
    let RoundFailed { faults, code } = failed.into();
    let blamed = faults.first().map(blame);
    Turn::Ended(Err(CeremonyFault {
        code,
        culprit: blamed.map(|(culprit, _)| culprit),
        accuser: blamed.and_then(|(_, accuser)| accuser),
        step: STEP,
    }))
}

impl Conversation for ProofAttempt {
    type Outcome = Result<Box<ProofRecord>, CeremonyFault>;

    const FRAME_LIMIT: usize = limits::MAX_COMMITMENTS;

    fn progress(&self) -> StepProgress {
        let done = match &self.state {
            State::Commitments(round) => round.answered().count(),
            State::Shares(round) => round.answered().count(),
            State::Acknowledgements(state) => state.acknowledged.len(),
        };
        let step = match &self.state {
            State::Commitments(_) => "proof of life: commitments",
            State::Shares(_) => "proof of life: shares",
            State::Acknowledgements(_) => "proof of life: acknowledgements",
        };
        StepProgress {
            step,
            done,
            of: self.context.terms.members.len(),
        }
    }

    fn handle(self, from: Identifier, message: FromMember) -> Turn<Self> {
        let Self { context, state } = self;
        match (state, message) {
            (State::Commitments(round), FromMember::Commitments(envelope)) => {
                match round.take(from, envelope, &context.voice) {
                    Ok(AfterCommitments::More(round)) => {
                        context.goes(State::Commitments(*round), Vec::new())
                    }
                    Ok(AfterCommitments::Package(round, package)) => {
                        let send = context.to_all(&ToMember::Package(package));
                        context.goes(State::Shares(*round), send)
                    }
                    Err(because) => failed(because),
                }
            }
            (State::Shares(round), FromMember::Shares(envelope)) => {
                match round.take(from, envelope) {
                    Ok(AfterShares::More(round)) => context.goes(State::Shares(*round), Vec::new()),
                    Ok(AfterShares::Signed(signed)) => context.finish(signed),
                    Err(because) => failed(because),
                }
            }
            (State::Acknowledgements(state), message) => {
                context.on_acknowledgement(state, from, message)
            }
            (State::Commitments(_) | State::Shares(_), message) => {
                context.off_script(from, message)
            }
        }
    }

    fn fail(self, fault: Fault) -> Turn<Self> {
        let done = match &self.state {
            State::Acknowledgements(state) => state.acknowledged.contains(&fault.member),
            State::Commitments(_) | State::Shares(_) => false,
        };
        if done {
            Turn::Goes(self, Vec::new())
        } else {
            failed(fault)
        }
    }

    fn expire(self) -> Turn<Self> {
        let answered: Vec<_> = match &self.state {
            State::Commitments(round) => round.answered().collect(),
            State::Shares(round) => round.answered().collect(),
            State::Acknowledgements(state) => state.acknowledged.clone(),
        };
        let members = self
            .context
            .terms
            .members
            .iter()
            .map(|member| member.identifier);
        let silent: Vec<_> = members
            .filter(|member| !answered.contains(member))
            .map(|member| Fault::silent(member, Reject::Deadline))
            .collect();
        failed(silent)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use firn_protocol::ids::Identifier;

    use super::subsets;

    fn members(count: u16) -> Vec<Identifier> {
        (1..=count)
            .map(|number| Identifier::new(number).unwrap())
            .collect()
    }

    #[test]
    fn every_subset_proves_while_there_are_few() {
        for (threshold, count, wanted) in [(2, 3, 3), (3, 5, 10), (2, 2, 1), (4, 5, 5)] {
            let all = subsets(&members(count), threshold);
            assert_eq!(all.len(), wanted, "{threshold}-of-{count}");
            let distinct: BTreeSet<_> = all.iter().collect();
            assert_eq!(distinct.len(), wanted);
            assert!(all.iter().all(|subset| subset.len() == threshold));
        }
    }

    #[test]
    fn beyond_ten_subsets_every_member_proves_at_least_once() {
        for (threshold, count) in [(5, 7), (4, 7), (6, 10), (17, 32), (32, 32)] {
            let all = subsets(&members(count), threshold);
            let covered: BTreeSet<_> = all.iter().flatten().copied().collect();
            assert_eq!(covered.len(), usize::from(count), "{threshold}-of-{count}");
            assert!(all.iter().all(|subset| subset.len() == threshold));
            assert!(all.len() <= 64);
        }
    }
}

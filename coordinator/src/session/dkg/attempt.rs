//! The steps of an attempt, one struct for each, named for what it awaits.

use std::collections::BTreeMap;

use firn_protocol::{
    codec::List,
    documents::Certificate,
    envelope::Verified,
    ids::{Identifier, MessageDigest, TranscriptDigest},
    limits,
    messages::{
        Delivery, DkgManifest, DkgRound1, DkgRound1Set, FromMember, ToMember, transcript_digest,
    },
    reject::Reject,
    sharing::CertifiedSharing,
};

use super::{
    CeremonyFault, Context, DkgMade, blame,
    check::{Dealt, delivery, odd_one_out},
    complaint::Said,
    digests, envelopes,
};
use crate::session::{Conversation, Fault, Send, StepProgress, Turn, refusal_of};

/// One attempt.
#[derive(Debug)]
pub struct DkgAttempt {
    context: Context,
    state: State,
}

#[derive(Debug)]
enum State {
    Round1(BTreeMap<Identifier, Verified<DkgRound1>>),
    Round2(AwaitRound2),
    Certificates(Box<AwaitCertificates>),
    Acknowledgements(Box<AwaitAcknowledgements>),
}

#[derive(Debug)]
struct AwaitRound2 {
    round1: Vec<Verified<DkgRound1>>,
    digests: Vec<MessageDigest>,
    dealt: BTreeMap<Identifier, Dealt>,
}

#[derive(Debug)]
struct AwaitCertificates {
    round1: Vec<Verified<DkgRound1>>,
    manifests: Vec<Verified<DkgManifest>>,
    deliveries: BTreeMap<Identifier, Delivery>,
    transcript: TranscriptDigest,
    certificates: BTreeMap<Identifier, Verified<Certificate>>,
}

#[derive(Debug)]
struct AwaitAcknowledgements {
    round1: Vec<Verified<DkgRound1>>,
    manifests: Vec<Verified<DkgManifest>>,
    deliveries: BTreeMap<Identifier, Delivery>,
    sharing: CertifiedSharing,
    acknowledged: Vec<Identifier>,
}

const UNEXPECTED: Reject = Reject::UnexpectedMessage;

impl State {
    const fn step(&self) -> &'static str {
        match self {
            Self::Round1(_) => "round one",
            Self::Round2(_) => "round two",
            Self::Certificates(_) => "certificates",
            Self::Acknowledgements(_) => "acknowledgements",
        }
    }

    fn answered(&self) -> Vec<Identifier> {
        match self {
            Self::Round1(round1) => round1.keys().copied().collect(),
            Self::Round2(state) => state.dealt.keys().copied().collect(),
            Self::Certificates(state) => state.certificates.keys().copied().collect(),
            Self::Acknowledgements(state) => state.acknowledged.clone(),
        }
    }
}

/// A failure inside a step, before the step's name is put to it.
struct Failed {
    code: Reject,
    culprit: Option<Identifier>,
    accuser: Option<Identifier>,
}

impl Failed {
    const fn by(code: Reject, culprit: Option<Identifier>) -> Self {
        Self {
            code,
            culprit,
            accuser: None,
        }
    }

    const fn in_step(self, step: &'static str) -> CeremonyFault {
        CeremonyFault {
            code: self.code,
            culprit: self.culprit,
            accuser: self.accuser,
            step,
        }
    }
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        let (culprit, accuser) = blame(&fault);
        Self {
            code: fault.failing.code(),
            culprit: Some(culprit),
            accuser,
        }
    }
}

impl From<Reject> for Failed {
    fn from(code: Reject) -> Self {
        Self::by(code, None)
    }
}

/// What a step leads to.
enum After {
    Step(State, Vec<Send>),
    Made(Box<DkgMade>),
}

impl DkgAttempt {
    pub(super) const fn new(context: Context) -> Self {
        Self {
            context,
            state: State::Round1(BTreeMap::new()),
        }
    }

    fn fault(&self, failed: Failed) -> Turn<Self> {
        Turn::Ended(Err(failed.in_step(self.state.step())))
    }
}

impl Context {
    fn advance(
        &self,
        state: State,
        from: Identifier,
        message: FromMember,
    ) -> Result<After, Failed> {
        let repeated = state.answered().contains(&from);
        match (state, message) {
            (_, FromMember::Refusal(envelope)) => {
                Err(refusal_of(&self.members, from, self.session(), envelope).into())
            }
            (State::Certificates(state), FromMember::Complaint(envelope)) => {
                let said = Said {
                    round1: &state.round1,
                    manifests: &state.manifests,
                };
                Err(self.complaint(from, envelope, &said).into())
            }
            (_, _) if repeated => Err(Fault::misbehaved(from, UNEXPECTED).into()),
            (State::Round1(mut round1), FromMember::DkgRound1(envelope)) => {
                round1.insert(from, self.round1(from, envelope)?);
                self.after_round1(round1)
            }
            (State::Round2(mut state), FromMember::DkgRound2(round2)) => {
                state
                    .dealt
                    .insert(from, self.round2(from, round2, &state.digests)?);
                self.after_round2(state)
            }
            (State::Certificates(mut state), FromMember::Certificate(envelope)) => {
                let certificate = self.certificate(from, envelope, state.transcript)?;
                state.certificates.insert(from, certificate);
                self.after_certificates(state)
            }
            (State::Acknowledgements(mut state), FromMember::Acknowledgement(envelope)) => {
                let what = MessageDigest::from_bytes(*state.sharing.set_digest().as_bytes());
                self.acknowledgement(from, envelope, what)?;
                state.acknowledged.push(from);
                Ok(self.after_acknowledgements(*state))
            }
            (_, _) => Err(Fault::misbehaved(from, UNEXPECTED).into()),
        }
    }

    fn after_round1(
        &self,
        round1: BTreeMap<Identifier, Verified<DkgRound1>>,
    ) -> Result<After, Failed> {
        if round1.len() < self.members.len() {
            return Ok(After::Step(State::Round1(round1), Vec::new()));
        }
        let round1: Vec<_> = round1.into_values().collect();
        let set = DkgRound1Set {
            messages: envelopes(&round1)?,
        };
        let send = self.to_all(&ToMember::DkgRound1Set(set));
        let state = AwaitRound2 {
            digests: digests(&round1),
            round1,
            dealt: BTreeMap::new(),
        };
        Ok(After::Step(State::Round2(state), send))
    }

    fn after_round2(&self, state: AwaitRound2) -> Result<After, Failed> {
        if state.dealt.len() < self.members.len() {
            return Ok(After::Step(State::Round2(state), Vec::new()));
        }
        let dealt: Vec<_> = state.dealt.into_values().collect();
        let deliveries = self
            .identifiers()
            .map(|recipient| Ok((recipient, delivery(&dealt, recipient)?)))
            .collect::<Result<BTreeMap<_, _>, Reject>>()?;
        let send = deliveries
            .iter()
            .map(|(to, delivery)| Send {
                to: *to,
                message: ToMember::Delivery(delivery.clone()),
            })
            .collect();
        let manifests: Vec<_> = dealt.into_iter().map(|dealt| dealt.manifest).collect();
        let transcript = transcript_digest(
            self.plan_digest(),
            self.session(),
            &state.digests,
            &digests(&manifests),
        )
        .map_err(Reject::from)?;
        let next = AwaitCertificates {
            round1: state.round1,
            manifests,
            deliveries,
            transcript,
            certificates: BTreeMap::new(),
        };
        Ok(After::Step(State::Certificates(Box::new(next)), send))
    }

    fn after_certificates(&self, state: Box<AwaitCertificates>) -> Result<After, Failed> {
        if state.certificates.len() < self.members.len() {
            return Ok(After::Step(State::Certificates(state), Vec::new()));
        }
        let certificates: Vec<_> = state.certificates.into_values().collect();
        let words: List<_, { limits::MAX_MEMBERS }> = envelopes(&certificates)?;
        let sharing = CertifiedSharing::verify(self.plan.clone(), &words)
            .map_err(|code| Failed::by(code, odd_one_out(&certificates)))?;
        let send = self.to_all(&ToMember::CertificateSet(sharing.certificate_set()?));
        let next = AwaitAcknowledgements {
            round1: state.round1,
            manifests: state.manifests,
            deliveries: state.deliveries,
            sharing,
            acknowledged: Vec::new(),
        };
        Ok(After::Step(State::Acknowledgements(Box::new(next)), send))
    }

    fn after_acknowledgements(&self, state: AwaitAcknowledgements) -> After {
        if state.acknowledged.len() < self.members.len() {
            return After::Step(State::Acknowledgements(Box::new(state)), Vec::new());
        }
        After::Made(Box::new(DkgMade {
            header: self.header.clone(),
            round1: state.round1,
            manifests: state.manifests,
            deliveries: state.deliveries.into_values().collect(),
            sharing: state.sharing,
        }))
    }
}

impl Conversation for DkgAttempt {
    type Outcome = Result<Box<DkgMade>, CeremonyFault>;

    const FRAME_LIMIT: usize = limits::MAX_CEREMONY_MESSAGE;

    fn progress(&self) -> StepProgress {
        StepProgress {
            step: self.state.step(),
            done: self.state.answered().len(),
            of: self.context.members.len(),
        }
    }

    fn handle(self, from: Identifier, message: FromMember) -> Turn<Self> {
        let Self { context, state } = self;
        let step = state.step();
        match context.advance(state, from, message) {
            Ok(After::Step(state, send)) => Turn::Goes(Self { context, state }, send),
            Ok(After::Made(made)) => Turn::Ended(Ok(made)),
            Err(failed) => Turn::Ended(Err(failed.in_step(step))),
        }
    }

    fn fail(self, fault: Fault) -> Turn<Self> {
        // Only after its last word may a member's stream end.
        let done = match &self.state {
            State::Acknowledgements(state) => state.acknowledged.contains(&fault.member),
            State::Round1(_) | State::Round2(_) | State::Certificates(_) => false,
        };
        if done {
            Turn::Goes(self, Vec::new())
        } else {
            self.fault(fault.into())
        }
    }

    fn expire(self) -> Turn<Self> {
        let answered = self.state.answered();
        let culprit = self
            .context
            .identifiers()
            .find(|member| !answered.contains(member));
        self.fault(Failed::by(Reject::Deadline, culprit))
    }
}

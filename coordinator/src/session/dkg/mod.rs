//! One attempt of a distributed key generation: round one, round two, certificates,
//! acknowledgements. It decides that every message belongs to this attempt and names who broke it;
//! it sees no share, since all of them are sealed to their recipients.

mod attempt;
mod check;
mod complaint;
#[cfg(test)]
mod tests;

use firn_protocol::{
    codec::{List, Maybe, Text},
    documents::{Ceremony, Plan},
    envelope::{Approved, Envelope, Verified},
    ids::{Epoch, Flow, Identifier, MessageDigest, PlanDigest, SessionId},
    messages::{
        CeremonyFailed, CeremonyRecord, Delivery, DkgManifest, DkgOpen, DkgRound1, ProofRecord,
        ToMember,
    },
    reject::Reject,
    session::{CeremonySubject, SessionHeader, Subject},
    sharing::CertifiedSharing,
};
use rand_core::CryptoRng;

pub use attempt::DkgAttempt;

use super::{Failing, Fault, Send, SessionMember};
use crate::voice::{SessionTerms, Voice};

/// Why a ceremony failed, and in which step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CeremonyFault {
    /// Why.
    pub code: Reject,
    /// The member at fault, where one is.
    pub culprit: Option<Identifier>,
    /// The member by whose word alone it is at fault; none where it was found here.
    pub accuser: Option<Identifier>,
    /// The step.
    pub step: &'static str,
}

impl CeremonyFault {
    /// Nobody is at fault but what was asked, or this coordinator.
    #[must_use]
    pub const fn here(code: Reject, step: &'static str) -> Self {
        Self {
            code,
            culprit: None,
            accuser: None,
            step,
        }
    }

    /// As the operator's tool is told. A culprit is named only where its fault was found here: an
    /// accusation is told as somebody's word, and anybody may say anything.
    #[must_use]
    pub fn to_message(self) -> Option<CeremonyFailed> {
        let (culprit, step) = match (self.accuser, self.culprit) {
            (Some(accuser), Some(accused)) => {
                let word = format!("{}: member {accuser} accuses member {accused}", self.step);
                (None, word)
            }
            (Some(_) | None, culprit) => (culprit, self.step.to_owned()),
        };
        Some(CeremonyFailed {
            code: self.code,
            culprit: Maybe(culprit),
            step: Text::new(&step)?,
        })
    }
}

/// Who is at fault by a failure: whoever failed, or whoever that member accuses, and then by whose word.
pub(crate) fn blame(fault: &Fault) -> (Identifier, Option<Identifier>) {
    let accused = match &fault.failing {
        Failing::Refused(refusal) => refusal.culprit.0,
        Failing::Misbehaved(_) | Failing::Silent(_) => None,
    };
    match accused.filter(|accused| *accused != fault.member) {
        Some(accused) => (accused, Some(fault.member)),
        None => (fault.member, None),
    }
}

/// What all steps of an attempt share.
#[derive(Debug)]
struct Context {
    plan: Approved<Plan>,
    header: Verified<SessionHeader>,
    members: Vec<SessionMember>,
}

impl Context {
    fn session(&self) -> SessionId {
        self.header.session_id()
    }

    fn plan_digest(&self) -> PlanDigest {
        PlanDigest::from_bytes(self.plan.digest())
    }

    fn identifiers(&self) -> impl Iterator<Item = Identifier> {
        self.members.iter().map(|member| member.identifier)
    }

    fn to_all(&self, message: &ToMember) -> Vec<Send> {
        self.identifiers()
            .map(|to| Send {
                to,
                message: message.clone(),
            })
            .collect()
    }
}

/// What the header of any session of this ceremony binds; none where the plan is not of a DKG.
#[must_use]
pub fn session_terms(plan: &Approved<Plan>, flow: Flow) -> Option<SessionTerms> {
    let digest = PlanDigest::from_bytes(plan.digest());
    let epoch: Epoch = match &plan.ceremony {
        Ceremony::Dkg(terms) => terms.first_epoch,
        Ceremony::Reshare(_) | Ceremony::Retire(_) => return None,
    };
    Some(SessionTerms {
        flow,
        subject: Subject::Ceremony(CeremonySubject {
            plan: digest,
            ceremony_id: plan.ceremony_id,
            rules: plan.rules,
        }),
        key_id: plan.key_id(digest),
        share_version: plan.share_version(),
        epoch,
    })
}

/// The members of a plan, as sessions know them.
#[must_use]
pub fn plan_members(plan: &Plan) -> Vec<SessionMember> {
    plan.roster
        .iter()
        .map(|entry| SessionMember {
            identifier: entry.identifier,
            identity: entry.identity,
        })
        .collect()
}

/// Opens an attempt of the plan with all its members.
///
/// # Errors
/// [`Reject::UnexpectedMessage`] when the plan is not of a DKG.
pub fn open<R: CryptoRng>(
    plan: Approved<Plan>,
    voice: &Voice,
    rng: &mut R,
) -> Result<(DkgAttempt, Vec<Send>), Reject> {
    let terms = session_terms(&plan, Flow::Dkg).ok_or(Reject::UnexpectedMessage)?;
    let members = plan_members(&plan);
    let identifiers: Vec<_> = members.iter().map(|member| member.identifier).collect();
    let header = voice.open_session(terms, &identifiers, rng)?;
    let open = DkgOpen {
        header: header.envelope().clone(),
        plan: plan.endorsed().clone(),
    };
    let context = Context {
        plan,
        header,
        members,
    };
    let opening = context.to_all(&ToMember::DkgOpen(open));
    Ok((DkgAttempt::new(context), opening))
}

/// A DKG that every member has certified and stored.
#[derive(Debug)]
pub struct DkgMade {
    /// The attempt.
    pub header: Verified<SessionHeader>,
    /// Everybody's round one, ascending.
    pub round1: Vec<Verified<DkgRound1>>,
    /// Everybody's manifest, ascending.
    pub manifests: Vec<Verified<DkgManifest>>,
    /// What each member was delivered, ascending.
    pub deliveries: Vec<Delivery>,
    /// The key that all of them see.
    pub sharing: CertifiedSharing,
}

impl DkgMade {
    /// The evidence, with the proofs of life that followed.
    ///
    /// # Errors
    /// Never for a roster and the proofs that it calls for.
    pub fn record(self, proofs: Vec<ProofRecord>) -> Result<CeremonyRecord, Reject> {
        Ok(CeremonyRecord {
            header: self.header.into_envelope(),
            round1: envelopes(&self.round1)?,
            manifests: envelopes(&self.manifests)?,
            deliveries: List::new(self.deliveries).ok_or(Reject::TooLarge)?,
            certificates: self.sharing.certificate_set()?.certificates,
            proofs: List::new(proofs).ok_or(Reject::TooLarge)?,
        })
    }
}

fn envelopes<T, const MAX: usize>(
    verified: &[Verified<T>],
) -> Result<List<Envelope<T>, MAX>, Reject> {
    let envelopes = verified
        .iter()
        .map(|word| word.envelope().clone())
        .collect();
    List::new(envelopes).ok_or(Reject::TooLarge)
}

/// The digests that manifests and transcripts name, in order.
fn digests<T>(verified: &[Verified<T>]) -> Vec<MessageDigest> {
    verified
        .iter()
        .map(|word| MessageDigest::from_bytes(word.digest()))
        .collect()
}

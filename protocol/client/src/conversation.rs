//! One question to one coordinator, and its answer. It decides whether an answer is what was asked for,
//! or a no, and whose; what to do about silence is its caller's matter.

use std::time::Duration;

use firn_protocol::{
    documents::{Intent, KeyHolder},
    envelope::Envelope,
    ids::{Epoch, Identifier, RequestId},
    messages::{
        FromRequests, KeyDocuments, OutcomeReport, Refusal, RequestFailed, RequestSigned,
        SignRequest, ToRequests,
    },
    reject::Reject,
    sharing::ActiveSharing,
};

use crate::{
    error::{Error, MemberNo, No},
    evidence::{CheckedSigning, SigningTerms, check_signed},
    line::Line,
};

/// Signatures that prove themselves.
#[derive(Debug, Clone)]
pub struct Answer {
    /// As it came.
    pub signed: RequestSigned,
    /// What it proves.
    pub checked: CheckedSigning,
}

/// What a request was made of, for judging its answer.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The key.
    pub sharing: &'a ActiveSharing,
    /// The intent.
    pub intent: &'a Intent,
    /// The request.
    pub request_id: RequestId,
    /// The owner's epoch.
    pub epoch: Epoch,
}

pub(crate) const SIGNING: &str = "asking for signatures";
pub(crate) const FETCHING: &str = "asking what a key is";
pub(crate) const OUTCOME: &str = "asking for the outcome of a request";

impl Line {
    /// Asks for signatures, once, over this connection. Asking again is always safe.
    ///
    /// # Errors
    /// A no, with the reason that most members gave; [`Error::Unverified`]; [`Error::OutcomeUnknown`];
    /// [`Error::Transport`] where nothing was asked.
    pub async fn sign(
        &self,
        request: &SignRequest,
        asked: &Asked<'_>,
        patience: Duration,
    ) -> Result<Answer, Error> {
        let message = ToRequests::Sign(request.clone());
        let answer = self.question(SIGNING, &message, patience).await?;
        signed(answer, self.coordinator(), asked)
    }

    /// The coordinator's answer to one question, decoded and not judged.
    pub(crate) async fn question(
        &self,
        doing: &'static str,
        message: &ToRequests,
        patience: Duration,
    ) -> Result<FromRequests, Error> {
        self.ask(doing, message, patience).await?.next().await
    }
}

/// Signatures that prove themselves, if that is what came.
pub(crate) fn signed(
    answer: FromRequests,
    coordinator: &KeyHolder,
    asked: &Asked<'_>,
) -> Result<Answer, Error> {
    match answer {
        FromRequests::Signed(signed) => {
            let terms = SigningTerms {
                sharing: asked.sharing,
                coordinators: &[coordinator.key],
                intent: asked.intent,
                request_id: asked.request_id,
                epoch: asked.epoch,
            };
            let checked =
                check_signed(&signed, &terms).map_err(Error::unverified("the signed answer"))?;
            Ok(Answer { signed, checked })
        }
        FromRequests::Failed(failed) => {
            let members = member_noes(&failed.refusals, asked.sharing, |refusal| {
                refusal.request_id.0 == Some(asked.request_id)
            });
            Err(no(SIGNING, &failed, members))
        }
        FromRequests::Outcome(_) | FromRequests::Key(_) => Err(unexpected()),
    }
}

/// Documents that say what a key is, yet to be verified.
pub(crate) fn documents(answer: FromRequests) -> Result<KeyDocuments, Error> {
    match answer {
        FromRequests::Key(documents) => Ok(documents),
        FromRequests::Failed(failed) => Err(no(FETCHING, &failed, Vec::new())),
        FromRequests::Outcome(_) | FromRequests::Signed(_) => Err(unexpected()),
    }
}

/// What members say of a request, yet to be verified.
pub(crate) fn report(answer: FromRequests) -> Result<OutcomeReport, Error> {
    match answer {
        FromRequests::Outcome(report) => Ok(report),
        FromRequests::Failed(failed) => Err(no(OUTCOME, &failed, Vec::new())),
        FromRequests::Signed(_) | FromRequests::Key(_) => Err(unexpected()),
    }
}

/// The refusals that members of the roster have signed and that are `about` what was asked, one of each;
/// others are left out.
pub(crate) fn member_noes(
    refusals: &[(Identifier, Envelope<Refusal>)],
    sharing: &ActiveSharing,
    about: impl Fn(&Refusal) -> bool,
) -> Vec<MemberNo> {
    let mut noes: Vec<MemberNo> = Vec::new();
    for (member, word) in refusals {
        let entry = sharing.certified().member(*member);
        let known = entry.filter(|entry| noes.iter().all(|no| no.member != entry.name));
        let verified = known.and_then(|entry| {
            let refusal = word.clone().verify(&entry.identity).ok()?;
            Some((entry, refusal))
        });
        if let Some((entry, refusal)) = verified.filter(|(_, refusal)| about(refusal)) {
            noes.push(MemberNo {
                member: entry.name.clone(),
                code: refusal.code,
                retry_after_ms: refusal.retry_after_ms.0,
            });
        }
    }
    noes
}

const fn unexpected() -> Error {
    Error::Unverified {
        what: "the coordinator's answer",
        code: Reject::UnexpectedMessage,
    }
}

fn no(doing: &'static str, failed: &RequestFailed, members: Vec<MemberNo>) -> Error {
    Error::no(No {
        doing,
        code: failed.code,
        members,
        missing: failed.missing.to_vec(),
        detail: failed.detail.to_string(),
    })
}

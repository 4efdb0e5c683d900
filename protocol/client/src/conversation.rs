//! One question to one coordinator, and its answer. It decides whether an answer is what was asked for,
//! or a no, and whose; what to do about silence is its caller's matter.

use std::time::Duration;

use firn_protocol::{
    documents::Intent,
    envelope::Envelope,
    ids::{Epoch, Identifier, RequestId},
    messages::{
        FromRequests, KeyDocuments, KeyQuery, OutcomeQuery, OutcomeReport, Refusal, RequestFailed,
        RequestSigned, SignRequest, ToRequests,
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
    /// Asks for signatures, once. Asking again is always safe.
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
        match self.question(SIGNING, &message, patience).await? {
            FromRequests::Signed(signed) => {
                let terms = SigningTerms {
                    sharing: asked.sharing,
                    coordinators: &[self.coordinator().key],
                    intent: asked.intent,
                    request_id: asked.request_id,
                    epoch: asked.epoch,
                };
                let checked = check_signed(&signed, &terms)
                    .map_err(Error::unverified("the signed answer"))?;
                Ok(Answer { signed, checked })
            }
            FromRequests::Failed(failed) => Err(no(SIGNING, &failed, Some(asked.sharing))),
            FromRequests::Outcome(_) | FromRequests::Key(_) => Err(unexpected()),
        }
    }

    /// Asks what a key is. What comes back is yet to be verified.
    ///
    /// # Errors
    /// As [`Self::sign`].
    pub async fn key_documents(
        &self,
        query: Envelope<KeyQuery>,
        patience: Duration,
    ) -> Result<KeyDocuments, Error> {
        let message = ToRequests::Key(query);
        match self.question(FETCHING, &message, patience).await? {
            FromRequests::Key(documents) => Ok(documents),
            FromRequests::Failed(failed) => Err(no(FETCHING, &failed, None)),
            FromRequests::Outcome(_) | FromRequests::Signed(_) => Err(unexpected()),
        }
    }

    /// Asks what members say of a request. What comes back is yet to be verified.
    ///
    /// # Errors
    /// As [`Self::sign`].
    pub async fn outcome_report(
        &self,
        query: Envelope<OutcomeQuery>,
        patience: Duration,
    ) -> Result<OutcomeReport, Error> {
        let message = ToRequests::Outcome(query);
        match self.question(OUTCOME, &message, patience).await? {
            FromRequests::Outcome(report) => Ok(report),
            FromRequests::Failed(failed) => Err(no(OUTCOME, &failed, None)),
            FromRequests::Signed(_) | FromRequests::Key(_) => Err(unexpected()),
        }
    }

    async fn question(
        &self,
        doing: &'static str,
        message: &ToRequests,
        patience: Duration,
    ) -> Result<FromRequests, Error> {
        self.ask(doing, message, patience).await?.next().await
    }
}

const fn unexpected() -> Error {
    Error::Unverified {
        what: "the coordinator's answer",
        code: Reject::UnexpectedMessage,
    }
}

/// Signed words only count where the key, and so the roster, is known.
fn no(doing: &'static str, failed: &RequestFailed, sharing: Option<&ActiveSharing>) -> Error {
    let members = sharing.map_or_else(Vec::new, |sharing| member_noes(&failed.refusals, sharing));
    Error::no(No {
        doing,
        code: failed.code,
        members,
        missing: failed.missing.to_vec(),
        detail: failed.detail.to_string(),
    })
}

/// The refusals that members of the roster have signed; others are left out.
pub(crate) fn member_noes(
    refusals: &[(Identifier, Envelope<Refusal>)],
    sharing: &ActiveSharing,
) -> Vec<MemberNo> {
    refusals
        .iter()
        .filter_map(|(member, word)| {
            let entry = sharing.certified().member(*member)?;
            let refusal = word.clone().verify(&entry.identity).ok()?;
            Some(MemberNo {
                member: entry.name.clone(),
                code: refusal.code,
                retry_after_ms: refusal.retry_after_ms.0,
            })
        })
        .collect()
}

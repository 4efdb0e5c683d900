//! A requester's conversation. It decides whether an answer is the signatures that were asked for, or a
//! no, and whose.

use std::time::Duration;

use firn_protocol::{
    documents::Intent,
    ids::{Epoch, RequestId},
    keys::IdentityKey,
    messages::{FromRequests, RequestFailed, RequestSigned, SignRequest, ToRequests},
    reject::Reject,
    sharing::ActiveSharing,
};

use super::line::{Line, Peer};
use crate::{
    domain::Party,
    error::Error,
    evidence::{CheckedSigning, SigningTerms, check_signed},
};

/// Longer than a coordinator tries all its quorums.
const PATIENCE: Duration = Duration::from_mins(2);

/// Signatures that prove themselves.
#[derive(Debug, Clone)]
pub struct Answer {
    /// As it came.
    pub signed: RequestSigned,
    /// What it proves.
    pub checked: CheckedSigning,
}

/// A requester's connection.
#[derive(Debug)]
pub struct RequesterLine {
    line: Line,
    coordinator: IdentityKey,
}

impl RequesterLine {
    /// Dials as this requester.
    ///
    /// # Errors
    /// As [`Line::connect`].
    pub async fn connect(party: &Party, peer: &Peer) -> Result<Self, Error> {
        Ok(Self {
            line: Line::connect(party, peer).await?,
            coordinator: peer.holder.key,
        })
    }

    /// Asks for signatures. Asking again is always safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with the reason that most members gave; [`Error::Unverified`];
    /// [`Error::OutcomeUnknown`].
    pub async fn sign(&self, request: SignRequest, asked: &Asked<'_>) -> Result<Answer, Error> {
        const DOING: &str = "asking for signatures";
        let message = ToRequests::Sign(request);
        let mut answers = self.line.ask(DOING, &message, PATIENCE).await?;
        match answers.next().await? {
            FromRequests::Signed(signed) => {
                let terms = SigningTerms {
                    sharing: asked.sharing,
                    coordinators: &[self.coordinator],
                    intent: asked.intent,
                    request_id: asked.request_id,
                    epoch: asked.epoch,
                };
                let checked = check_signed(&signed, &terms)
                    .map_err(Error::unverified("the signed answer"))?;
                Ok(Answer { signed, checked })
            }
            FromRequests::Failed(failed) => Err(Error::Refused {
                doing: DOING,
                code: failed.code,
                detail: described(&failed, asked.sharing),
            }),
            FromRequests::Outcome(_) | FromRequests::Key(_) => Err(Error::Unverified {
                what: "the coordinator's answer",
                code: Reject::UnexpectedMessage,
            }),
        }
    }
}

/// What a request was made of, for judging its answer.
#[derive(Debug, Clone)]
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

/// Who said no and why, by signed words only; and who could not be asked, by the coordinator's.
fn described(failed: &RequestFailed, sharing: &ActiveSharing) -> String {
    let certified = sharing.certified();
    let refusals = failed.refusals.iter().filter_map(|(member, word)| {
        let entry = certified.member(*member)?;
        let refusal = word.clone().verify(&entry.identity).ok()?;
        Some(format!("{} says {}", entry.name, refusal.code))
    });
    let missing = failed
        .missing
        .iter()
        .map(|member| format!("{} cannot be reached", member.name));
    let detail = Some(failed.detail.to_string()).filter(|detail| !detail.is_empty());
    let all: Vec<String> = refusals.chain(missing).chain(detail).collect();
    all.join("; ")
}

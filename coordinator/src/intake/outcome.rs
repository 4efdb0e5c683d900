//! What became of a request: the question goes to every member of the key at the same time, and what
//! they have signed goes back. It decides how long to wait, and never what the answers mean.

use std::sync::Arc;

use firn_protocol::{
    envelope::{Envelope, Verified},
    keys::IdentityKey,
    messages::{FromRequests, OutcomeQuery, OutcomeReport},
    reject::Reject,
};
use tracing::Instrument;

use super::requests::refused;
use crate::{carry::ask_all, keys::members_of, session::outcome::OutcomeInquiry, state::Shared};

/// Answers the requester of a connection. A key that nobody who is connected has is never an answer
/// about the request: its members may be away.
pub(super) async fn outcome(
    shared: &Arc<Shared>,
    requester: &IdentityKey,
    query: Envelope<OutcomeQuery>,
) -> FromRequests {
    let query = match query.verify(requester) {
        Ok(query) => query,
        Err(error) => return refused(error.into()),
    };
    let (request_id, key_id) = (query.request_id, query.key_id);
    let span = tracing::info_span!("outcome", %request_id, %key_id);
    let report = report(shared, query).instrument(span.clone()).await;
    let _entered = span.entered();
    match report {
        Ok(report) => {
            tracing::info!(
                statements = report.statements.len(),
                refusals = report.refusals.len(),
                missing = report.missing.len(),
                "members have said what became of a request"
            );
            FromRequests::Outcome(report)
        }
        Err(code) => {
            tracing::info!(code = %code, "nobody could be asked what became of a request");
            refused(code)
        }
    }
}

async fn report(
    shared: &Arc<Shared>,
    query: Verified<OutcomeQuery>,
) -> Result<OutcomeReport, Reject> {
    let sharing = members_of(shared, query.key_id).await?;
    let mut inquiry = OutcomeInquiry::new(query, &sharing)?;
    let question = inquiry.question();
    let members: Vec<_> = {
        let registry = shared.registry();
        let roster = inquiry.roster().iter();
        let there = roster.filter_map(|entry| Some((entry.identifier, registry.reach(entry)?)));
        there.collect()
    };
    let patience = shared.bounds.patience();
    let limit = OutcomeInquiry::FRAME_LIMIT;
    ask_all(members, question, limit, patience, |member, answer| {
        if let Err(code) = answer.and_then(|answer| inquiry.take(member, answer)) {
            tracing::info!(%member, code = %code, "a member did not say what became of a request");
        }
        inquiry.is_enough()
    })
    .await;
    inquiry.report(|entry| shared.away_since(entry))
}

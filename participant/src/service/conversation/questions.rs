//! Questions that end with their answer: nothing is opened, nothing is recorded.

use std::sync::Arc;

use firn_protocol::{
    envelope::Envelope,
    messages::{OutcomeQuery, StatusQuery},
};

use super::{Conversation, Ended};
use crate::{
    service::{Host, Stream},
    session::{AskedOutcome, judge_status_query},
};

impl<H: Host, S: Stream> Conversation<H, S> {
    /// Says what became of a request, to the key's current owner. A frozen participant says it too, and
    /// one whose clock stands wrong.
    pub(super) async fn answer_outcome_query(
        &mut self,
        query: Envelope<OutcomeQuery>,
    ) -> Result<(), Ended> {
        let service = Arc::clone(&self.service);
        let place = |key_id| Ok(service.key_in_use(key_id)?.as_ref().member);
        let asked = AskedOutcome::judge(&query, place, &service.authorities)?;
        self.request_id = Some(asked.request_id());
        let (asked, found) = service
            .query(move |ledger| {
                let found = asked.look(ledger);
                (asked, found)
            })
            .await?;
        let statement = asked.answer(found?, &service.speaker, service.now())?;
        self.send(statement).await
    }

    /// Says how this participant is, to an operator.
    pub(super) async fn answer_status_query(
        &mut self,
        query: Envelope<StatusQuery>,
    ) -> Result<(), Ended> {
        let service = Arc::clone(&self.service);
        let nonce = judge_status_query(&query, &service.authorities)?;
        let status = service.status(nonce).await?;
        self.send(status).await
    }
}

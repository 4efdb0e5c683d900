//! What the state says of a request to whoever may know. It decides what is still alive of it, and
//! never who may ask.

use firn_protocol::{
    codec::Maybe,
    ids::{KeyId, RequestId},
    messages::KnownRequest,
};

use super::state::{RequestState, StateError, View};

impl View<'_> {
    /// What is known of a request; none where it never reached this ledger. Attempts of earlier runs of
    /// the process count no more: their nonces are gone, and no share of theirs will ever leave.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn known_request(
        &self,
        key_id: KeyId,
        request_id: RequestId,
    ) -> Result<Option<KnownRequest>, StateError> {
        let Some(request) = self.request(key_id, request_id)? else {
            return Ok(None);
        };
        Ok(Some(KnownRequest {
            intent: request.intent,
            policy: request.policy,
            epoch: request.epoch,
            progress: request.progress,
            open_attempts: self.open_in_this_run(&request)?,
            receipt: Maybe(self.receipt(key_id, request_id)?),
        }))
    }

    fn open_in_this_run(&self, request: &RequestState) -> Result<u32, StateError> {
        let run = self.run()?;
        let open = request.open.iter().filter(|(_, opened)| *opened == run);
        // There are never more than the bound of the list.
        Ok(u32::try_from(open.count()).unwrap_or(u32::MAX))
    }
}

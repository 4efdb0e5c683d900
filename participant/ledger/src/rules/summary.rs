//! What the state amounts to for an operator: keys with their owners, and plans that wait. It decides
//! nothing.

use firn_protocol::{
    codec::{Malformed, Maybe},
    ids::PlanDigest,
    messages::{KeyStatus, ShareStage},
};

use super::state::{StateError, View};

impl View<'_> {
    /// All keys, ascending by key id.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn key_statuses(&self) -> Result<Vec<KeyStatus>, StateError> {
        let mut statuses = Vec::new();
        for (key_id, key) in self.keys()? {
            let (epoch, owner) = match self.epoch(key_id)? {
                Some(state) => (Some(state.epoch), state.owner),
                None => (None, Maybe(None)),
            };
            let active = key.active.0;
            statuses.push(KeyStatus {
                key_id,
                share_version: key.share_version,
                stage: key.stage,
                activation: Maybe(active.as_ref().map(|active| active.activation)),
                policy_version: Maybe(active.map(|active| active.policy_version)),
                epoch: Maybe(epoch),
                owner,
            });
        }
        Ok(statuses)
    }

    /// The plans that were accepted on this machine and have made no key yet, ascending.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn waiting_plans(&self) -> Result<Vec<PlanDigest>, StateError> {
        let keys = self.keys()?;
        let mut waiting = Vec::new();
        self.each(b'p', |name, _| {
            let plan = <[u8; 32]>::try_from(name).map_err(|_| Malformed::Schema)?;
            let plan = PlanDigest::from_bytes(plan);
            let made = |stage| match stage {
                ShareStage::Pending => false,
                ShareStage::Certified | ShareStage::Active => true,
            };
            if !keys
                .iter()
                .any(|(_, key)| key.plan == plan && made(key.stage))
            {
                waiting.push(plan);
            }
            Ok(())
        })?;
        Ok(waiting)
    }
}

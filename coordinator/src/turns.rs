//! Turns of one request: whoever asks for the same request while it is being signed waits until that
//! has ended, and is then given what the members have stored. It decides order, never an answer: the
//! members judge each asker's own grant.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use firn_protocol::ids::{KeyId, RequestId};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// The requests that are being signed. An entry lives as long as somebody has or awaits its turn.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<Places>);

type Places = BTreeMap<(KeyId, RequestId), Weak<AsyncMutex<()>>>;

impl Turns {
    /// Waits for the turn, which lasts until the guard is dropped.
    pub(crate) async fn take(&self, key_id: KeyId, request_id: RequestId) -> OwnedMutexGuard<()> {
        self.place(key_id, request_id).lock_owned().await
    }

    fn place(&self, key_id: KeyId, request_id: RequestId) -> Arc<AsyncMutex<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| turn.strong_count() > 0);
        let found = turns.get(&(key_id, request_id)).and_then(Weak::upgrade);
        found.unwrap_or_else(|| {
            let turn = Arc::default();
            turns.insert((key_id, request_id), Arc::downgrade(&turn));
            turn
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_request_has_one_turn_and_another_does_not_wait() {
        let turns = Turns::default();
        let key = KeyId::from_bytes([1; 32]);
        let [one, two] = [1, 2].map(|byte| RequestId::from_bytes([byte; 32]));
        let first = turns.take(key, one).await;
        drop(turns.take(key, two).await);
        assert!(turns.place(key, one).try_lock_owned().is_err());
        drop(first);
        assert!(turns.place(key, one).try_lock_owned().is_ok());
        drop(turns.take(key, two).await);
        assert!(
            turns.0.lock().unwrap().len() <= 1,
            "what nobody waits for is forgotten"
        );
    }
}

//! What a key is, as far as the coordinator needs it: roster, threshold and verifying shares, looked
//! up from members and verified against the Authorities. It keeps them in memory only, and believes
//! no summary.

use std::{collections::BTreeMap, sync::Arc};

use firn_protocol::{
    ids::{ActivationDigest, KeyId},
    limits,
    messages::{FromMember, KeyDocuments, KeyQuery, ToMember},
    reject::Reject,
    sharing::ActiveSharing,
};
use firn_transport::Connection;
use tokio::task::JoinSet;

use crate::{
    carry::ask,
    state::{Shared, rng},
    voice::fresh_nonce,
};

/// Keys that are remembered; the first is forgotten for one more.
const MAX_KEPT: usize = 64;
/// Members that are asked at once.
const ASKED_AT_ONCE: usize = 8;

/// Sharings that have been verified, by key.
#[derive(Debug, Default)]
pub(crate) struct KeyCache(BTreeMap<KeyId, Arc<ActiveSharing>>);

impl KeyCache {
    pub(crate) fn find(&self, key_id: KeyId) -> Option<Arc<ActiveSharing>> {
        self.0.get(&key_id).cloned()
    }

    pub(crate) fn keep(&mut self, sharing: Arc<ActiveSharing>) {
        let key_id = sharing.certified().key_id();
        if self.0.len() >= MAX_KEPT && !self.0.contains_key(&key_id) {
            self.0.pop_first();
        }
        self.0.insert(key_id, sharing);
    }

    /// Forgets a key: a member knows of another activation.
    pub(crate) fn forget(&mut self, key_id: KeyId) {
        self.0.remove(&key_id);
    }
}

/// The sharing of a key under the activation that a grant names; failing that, the newest that any
/// connected member has, since it is for the members to say that the grant is for another.
///
/// # Errors
/// [`Reject::QuorumUnavailable`] when nobody is connected, [`Reject::KeyUnknown`] when nobody has it.
pub(crate) async fn resolve(
    shared: &Arc<Shared>,
    key_id: KeyId,
    activation: ActivationDigest,
) -> Result<Arc<ActiveSharing>, Reject> {
    let kept = shared.keys().find(key_id);
    if let Some(kept) = kept.filter(|kept| kept.activation_digest() == activation) {
        return Ok(kept);
    }
    let connections: Vec<_> = shared
        .registry()
        .members()
        .map(|(_, member)| member.connection.clone())
        .collect();
    if connections.is_empty() {
        return Err(Reject::QuorumUnavailable);
    }
    let mut newest: Option<ActiveSharing> = None;
    for some in connections.chunks(ASKED_AT_ONCE) {
        let mut answers = JoinSet::new();
        for connection in some {
            answers.spawn(look_up(Arc::clone(shared), connection.clone(), key_id));
        }
        while let Some(answer) = answers.join_next().await {
            let Ok(Ok(sharing)) = answer else { continue };
            if sharing.activation_digest() == activation {
                return Ok(keep(shared, sharing));
            }
            if newest
                .as_ref()
                .is_none_or(|newest| rank(newest) < rank(&sharing))
            {
                newest = Some(sharing);
            }
        }
    }
    newest
        .map(|sharing| keep(shared, sharing))
        .ok_or(Reject::KeyUnknown)
}

fn rank(sharing: &ActiveSharing) -> (u32, u32) {
    (
        sharing.certified().share_version().value(),
        sharing.activation().policy_version.value(),
    )
}

fn keep(shared: &Shared, sharing: ActiveSharing) -> Arc<ActiveSharing> {
    let sharing = Arc::new(sharing);
    shared.keys().keep(Arc::clone(&sharing));
    sharing
}

async fn look_up(
    shared: Arc<Shared>,
    connection: Connection,
    key_id: KeyId,
) -> Result<ActiveSharing, Reject> {
    let query = KeyQuery {
        key_id,
        nonce: fresh_nonce(&mut rng()),
    };
    let query = ToMember::KeyQuery(shared.voice.sign(&query)?.into_envelope());
    let limit = limits::MAX_CEREMONY_MESSAGE;
    let FromMember::KeyDocuments(documents) =
        ask(&connection, &query, limit, shared.bounds.step()).await?
    else {
        return Err(Reject::KeyUnknown);
    };
    verify(&shared, &documents, key_id).inspect_err(|code| {
        tracing::warn!(%key_id, code = %code, member = %connection.peer(), "documents do not verify");
    })
}

fn verify(
    shared: &Shared,
    documents: &KeyDocuments,
    key_id: KeyId,
) -> Result<ActiveSharing, Reject> {
    let digest = shared.authorities_digest();
    let sharing = ActiveSharing::verify(documents, &shared.authorities, digest)?;
    if sharing.certified().key_id() == key_id {
        Ok(sharing)
    } else {
        Err(Reject::KeyUnknown)
    }
}

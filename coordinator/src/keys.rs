//! What a key is, as far as the coordinator needs it: roster, threshold and verifying shares, looked
//! up from members and verified against the Authorities. It keeps them in memory only, and believes
//! no summary.

use std::{collections::BTreeMap, sync::Arc};

use firn_protocol::{
    codec::List,
    ids::{ActivationDigest, KeyId},
    limits,
    messages::{FromMember, KeyDocuments, KeyQuery, ToMember},
    names::SpiffeId,
    reject::Reject,
    sharing::ActiveSharing,
};
use tokio::{task::JoinSet, time::timeout};

use crate::{
    carry::ask,
    line::Line,
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

    /// Whether the roster of a key that is remembered has this name.
    pub(crate) fn has_member(&self, name: &SpiffeId) -> bool {
        self.0.values().any(|sharing| {
            let roster = &sharing.certified().plan().roster;
            roster.iter().any(|entry| entry.tls_name == *name)
        })
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
/// [`Reject::QuorumUnavailable`] when nobody is connected who has it: that says nothing about the key,
/// since its members may be away.
pub(crate) async fn resolve(
    shared: &Arc<Shared>,
    key_id: KeyId,
    activation: ActivationDigest,
) -> Result<Arc<ActiveSharing>, Reject> {
    let kept = shared.keys().find(key_id);
    if let Some(kept) = kept.filter(|kept| kept.activation_digest() == activation) {
        return Ok(kept);
    }
    let found = search(shared, key_id, |found| {
        found.activation_digest() == activation
    });
    found
        .await
        .newest
        .map(|sharing| keep(shared, sharing))
        .ok_or(Reject::QuorumUnavailable)
}

/// The sharing whose members can be asked about a request of the key, whatever activation it was
/// made under.
///
/// # Errors
/// As [`resolve`].
pub(crate) async fn members_of(
    shared: &Arc<Shared>,
    key_id: KeyId,
) -> Result<Arc<ActiveSharing>, Reject> {
    let kept = shared.keys().find(key_id);
    if let Some(kept) = kept {
        return Ok(kept);
    }
    let found = search(shared, key_id, |_| true).await;
    found
        .newest
        .map(|sharing| keep(shared, sharing))
        .ok_or(Reject::QuorumUnavailable)
}

/// The newest sharing of a key that anybody who is connected has, or that is remembered.
///
/// # Errors
/// [`Reject::KeyUnknown`] or [`Reject::ShareNotActive`] when all who are connected have said so;
/// [`Reject::QuorumUnavailable`] when somebody has not answered or nobody is there.
pub(crate) async fn newest(
    shared: &Arc<Shared>,
    key_id: KeyId,
) -> Result<Arc<ActiveSharing>, Reject> {
    let found = search(shared, key_id, |_| false).await;
    let kept = shared.keys().find(key_id);
    match (found.newest, kept) {
        (Some(found), Some(kept)) if rank(&found) <= rank(&kept) => Ok(kept),
        (Some(found), _) => Ok(keep(shared, found)),
        (None, Some(kept)) => Ok(kept),
        (None, None) => {
            let no = found.no.filter(|_| found.all_have_answered);
            Err(no.unwrap_or(Reject::QuorumUnavailable))
        }
    }
}

/// The documents of a key, as they travel.
///
/// # Errors
/// Never: they came in the same lists.
pub(crate) fn documents(sharing: &ActiveSharing) -> Result<KeyDocuments, Reject> {
    let certified = sharing.certified();
    let certificates = certified.certificates().iter();
    let certificates = certificates.map(|word| word.envelope().clone()).collect();
    Ok(KeyDocuments {
        plan: certified.plan().endorsed().clone(),
        certificates: List::new(certificates).ok_or(Reject::TooLarge)?,
        policy: sharing.policy().envelope().clone(),
        activation: sharing.activation().endorsed().clone(),
    })
}

/// What members have answered.
#[derive(Debug)]
struct Found {
    newest: Option<ActiveSharing>,
    /// That it is not usable there, or, failing that, that it is not known there.
    no: Option<Reject>,
    all_have_answered: bool,
}

/// Asks members until one has what is `wanted`; somebody who is slow is not waited for beyond the
/// first patience.
async fn search(
    shared: &Arc<Shared>,
    key_id: KeyId,
    wanted: impl Fn(&ActiveSharing) -> bool,
) -> Found {
    let lines: Vec<_> = shared
        .registry()
        .members()
        .map(|(_, member)| member.connection.clone())
        .collect();
    let mut found = Found {
        newest: None,
        no: None,
        all_have_answered: true,
    };
    for some in lines.chunks(ASKED_AT_ONCE) {
        let mut answers = JoinSet::new();
        for line in some {
            answers.spawn(look_up(Arc::clone(shared), line.clone(), key_id));
        }
        let hear = async {
            while let Some(answer) = answers.join_next().await {
                match answer {
                    Ok(Ok(sharing)) => {
                        let is_wanted = wanted(&sharing);
                        let newest = found.newest.as_ref();
                        if is_wanted || newest.is_none_or(|newest| rank(newest) < rank(&sharing)) {
                            found.newest = Some(sharing);
                        }
                        if is_wanted {
                            return true;
                        }
                    }
                    Ok(Err(code @ (Reject::KeyUnknown | Reject::ShareNotActive))) => {
                        let unusable = found.no.filter(|no| *no == Reject::ShareNotActive);
                        found.no = Some(unusable.unwrap_or(code));
                    }
                    Ok(Err(_)) | Err(_) => found.all_have_answered = false,
                }
            }
            false
        };
        match timeout(shared.bounds.patience().first, hear).await {
            Ok(true) => return found,
            Ok(false) => {}
            Err(_) => found.all_have_answered = false,
        }
    }
    found
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

async fn look_up(shared: Arc<Shared>, line: Line, key_id: KeyId) -> Result<ActiveSharing, Reject> {
    let query = KeyQuery {
        key_id,
        nonce: fresh_nonce(&mut rng()),
    };
    let query = ToMember::KeyQuery(shared.voice.sign(&query)?.into_envelope());
    let limit = limits::MAX_CEREMONY_MESSAGE;
    let member = line.connection().peer();
    match ask(&line, &query, limit, shared.bounds.patience().first).await? {
        FromMember::KeyDocuments(documents) => {
            verify(&shared, &documents, key_id).inspect_err(|code| {
                tracing::warn!(%key_id, code = %code, %member, "documents do not verify");
            })
        }
        FromMember::Refusal(envelope) => Err(envelope.verify(line.identity())?.code),
        FromMember::Commitments(_)
        | FromMember::Shares(_)
        | FromMember::Receipt(_)
        | FromMember::Acknowledgement(_)
        | FromMember::Outcome(_)
        | FromMember::Status(_)
        | FromMember::DkgRound1(_)
        | FromMember::DkgRound2(_)
        | FromMember::Certificate(_)
        | FromMember::Complaint(_) => Err(Reject::UnexpectedMessage),
    }
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
        Err(Reject::ActivationMismatch)
    }
}

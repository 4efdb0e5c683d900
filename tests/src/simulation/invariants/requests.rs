//! A request id has one effect for the key as a whole: at most one intent that a quorum has released
//! shares for, and every answer is about that one, with signatures that the addresses accept.

use std::collections::{BTreeMap, BTreeSet};

use firn_ledger::rules::Body;
use firn_protocol::{
    bitcoin::verify_bip340,
    ids::{IntentDigest, RequestId},
};

use super::{Invariant, Seen, Word};

/// Members of a quorum.
const THRESHOLD: usize = 2;

/// Who has released shares for what, and what was answered.
#[derive(Default)]
pub(super) struct OneEffect {
    released: BTreeMap<RequestId, BTreeMap<IntentDigest, BTreeSet<usize>>>,
    answered: BTreeMap<RequestId, IntentDigest>,
}

impl OneEffect {
    /// The one intent of a request that may have been signed.
    fn effect(&self, request: RequestId) -> Result<Option<IntentDigest>, String> {
        let intents = self.released.get(&request).into_iter().flatten();
        let signed: Vec<_> = intents
            .filter(|(_, members)| members.len() >= THRESHOLD)
            .map(|(intent, _)| *intent)
            .collect();
        match signed.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(*one)),
            more => Err(format!("request {request} was signed for {more:?}")),
        }
    }
}

impl Invariant for OneEffect {
    fn rule(&self) -> &'static str {
        "one request id has at most one intent for the whole key"
    }

    fn see(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match seen {
            Seen::Sent {
                member,
                word: Word::Shares(said),
                journal,
            } => {
                let session = said.session;
                for body in journal.synced() {
                    if let Body::RequestOpened(opened) = body
                        && opened.session == session
                    {
                        let intents = self.released.entry(opened.request_id).or_default();
                        intents.entry(opened.intent).or_default().insert(*member);
                        self.effect(opened.request_id)?;
                    }
                }
                Ok(())
            }
            Seen::Answered { wanted, signed } => {
                let intent = wanted.intent_digest();
                let first = *self.answered.entry(wanted.request_id).or_insert(intent);
                if first != intent || self.effect(wanted.request_id)? != Some(intent) {
                    return Err(format!("answered for {intent}, before for {first}"));
                }
                let public = wanted.sharing().certified().public();
                let signable = wanted.signable();
                let all = signed.signatures.len() == signable.items().len();
                let good = signable
                    .items()
                    .iter()
                    .zip(&signed.signatures)
                    .all(|(item, made)| {
                        let key = item.key(public).unwrap();
                        made.input == item.input
                            && verify_bip340(
                                key.output_key(),
                                &item.message,
                                made.signature.as_bytes(),
                            )
                    });
                if all && good {
                    Ok(())
                } else {
                    Err("the signatures do not verify".into())
                }
            }
            Seen::Sent { .. } | Seen::Durable { .. } | Seen::Opened { .. } => Ok(()),
        }
    }
}

//! How everybody is: every connected member is asked at the same time, and its own signed word is
//! passed on beside what the coordinator has seen of it. It decides what fits the answer.

use std::{collections::BTreeMap, sync::Arc};

use firn_protocol::{
    codec::{List, Maybe, Text},
    envelope::Envelope,
    ids::{Nonce, UnixMillis},
    keys::IdentityKey,
    limits,
    messages::{FromMember, MemberReport, MemberStatus, StatusQuery, StatusReport, ToMember},
    names::SpiffeId,
    reject::Reject,
};

use crate::{
    carry::{Patience, ask_all},
    daemon::SOFTWARE,
    state::Shared,
};

/// Bytes of the answer that are kept for everything but the members' own words.
const FRAME: usize = limits::MAX_REPORTED * 640 + limits::SMALL_DOCUMENT;
/// Bytes of a member's answer.
const ANSWER: usize = Envelope::<MemberStatus>::LIMIT + limits::SMALL_DOCUMENT;

/// Answers an operator.
///
/// # Errors
/// A question that no operator has signed.
pub(super) async fn status(
    shared: &Arc<Shared>,
    query: Envelope<StatusQuery>,
) -> Result<StatusReport, Reject> {
    let query = query.verify_any(&shared.authorities.operators.identities())?;
    let connected: Vec<_> = {
        let registry = shared.registry();
        let members = registry.members();
        let members =
            members.map(|(id, member)| (id.clone(), member.since, member.connection.clone()));
        members.collect()
    };
    let mut words = BTreeMap::new();
    let asked = connected.iter();
    let asked = asked.map(|(id, _, line)| ((id.clone(), *line.identity()), line.clone()));
    let asked: Vec<_> = asked.collect();
    // Whoever is slow is shown without a word: an operator looks at this when somebody is down.
    let first = shared.bounds.patience().first;
    let patience = Patience { first, step: first };
    let question = ToMember::StatusQuery(query.envelope().clone());
    ask_all(
        asked,
        question,
        ANSWER,
        patience,
        |(id, identity), answer| {
            match answer.and_then(|answer| judge(answer, &id, &identity, query.nonce)) {
                Ok(word) => drop(words.insert(id, word)),
                Err(code) => {
                    tracing::info!(member = %id, code = %code, "a member did not say how it is")
                }
            }
            false
        },
    )
    .await;
    let connected = connected
        .into_iter()
        .map(|(id, since, _)| (id, since))
        .collect();
    let gone = {
        let seen = shared.seen();
        let gone = seen.latest_first().into_iter();
        gone.map(|(id, last)| (id.clone(), last)).collect()
    };
    Ok(StatusReport {
        coordinator: shared.voice.id().clone(),
        software: Text::new(SOFTWARE).ok_or(Reject::Internal)?,
        since: shared.since,
        members: List::new(members(connected, gone, words)).ok_or(Reject::TooLarge)?,
    })
}

/// A member's word, if it is its own, under the name of its connection, and an answer to this question.
fn judge(
    answer: FromMember,
    id: &SpiffeId,
    identity: &IdentityKey,
    nonce: Nonce,
) -> Result<Envelope<MemberStatus>, Reject> {
    match answer {
        FromMember::Status(envelope) => {
            let word = envelope.verify(identity)?;
            if word.name != *id {
                return Err(Reject::NotAMember);
            }
            // An old answer, however true it was.
            if word.nonce != nonce {
                return Err(Reject::SessionMismatch);
            }
            Ok(word.into_envelope())
        }
        FromMember::Refusal(envelope) => Err(envelope.verify(identity)?.code),
        FromMember::Commitments(_)
        | FromMember::Shares(_)
        | FromMember::Receipt(_)
        | FromMember::KeyDocuments(_)
        | FromMember::Acknowledgement(_)
        | FromMember::Outcome(_)
        | FromMember::DkgRound1(_)
        | FromMember::DkgRound2(_)
        | FromMember::Certificate(_)
        | FromMember::Complaint(_) => Err(Reject::UnexpectedMessage),
    }
}

/// Everybody who fits, ascending by name: first who is connected, then who has gone last. Words that do
/// not fit the frame are left out, the longest first.
fn members(
    connected: Vec<(SpiffeId, UnixMillis)>,
    gone: Vec<(SpiffeId, UnixMillis)>,
    words: BTreeMap<SpiffeId, Envelope<MemberStatus>>,
) -> Vec<MemberReport> {
    let mut words: Vec<_> = words.into_iter().collect();
    words.sort_by_key(|(_, word)| word.as_bytes().len());
    let mut room = limits::MAX_FRAME.saturating_sub(FRAME);
    words.retain(|(_, word)| {
        let left = room.checked_sub(word.as_bytes().len());
        room = left.unwrap_or(0);
        left.is_some()
    });
    let mut words: BTreeMap<_, _> = words.into_iter().collect();
    let mut reports = BTreeMap::new();
    for (id, since) in connected {
        let report = MemberReport {
            connected: Maybe(Some(since)),
            last_seen: Maybe(None),
            status: Maybe(words.remove(&id)),
            id: id.clone(),
        };
        reports.insert(id, report);
    }
    for (id, last) in gone {
        if reports.len() >= limits::MAX_REPORTED {
            break;
        }
        reports.entry(id.clone()).or_insert(MemberReport {
            id,
            connected: Maybe(None),
            last_seen: Maybe(Some(last)),
            status: Maybe(None),
        });
    }
    reports.into_values().take(limits::MAX_REPORTED).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use firn_protocol::{ids::UnixMillis, limits::MAX_REPORTED, names::SpiffeId};

    use super::members;

    fn name(number: usize) -> SpiffeId {
        format!("spiffe://td/participant/m-{number}")
            .parse()
            .unwrap()
    }

    #[test]
    fn who_is_connected_counts_before_who_has_gone() {
        let at = UnixMillis::new(1);
        let connected: Vec<_> = (0..3).map(|number| (name(number), at)).collect();
        // The first of them was here before, and is here again.
        let gone: Vec<_> = std::iter::once(0)
            .chain(3..=MAX_REPORTED)
            .map(|number| (name(number), at))
            .collect();
        let reports = members(connected, gone, BTreeMap::new());
        assert_eq!(reports.len(), MAX_REPORTED);
        let there = reports.iter().filter(|report| report.connected.0.is_some());
        let there: Vec<_> = there.map(|report| report.id.clone()).collect();
        assert_eq!(there, [name(0), name(1), name(2)]);
        assert!(reports.iter().all(|report| report.id != name(MAX_REPORTED)));
        assert!(reports.is_sorted_by_key(|report| report.id.clone()));
    }
}

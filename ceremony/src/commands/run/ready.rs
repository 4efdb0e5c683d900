//! Whether everybody is there for a ceremony. It decides by the members' own words, and names everybody who
//! is missing or not ready at once rather than one after the other.

use firn_protocol::{
    documents::Plan,
    envelope::Approved,
    ids::{KeyId, PlanDigest, UnixMillis},
    messages::MemberStatus,
    reject::Reject,
};

use crate::{
    client::{NoWord, Standing},
    error::Error,
    words::from_now,
};

/// Refuses with everybody who is missing, and why.
///
/// # Errors
/// [`Error::Refused`] with the reason that has to be dealt with first.
pub(super) fn check(
    members: &[Standing<'_>],
    plan: &Approved<Plan>,
    now: UnixMillis,
    doing: &'static str,
) -> Result<(), Error> {
    let digest = PlanDigest::from_bytes(plan.digest());
    let key_id = plan.key_id(digest);
    let problems: Vec<(Reject, String)> = members
        .iter()
        .filter_map(|member| {
            let (code, what) = problem(member, plan, digest, key_id, now)?;
            Some((code, format!("{} {what}", member.entry.name)))
        })
        .collect();
    // Who is not there at all comes first: without them nothing else can be dealt with.
    let absent = problems
        .iter()
        .find(|(code, _)| *code == Reject::QuorumUnavailable);
    let Some((code, _)) = absent.or_else(|| problems.first()) else {
        return Ok(());
    };
    let told: Vec<&str> = problems.iter().map(|(_, what)| what.as_str()).collect();
    Err(Error::Refused {
        doing,
        code: *code,
        detail: told.join("; "),
    })
}

fn problem(
    member: &Standing<'_>,
    plan: &Plan,
    digest: PlanDigest,
    key_id: KeyId,
    now: UnixMillis,
) -> Option<(Reject, String)> {
    let word = match &member.word {
        Ok(word) => word,
        Err(NoWord::NotConnected) => {
            let since = member.last_seen.map_or_else(
                || "not seen since the coordinator started".to_owned(),
                |seen| format!("last seen {}", from_now(seen, now)),
            );
            return Some((
                Reject::QuorumUnavailable,
                format!("is not connected, {since}"),
            ));
        }
        Err(NoWord::Silent) => {
            return Some((Reject::QuorumUnavailable, "does not answer".to_owned()));
        }
        Err(NoWord::Unverified(code)) => {
            let what = format!("is not the one in the plan: {}", code.meaning());
            return Some((*code, what));
        }
    };
    if word.authorities != plan.authorities {
        let what = "goes by other Authorities than the plan".to_owned();
        return Some((Reject::AuthoritiesMismatch, what));
    }
    if let Some(code) = word.stopped.0 {
        return Some((
            code,
            format!("has stopped: {} {}", code.meaning(), code.advice()),
        ));
    }
    if has_accepted(word, digest, key_id) {
        None
    } else {
        let what = "has not accepted the plan: firn accept on its machine".to_owned();
        Some((Reject::PlanNotAccepted, what))
    }
}

/// A member that has made its share of the key does not announce the plan any more.
fn has_accepted(word: &MemberStatus, digest: PlanDigest, key_id: KeyId) -> bool {
    word.accepted.contains(&digest) || word.keys.iter().any(|key| key.key_id == key_id)
}

//! How a member is: the member judges who asks, the operator what is answered.

use firn_participant::session::judge_status_query;
use firn_protocol::{
    envelope::Envelope,
    messages::{MemberStatus, StatusQuery, StatusReport},
    reject::Reject,
};

use super::{Verdict, ensure, member_word};
use crate::samples::{World, id};

/// What a coordinator does, and a member: any operator may ask.
pub(super) fn query(world: &World, envelope: &Envelope<StatusQuery>) -> Verdict {
    judge_status_query(envelope, &world.authorities).map(|_| ())
}

/// What the operator does with member 1's word.
pub(super) fn status(world: &World, envelope: &Envelope<MemberStatus>) -> Verdict {
    let said = member_word(world, 1, envelope)?;
    ensure(
        said.nonce == world.status_query().nonce,
        Reject::SessionMismatch,
    )?;
    ensure(said.name == id("participant", "m1"), Reject::NotAMember)?;
    let ascending = said.accepted.is_sorted_by(|left, right| left < right)
        && said
            .keys
            .is_sorted_by(|left, right| left.key_id < right.key_id);
    ensure(ascending, Reject::UnsoundDocument)?;
    member_word(world, 1, &said.checkpoint).map(|_| ())
}

/// What the operator does with everybody's. Who is connected, and since when, is the coordinator's
/// word, on which nobody acts.
pub(super) fn report(world: &World, report: &StatusReport) -> Verdict {
    for member in &report.members {
        if let Some(said) = &member.status.0 {
            ensure(member.id == id("participant", "m1"), Reject::NotAMember)?;
            status(world, said)?;
        }
    }
    Ok(())
}

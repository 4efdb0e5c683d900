//! The first frame from each side of a connection.

use firn_protocol::{
    documents::KeyHolder,
    envelope::Envelope,
    messages::{Hello, Welcome},
    reject::Reject,
};

use super::{Verdict, ensure, word};
use crate::samples::World;

/// By the coordinator: the requester that the certificate names.
pub(super) fn hello(world: &World, envelope: &Envelope<Hello>) -> Verdict {
    let [KeyHolder { id, key }, _] = &world.authorities.requesters[..] else {
        return Err(Reject::UnknownRequester);
    };
    let hello = word(key, envelope)?;
    ensure(hello.from == *id, Reject::NotAMember)?;
    ensure(
        hello.to == world.people.coordinator_id(),
        Reject::UnknownCoordinator,
    )
}

/// By the requester that said hello.
pub(super) fn welcome(world: &World, envelope: &Envelope<Welcome>) -> Verdict {
    let welcome = word(&world.people.coordinator.key(), envelope)?;
    let meant = welcome.from == world.people.coordinator_id()
        && welcome.to == world.people.requester_id()
        && welcome.nonce == world.hello_nonce();
    ensure(meant, Reject::SessionMismatch)
}

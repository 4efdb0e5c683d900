//! The first frame from each side of a connection.

use firn_protocol::{
    documents::KeyHolder,
    envelope::Envelope,
    limits,
    messages::{Hello, Welcome},
    reject::Reject,
};

use super::{Verdict, decode, ensure, word};
use crate::samples::World;

/// By the coordinator: the requester that the certificate names.
pub(in crate::samples) fn hello_frame(world: &World, bytes: &[u8]) -> Verdict {
    let envelope: Envelope<Hello> = decode(bytes, limits::MAX_HELLO)?;
    hello(world, &envelope)
}

/// By the requester.
pub(in crate::samples) fn welcome_frame(world: &World, bytes: &[u8]) -> Verdict {
    let envelope: Envelope<Welcome> = decode(bytes, limits::MAX_HELLO)?;
    welcome(world, &envelope)
}

pub(super) fn hello(world: &World, envelope: &Envelope<Hello>) -> Verdict {
    let [KeyHolder { id, key }, _] = &world.authorities.requesters[..] else {
        return Err(Reject::UnknownRequester);
    };
    let hello = word(key, envelope)?;
    ensure(hello.from == *id, Reject::WrongRole)?;
    ensure(hello.to == world.people.coordinator_id(), Reject::UnknownCoordinator)
}

pub(super) fn welcome(world: &World, envelope: &Envelope<Welcome>) -> Verdict {
    let welcome = word(&world.people.coordinator.key(), envelope)?;
    ensure(welcome.from == world.people.coordinator_id(), Reject::UnknownCoordinator)?;
    ensure(welcome.to == world.people.requester_id(), Reject::WrongRole)?;
    ensure(welcome.nonce == world.hello_nonce(), Reject::SessionMismatch)
}

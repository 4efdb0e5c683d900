//! What a receiver does with each kind: it decodes under the kind's limit, verifies every envelope
//! against the key that counts, and checks every binding. Where a crate has the judgement as a pure
//! function, that function is called; elsewhere its rules are repeated here over the same types.

mod connection;
mod documents;
mod local;
mod member;
mod operator;
mod outcome;
mod requester;
mod status;

use std::{any::Any, cell::RefCell, collections::BTreeMap, rc::Rc};

use firn_protocol::{
    codec,
    envelope::{Approved, Document, Endorsed, Envelope, Verified},
    ids::{IntentDigest, SessionId},
    keys::IdentityKey,
    messages::Standing,
    reject::Reject,
    session::SessionHeader,
    sharing::CertifiedSharing,
};
use serde::{Serialize, de::DeserializeOwned};

use super::{World, people::member};

pub(super) use documents::*;
pub(super) use local::{from_daemon, to_daemon};
pub(super) use member::{from_member, to_member};
pub(super) use operator::{from_ceremony, to_ceremony};
pub(super) use requester::{from_requests, to_requests};

type Verdict = Result<(), Reject>;

fn decode<T: Serialize + DeserializeOwned>(bytes: &[u8], limit: usize) -> Result<T, Reject> {
    Ok(codec::decode(bytes, limit)?)
}

fn ensure(holds: bool, code: Reject) -> Verdict {
    if holds { Ok(()) } else { Err(code) }
}

/// Verification is a function of kind, key and bytes, so the verdict on what is whole is kept: a
/// changed message then costs what its changed part costs.
fn word<T: Document + Clone + 'static>(
    key: &IdentityKey,
    envelope: &Envelope<T>,
) -> Result<Verified<T>, Reject> {
    let name = (T::KIND, *key, envelope.as_bytes().to_vec());
    remembered(name, || Ok(envelope.clone().verify(key)?))
}

/// As [`word`], for what the operators sign together.
fn endorsed<T: Document + Clone + 'static>(
    world: &World,
    endorsed: &Endorsed,
) -> Result<Approved<T>, Reject> {
    let operators = &world.authorities.operators;
    let nobody = IdentityKey::from_bytes([0; 32]);
    let name = (T::KIND, nobody, codec::encode(endorsed)?);
    remembered(name, || {
        let needed = usize::from(operators.needed);
        Ok(endorsed
            .clone()
            .verify::<T>(&operators.identities(), needed)?)
    })
}

type Name = (&'static str, IdentityKey, Vec<u8>);

fn remembered<V: Clone + 'static>(
    name: Name,
    judge: impl FnOnce() -> Result<V, Reject>,
) -> Result<V, Reject> {
    thread_local! {
        static GOOD: RefCell<BTreeMap<Name, Rc<dyn Any>>> = const { RefCell::new(BTreeMap::new()) };
    }
    let known = GOOD.with_borrow(|good| good.get(&name).cloned());
    if let Some(known) = known.and_then(|known| known.downcast_ref::<V>().cloned()) {
        return Ok(known);
    }
    let made = judge()?;
    GOOD.with_borrow_mut(|good| good.insert(name, Rc::new(made.clone())));
    Ok(made)
}

/// A member's word, by the roster.
fn member_word<T: Document + Clone + 'static>(
    world: &World,
    number: u16,
    envelope: &Envelope<T>,
) -> Result<Verified<T>, Reject> {
    word(&world.people.member(member(number)).key(), envelope)
}

/// Only what an owner signed itself counts for or against it.
fn check_standing(world: &World, number: u16, standing: &Standing) -> Verdict {
    member_word(world, number, &standing.checkpoint)?;
    for seen in &standing.witnessed {
        let owner = seen.claimed_signer()?;
        ensure(world.plan.member(&owner).is_some(), Reject::UnknownSigner)?;
        word(&owner, seen)?;
    }
    Ok(())
}

/// A header by the coordinator, in its own name.
fn header(
    world: &World,
    envelope: &Envelope<SessionHeader>,
) -> Result<Verified<SessionHeader>, Reject> {
    let verified = word(&world.people.coordinator.key(), envelope)?;
    let named = world.authorities.coordinator(&verified.coordinator);
    ensure(named == Some(verified.signer()), Reject::UnknownCoordinator)?;
    ensure(verified.members_ascend(), Reject::SessionMembers)?;
    Ok(verified)
}

/// Certificates of all members for the samples' plan.
fn certified(
    world: &World,
    certificates: &[Envelope<firn_protocol::documents::Certificate>],
) -> Result<CertifiedSharing, Reject> {
    // Each first alone, which is remembered; the whole only if all of them are good.
    ensure(
        certificates.len() == world.plan.roster.len(),
        Reject::CertificateMismatch,
    )?;
    for (number, certificate) in (1..).zip(certificates) {
        member_word(world, number, certificate)?;
    }
    let nobody = IdentityKey::from_bytes([0; 32]);
    let name = ("certificates", nobody, codec::encode(certificates)?);
    remembered(name, || {
        CertifiedSharing::verify(world.plan.clone(), certificates)
    })
}

/// The session and the intent that the samples' receipts are about.
fn of_the_request(world: &World) -> (SessionId, IntentDigest) {
    (world.request.id(), world.opening.grant.intent)
}

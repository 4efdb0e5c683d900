//! Openings of signing sessions that the gates stop: grants, epochs, members, replays.

use firn_protocol::{
    bitcoin::Network,
    codec::{self, Blob, List},
    ids::{
        ActivationDigest, Epoch, Flow, IntentDigest, KeyId, Nonce, PolicyDigest, PolicyVersion,
        RequestId, RevocationVersion, ShareVersion, UnixMillis,
    },
    messages::{SignOpen, ToMember},
    reject::Reject,
    session::{RequestSubject, Subject},
};

use super::{Case, Cases};
use crate::samples::{NOW, Opening, World, id, member};

pub(super) fn cases(world: &World) -> Vec<Case> {
    let mut cases = Cases::of("to-member-sign-open");
    grants(world, &mut cases);
    sessions(world, &mut cases);
    replays(world, &mut cases);
    cases.cases
}

pub(super) fn message(open: SignOpen) -> Vec<u8> {
    codec::encode(&ToMember::SignOpen(open)).unwrap()
}

/// The samples' request with this change, signed by everybody.
fn with(world: &World, alter: impl FnOnce(&mut Opening)) -> Vec<u8> {
    let mut opening = world.opening.clone();
    alter(&mut opening);
    message(world.signed(&opening))
}

fn subject(opening: &mut Opening) -> &mut RequestSubject {
    match &mut opening.header.subject {
        Subject::Request(subject) => subject,
        Subject::Ceremony(_) => unreachable!("the samples' request is one"),
    }
}

fn grants(world: &World, cases: &mut Cases) {
    let other = [1; 32];
    cases.add(
        "a grant whose time has not come",
        Reject::GrantNotYetValid,
        with(world, |o| {
            o.grant.not_before = NOW.plus(1);
        }),
    );
    cases.add(
        "a grant whose time is over",
        Reject::GrantExpired,
        with(world, |o| {
            o.grant.expires = NOW;
        }),
    );
    cases.add(
        "a grant of long ago",
        Reject::GrantExpired,
        with(world, |o| {
            o.grant.expires = UnixMillis::new(0);
        }),
    );
    cases.add(
        "a grant for another requester",
        Reject::GrantOwnerMismatch,
        with(world, |o| {
            o.grant.owner = id("requester", "desk-b");
        }),
    );
    cases.add(
        "a grant for a requester that nobody knows",
        Reject::UnknownRequester,
        with(world, |o| o.grant.owner = id("requester", "nobody")),
    );
    cases.add(
        "a grant for another role",
        Reject::UnknownRequester,
        with(world, |o| {
            o.grant.owner = id("operator", "desk");
        }),
    );
    cases.add(
        "a grant for another request",
        Reject::GrantRequestMismatch,
        with(world, |o| {
            o.grant.request_id = RequestId::from_bytes([2; 32]);
        }),
    );
    cases.add(
        "a grant for another intent",
        Reject::GrantIntentMismatch,
        with(world, |o| {
            o.grant.intent = IntentDigest::from_bytes(other);
        }),
    );
    cases.add(
        "a session for another intent",
        Reject::GrantIntentMismatch,
        with(world, |o| {
            subject(o).intent = IntentDigest::from_bytes(other);
        }),
    );
    cases.add(
        "a grant for another policy",
        Reject::GrantPolicyMismatch,
        with(world, |o| {
            o.grant.policy = PolicyDigest::from_bytes(other);
        }),
    );
    cases.add(
        "a session under another policy",
        Reject::GrantPolicyMismatch,
        with(world, |o| {
            subject(o).policy = PolicyDigest::from_bytes(other);
        }),
    );
    cases.add(
        "a grant for another key",
        Reject::GrantKeyMismatch,
        with(world, |o| {
            o.grant.key_id = KeyId::from_bytes(other);
        }),
    );
    cases.add(
        "a grant under another activation",
        Reject::ActivationMismatch,
        with(world, |o| {
            o.grant.activation = ActivationDigest::from_bytes(other);
        }),
    );
    cases.add(
        "a session under another activation",
        Reject::ActivationMismatch,
        {
            with(world, |o| {
                subject(o).activation = ActivationDigest::from_bytes(other)
            })
        },
    );
    cases.add(
        "a grant for a later policy",
        Reject::PolicyVersionBehind,
        with(world, |o| {
            o.grant.least_policy_version = PolicyVersion::new(2);
        }),
    );
    cases.add(
        "a grant for later revocations",
        Reject::RevocationsBehind,
        with(world, |o| {
            o.grant.least_revocation_version = RevocationVersion::new(1);
        }),
    );
}

fn sessions(world: &World, cases: &mut Cases) {
    let people = &world.people;
    let members = |numbers: &[u16]| {
        let list = numbers.iter().map(|number| member(*number)).collect();
        with(world, |o| o.header.members = List::new(list).unwrap())
    };
    cases.add("one member", Reject::SessionMembers, members(&[1]));
    cases.add("no member", Reject::SessionMembers, members(&[]));
    cases.add(
        "three members where two sign",
        Reject::SessionMembers,
        members(&[1, 2, 3]),
    );
    cases.add(
        "members out of order",
        Reject::SessionMembers,
        members(&[2, 1]),
    );
    cases.add("a member twice", Reject::SessionMembers, members(&[1, 1]));
    cases.add(
        "a member that is none",
        Reject::SessionMembers,
        members(&[1, 9]),
    );
    cases.add(
        "a session of the others",
        Reject::NotAMember,
        members(&[2, 3]),
    );
    cases.add(
        "a key that is not here",
        Reject::KeyUnknown,
        with(world, |o| {
            o.header.key_id = KeyId::from_bytes([1; 32]);
        }),
    );
    cases.add(
        "an intent for another key",
        Reject::KeyUnknown,
        with(world, |o| {
            o.intent.key_id = KeyId::from_bytes([1; 32]);
        }),
    );
    cases.add(
        "an intent for another network",
        Reject::NetworkMismatch,
        with(world, |o| {
            o.intent.network = Network::Mainnet;
        }),
    );
    cases.add(
        "another sharing",
        Reject::ActivationMismatch,
        with(world, |o| {
            o.header.share_version = ShareVersion::new(2);
        }),
    );
    cases.add(
        "another epoch than the grant's",
        Reject::SessionMismatch,
        with(world, |o| {
            o.header.epoch = Epoch::new(6);
        }),
    );
    for flow in [
        Flow::Dkg,
        Flow::ProofOfLife,
        Flow::Reshare,
        Flow::Preprocess,
    ] {
        let name = format!("a session of {flow}");
        cases.add(
            name,
            Reject::UnexpectedMessage,
            with(world, |o| o.header.flow = flow),
        );
    }
    cases.add(
        "a session of a ceremony",
        Reject::UnexpectedMessage,
        with(world, |o| {
            o.header.subject = world.proofs[0].header.subject.clone();
        }),
    );
    cases.add(
        "another coordinator's name",
        Reject::UnknownCoordinator,
        with(world, |o| {
            o.header.coordinator = id("coordinator", "c2");
        }),
    );
    let mut open = world.open.clone();
    open.header = people.stranger.sign(&world.opening.header);
    cases.add(
        "a stranger's session",
        Reject::UnknownCoordinator,
        message(open),
    );
    let mut open = world.open.clone();
    open.intent = people.stranger.sign(&world.opening.intent);
    cases.add(
        "a stranger's intent",
        Reject::GrantOwnerMismatch,
        message(open),
    );
    let mut open = world.open.clone();
    open.grant = people.stranger.sign(&world.opening.grant);
    cases.add("a stranger's grant", Reject::UnknownSigner, message(open));
    let mut open = world.open.clone();
    open.approvals = List::new(vec![Blob::new(vec![0x80]).unwrap()]).unwrap();
    cases.add(
        "an approval that is none",
        Reject::UnknownSigner,
        message(open),
    );
}

fn replays(world: &World, cases: &mut Cases) {
    let epoch = |number: u64| {
        with(world, |o| {
            o.header.epoch = Epoch::new(number);
            o.grant.epoch = Epoch::new(number);
        })
    };
    cases.add("an epoch of before", Reject::StaleEpoch, epoch(4));
    cases.add("epoch zero", Reject::StaleEpoch, epoch(0));
    cases.add("an epoch too far above", Reject::EpochJump, epoch(1_006));
    cases.add(
        "the last epoch that there is",
        Reject::EpochJump,
        epoch(u64::MAX),
    );
    let mut other = world.opening.clone();
    other.grant.owner = id("requester", "desk-b");
    let mut open = world.signed(&other);
    open.intent = world.people.other_requester.sign(&other.intent);
    cases.add(
        "another owner of the epoch",
        Reject::EpochOwnerConflict,
        message(open),
    );

    let seen = message(world.signed(&world.seen));
    cases.add("a session that was seen", Reject::SessionSeen, seen);
    let conflict = world.opening(world.opening.intent.clone(), 0x61);
    cases.add(
        "a request id for another intent",
        Reject::RequestConflict,
        message(world.signed(&conflict)),
    );
    let again = world.opening(world.seen.intent.clone(), 0x71);
    cases.add(
        "an intent under another request",
        Reject::IntentAlreadySigned,
        message(world.signed(&again)),
    );
    let mut third = world.opening(world.intent(world.psbt(62_000)), 0x62);
    third.header.nonce = Nonce::from_bytes([0x77; 32]);
    cases.add("a third attempt at once", Reject::AttemptsExhausted, {
        message(world.signed(&third))
    });
}

//! Words of the samples' people that no other part of their world needs.

use firn_protocol::{
    bitcoin::Sats,
    codec::{self, Blob, List, Maybe, Text},
    envelope::Envelope,
    ids::{BuildDigest, IntentDigest, MessageDigest, Nonce, PolicyVersion, RequestId, SessionId},
    messages::{
        Acknowledgement, ChargeEntry, Deliver, EpochEntry, Hello, KeyQuery, NewsEntry, Outpoint,
        PolicyEntry, PresenceQuery, Refusal, RequestProgress, ReservationEntry, SignedEntry,
        SpentEntry, ToMember, Welcome,
    },
    reject::Reject,
};

use crate::samples::{
    NOW, World, digest_of_message,
    domain::{Domain, FIRST_EPOCH},
    head,
    people::member,
    standing,
};

pub(super) fn hello(world: &World) -> Envelope<Hello> {
    world.people.requester.sign(&Hello {
        from: world.people.requester_id(),
        to: world.people.coordinator_id(),
        nonce: world.hello_nonce(),
        software: Text::new("firn 0.1.0").unwrap(),
        build: BuildDigest::from_bytes([0xb2; 32]),
        time: NOW,
    })
}

pub(super) fn welcome(world: &World) -> Envelope<Welcome> {
    world.people.coordinator.sign(&Welcome {
        from: world.people.coordinator_id(),
        to: world.people.requester_id(),
        nonce: world.hello_nonce(),
        software: Text::new("firn 0.1.0").unwrap(),
        time: NOW,
    })
}

pub(super) fn key_query(world: &World) -> Envelope<KeyQuery> {
    world.people.coordinator.sign(&KeyQuery {
        key_id: world.key_id(),
        nonce: Nonce::from_bytes([0x4b; 32]),
    })
}

pub(super) fn presence_query(world: &World) -> Envelope<PresenceQuery> {
    world.people.operators[0].sign(&PresenceQuery {
        nonce: Nonce::from_bytes([0x4c; 32]),
    })
}

pub(super) fn deliver(world: &World) -> Deliver {
    Deliver {
        documents: world.documents.clone(),
    }
}

/// Member 3 has frozen and says so.
pub(super) fn refusal(world: &World) -> Envelope<Refusal> {
    let open = codec::encode(&ToMember::SignOpen(world.open.clone())).unwrap();
    world.people.member(member(3)).sign(&Refusal {
        about: MessageDigest::from_bytes(digest_of_message(&open)),
        session: Maybe(Some(world.request.id())),
        request_id: Maybe(Some(world.opening.grant.request_id)),
        code: Reject::Frozen,
        culprit: Maybe(None),
        retry_after_ms: Maybe(None),
        time: NOW,
    })
}

pub(super) fn acknowledgement(world: &World, number: u16) -> Envelope<Acknowledgement> {
    world.people.member(member(number)).sign(&Acknowledgement {
        member: member(number),
        what: MessageDigest::from_bytes(*world.activation_digest().as_bytes()),
        standing: standing(&world.people, member(number)),
    })
}

/// One entry of each kind.
pub(in crate::samples) fn news(domain: &Domain) -> Vec<NewsEntry> {
    let key_id = domain.key_id();
    let request_id = RequestId::from_bytes([0x31; 32]);
    let head = head(&domain.people, member(3));
    vec![
        NewsEntry::Epoch(EpochEntry {
            key_id,
            epoch: FIRST_EPOCH,
            owner: domain.people.requester_id(),
        }),
        NewsEntry::Reservation(ReservationEntry {
            key_id,
            request_id,
            intent: IntentDigest::from_bytes([0x32; 32]),
            policy: domain.policy_digest(),
            epoch: FIRST_EPOCH,
            session: SessionId::from_bytes([0x33; 32]),
            progress: RequestProgress::Released,
        }),
        NewsEntry::Charge(ChargeEntry {
            key_id,
            request_id,
            amount: Sats::new(21_000).unwrap(),
            time: NOW,
        }),
        NewsEntry::Spent(SpentEntry {
            key_id,
            request_id,
            outpoints: List::new(vec![(Outpoint::from_bytes([0x34; 32]), 1)]).unwrap(),
        }),
        NewsEntry::Signed(SignedEntry {
            envelope: Blob::new(head.as_bytes().to_vec()).unwrap(),
        }),
        NewsEntry::Policy(PolicyEntry {
            key_id,
            version: PolicyVersion::new(1),
            policy: domain.policy_digest(),
        }),
    ]
}

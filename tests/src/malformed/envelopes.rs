//! Envelopes of another shape, by another signer, or with another signature.

use ed25519_dalek::{Signer as _, SigningKey};
use firn_protocol::{
    codec,
    documents::Plan,
    envelope::{Document, Endorsed, digest_of},
    reject::Reject,
};

use super::{Case, Cases};
use crate::{
    rewriting::{byte_string, payload, shortest, sign},
    samples::{Person, World},
};

pub(super) fn cases(world: &World) -> Vec<Case> {
    let mut all = shapes(world);
    all.extend(signatures(world));
    all.extend(endorsements(world));
    all
}

/// A grant in an envelope of these parts, with a signature that is right for them.
fn envelope(person: &Person, protected: &[u8], unprotected: &[u8], payload: &[u8]) -> Vec<u8> {
    let key = SigningKey::from_bytes(&person.secret().seed());
    let context = b"Signature1";
    let to_be_signed = [
        vec![0x84],
        [shortest(3, context.len() as u64), context.to_vec()].concat(),
        byte_string(protected),
        byte_string(b"firn/grant/v1"),
        byte_string(payload),
    ]
    .concat();
    let signature = key.sign(&to_be_signed).to_bytes();
    [
        &[0x84],
        byte_string(protected).as_slice(),
        unprotected,
        &byte_string(payload),
        &byte_string(&signature),
    ]
    .concat()
}

fn shapes(world: &World) -> Vec<Case> {
    let mut cases = Cases::of("document-grant");
    let person = &world.people.grant_authority;
    let body = payload(world.open.grant.as_bytes());
    let key = byte_string(person.key().as_bytes());
    let header = |entries: &[&[u8]]| entries.concat();
    let good = header(&[&[0xa2, 0x01, 0x32, 0x04], &key]);
    assert_eq!(
        envelope(person, &good, &[0xa0], body),
        world.open.grant.as_bytes()
    );
    for (name, code, protected) in [
        ("no protected header", Reject::EnvelopeShape, vec![]),
        (
            "an empty protected header",
            Reject::EnvelopeShape,
            vec![0xa0],
        ),
        (
            "no algorithm",
            Reject::EnvelopeShape,
            header(&[&[0xa1, 0x04], &key]),
        ),
        (
            "no key",
            Reject::EnvelopeShape,
            header(&[&[0xa1, 0x01, 0x32]]),
        ),
        (
            "the deprecated EdDSA",
            Reject::EnvelopeShape,
            header(&[&[0xa2, 0x01, 0x27, 0x04], &key]),
        ),
        (
            "ES256",
            Reject::EnvelopeShape,
            header(&[&[0xa2, 0x01, 0x26, 0x04], &key]),
        ),
        (
            "a key of 31 bytes",
            Reject::EnvelopeShape,
            header(&[
                &[0xa2, 0x01, 0x32, 0x04, 0x58, 0x1f],
                &person.key().as_bytes()[..31],
            ]),
        ),
        (
            "headers out of order",
            Reject::EnvelopeShape,
            header(&[&[0xa2, 0x04], &key, &[0x01, 0x32]]),
        ),
        (
            "a content type",
            Reject::EnvelopeShape,
            header(&[&[0xa3, 0x01, 0x32, 0x03, 0x00, 0x04], &key]),
        ),
        (
            "a critical header",
            Reject::EnvelopeShape,
            header(&[&[0xa3, 0x01, 0x32, 0x02, 0x81, 0x01, 0x04], &key]),
        ),
        (
            "an open protected header",
            Reject::EnvelopeShape,
            header(&[&[0xbf, 0x01, 0x32, 0x04], &key, &[0xff]]),
        ),
        (
            "an algorithm longer than needed",
            Reject::EnvelopeShape,
            header(&[&[0xa2, 0x01, 0x38, 0x12, 0x04], &key]),
        ),
        (
            "an algorithm as text",
            Reject::EnvelopeShape,
            header(&[&[0xa2, 0x01, 0x62, 0x65, 0x64, 0x04], &key]),
        ),
        (
            "a protected header that is a list",
            Reject::Schema,
            vec![0x80],
        ),
        (
            "bytes behind the protected header",
            Reject::Schema,
            header(&[&good, &[0x00]]),
        ),
    ] {
        cases.add(name, code, envelope(person, &protected, &[0xa0], body));
    }
    for (name, code, unprotected) in [
        (
            "the key unprotected too",
            Reject::EnvelopeShape,
            header(&[&[0xa1, 0x04], &key]),
        ),
        (
            "an algorithm unprotected too",
            Reject::EnvelopeShape,
            vec![0xa1, 0x01, 0x32],
        ),
        (
            "an unknown header unprotected",
            Reject::EnvelopeShape,
            vec![0xa1, 0x18, 0x64, 0x00],
        ),
        (
            "an empty key unprotected",
            Reject::Schema,
            vec![0xa1, 0x04, 0x40],
        ),
    ] {
        cases.add(name, code, envelope(person, &good, &unprotected, body));
    }
    let signature = |length: usize| [byte_string(&vec![0x01; length])].concat();
    let parts = |payload: &[u8], signature: &[u8]| {
        [
            &[0x84],
            byte_string(&good).as_slice(),
            &[0xa0],
            payload,
            signature,
        ]
        .concat()
    };
    let wrapped = byte_string(body);
    cases.add(
        "a detached payload",
        Reject::SimpleValue,
        parts(&[0xf6], &signature(64)),
    );
    cases.add(
        "a payload that is not wrapped",
        Reject::Schema,
        parts(body, &signature(64)),
    );
    cases.add(
        "no signature",
        Reject::EnvelopeShape,
        parts(&wrapped, &signature(0)),
    );
    cases.add(
        "a signature of 63 bytes",
        Reject::EnvelopeShape,
        parts(&wrapped, &signature(63)),
    );
    cases.add(
        "a signature of 65 bytes",
        Reject::EnvelopeShape,
        parts(&wrapped, &signature(65)),
    );
    let whole = world.open.grant.as_bytes();
    cases.add("a tagged envelope", Reject::Tag, [&[0xd2], whole].concat());
    let three = [&[0x83], &whole[1..whole.len() - 66]].concat();
    cases.add("an envelope of three", Reject::Schema, three);
    let five = [&[0x85], &whole[1..], &[0x00]].concat();
    cases.add("an envelope of five", Reject::Schema, five);
    cases.add("a bare grant", Reject::Schema, body);
    cases.cases
}

fn signatures(world: &World) -> Vec<Case> {
    let people = &world.people;
    let mut cases = Cases::of("document-grant");
    let person = &people.grant_authority;
    let whole = world.open.grant.as_bytes();
    let body = payload(whole);
    let with = |signature: &[u8]| [&whole[..whole.len() - 64], signature].concat();
    let good = &whole[whole.len() - 64..];
    let mut flipped = good.to_vec();
    flipped[0] ^= 1;
    cases.add(
        "one bit of the signature",
        Reject::BadSignature,
        with(&flipped),
    );
    cases.add("a signature of zeros", Reject::BadSignature, with(&[0; 64]));
    cases.add(
        "the signature with the group order added",
        Reject::BadSignature,
        with(&[&good[..32], &plus_order(&good[32..])].concat()),
    );
    for kind in ["intent", "policy", "receipt", "Grant", "grant/v1/firn"] {
        let name = format!("a grant signed as a {kind}");
        cases.add(
            name,
            Reject::BadSignature,
            sign(kind, person.secret(), body),
        );
    }
    let intent = sign(
        "intent",
        person.secret(),
        payload(world.open.intent.as_bytes()),
    );
    cases.add(
        "an intent by the grant authority",
        Reject::BadSignature,
        intent,
    );
    for (name, other) in [
        ("a stranger's grant", &people.stranger),
        ("the policy authority's grant", &people.policy_authority),
        ("an operator's grant", &people.operators[0]),
        ("the requester's own grant", &people.requester),
        ("the coordinator's grant", &people.coordinator),
        ("a member's grant", &people.members[0]),
    ] {
        cases.add(
            name,
            Reject::UnknownSigner,
            sign("grant", other.secret(), body),
        );
    }
    let mut all = cases.cases;
    for (kind, name, word, who, sample) in [
        (
            "document-policy",
            "the grant authority's policy",
            "policy",
            person,
            world.documents.policy.as_bytes(),
        ),
        (
            "document-intent",
            "another requester's intent",
            "intent",
            &people.other_requester,
            world.open.intent.as_bytes(),
        ),
        (
            "document-receipt",
            "another member's receipt",
            "receipt",
            &people.members[1],
            world.receipts[0].as_bytes(),
        ),
        (
            "document-checkpoint",
            "another member's head",
            "checkpoint",
            &people.members[2],
            crate::samples::head(people, crate::samples::member(1)).as_bytes(),
        ),
        (
            "document-package",
            "a member's package",
            "package",
            &people.members[0],
            world.request.body.envelope().as_bytes(),
        ),
    ] {
        let mut cases = Cases::of(kind);
        cases.add(
            name,
            Reject::UnknownSigner,
            sign(word, who.secret(), payload(sample)),
        );
        all.extend(cases.cases);
    }
    all
}

/// The same scalar, written as one that is not reduced (RFC 8032, section 5.1.7).
fn plus_order(scalar: &[u8]) -> Vec<u8> {
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde,
        0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let mut carry = 0_u16;
    scalar
        .iter()
        .zip(ORDER)
        .map(|(left, right)| {
            let sum = u16::from(*left) + u16::from(right) + carry;
            carry = sum >> 8;
            (sum & 0xff) as u8
        })
        .collect()
}

fn endorsements(world: &World) -> Vec<Case> {
    let mut cases = Cases::of("document-plan");
    let people = &world.people;
    let document = world.plan.to_payload().unwrap();
    let digest = digest_of::<Plan>(&document);
    let [first, second, _] = &people.operators;
    let by = |person: &Person, digest: &[u8]| sign("plan", person.secret(), digest);
    let with = |endorsements: &[Vec<u8>]| {
        let list = endorsements.iter().map(|envelope| byte_string(envelope));
        let list: Vec<_> = list.collect();
        let head = shortest(4, list.len() as u64);
        [vec![0x82], byte_string(&document), head, list.concat()].concat()
    };
    let sorted = |mut people: Vec<&Person>| {
        people.sort_by_key(|person| person.key());
        people
            .iter()
            .map(|person| by(person, &digest))
            .collect::<Vec<_>>()
    };
    let good = sorted(vec![first, second]);
    assert_eq!(with(&good), codec::encode(&world.plan_endorsed).unwrap());
    let unsigned = codec::encode(&Endorsed::unsigned(&*world.plan).unwrap()).unwrap();
    cases.add("nobody's endorsement", Reject::QuorumNotMet, unsigned);
    cases.add(
        "one endorsement of two",
        Reject::QuorumNotMet,
        with(&good[..1]),
    );
    let twice = [good[0].clone(), good[0].clone()];
    cases.add("one operator twice", Reject::QuorumNotMet, with(&twice));
    let turned = [good[1].clone(), good[0].clone()];
    cases.add(
        "endorsements out of order",
        Reject::QuorumNotMet,
        with(&turned),
    );
    let stranger = sorted(vec![first, second, &people.stranger]);
    cases.add(
        "a stranger's endorsement too",
        Reject::UnknownSigner,
        with(&stranger),
    );
    let approver = sorted(vec![first, &people.approver]);
    cases.add(
        "an approver's endorsement",
        Reject::UnknownSigner,
        with(&approver),
    );
    let mut other = good.clone();
    let signer = if first.key() < second.key() {
        second
    } else {
        first
    };
    other[1] = by(signer, &[0x01; 32]);
    cases.add(
        "an endorsement of another digest",
        Reject::BadSignature,
        with(&other),
    );
    other[1] = by(signer, &document);
    cases.add(
        "an endorsement of the document itself",
        Reject::Schema,
        with(&other),
    );
    other[1] = sign("activation", signer.secret(), &digest);
    cases.add(
        "an endorsement of an activation",
        Reject::BadSignature,
        with(&other),
    );
    cases.cases
}

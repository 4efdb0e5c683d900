//! Wrong CBOR: one case for each way of writing it, in a message, in an envelope, and in a payload
//! with a good signature over it.

use std::collections::BTreeSet;

use firn_protocol::reject::Reject;

use super::{Case, Cases};
use crate::{
    rewriting::{self, Expect},
    samples::{Sample, World},
};

pub(super) fn cases(world: &World, samples: &[Sample]) -> Vec<Case> {
    let named = |name: &str| samples.iter().find(|sample| sample.name == name).unwrap();
    let mut cases = Vec::new();
    for name in ["from-requests-failed", "to-member-key-query"] {
        cases.extend(rewritten(named(name)));
    }
    cases.extend(signed(world));
    let mut cut = Cases::of("from-member-refusal");
    let refusal = &named(cut.kind).bytes;
    for (name, length) in [
        ("nothing at all", 0),
        ("one byte", 1),
        ("half of it", refusal.len() / 2),
        ("all but the last byte", refusal.len() - 1),
    ] {
        cut.add(name, Reject::Truncated, &refusal[..length]);
    }
    cut.add(
        "an envelope as the message",
        Reject::Schema,
        rewriting::payload(&refusal[4..]),
    );
    cases.extend(cut.cases);
    let mut large = Cases::of("document-checkpoint");
    let limit = named(large.kind).limit;
    large.add(
        "a byte over the limit",
        Reject::TooLarge,
        vec![0x00; limit + 1],
    );
    cases.extend(large.cases);
    cases
}

/// The first place of each way to write a message.
fn rewritten(sample: &Sample) -> Vec<Case> {
    let mut seen = BTreeSet::new();
    let mut cases = Vec::new();
    rewriting::each(&sample.bytes, |rewritten| {
        let place = if rewritten.wraps > 0 {
            " in an envelope"
        } else {
            ""
        };
        let Expect::Code(code) = rewritten.expect else {
            return;
        };
        if code == Reject::BadSignature || !seen.insert((rewritten.how, place)) {
            return;
        }
        cases.push(Case {
            kind: sample.name.clone(),
            name: format!("{}{place}", rewritten.how),
            code,
            bytes: rewritten.bytes,
        });
    });
    cases
}

/// The first place of each way to write a grant, signed by the grant authority.
fn signed(world: &World) -> Vec<Case> {
    let mut seen = BTreeSet::new();
    let mut cases = Cases::of("document-grant");
    let payload = rewriting::payload(world.open.grant.as_bytes());
    let secret = world.people.grant_authority.secret();
    rewriting::each(payload, |rewritten| {
        let Expect::Code(code) = rewritten.expect else {
            return;
        };
        if seen.insert(rewritten.how) {
            let name = format!("{}, signed", rewritten.how);
            cases.add(
                name,
                code,
                rewriting::sign("grant", secret, &rewritten.bytes),
            );
        }
    });
    cases.cases
}

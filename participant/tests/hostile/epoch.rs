//! What a grant shows by itself: a valid one raises the epoch for good, whatever becomes of the request
//! that it came with; one that is not valid raises nothing.

use firn_protocol::{
    bitcoin::Network,
    codec::Blob,
    documents::Content,
    ids::{ActivationDigest, Epoch, KeyId, PolicyDigest, PolicyVersion, RequestId, UnixMillis},
    messages::SignOpen,
    reject::Reject,
};

use super::{
    people::{CARRIER, DESK, GRANTS, OTHER_DESK, STRANGER},
    world::{Draft, FIRST_EPOCH, MAX_GRANT_LIFE_MS, NOW, SKEW_MS, World},
};

const NEXT: Epoch = Epoch::new(6);

/// A good request of the next owner, at the next epoch.
fn takeover(world: &World) -> Draft {
    let mut draft = world.draft(2, 61_000);
    draft.grant.owner = OTHER_DESK.id("requester");
    at(draft, NEXT)
}

fn at(mut draft: Draft, epoch: Epoch) -> Draft {
    draft.grant.epoch = epoch;
    draft.header.epoch = epoch;
    draft
}

/// Signed by the next owner.
fn signed(draft: &Draft) -> SignOpen {
    SignOpen {
        intent: OTHER_DESK.sign(&draft.intent),
        ..draft.signed()
    }
}

fn refused(world: &mut World, open: &SignOpen) -> Option<Reject> {
    world.members[0].open(&world.domain, open).err()
}

fn highest(world: &World) -> (Epoch, Option<String>) {
    let key_id = world.domain.key_id();
    let state = world.members[0].state().epoch(key_id).unwrap().unwrap();
    (state.epoch, state.owner.0.map(|owner| owner.to_string()))
}

/// The refused request has raised the epoch: the old owner is fenced, also after a restart, and the new
/// one is not.
fn assert_raised(world: &mut World, name: &str) {
    let owner = OTHER_DESK.id("requester").to_string();
    assert_eq!(highest(world), (NEXT, Some(owner)), "{name}");
    assert_eq!(world.members[0].count("RequestOpened"), 0, "{name}");
    let (disk, now) = (world.members[0].disk(), world.domain.now);
    world.members[0].restore(disk, now);
    let old = world.draft(1, 60_000).signed();
    assert_eq!(refused(world, &old), Some(Reject::StaleEpoch), "{name}");
    let good = takeover(world).again(0xaa);
    assert_eq!(refused(world, &signed(&good)), None, "{name}");
}

#[test]
fn a_valid_grant_raises_the_epoch_also_when_its_request_is_refused() {
    type Bend = fn(&World, Draft) -> SignOpen;
    let cases: [(&str, Reject, Bend); 10] = [
        ("a malformed PSBT", Reject::PsbtMalformed, |_, mut draft| {
            draft.intent.content = Content::Psbt(Blob::new(vec![0; 9]).unwrap());
            signed(&draft)
        }),
        (
            "another network",
            Reject::NetworkMismatch,
            |_, mut draft| {
                draft.intent.network = Network::Testnet;
                signed(&draft)
            },
        ),
        (
            "a refusal by the policy",
            Reject::PolicyOutput,
            |world, draft| {
                let mut dear = world.draft(2, 75_000);
                dear.grant.owner = draft.grant.owner;
                signed(&at(dear, NEXT))
            },
        ),
        (
            "an intent that its owner did not sign",
            Reject::GrantOwnerMismatch,
            |_, draft| SignOpen {
                intent: DESK.sign(&draft.intent),
                ..draft.signed()
            },
        ),
        (
            "another intent of its owner",
            Reject::GrantIntentMismatch,
            |world, draft| SignOpen {
                intent: OTHER_DESK.sign(&world.intent(world.payment(62_000))),
                ..draft.signed()
            },
        ),
        (
            "another request",
            Reject::GrantRequestMismatch,
            |_, mut draft| {
                draft.grant.request_id = RequestId::from_bytes([9; 32]);
                signed(&draft)
            },
        ),
        (
            "another policy",
            Reject::GrantPolicyMismatch,
            |_, mut draft| {
                draft.grant.policy = PolicyDigest::from_bytes([9; 32]);
                signed(&draft)
            },
        ),
        (
            "a later policy",
            Reject::PolicyVersionBehind,
            |_, mut draft| {
                draft.grant.least_policy_version = PolicyVersion::new(2);
                signed(&draft)
            },
        ),
        (
            "a header of another epoch",
            Reject::SessionMismatch,
            |_, mut draft| {
                draft.header.epoch = FIRST_EPOCH;
                signed(&draft)
            },
        ),
        (
            "an approval that no policy asks for",
            Reject::UnknownSigner,
            |_, draft| {
                let approvals = vec![Blob::new(vec![0]).unwrap()];
                SignOpen {
                    approvals: firn_protocol::codec::List::new(approvals).unwrap(),
                    ..signed(&draft)
                }
            },
        ),
    ];
    for (name, code, bend) in cases {
        let mut world = World::new();
        let draft = takeover(&world);
        let open = bend(&world, draft);
        assert_eq!(refused(&mut world, &open), Some(code), "{name}");
        assert_raised(&mut world, name);
    }
}

#[test]
fn a_valid_grant_raises_the_epoch_also_when_its_request_id_stands_for_another_intent() {
    let mut world = World::new();
    let first = world.draft(2, 60_000);
    assert_eq!(refused(&mut world, &first.signed()), None);
    let conflicting = takeover(&world);
    let open = signed(&conflicting);
    assert_eq!(refused(&mut world, &open), Some(Reject::RequestConflict));
    let owner = OTHER_DESK.id("requester").to_string();
    assert_eq!(highest(&world), (NEXT, Some(owner)));
    let again = first.again(0xab).signed();
    assert_eq!(refused(&mut world, &again), Some(Reject::StaleEpoch));
}

#[test]
fn a_grant_that_is_not_valid_raises_nothing() {
    type Bend = fn(Draft) -> SignOpen;
    let cases: [(&str, Reject, Bend); 8] = [
        ("expired", Reject::GrantExpired, |mut draft| {
            draft.grant.expires = UnixMillis::new(NOW.value() - SKEW_MS);
            signed(&draft)
        }),
        ("not valid yet", Reject::GrantNotYetValid, |mut draft| {
            draft.grant.not_before = NOW.plus(SKEW_MS + 1);
            signed(&draft)
        }),
        (
            "older than any may be",
            Reject::GrantExpired,
            |mut draft| {
                let life = MAX_GRANT_LIFE_MS + SKEW_MS;
                draft.grant.not_before = UnixMillis::new(NOW.value() - life);
                signed(&draft)
            },
        ),
        ("forged by a stranger", Reject::UnknownSigner, |draft| {
            SignOpen {
                grant: STRANGER.sign(&draft.grant),
                ..signed(&draft)
            }
        }),
        ("forged by its owner", Reject::UnknownSigner, |draft| {
            SignOpen {
                grant: OTHER_DESK.sign(&draft.grant),
                ..signed(&draft)
            }
        }),
        ("for a stranger", Reject::UnknownRequester, |mut draft| {
            draft.grant.owner = STRANGER.id("requester");
            signed(&draft)
        }),
        ("for another key", Reject::GrantKeyMismatch, |mut draft| {
            draft.grant.key_id = KeyId::from_bytes([9; 32]);
            signed(&draft)
        }),
        (
            "under another activation",
            Reject::ActivationMismatch,
            |mut draft| {
                draft.grant.activation = ActivationDigest::from_bytes([9; 32]);
                signed(&draft)
            },
        ),
    ];
    let mut world = World::new();
    for (name, code, bend) in cases {
        let open = bend(takeover(&world));
        assert_eq!(refused(&mut world, &open), Some(code), "{name}");
        assert_eq!(highest(&world), (FIRST_EPOCH, None), "{name}");
        assert_eq!(world.members[0].count("EpochRaised"), 0, "{name}");
    }
}

#[test]
fn a_grant_that_allows_itself_too_long_a_life_counts_until_the_bound() {
    let mut world = World::new();
    let mut draft = world.draft(1, 60_000);
    draft.grant.not_before = UnixMillis::new(NOW.value() - MAX_GRANT_LIFE_MS - SKEW_MS + 1);
    draft.grant.expires = UnixMillis::new(u64::MAX);
    assert_eq!(refused(&mut world, &draft.signed()), None);
    world.domain.now = NOW.plus(1);
    let again = draft.again(0xaa).signed();
    assert_eq!(refused(&mut world, &again), Some(Reject::GrantExpired));
}

#[test]
fn an_epoch_too_far_ahead_raises_nothing_whatever_else_is_wrong() {
    let mut world = World::new();
    let far = Epoch::new(FIRST_EPOCH.value() + 1_001);
    let mut draft = at(takeover(&world), far);
    assert_eq!(
        refused(&mut world, &signed(&draft)),
        Some(Reject::EpochJump)
    );
    // The epoch's gate comes before the transaction's, and after the grant's own.
    draft.intent.content = Content::Psbt(Blob::new(vec![0; 9]).unwrap());
    assert_eq!(
        refused(&mut world, &signed(&draft)),
        Some(Reject::EpochJump)
    );
    draft.grant.request_id = RequestId::from_bytes([9; 32]);
    assert_eq!(
        refused(&mut world, &signed(&draft)),
        Some(Reject::GrantRequestMismatch)
    );
    assert_eq!(highest(&world), (FIRST_EPOCH, None));
}

#[test]
fn a_fenced_owner_is_told_so_and_not_what_is_wrong_with_its_transaction() {
    let mut world = World::new();
    let good = signed(&takeover(&world));
    assert_eq!(refused(&mut world, &good), None);
    let mut old = world.draft(1, 60_000);
    old.intent.content = Content::Psbt(Blob::new(vec![0; 9]).unwrap());
    assert_eq!(refused(&mut world, &old.signed()), Some(Reject::StaleEpoch));
    let usurper = at(old, NEXT);
    assert_eq!(
        refused(&mut world, &usurper.signed()),
        Some(Reject::EpochOwnerConflict)
    );
    let owner = OTHER_DESK.id("requester").to_string();
    assert_eq!(highest(&world), (NEXT, Some(owner)));
}

#[test]
fn a_grant_that_is_shown_again_and_again_is_on_record_once() {
    let mut world = World::new();
    let mut draft = takeover(&world);
    draft.intent.content = Content::Psbt(Blob::new(vec![0; 9]).unwrap());
    for nonce in 1..20 {
        let open = signed(&draft.again(nonce));
        assert_eq!(refused(&mut world, &open), Some(Reject::PsbtMalformed));
    }
    assert_eq!(world.members[0].count("EpochRaised"), 1);
    // It needs no coordinator that means well: any header of one that counts carries it.
    let open = SignOpen {
        header: CARRIER.sign(&draft.header),
        grant: GRANTS.sign(&draft.grant),
        ..signed(&draft)
    };
    assert_eq!(refused(&mut world, &open), Some(Reject::PsbtMalformed));
}

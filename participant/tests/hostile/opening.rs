//! Attacks on the opening of a signing session: nothing is reserved, no nonce is made.

use firn_protocol::{
    bitcoin::Network,
    codec::{Blob, List},
    documents::Content,
    envelope::{Document, Envelope},
    ids::{
        ActivationDigest, Epoch, Flow, IntentDigest, KeyId, PolicyDigest, PolicyVersion, RequestId,
        RevocationVersion, ShareVersion, UnixMillis,
    },
    messages::SignOpen,
    reject::Reject,
};

use super::{
    dealing,
    people::{CARRIER, DESK, GRANTS, OTHER_CARRIER, OTHER_DESK, STRANGER},
    world::{Draft, NOW, SKEW_MS, World},
};

type Attack = (&'static str, Reject, fn(&World, Draft) -> SignOpen);

/// Each attack begins from a good request, is refused by member 1 with its code, and leaves nothing.
pub fn refuse_all(attacks: &[Attack]) {
    let mut world = World::new();
    refuse(&mut world, attacks);
    let good = world.draft(7, 60_000);
    assert!(world.members[0].open(&world.domain, &good.signed()).is_ok());
}

fn refuse(world: &mut World, attacks: &[Attack]) {
    let good = world.draft(7, 60_000);
    for (name, code, bend) in attacks {
        let open = bend(world, good.clone());
        let refused = world.members[0].open(&world.domain, &open).err();
        assert_eq!(refused, Some(*code), "{name}");
        for record in ["RequestOpened", "Released", "Conflicted"] {
            assert_eq!(world.members[0].count(record), 0, "{name}: {record}");
        }
    }
}

/// A good request with one thing changed before everybody signs.
fn with(mut draft: Draft, change: impl FnOnce(&mut Draft)) -> SignOpen {
    change(&mut draft);
    draft.signed()
}

/// One bit of the signature, which stands last, is another.
fn damaged<T: Document>(envelope: &Envelope<T>) -> Envelope<T> {
    let mut bytes = envelope.as_bytes().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    Envelope::from_bytes(bytes).unwrap()
}

#[test]
fn a_header_that_is_not_of_a_coordinator_for_this_session_opens_nothing() {
    refuse_all(&[
        (
            "signed by a stranger",
            Reject::UnknownCoordinator,
            |_, draft| SignOpen {
                header: STRANGER.sign(&draft.header),
                ..draft.signed()
            },
        ),
        (
            "signed by the requester",
            Reject::UnknownCoordinator,
            |_, draft| SignOpen {
                header: DESK.sign(&draft.header),
                ..draft.signed()
            },
        ),
        (
            "in another coordinator's name",
            Reject::UnknownCoordinator,
            |_, draft| {
                with(draft, |d| {
                    d.header.coordinator = OTHER_CARRIER.id("coordinator")
                })
            },
        ),
        (
            "in a stranger's name",
            Reject::UnknownCoordinator,
            |_, draft| with(draft, |d| d.header.coordinator = STRANGER.id("coordinator")),
        ),
        ("damaged", Reject::BadSignature, |_, draft| SignOpen {
            header: damaged(&CARRIER.sign(&draft.header)),
            ..draft.signed()
        }),
        ("of another flow", Reject::UnexpectedMessage, |_, draft| {
            with(draft, |d| d.header.flow = Flow::ProofOfLife)
        }),
        (
            "about a ceremony",
            Reject::UnexpectedMessage,
            |world, draft| {
                let ceremony = dealing::header(&world.domain, 1).subject;
                with(draft, |d| d.header.subject = ceremony)
            },
        ),
        ("for another key", Reject::KeyUnknown, |_, draft| {
            with(draft, |d| d.header.key_id = KeyId::from_bytes([9; 32]))
        }),
        (
            "for an older sharing",
            Reject::ActivationMismatch,
            |_, draft| with(draft, |d| d.header.share_version = ShareVersion::new(0)),
        ),
        (
            "for a later sharing",
            Reject::ActivationMismatch,
            |_, draft| with(draft, |d| d.header.share_version = ShareVersion::new(2)),
        ),
        (
            "under another activation",
            Reject::ActivationMismatch,
            |_, draft| {
                with(draft, |d| {
                    d.subject().activation = ActivationDigest::from_bytes([9; 32])
                })
            },
        ),
        (
            "for another intent",
            Reject::GrantIntentMismatch,
            |_, draft| {
                with(draft, |d| {
                    d.subject().intent = IntentDigest::from_bytes([9; 32])
                })
            },
        ),
        (
            "under another policy",
            Reject::GrantPolicyMismatch,
            |_, draft| {
                with(draft, |d| {
                    d.subject().policy = PolicyDigest::from_bytes([9; 32])
                })
            },
        ),
        ("at another epoch", Reject::SessionMismatch, |_, draft| {
            with(draft, |d| d.header.epoch = Epoch::new(6))
        }),
    ]);
}

#[test]
fn a_session_of_other_members_than_t_of_the_roster_with_this_one_opens_nothing() {
    refuse_all(&[
        ("one more", Reject::SessionMembers, |_, d| {
            d.among(&[1, 2, 3]).signed()
        }),
        ("one fewer", Reject::SessionMembers, |_, d| {
            d.among(&[1]).signed()
        }),
        ("nobody", Reject::SessionMembers, |_, d| {
            d.among(&[]).signed()
        }),
        ("with a stranger", Reject::SessionMembers, |_, d| {
            d.among(&[1, 9]).signed()
        }),
        ("out of order", Reject::SessionMembers, |_, d| {
            d.among(&[2, 1]).signed()
        }),
        ("one twice", Reject::SessionMembers, |_, d| {
            d.among(&[1, 1]).signed()
        }),
        ("without this one", Reject::NotAMember, |_, d| {
            d.among(&[2, 3]).signed()
        }),
    ]);
}

/// Such a grant is valid for somebody: this owner is fenced from then on (see `epoch`).
#[test]
fn a_grant_of_another_owner_or_epoch_opens_nothing() {
    let attacks: [Attack; 2] = [
        (
            "for another owner",
            Reject::GrantOwnerMismatch,
            |_, draft| with(draft, |d| d.grant.owner = OTHER_DESK.id("requester")),
        ),
        ("at another epoch", Reject::SessionMismatch, |_, draft| {
            with(draft, |d| d.grant.epoch = Epoch::new(6))
        }),
    ];
    for attack in attacks {
        refuse(&mut World::new(), &[attack]);
    }
}

#[test]
fn a_grant_that_is_not_for_this_request_opens_nothing() {
    refuse_all(&[
        ("signed by a stranger", Reject::UnknownSigner, |_, draft| {
            SignOpen {
                grant: STRANGER.sign(&draft.grant),
                ..draft.signed()
            }
        }),
        (
            "signed by the requester",
            Reject::UnknownSigner,
            |_, draft| SignOpen {
                grant: DESK.sign(&draft.grant),
                ..draft.signed()
            },
        ),
        ("damaged", Reject::BadSignature, |_, draft| SignOpen {
            grant: damaged(&GRANTS.sign(&draft.grant)),
            ..draft.signed()
        }),
        ("for a stranger", Reject::UnknownRequester, |_, draft| {
            with(draft, |d| d.grant.owner = STRANGER.id("requester"))
        }),
        (
            "for another request",
            Reject::GrantRequestMismatch,
            |_, draft| {
                with(draft, |d| {
                    d.grant.request_id = RequestId::from_bytes([9; 32])
                })
            },
        ),
        (
            "for another intent",
            Reject::GrantIntentMismatch,
            |_, draft| {
                with(draft, |d| {
                    d.grant.intent = IntentDigest::from_bytes([9; 32])
                })
            },
        ),
        (
            "under another policy",
            Reject::GrantPolicyMismatch,
            |_, draft| {
                with(draft, |d| {
                    d.grant.policy = PolicyDigest::from_bytes([9; 32])
                })
            },
        ),
        ("for another key", Reject::GrantKeyMismatch, |_, draft| {
            with(draft, |d| d.grant.key_id = KeyId::from_bytes([9; 32]))
        }),
        (
            "under another activation",
            Reject::ActivationMismatch,
            |_, draft| {
                with(draft, |d| {
                    d.grant.activation = ActivationDigest::from_bytes([9; 32])
                })
            },
        ),
        ("expired", Reject::GrantExpired, |_, draft| {
            with(draft, |d| {
                d.grant.expires = UnixMillis::new(NOW.value() - SKEW_MS)
            })
        }),
        ("not yet valid", Reject::GrantNotYetValid, |_, draft| {
            with(draft, |d| d.grant.not_before = NOW.plus(SKEW_MS + 1))
        }),
        (
            "with a later policy",
            Reject::PolicyVersionBehind,
            |_, draft| {
                with(draft, |d| {
                    d.grant.least_policy_version = PolicyVersion::new(2)
                })
            },
        ),
        (
            "with later revocations",
            Reject::RevocationsBehind,
            |_, draft| {
                with(draft, |d| {
                    d.grant.least_revocation_version = RevocationVersion::new(1)
                })
            },
        ),
    ]);
}

#[test]
fn a_grant_counts_up_to_the_allowed_skew_on_either_side() {
    let mut world = World::new();
    let mut early = world.draft(1, 60_000);
    early.grant.not_before = NOW.plus(SKEW_MS);
    let mut late = world.draft(2, 61_000);
    late.grant.expires = UnixMillis::new(NOW.value() - SKEW_MS + 1);
    for draft in [early, late] {
        assert!(
            world.members[0]
                .open(&world.domain, &draft.signed())
                .is_ok()
        );
    }
}

#[test]
fn an_expired_or_foreign_grant_makes_nobody_read_a_transaction() {
    // A megabyte of PSBT is only worth reading for somebody who may ask.
    let nonsense = |mut draft: Draft| {
        draft.intent.content = Content::Psbt(Blob::new(vec![0; 9]).unwrap());
        draft
    };
    let mut world = World::new();
    let good = world.draft(7, 60_000);
    let mut expired = nonsense(good.clone());
    expired.grant.expires = UnixMillis::new(NOW.value() - SKEW_MS);
    let mut other = nonsense(good.clone());
    other.grant.request_id = RequestId::from_bytes([9; 32]);
    for (draft, code) in [
        (expired, Reject::GrantExpired),
        (other, Reject::GrantRequestMismatch),
        (nonsense(good), Reject::PsbtMalformed),
    ] {
        let refused = world.members[0].open(&world.domain, &draft.signed()).err();
        assert_eq!(refused, Some(code));
    }
}

#[test]
fn an_intent_that_is_not_the_one_granted_opens_nothing() {
    refuse_all(&[
        (
            "signed by another requester",
            Reject::GrantOwnerMismatch,
            |_, draft| SignOpen {
                intent: OTHER_DESK.sign(&draft.intent),
                ..draft.signed()
            },
        ),
        (
            "signed by the coordinator",
            Reject::GrantOwnerMismatch,
            |_, draft| SignOpen {
                intent: CARRIER.sign(&draft.intent),
                ..draft.signed()
            },
        ),
        (
            "swapped for one that the requester signed too",
            Reject::GrantIntentMismatch,
            |world, draft| SignOpen {
                intent: DESK.sign(&world.intent(world.payment(61_000))),
                ..draft.signed()
            },
        ),
        ("for another key", Reject::KeyUnknown, |_, draft| {
            with(draft, |d| d.intent.key_id = KeyId::from_bytes([9; 32]))
        }),
        (
            "for another network",
            Reject::NetworkMismatch,
            |_, draft| with(draft, |d| d.intent.network = Network::Testnet),
        ),
        (
            "with an approval that no policy asks for",
            Reject::UnknownSigner,
            |_, draft| SignOpen {
                approvals: List::new(vec![Blob::new(vec![0]).unwrap()]).unwrap(),
                ..draft.signed()
            },
        ),
    ]);
}

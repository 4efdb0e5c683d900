//! Attacks on the package: a share is only for one commitment of each member of the session.

use firn_ledger::rules::SessionStage;
use firn_participant::session::Refusing;
use firn_protocol::{
    codec::List,
    envelope::Envelope,
    ids::{MessageDigest, Point},
    messages::{Commitments, Package},
    reject::Reject,
};

use super::{
    people::{CARRIER, MEMBERS, OTHER_CARRIER, Person, STRANGER, number},
    signing::{body, package, said, sent},
    world::{Draft, World},
};

/// Somebody's commitments with something changed, signed by `signer`.
fn bent(
    envelope: &Envelope<Commitments>,
    signer: &Person,
    change: impl FnOnce(&mut Commitments),
) -> Envelope<Commitments> {
    let mut commitments = (*said(envelope)).clone();
    change(&mut commitments);
    signer.sign(&commitments)
}

const fn nobody(code: Reject) -> Refusing {
    Refusing {
        code,
        culprit: None,
    }
}

type Attack = (
    &'static str,
    Refusing,
    fn(&Draft, &[Envelope<Commitments>], &[Envelope<Commitments>]) -> Package,
);

/// Each attack gets a session of its own; `earlier` are the same members' commitments to another.
fn refuse_all(attacks: &[Attack]) {
    let mut world = World::new();
    let before = world.draft(99, 50_000);
    let earlier = sent(&world.open(&before.signed()));
    for (place, (name, refusing, bend)) in (1..).zip(attacks) {
        let draft = world.draft(place, 60_000 + u64::from(place));
        let mut sessions = world.open(&draft.signed());
        let bad = bend(&draft, &sent(&sessions), &earlier);
        let session = sessions.remove(0);
        let refused = world.members[0].release(&world.domain, session, &bad).err();
        assert_eq!(refused, Some(*refusing), "{name}");
        assert_eq!(
            world.stage(1, draft.session()),
            SessionStage::Open,
            "{name}"
        );
        world.assert_nothing_left(1);
    }
}

#[test]
fn a_package_of_other_commitments_than_one_of_each_member_is_refused() {
    refuse_all(&[
        (
            "one more",
            nobody(Reject::PackageMembers),
            |draft, sent, _| {
                let third = bent(&sent[1], &MEMBERS[2], |said| said.member = number(3));
                package(draft, &[sent[0].clone(), sent[1].clone(), third])
            },
        ),
        (
            "one missing",
            nobody(Reject::PackageMembers),
            |draft, sent, _| package(draft, &sent[..1]),
        ),
        ("nobody's", nobody(Reject::PackageMembers), |draft, _, _| {
            package(draft, &[])
        }),
        (
            "this member's twice",
            nobody(Reject::UnknownSigner),
            |draft, sent, _| package(draft, &[sent[0].clone(), sent[0].clone()]),
        ),
        (
            "the other's twice",
            nobody(Reject::PackageAltered),
            |draft, sent, _| package(draft, &[sent[1].clone(), sent[1].clone()]),
        ),
        (
            "out of order",
            nobody(Reject::PackageAltered),
            |draft, sent, _| package(draft, &[sent[1].clone(), sent[0].clone()]),
        ),
        (
            "this member's from an earlier session",
            nobody(Reject::PackageAltered),
            |draft, sent, earlier| package(draft, &[earlier[0].clone(), sent[1].clone()]),
        ),
        (
            "this member's with another nonce",
            nobody(Reject::PackageAltered),
            |draft, sent, _| {
                let other = bent(&sent[0], &MEMBERS[0], |own| {
                    own.inputs = said(&sent[1]).inputs.clone()
                });
                package(draft, &[other, sent[1].clone()])
            },
        ),
        (
            "of a third member",
            nobody(Reject::UnknownSigner),
            |draft, sent, _| {
                let third = bent(&sent[1], &MEMBERS[2], |said| said.member = number(3));
                package(draft, &[sent[0].clone(), third])
            },
        ),
    ]);
}

#[test]
fn what_a_carrier_can_do_alone_is_blamed_on_no_member() {
    refuse_all(&[
        (
            "replayed from an earlier session",
            nobody(Reject::SessionMismatch),
            |draft, sent, earlier| package(draft, &[sent[0].clone(), earlier[1].clone()]),
        ),
        (
            "signed by a stranger",
            nobody(Reject::UnknownSigner),
            |draft, sent, _| package(draft, &[sent[0].clone(), bent(&sent[1], &STRANGER, |_| {})]),
        ),
        ("damaged", nobody(Reject::BadSignature), |draft, sent, _| {
            let mut bytes = sent[1].as_bytes().to_vec();
            *bytes.last_mut().unwrap() ^= 1;
            let mut bad = package(draft, sent);
            let damaged = Envelope::from_bytes(bytes).unwrap();
            bad.commitments = List::new(vec![sent[0].clone(), damaged]).unwrap();
            bad
        }),
    ]);
}

#[test]
fn what_a_member_signed_for_this_session_is_its_own_fault() {
    let second = |code| Refusing::of(code, number(2));
    refuse_all(&[
        (
            "in another's name",
            second(Reject::PackageMembers),
            |draft, sent, _| {
                let other = bent(&sent[1], &MEMBERS[1], |said| said.member = number(3));
                package(draft, &[sent[0].clone(), other])
            },
        ),
        (
            "too few nonces",
            second(Reject::InputCount),
            |draft, sent, _| {
                let few = bent(&sent[1], &MEMBERS[1], |said| {
                    said.inputs = List::new(said.inputs[..1].to_vec()).unwrap();
                });
                package(draft, &[sent[0].clone(), few])
            },
        ),
        (
            "with a head that is not its own",
            second(Reject::UnknownSigner),
            |draft, sent, _| {
                let foreign = said(&sent[0]).standing.checkpoint.clone();
                let other = bent(&sent[1], &MEMBERS[1], |said| {
                    said.standing.checkpoint = foreign
                });
                package(draft, &[sent[0].clone(), other])
            },
        ),
        (
            "with a point that is none",
            second(Reject::PackageMembers),
            |draft, sent, _| {
                let off = bent(&sent[1], &MEMBERS[1], |said| {
                    let point = Point::from_bytes([0; 33]);
                    let mut inputs = said.inputs.to_vec();
                    inputs[1].binding = point;
                    said.inputs = List::new(inputs).unwrap();
                });
                package(draft, &[sent[0].clone(), off])
            },
        ),
    ]);
}

#[test]
fn a_package_without_its_coordinators_word_on_these_lists_is_refused() {
    refuse_all(&[
        (
            "signed by another coordinator",
            nobody(Reject::UnknownSigner),
            |draft, sent, _| Package {
                body: OTHER_CARRIER.sign(&body(draft, sent)),
                ..package(draft, sent)
            },
        ),
        (
            "signed by a member",
            nobody(Reject::UnknownSigner),
            |draft, sent, _| Package {
                body: MEMBERS[1].sign(&body(draft, sent)),
                ..package(draft, sent)
            },
        ),
        (
            "for another session",
            nobody(Reject::SessionMismatch),
            |draft, sent, _| Package {
                body: CARRIER.sign(&body(&draft.again(0xee), sent)),
                ..package(draft, sent)
            },
        ),
        (
            "with digests of other lists",
            nobody(Reject::PackageDigest),
            |draft, sent, earlier| Package {
                body: CARRIER.sign(&body(draft, earlier)),
                ..package(draft, sent)
            },
        ),
        (
            "with the digests in another order",
            nobody(Reject::PackageDigest),
            |draft, sent, _| {
                let mut body = body(draft, sent);
                let mut digests = body.inputs.to_vec();
                digests.reverse();
                body.inputs = List::new(digests).unwrap();
                Package {
                    body: CARRIER.sign(&body),
                    ..package(draft, sent)
                }
            },
        ),
        (
            "with one digest more",
            nobody(Reject::InputCount),
            |draft, sent, _| {
                let mut body = body(draft, sent);
                let mut digests = body.inputs.to_vec();
                digests.push(MessageDigest::from_bytes([0; 32]));
                body.inputs = List::new(digests).unwrap();
                Package {
                    body: CARRIER.sign(&body),
                    ..package(draft, sent)
                }
            },
        ),
    ]);
}

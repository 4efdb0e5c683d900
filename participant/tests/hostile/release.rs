//! Attacks on the release and after it: one package, the gates of its own moment, good signatures.

use firn_ledger::rules::{Command, SessionStage};
use firn_participant::session::Refusing;
use firn_protocol::{
    bitcoin::verify_bip340,
    codec::List,
    documents::InputSignature,
    ids::{Epoch, PackageDigest, SessionId, Signature},
    messages::Final,
    reject::Reject,
};

use super::{
    people::{OTHER_DESK, person},
    signing::{items, key, package, released, sent},
    world::World,
};

#[test]
fn a_second_package_gets_no_second_share() {
    let mut world = World::new();
    let draft = world.draft(1, 60_000);
    let mut sessions = world.open(&draft.signed());
    let envelopes = sent(&sessions);
    let good = package(&draft, &envelopes);
    let session = sessions.remove(0);
    assert!(
        world.members[0]
            .release(&world.domain, session, &good)
            .is_ok()
    );
    // The nonces are gone with the state; the ledger would refuse a second record all the same.
    let again = Command::Release {
        session: draft.session(),
        package: PackageDigest::from_bytes([0; 32]),
        witnessed: Vec::new(),
    };
    let refused = world.members[0].write(again, world.domain.now).err();
    assert_eq!(refused, Some(Reject::UnexpectedMessage));
    assert_eq!(world.members[0].count("Released"), 1);
}

#[test]
fn no_share_leaves_after_the_epoch_has_moved_the_grant_has_ended_or_the_process_was_started_again()
{
    for (code, happens) in [
        (
            Reject::StaleEpoch,
            (|world: &mut World| {
                let raise = Command::RaiseEpoch {
                    key_id: world.domain.key_id(),
                    epoch: Epoch::new(6),
                    owner: OTHER_DESK.id("requester"),
                };
                world.members[0].write(raise, world.domain.now).unwrap();
            }) as fn(&mut World),
        ),
        (Reject::GrantExpired, |world| {
            world.domain.now = world.domain.now.plus(62_000)
        }),
        (Reject::SessionMismatch, |world| {
            world.members[0].start(world.domain.now)
        }),
    ] {
        let mut world = World::new();
        let draft = world.draft(1, 60_000);
        let mut sessions = world.open(&draft.signed());
        let good = package(&draft, &sent(&sessions));
        happens(&mut world);
        let session = sessions.remove(0);
        let refused = world.members[0]
            .release(&world.domain, session, &good)
            .err();
        assert_eq!(refused, Some(Refusing::from(code)));
        world.assert_nothing_left(1);
    }
}

#[test]
fn a_final_that_does_not_verify_for_its_input_and_session_completes_nothing() {
    type Bend = fn(&mut Final);
    let attacks: [(&str, Reject, Bend); 6] = [
        ("another signature", Reject::FinalSignature, |made| {
            change(made, |signed| {
                signed[0].signature = Signature::from_bytes([1; 64]);
            })
        }),
        ("swapped signatures", Reject::FinalSignature, |made| {
            change(made, |signed| {
                let first = signed[0].signature;
                signed[0].signature = signed[1].signature;
                signed[1].signature = first;
            })
        }),
        ("another input", Reject::FinalSignature, |made| {
            change(made, |signed| signed[1].input = 0)
        }),
        ("out of order", Reject::FinalSignature, |made| {
            change(made, |signed| signed.reverse())
        }),
        ("one missing", Reject::InputCount, |made| {
            change(made, |signed| signed.truncate(1))
        }),
        ("another session", Reject::SessionMismatch, |made| {
            made.session = SessionId::from_bytes([9; 32]);
        }),
    ];
    for (name, code, bend) in attacks {
        let mut world = World::new();
        let (draft, mut shared, mut made) = released(&mut world);
        bend(&mut made);
        let refused = world.members[0]
            .finish(&world.domain, shared.remove(0), &made)
            .err();
        assert_eq!(refused, Some(code), "{name}");
        assert_eq!(world.members[0].count("Completed"), 0, "{name}");
        assert_eq!(
            world.stage(1, draft.session()),
            SessionStage::Released,
            "{name}"
        );
    }
}

fn change(made: &mut Final, change: impl FnOnce(&mut Vec<InputSignature>)) {
    let mut signed = made.signatures.to_vec();
    change(&mut signed);
    made.signatures = List::new(signed).unwrap();
}

#[test]
fn an_honest_session_signs() {
    let mut world = World::new();
    let (draft, shared, made) = released(&mut world);
    for (member, shared) in world.members.iter_mut().zip(shared) {
        let receipt = member.finish(&world.domain, shared, &made).unwrap();
        assert!(receipt.verify(&person(member.place).key()).is_ok());
    }
    for (item, signed) in items(&world, &draft).iter().zip(&made.signatures) {
        let key = key(&world, item);
        assert!(verify_bip340(
            key.output_key(),
            &item.message,
            signed.signature.as_bytes()
        ));
    }
}

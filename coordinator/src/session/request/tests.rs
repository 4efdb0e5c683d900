use std::sync::Arc;

use firn_protocol::{
    bitcoin::verify_bip340,
    documents::Receipt,
    envelope::Verified,
    ids::{Identifier, UnixMillis},
    messages::RequestFailed,
    reject::Reject,
};

use super::{Candidate, Move, Request, answer};
use crate::session::{
    fake::{Habit, World, id, named},
    sign::{AttemptOutcome, SignAttempt, SignedRequest},
};

/// A whole request, and the members of each attempt.
fn drive(
    world: &mut World,
    connected: &[Candidate],
) -> (Result<SignedRequest, RequestFailed>, Vec<Vec<Identifier>>) {
    let mut request = Request::new(Arc::clone(&world.terms));
    let mut attempts = Vec::new();
    loop {
        match request.choose(connected, UnixMillis::new(0), &mut world.rng) {
            Move::GiveUp(failed) => return (Err(*failed), attempts),
            Move::Attempt(members, _) => match attempt(world, &members) {
                AttemptOutcome::Signed(signed) => {
                    attempts.push(members);
                    return (Ok(*signed), attempts);
                }
                AttemptOutcome::Failed(failed) => {
                    request.failed(&failed, UnixMillis::new(0));
                    attempts.push(members);
                }
            },
        }
    }
}

fn attempt(world: &mut World, members: &[Identifier]) -> AttemptOutcome {
    let (attempt, opening) =
        SignAttempt::open(&world.terms, members, &world.voice, &mut world.rng).unwrap();
    world.run(attempt, opening)
}

fn assert_verifies(world: &World, signed: &SignedRequest) {
    assert_eq!(signed.signatures.len(), world.terms.items.len());
    for (item, made) in world.terms.items.iter().zip(&signed.signatures) {
        assert_eq!(made.input, item.input);
        let signature = made.signature.as_bytes();
        assert!(verify_bip340(
            item.key.output_key(),
            &item.message,
            signature
        ));
    }
}

#[test]
fn t_members_sign_every_input() {
    for (threshold, count) in [(2, 3), (3, 5)] {
        let mut world = World::new(threshold, count, 2);
        let everybody = world.everybody();
        let (signed, attempts) = drive(&mut world, &everybody);
        let signed = signed.unwrap();
        assert_verifies(&world, &signed);
        assert_eq!(attempts.len(), 1);
        assert_eq!(signed.receipts.len(), usize::from(threshold));
        let answer = answer(signed).unwrap();
        let evidence = answer.evidence.0.unwrap();
        assert_eq!(evidence.commitments.len(), usize::from(threshold));
        assert_eq!(evidence.shares.len(), usize::from(threshold));
    }
}

#[test]
fn a_member_that_fails_is_named_left_out_and_another_quorum_signs() {
    use Habit::*;
    for (habit, code) in [
        (BadShare, Reject::FinalSignature),
        (Silent, Reject::Deadline),
        (SilentAfterPackage, Reject::Deadline),
        (Refuses(Reject::Frozen), Reject::Frozen),
        (Refuses(Reject::PolicyFee), Reject::PolicyFee),
        (RefusesAnotherSession, Reject::SessionMismatch),
        (Stranger, Reject::UnknownSigner),
        (SpeaksForAnother, Reject::PackageMembers),
        (WrongSession, Reject::SessionMismatch),
        (WrongInputCount, Reject::InputCount),
        (TooManyInputs, Reject::InputCount),
        (NotAPoint, Reject::Schema),
        (WrongPackage, Reject::PackageDigest),
        (TooFewShares, Reject::InputCount),
        (SharesFirst, Reject::UnexpectedMessage),
        (ForgedReceipt, Reject::FinalSignature),
    ] {
        let mut world = World::new(2, 3, 2).with(2, habit);
        match attempt(&mut world, &[id(1), id(2)]) {
            AttemptOutcome::Failed(failed) => {
                assert_eq!(named(&failed.faults), [(2, code)], "{habit:?}");
                assert_eq!(failed.code, code);
            }
            AttemptOutcome::Signed(_) => panic!("{habit:?} went unnoticed"),
        }
        let everybody = world.everybody();
        let (signed, attempts) = drive(&mut world, &everybody);
        assert_verifies(&world, &signed.unwrap());
        let last = attempts.last().unwrap();
        assert_eq!(*last, [id(1), id(3)], "{habit:?}");
    }
}

#[test]
fn all_cheaters_of_an_attempt_are_named() {
    let mut world = World::new(3, 5, 2)
        .with(1, Habit::BadShare)
        .with(4, Habit::BadShare);
    let AttemptOutcome::Failed(failed) = attempt(&mut world, &[id(1), id(3), id(4)]) else {
        panic!("bad shares made a signature");
    };
    let code = Reject::FinalSignature;
    assert_eq!(named(&failed.faults), [(1, code), (4, code)]);
}

#[test]
fn a_refusal_that_is_final_for_too_many_is_the_answer() {
    let mut world = World::new(2, 3, 1)
        .with(1, Habit::Refuses(Reject::PolicyFee))
        .with(2, Habit::Refuses(Reject::PolicyFee))
        .with(3, Habit::Refuses(Reject::PolicyFee));
    let everybody = world.everybody();
    let (failed, attempts) = drive(&mut world, &everybody);
    let failed = failed.map(|_| ()).unwrap_err();
    assert_eq!(failed.code, Reject::PolicyFee);
    assert_eq!(failed.refusals.len(), 2);
    assert_eq!(attempts.len(), 1, "both were heard out");
}

#[test]
fn one_refusal_is_not_final_while_others_could_sign() {
    for (habit, wanted) in [
        (Habit::Refuses(Reject::PolicyFee), Reject::QuorumUnavailable),
        (Habit::WrongSession, Reject::QuorumUnavailable),
    ] {
        let mut world = World::new(2, 3, 1).with(1, habit);
        // The third is away.
        let two = &world.everybody()[..2];
        let (failed, _) = drive(&mut world, two);
        let failed = failed.map(|_| ()).unwrap_err();
        // Two are there, and one of them has only been asked for what it would not do.
        assert_eq!(failed.code, wanted, "{habit:?}");
        assert_eq!(missing(&failed), ["m-3"]);
    }
}

#[test]
fn a_members_mistake_is_never_the_requests() {
    let mut world = World::new(2, 3, 1)
        .with(1, Habit::WrongSession)
        .with(2, Habit::NotAPoint);
    let everybody = world.everybody();
    let (failed, _) = drive(&mut world, &everybody);
    let failed = failed.map(|_| ()).unwrap_err();
    assert_eq!(failed.code, Reject::SessionFailed);
    assert!(failed.missing.is_empty());
}

#[test]
fn who_is_silent_through_the_patience_is_missing_too() {
    for (silent, habit) in [
        (vec![2, 3], Habit::Silent),
        (vec![2, 3], Habit::SilentAfterPackage),
    ] {
        let mut world = World::new(2, 3, 1);
        for member in silent {
            world = world.with(member, habit);
        }
        let everybody = world.everybody();
        let (failed, attempts) = drive(&mut world, &everybody);
        let failed = failed.map(|_| ()).unwrap_err();
        assert_eq!(failed.code, Reject::QuorumUnavailable, "{habit:?}");
        assert_eq!(missing(&failed), ["m-2", "m-3"]);
        assert!(attempts.len() <= 2, "nobody is waited for twice");
    }
}

fn missing(failed: &RequestFailed) -> Vec<String> {
    let missing = failed.missing.iter();
    missing.map(|member| member.name.to_string()).collect()
}

#[test]
fn what_may_pass_is_tried_again() {
    let mut world = World::new(2, 2, 1).with(2, Habit::RefusesOnce(Reject::Busy));
    let everybody = world.everybody();
    let (signed, attempts) = drive(&mut world, &everybody);
    assert_verifies(&world, &signed.unwrap());
    assert_eq!(attempts.len(), 2);
}

#[test]
fn attempts_have_a_bound() {
    let mut world = World::new(3, 5, 1);
    for number in 1..=5 {
        world = world.with(number, Habit::Refuses(Reject::Busy));
    }
    let everybody = world.everybody();
    let (failed, attempts) = drive(&mut world, &everybody);
    assert_eq!(failed.map(|_| ()).unwrap_err().code, Reject::Busy);
    assert!(attempts.len() <= 5 - 3 + 1 + 2, "{}", attempts.len());
}

#[test]
fn names_those_who_are_missing_for_a_quorum() {
    let mut world = World::new(2, 3, 1);
    let one = [Candidate {
        member: id(2),
        suspect: false,
    }];
    let (failed, attempts) = drive(&mut world, &one);
    let failed = failed.map(|_| ()).unwrap_err();
    assert_eq!(failed.code, Reject::QuorumUnavailable);
    let missing: Vec<_> = failed.missing.iter().map(|m| m.name.to_string()).collect();
    assert_eq!(missing, ["m-1", "m-3"]);
    assert!(attempts.is_empty());
}

#[test]
fn suspects_are_asked_last_and_strangers_never() {
    let world = World::new(2, 3, 1);
    for seed in 0..20 {
        let mut rng =
            <rand_chacha::ChaCha20Rng as rand_chacha::rand_core::SeedableRng>::seed_from_u64(seed);
        let mut candidates = world.everybody();
        candidates[0].suspect = true;
        candidates.push(Candidate {
            member: id(9),
            suspect: false,
        });
        let mut request = Request::new(Arc::clone(&world.terms));
        let Move::Attempt(members, _) = request.choose(&candidates, UnixMillis::new(0), &mut rng)
        else {
            panic!("there are enough members");
        };
        assert_eq!(members, [id(2), id(3)]);
    }
}

#[test]
fn a_stored_answer_is_given_again_without_a_new_signature() {
    for with in [vec![1], vec![2], vec![1, 2]] {
        let mut world = World::new(2, 3, 2);
        for member in &with {
            world = world.with(*member, Habit::HasReceipt);
        }
        let AttemptOutcome::Signed(signed) = attempt(&mut world, &[id(1), id(2)]) else {
            panic!("the stored answer was not taken");
        };
        assert_verifies(&world, &signed);
        assert!(signed.evidence.is_none());
        assert_eq!(signed.receipts.len(), with.len());
        let session = signed.session;
        assert!(
            signed
                .receipts
                .values()
                .all(|receipt| receipt.session == session)
        );
    }
}

#[test]
fn a_receipt_that_does_not_come_does_not_undo_a_signature() {
    let mut world = World::new(2, 3, 1).with(2, Habit::KeepsReceiptBack);
    let AttemptOutcome::Signed(signed) = attempt(&mut world, &[id(1), id(2)]) else {
        panic!("signatures were thrown away");
    };
    assert_verifies(&world, &signed);
    assert_eq!(signed.receipts.keys().copied().collect::<Vec<_>>(), [id(1)]);
    assert_eq!(named(&signed.faults), [(2, Reject::Deadline)]);
}

#[test]
fn where_all_have_completed_another_attempt_the_answer_is_that_attempts() {
    let mut world = World::new(2, 3, 2)
        .with(1, Habit::CompletedElsewhere)
        .with(2, Habit::CompletedElsewhere);
    let AttemptOutcome::Signed(signed) = attempt(&mut world, &[id(1), id(2)]) else {
        panic!("signatures were thrown away");
    };
    assert_verifies(&world, &signed);
    assert_eq!(signed.receipts.len(), 2, "somebody vouches for it");
    let session = signed.session;
    let of_it = |receipt: &Verified<Receipt>| receipt.session == session;
    assert!(signed.receipts.values().all(of_it));
    assert!(signed.evidence.is_none(), "that was another session's");
}

#[test]
fn one_receipt_for_this_attempt_is_enough_whatever_the_others_have() {
    let mut world = World::new(2, 3, 1).with(1, Habit::CompletedElsewhere);
    let AttemptOutcome::Signed(signed) = attempt(&mut world, &[id(1), id(2)]) else {
        panic!("signatures were thrown away");
    };
    assert_eq!(signed.receipts.keys().copied().collect::<Vec<_>>(), [id(2)]);
    assert!(signed.evidence.is_some());
    assert_eq!(named(&signed.faults), [(1, Reject::SessionMismatch)]);
}

#[test]
fn signatures_that_nobody_vouches_for_are_no_answer() {
    let mut world = World::new(2, 3, 1)
        .with(1, Habit::KeepsReceiptBack)
        .with(2, Habit::KeepsReceiptBack);
    let AttemptOutcome::Failed(failed) = attempt(&mut world, &[id(1), id(2)]) else {
        panic!("no requester accepts an answer without a receipt");
    };
    let code = Reject::Deadline;
    assert_eq!(named(&failed.faults), [(1, code), (2, code)]);
}

#[test]
fn only_exactly_t_members_of_the_roster_make_a_session() {
    let mut world = World::new(2, 3, 1);
    for members in [vec![1], vec![1, 2, 3], vec![1, 9], vec![1, 1]] {
        let members: Vec<_> = members.into_iter().map(id).collect();
        let opened = SignAttempt::open(&world.terms, &members, &world.voice, &mut world.rng);
        assert_eq!(opened.map(|_| ()).unwrap_err(), Reject::SessionMembers);
    }
}

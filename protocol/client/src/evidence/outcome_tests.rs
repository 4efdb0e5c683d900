//! What members' statements prove together, and every statement that must not count.

use firn_protocol::{
    ids::{Identifier, IntentDigest, KeyId, Nonce, RequestId, UnixMillis},
    messages::OutcomeStatement,
    reject::Reject,
};

use super::{MOST_SKEW_MS, OutcomeTerms, Proof, Prospect, RequestOutcome, Statements};
use crate::{
    Proposal,
    testing::{
        Knows, World,
        world::{report, request_id},
    },
};

const NONCE: Nonce = Nonce::from_bytes([3; 32]);

fn terms<'a>(world: &'a World, proposal: Option<&'a Proposal>) -> OutcomeTerms<'a> {
    OutcomeTerms {
        sharing: world.key.sharing(),
        request_id: request_id(),
        nonce: NONCE,
        signable: proposal.map(Proposal::signable),
        granted_until: None,
    }
}

fn judged(world: &World, proposal: &Proposal, says: &[(u16, Knows)]) -> RequestOutcome {
    let statements = says.iter().map(|(member, knows)| {
        world.statement(*member, NONCE, *knows, proposal.digest(), &[], |_| {})
    });
    let mut collected = Statements::new(terms(world, Some(proposal)));
    collected.add(&report(statements.collect()));
    collected.judge()
}

#[test]
fn it_takes_as_many_statements_as_signers_to_say_that_nothing_is_signed() {
    use Knows::{Nothing, Open, Released};
    type Case<'a> = (u16, u16, &'a [(u16, Knows)], &'static str);
    let cases: &[Case<'_>] = &[
        (3, 2, &[], "undetermined"),
        (3, 2, &[(1, Nothing)], "undetermined"),
        (3, 2, &[(1, Nothing), (3, Open(0))], "not_signed"),
        (3, 2, &[(1, Nothing), (1, Nothing)], "undetermined"),
        (3, 2, &[(1, Released)], "released"),
        (3, 2, &[(1, Released), (2, Open(1))], "released"),
        (
            3,
            2,
            &[(1, Released), (2, Open(0)), (3, Nothing)],
            "not_signed",
        ),
        (
            3,
            2,
            &[(1, Released), (2, Released), (3, Nothing)],
            "released",
        ),
        (
            5,
            4,
            &[(1, Nothing), (2, Nothing), (3, Nothing)],
            "undetermined",
        ),
        (
            5,
            4,
            &[(1, Nothing), (2, Nothing), (3, Nothing), (5, Nothing)],
            "not_signed",
        ),
        // The later word of a member that has gone on counts, not the earlier one as well.
        (
            3,
            2,
            &[(1, Nothing), (1, Released), (2, Nothing)],
            "released",
        ),
    ];
    for (n, t, says, expected) in cases {
        let world = World::new(*n, *t);
        let proposal = world.proposal();
        let outcome = judged(&world, &proposal, says);
        assert_eq!(outcome.code(), *expected, "{t} of {n}: {says:?}");
    }
}

#[test]
fn a_statement_that_is_not_what_was_asked_for_does_not_count() {
    let world = World::new(3, 2);
    let proposal = world.proposal();
    type Change = fn(&mut OutcomeStatement);
    let changes: [(Reject, Change); 5] = [
        (Reject::UnexpectedMessage, |word| {
            word.nonce = Nonce::from_bytes([4; 32])
        }),
        (Reject::UnexpectedMessage, |word| {
            word.request_id = RequestId::from_bytes([4; 32])
        }),
        (Reject::UnexpectedMessage, |word| {
            word.key_id = KeyId::from_bytes([4; 32])
        }),
        (Reject::NotAMember, |word| {
            word.member = Identifier::new(3).unwrap()
        }),
        (Reject::UnknownSigner, |word| {
            word.checkpoint = firn_protocol::envelope::Envelope::sign(
                &firn_protocol::documents::Checkpoint {
                    size: firn_protocol::merkle::TreeSize::new(1),
                    root: firn_protocol::merkle::MerkleRoot::empty(),
                    time: UnixMillis::new(1),
                },
                &crate::testing::world::member_secret(3),
            )
            .unwrap();
        }),
    ];
    let good = || world.statement(1, NONCE, Knows::Nothing, proposal.digest(), &[], |_| {});
    for (code, change) in changes {
        let bad = world.statement(2, NONCE, Knows::Nothing, proposal.digest(), &[], change);
        let mut collected = Statements::new(terms(&world, None));
        collected.add(&report(vec![good(), bad]));
        let RequestOutcome::Undetermined(undetermined) = collected.judge() else {
            panic!("{code}: it counted");
        };
        assert_eq!(undetermined.ignored, [code]);
    }
    // A stranger's.
    let stranger = world.statement(9, NONCE, Knows::Nothing, proposal.digest(), &[], |_| {});
    let mut collected = Statements::new(terms(&world, None));
    collected.add(&report(vec![good(), stranger]));
    assert_eq!(collected.judge().code(), "undetermined");
}

#[test]
fn signatures_that_do_not_verify_are_no_outcome() {
    let world = World::new(3, 2);
    let (proposal, other) = (world.proposal(), world.psbt(71_000));
    let other = Proposal::payment(&world.caller(), &world.key, &other).unwrap();
    let of_other = world.signatures(other.signable());
    let lie = world.statement(
        1,
        NONCE,
        Knows::Completed,
        proposal.digest(),
        &of_other,
        |_| {},
    );
    let mut collected = Statements::new(terms(&world, Some(&proposal)));
    collected.add(&report(vec![lie.clone()]));
    assert_eq!(collected.judge().code(), "released");
    let signatures = world.signatures(proposal.signable());
    let good = world.statement(
        2,
        NONCE,
        Knows::Completed,
        proposal.digest(),
        &signatures,
        |_| {},
    );
    collected.add(&report(vec![lie, good]));
    let RequestOutcome::Signed(signed) = collected.judge() else {
        panic!("not_signed");
    };
    assert_eq!((signed.signatures, signed.receipts.len()), (signatures, 1));
}

#[test]
fn without_the_intent_receipts_count_by_their_number() {
    let world = World::new(7, 5);
    let proposal = world.proposal();
    let signatures = world.signatures(proposal.signable());
    for (members, proof) in [(1, Proof::Claim), (2, Proof::Claim), (3, Proof::Members)] {
        let words = (1..=members).map(|member| {
            world.statement(
                member,
                NONCE,
                Knows::Completed,
                proposal.digest(),
                &signatures,
                |_| {},
            )
        });
        let mut collected = Statements::new(terms(&world, None));
        collected.add(&report(words.collect()));
        let RequestOutcome::Signed(signed) = collected.judge() else {
            panic!("not_signed");
        };
        assert_eq!(signed.proof, proof, "{members} receipts");
    }
}

#[test]
fn another_intent_under_the_same_id_is_a_conflict() {
    let world = World::new(3, 2);
    let proposal = world.proposal();
    let other = IntentDigest::from_bytes([1; 32]);
    let words = [
        world.statement(1, NONCE, Knows::Open(0), other, &[], |_| {}),
        world.statement(2, NONCE, Knows::Nothing, other, &[], |_| {}),
    ];
    let mut collected = Statements::new(terms(&world, Some(&proposal)));
    collected.add(&report(words.to_vec()));
    assert_eq!(collected.judge().code(), "conflicting");
    let mut collected = Statements::new(terms(&world, None));
    collected.add(&report(words.to_vec()));
    assert_eq!(collected.judge().code(), "not_signed");
}

#[test]
fn it_is_over_when_the_grants_have_ended_on_the_clocks_of_enough_members() {
    let world = World::new(3, 2);
    let proposal = world.proposal();
    let end = UnixMillis::new(5_000_000);
    let late = end.plus(MOST_SKEW_MS);
    let early = UnixMillis::new(late.value() - 1);
    for (times, expected) in [
        ([late, late], Prospect::Over),
        ([late, early], Prospect::WhileGranted),
        ([early, early], Prospect::WhileGranted),
    ] {
        let words = (1..).zip(times).map(|(member, time)| {
            world.statement(
                member,
                NONCE,
                Knows::Open(0),
                proposal.digest(),
                &[],
                |word| {
                    word.time = time;
                },
            )
        });
        let mut collected = Statements::new(OutcomeTerms {
            granted_until: Some(end),
            ..terms(&world, None)
        });
        collected.add(&report(words.collect()));
        let RequestOutcome::NotSigned(not_signed) = collected.judge() else {
            panic!("signed");
        };
        assert_eq!(not_signed.prospect, expected);
    }
}

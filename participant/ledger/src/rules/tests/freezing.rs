//! A participant that is an old copy, or runs twice.

use super::*;

fn frozen() -> Command {
    Command::Freeze(Frozen {
        witnessed: checkpoint(99),
    })
}

#[test]
fn a_frozen_participant_lets_nothing_out_in_any_run_and_still_learns() {
    let mut ledger = Ledger::active();
    ledger.ask(open(20)).unwrap();
    ledger.ask(open(21)).unwrap();
    ledger.ask(release(21)).unwrap();
    assert_eq!(ledger.ask(frozen()), Ok(Answer::Written));
    assert_eq!(ledger.written(), ["Frozen"]);
    assert_eq!(ledger.ask(frozen()), Ok(Answer::Written));
    assert!(ledger.written().is_empty(), "once");
    for _ in 0..2 {
        for command in [
            open(30),
            release(20),
            Command::Pend(pending()),
            Command::OpenAttempt(AttemptOpened {
                attempt: SessionId::from_bytes([31; 32]),
                plan: PLAN,
                coordinator: coordinator(),
            }),
            Command::OpenProof(ProofOpened {
                session: SessionId::from_bytes([32; 32]),
                key_id: KEY,
                share_version: ShareVersion::new(1),
                attempt: ATTEMPT,
                coordinator: coordinator(),
                members: List::new(vec![member(1), member(2)]).unwrap(),
            }),
            Command::Send {
                attempt: ATTEMPT,
                step: CeremonyStep::Round1,
                digest: MessageDigest::from_bytes([0; 32]),
            },
        ] {
            assert_eq!(
                ledger.ask(command.clone()),
                Err(Reject::Frozen),
                "{command:?}"
            );
        }
        if ledger.view().run().unwrap() == 1 {
            let completed = Completed {
                session: SessionId::from_bytes([21; 32]),
                receipt: receipt(21),
            };
            assert_eq!(
                ledger.ask(Command::Complete(completed)),
                Ok(Answer::Written)
            );
        }
        let epoch = ledger.epoch() + 1;
        let raise = Command::RaiseEpoch {
            key_id: KEY,
            epoch: Epoch::new(epoch),
            owner: owner("b"),
        };
        ledger.ask(raise).unwrap();
        assert_eq!(ledger.epoch(), epoch);
        ledger.start();
    }
    assert!(ledger.view().frozen().unwrap().is_some());
}

#[test]
fn nobody_is_frozen_by_a_head_that_it_never_signed() {
    let mut ledger = Ledger::active();
    let stranger = IdentitySecret::from_seed(&Zeroizing::new([8; 32]));
    let head = Checkpoint {
        size: TreeSize::new(99),
        root: MerkleRoot::from_bytes([1; 32]),
        time: UnixMillis::new(1),
    };
    let forged = Command::Freeze(Frozen {
        witnessed: Envelope::sign(&head, &stranger).unwrap(),
    });
    assert_eq!(ledger.ask(forged), Err(Reject::BadSignature));
    assert_eq!(ledger.view().frozen(), Ok(None));
    assert_eq!(ledger.ask(open(20)), Ok(Answer::Written));
}

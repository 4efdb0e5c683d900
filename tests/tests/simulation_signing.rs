//! Signing in the simulation, with every failure of a machine that the product promises to stand.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test states what it expects"
)]

use firn_ledger::rules::SessionStage;
use firn_protocol::{
    messages::{RequestFailed, RequestSigned, ShareStage},
    reject::Reject,
};
use firn_tests::simulation::{
    Client, Disk, Ended, FIRST_EPOCH, Fault, Fixture, MEMBERS, Order, Persistence, REQUESTERS,
    Requester, Setting, Simulation, Verdict, seeds,
};

const DISKS: [Disk; 2] = [Disk::Synced, Disk::Written];
const DAY_MS: i64 = 86_400_000;

/// A run with one payment, asked for until it is decided.
fn payment(setting: Setting) -> Simulation {
    asked(setting, Persistence::UntilDecided)
}

fn asked(setting: Setting, persistence: Persistence) -> Simulation {
    let key = Fixture::key();
    let mut run = key.simulate(setting);
    let requester = Requester::new(key.payment(1, 60_000), 0, persistence);
    run.add(Client::Requester(Box::new(requester)));
    run
}

fn signed(run: &Simulation) -> &RequestSigned {
    match run.requester(0).verdict() {
        Some(Verdict::Signed(signed)) => signed,
        other => run.fail(&format!("not signed: {other:?}")),
    }
}

fn not_signed(run: &Simulation) -> &RequestFailed {
    match run.requester(0).verdict() {
        Some(Verdict::TryAgain(failed)) => failed,
        other => run.fail(&format!("not a failure that passes: {other:?}")),
    }
}

/// Two orders, so that what waits together is also tried the other way round.
fn orders() -> Vec<(u64, Order)> {
    vec![(1, Order::InTurn), (2, Order::Shuffled)]
}

/// How many steps a run has in which nothing goes wrong.
fn length((seed, order): (u64, Order)) -> u64 {
    let mut run = payment(Setting::quiet(seed).in_order(order));
    run.run();
    run.steps()
}

#[test]
fn a_quiet_run_signs_in_one_attempt() {
    let mut run = asked(Setting::quiet(1), Persistence::Once);
    run.run();
    signed(&run);
    assert_eq!(run.attempts.len(), 1);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let digest = |seed, order| {
        let mut run = payment(Setting::quiet(seed).in_order(order));
        run.run();
        run.trace_digest()
    };
    let hostile = Order::Hostile {
        steps: 400,
        faults: 8,
    };
    for order in [Order::InTurn, Order::Shuffled, hostile] {
        assert_eq!(digest(7, order), digest(7, order), "{order:?}");
        assert_ne!(digest(7, order), digest(8, order), "{order:?}");
    }
}

#[test]
fn with_one_of_three_down_the_first_answer_is_the_signature() {
    for (seed, order) in orders() {
        for member in 0..MEMBERS.len() {
            let setting = Setting::quiet(seed).in_order(order);
            let mut run = asked(setting.with(0, Fault::SwitchOff(member)), Persistence::Once);
            run.run();
            signed(&run);
        }
    }
}

#[test]
fn a_member_that_dies_between_commitments_and_share_costs_one_attempt() {
    for (seed, order) in orders() {
        let mut run = asked(Setting::quiet(seed).in_order(order), Persistence::Once);
        run.run_until(|run| run.said.iter().any(|(_, word)| *word == "commitments"));
        let (member, _) = *run.said.last().unwrap();
        run.strike(Fault::SwitchOff(member));
        run.run();
        signed(&run);
        assert_eq!(run.attempts.len(), 2);
    }
}

#[test]
fn with_two_down_the_answer_names_them() {
    for up in 0..MEMBERS.len() {
        let down: Vec<_> = (0..MEMBERS.len()).filter(|member| *member != up).collect();
        let mut setting = Setting::quiet(3);
        for member in &down {
            setting = setting.with(0, Fault::SwitchOff(*member));
        }
        let mut run = asked(setting, Persistence::Once);
        run.run();
        let failed = not_signed(&run);
        assert_eq!(failed.code, Reject::QuorumUnavailable);
        let missing: Vec<_> = failed
            .missing
            .iter()
            .map(|one| one.name.to_string())
            .collect();
        let names: Vec<_> = down.iter().map(|member| MEMBERS[*member].name()).collect();
        assert_eq!(missing, names);
    }
}

#[test]
fn a_coordinator_killed_at_any_step_costs_nothing_but_time() {
    for order in orders() {
        for step in 0..length(order) {
            let faults = [true, false].map(|arrives| Fault::CrashCoordinator {
                coordinator: 0,
                arrives,
            });
            for fault in faults.into_iter().chain([Fault::StopCoordinator(0)]) {
                let setting = Setting::quiet(order.0).in_order(order.1);
                let mut run = payment(setting.with(step, fault));
                run.run();
                signed(&run);
            }
        }
    }
}

/// What a member knows of itself, for comparing over a crash.
fn assert_is_back(run: &Simulation, member: usize) {
    let key = Fixture::key();
    let key_id = key.sharing.certified().key_id();
    assert!(run.serves(member), "member {member} serves");
    run.look(member, |view| {
        assert_eq!(view.key(key_id).unwrap().unwrap().stage, ShareStage::Active);
        let epoch = view.epoch(key_id).unwrap().unwrap();
        assert_eq!(epoch.epoch, FIRST_EPOCH);
        // Sessions of an earlier run of the process are dead whatever their stage says.
        for session in &run.attempts {
            if let Some(state) = view.session(*session).unwrap()
                && state.stage == SessionStage::Open
            {
                assert!(state.run < view.run().unwrap() || run.steps() > 0);
            }
        }
    });
}

#[test]
fn a_member_killed_at_any_step_comes_back_by_itself_and_the_request_is_signed() {
    for order in orders() {
        for step in 0..length(order) {
            for member in 0..MEMBERS.len() {
                for disk in DISKS {
                    let setting = Setting::quiet(order.0).in_order(order.1);
                    let fault = Fault::CrashMember {
                        member,
                        disk,
                        arrives: step.is_multiple_of(2),
                    };
                    let mut run = payment(setting.with(step, fault));
                    run.run();
                    signed(&run);
                    run.run_until(|run| (0..MEMBERS.len()).all(|member| run.serves(member)));
                    assert_is_back(&run, member);
                }
            }
        }
    }
}

#[test]
fn every_member_killed_at_once_at_any_step_comes_back_and_the_request_is_signed() {
    for order in orders() {
        for step in 0..length(order) {
            let mut setting = Setting::quiet(order.0).in_order(order.1);
            for member in 0..MEMBERS.len() {
                let fault = Fault::CrashMember {
                    member,
                    disk: DISKS[(usize::try_from(step).unwrap() + member) % 2],
                    arrives: step.is_multiple_of(2),
                };
                setting = setting.with(step, fault);
            }
            let mut run = payment(setting);
            run.run();
            signed(&run);
        }
    }
}

#[test]
fn a_disk_that_fails_at_any_step_ends_the_process_and_loses_nothing() {
    for member in 0..MEMBERS.len() {
        let mut failed = 0;
        for step in 0.. {
            let mut run = payment(Setting::quiet(4).with(0, Fault::FailDisk(member, step)));
            run.run();
            signed(&run);
            if !run.ended.contains(&(member, Ended::Disk)) {
                break;
            }
            failed += 1;
            run.run_until(|run| (0..MEMBERS.len()).all(|member| run.serves(member)));
            assert_is_back(&run, member);
        }
        // Each command is a write and a sync; a member that is not in the quorum writes nothing.
        assert!(
            failed == 0 || failed >= 6,
            "{failed} steps of member {member} failed"
        );
    }
}

#[test]
fn a_disk_that_stays_full_keeps_one_member_out_until_there_is_room() {
    for order in orders() {
        for step in 0..length(order) {
            let member = usize::try_from(step).unwrap() % MEMBERS.len();
            let setting = Setting::quiet(order.0).in_order(order.1);
            let mut run = payment(setting.with(step, Fault::FillDisk(member)));
            run.run();
            signed(&run);
            run.strike(Fault::EmptyDisk(member));
            run.run_until(|run| (0..MEMBERS.len()).all(|member| run.serves(member)));
            assert_is_back(&run, member);
        }
    }
}

#[test]
fn a_lost_answer_is_had_again_from_what_the_members_have_stored() {
    for (seed, order) in orders() {
        let setting = Setting::quiet(seed).in_order(order);
        let mut run = payment(setting.with(0, Fault::LoseAnswer));
        run.run();
        let first = *run.attempts.first().unwrap();
        assert_eq!(run.attempts.len(), 1, "nothing is signed again");
        assert!(run.requester(0).recovered);
        assert_eq!(signed(&run).session, first);
        assert_eq!(signed(&run).receipts.len(), 2);
    }
}

#[test]
fn a_stream_lost_or_an_opening_repeated_at_any_step_changes_nothing() {
    for order in orders() {
        for step in 0..length(order) {
            // The streams under way take turns.
            let pick = usize::try_from(step).unwrap();
            for fault in [Fault::ResetStream(pick), Fault::Duplicate(pick)] {
                let setting = Setting::quiet(order.0).in_order(order.1);
                let mut run = payment(setting.with(step, fault));
                run.run();
                signed(&run);
            }
        }
    }
}

#[test]
fn members_cut_off_from_one_coordinator_sign_through_the_other() {
    for order in orders() {
        for step in 0..length(order) {
            let mut setting = Setting::quiet(order.0).in_order(order.1);
            for member in 0..MEMBERS.len() {
                setting = setting.with(step, Fault::Cut(0, member));
            }
            let mut run = payment(setting);
            run.run();
            signed(&run);
        }
    }
}

#[test]
fn one_clock_that_is_off_by_a_day_at_any_step_stops_nothing() {
    for order in orders() {
        for step in 0..length(order) {
            for off in [-DAY_MS, DAY_MS] {
                let member = usize::try_from(step).unwrap() % MEMBERS.len();
                let setting = Setting::quiet(order.0).in_order(order.1);
                let mut run = payment(setting.with(step, Fault::Clock(member, off)));
                run.run();
                signed(&run);
            }
        }
    }
}

#[test]
fn clocks_that_went_back_refuse_until_they_are_right_again() {
    for step in 0..length((1, Order::InTurn)) {
        let mut setting = Setting::quiet(1);
        for member in 0..MEMBERS.len() {
            setting = setting.with(step, Fault::Clock(member, -DAY_MS));
        }
        let mut run = asked(setting, Persistence::Once);
        run.run();
        if !matches!(run.requester(0).verdict(), Some(Verdict::Signed(_))) {
            not_signed(&run);
            assert!(
                run.said.iter().any(|(_, word)| *word == "clock_rewound"
                    || *word == "clock_skew"
                    || *word == "grant_not_yet_valid"),
                "{:?}",
                run.said
            );
        }
        run.heal();
        let key = Fixture::key();
        let again = Requester::new(key.payment(1, 60_000), 1, Persistence::UntilDecided);
        run.add(Client::Requester(Box::new(again)));
        run.run();
        assert!(matches!(
            run.requester(1).verdict(),
            Some(Verdict::Signed(_))
        ));
    }
}

#[test]
fn two_intents_under_one_request_id_have_at_most_one_effect() {
    for seed in seeds(60) {
        let key = Fixture::key();
        let mut run = key.simulate(Setting::quiet(seed).in_order(Order::Shuffled));
        for (through, sats) in [(0, 60_000), (1, 61_000)] {
            let wanted = key.payment(1, sats);
            let requester = Requester::new(wanted, through, Persistence::UntilDecided);
            run.add(Client::Requester(Box::new(requester)));
        }
        run.run();
        let signed = [0, 1]
            .map(|client| matches!(run.requester(client).verdict(), Some(Verdict::Signed(_))));
        assert_ne!(signed, [true, true]);
    }
}

#[test]
fn a_new_owner_fences_the_old_one_and_takes_its_request_over() {
    for seed in seeds(60) {
        let key = Fixture::key();
        let mut run = key.simulate(Setting::quiet(seed).in_order(Order::Shuffled));
        let old = key.payment(1, 60_000);
        let new = old
            .clone()
            .by(REQUESTERS[1], firn_protocol::ids::Epoch::new(6));
        for (through, wanted) in [(0, old), (1, new)] {
            let requester = Requester::new(wanted, through, Persistence::UntilDecided);
            run.add(Client::Requester(Box::new(requester)));
        }
        run.run();
        match run.requester(0).verdict() {
            Some(Verdict::Signed(_)) => {}
            Some(Verdict::No(Reject::StaleEpoch | Reject::EpochOwnerConflict)) => {}
            other => run.fail(&format!("{other:?}")),
        }
        let taken = matches!(run.requester(1).verdict(), Some(Verdict::Signed(_)));
        assert!(taken, "{:?}", run.requester(1).verdict());
    }
}

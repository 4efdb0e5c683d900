//! Nobody has to guess: whatever crashes, and whenever, whoever asks learns in the end whether the
//! payment was made, by asking again, and it is always the same payment.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test states what it expects"
)]

use firn_tests::simulation::{
    Client, Disk, Fault, Fixture, MEMBERS, Order, Persistence, Requester, Setting, Simulation,
    Verdict, seeds,
};

fn payment(setting: Setting) -> Simulation {
    let key = Fixture::key();
    let mut run = key.simulate(setting);
    let requester = Requester::new(key.payment(1, 60_000), 0, Persistence::UntilDecided);
    run.add(Client::Requester(Box::new(requester)));
    run
}

/// The requester knows; and whoever asks once more, through another coordinator, is told the same.
fn assert_decided(mut run: Simulation) {
    run.run();
    match run.requester(0).verdict() {
        // A rule of the simulation has verified the signatures, and that they are of the one intent.
        Some(Verdict::Signed(_)) => {}
        other => run.fail(&format!("an operator has to decide: {other:?}")),
    }
    run.heal();
    let key = Fixture::key();
    let again = Requester::new(key.payment(1, 60_000), 1, Persistence::UntilDecided);
    run.add(Client::Requester(Box::new(again)));
    run.run();
    match run.requester(1).verdict() {
        Some(Verdict::Signed(_)) => {}
        other => run.fail(&format!("asked again: {other:?}")),
    }
}

/// Every fault of one machine that a step can have.
fn single_faults() -> Vec<Vec<Fault>> {
    let mut faults = Vec::new();
    for arrives in [true, false] {
        for member in 0..MEMBERS.len() {
            for disk in [Disk::Synced, Disk::Written] {
                faults.push(vec![Fault::CrashMember {
                    member,
                    disk,
                    arrives,
                }]);
            }
        }
        faults.push(vec![Fault::CrashCoordinator {
            coordinator: 0,
            arrives,
        }]);
    }
    faults
}

fn single(order: (u64, Order)) {
    let mut quiet = payment(Setting::quiet(order.0).in_order(order.1));
    quiet.run();
    for step in 0..quiet.steps() {
        for faults in single_faults() {
            let mut setting = Setting::quiet(order.0).in_order(order.1);
            for fault in faults {
                setting = setting.with(step, fault);
            }
            assert_decided(payment(setting));
        }
    }
}

#[test]
fn no_run_with_a_crash_at_any_step_needs_an_operator() {
    single((1, Order::InTurn));
}

#[test]
fn no_run_with_a_crash_at_any_step_needs_an_operator_in_another_order() {
    single((2, Order::Shuffled));
}

#[test]
fn no_run_with_crashes_at_every_step_needs_an_operator() {
    for seed in seeds(400) {
        let order = Order::Hostile {
            steps: 400,
            faults: 3 + u32::try_from(seed % 14).unwrap(),
        };
        assert_decided(payment(Setting::quiet(seed).in_order(order)));
    }
}

/// Something crashes before each of many steps in a row.
#[test]
fn no_run_in_which_something_crashes_again_and_again_needs_an_operator() {
    for seed in seeds(60) {
        let mut setting = Setting::quiet(seed).in_order(Order::Shuffled);
        for (number, step) in (0..300)
            .step_by(usize::try_from(5 + seed % 20).unwrap())
            .enumerate()
        {
            let fault = match number % 4 {
                3 => Fault::CrashCoordinator {
                    coordinator: 0,
                    arrives: seed.is_multiple_of(2),
                },
                member => Fault::CrashMember {
                    member,
                    disk: Disk::Synced,
                    arrives: seed.is_multiple_of(3),
                },
            };
            setting = setting.with(step, fault);
        }
        assert_decided(payment(setting));
    }
}

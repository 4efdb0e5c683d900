//! A ceremony in the simulation: wherever a machine dies, it ends with a key that every member uses, or
//! with none that anybody uses and the same plan run again.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test states what it expects"
)]

use std::sync::{Arc, LazyLock};

use firn_ledger::journal::MemorySegments;
use firn_protocol::{messages::ShareStage, sharing::ActiveSharing};
use firn_tests::simulation::{
    Client, Disk, Domain, Fault, MEMBERS, Operators, Order, Persistence, Requester, Setting,
    Simulation, Verdict, Wanted, fresh_folders, seeds,
};
use tempfile::TempDir;

static DOMAIN: LazyLock<Arc<Domain>> = LazyLock::new(|| Arc::new(Domain::new()));

/// A run that makes a key, on disks of its own.
struct Ceremony {
    run: Simulation,
    _folders: TempDir,
}

fn ceremony(setting: Setting, patient: bool) -> Ceremony {
    let (root, folders) = fresh_folders(&DOMAIN);
    let mut run = Simulation::new(
        setting,
        Arc::clone(&DOMAIN),
        &folders,
        vec![MemorySegments::default(); MEMBERS.len()],
        0,
    );
    run.boot();
    let operators = Operators::new(Arc::clone(&DOMAIN), 0, patient);
    run.add(Client::Operators(Box::new(operators)));
    Ceremony {
        run,
        _folders: root,
    }
}

fn length() -> u64 {
    let mut quiet = ceremony(Setting::quiet(1), false);
    quiet.run.run();
    assert!(quiet.run.operators(0).active().is_some());
    quiet.run.steps()
}

/// How far each member's share is; none where there is none.
fn stages(run: &mut Simulation) -> Vec<Option<ShareStage>> {
    run.heal();
    run.run_until(|run| (0..MEMBERS.len()).all(|member| run.serves(member)));
    let stage = |member| {
        run.look(member, |view| {
            view.keys().unwrap().first().map(|(_, key)| key.stage)
        })
    };
    (0..MEMBERS.len()).map(stage).collect()
}

/// Patient operators end with a key that signs, whatever happened on the way.
fn assert_makes_a_key(setting: Setting) {
    let Ceremony { mut run, _folders } = ceremony(setting, true);
    run.run();
    let Some(sharing) = run.operators(0).active() else {
        run.fail(&format!("no key: {:?}", run.operators(0).faults));
    };
    let stages = stages(&mut run);
    assert_eq!(stages, vec![Some(ShareStage::Active); MEMBERS.len()]);
    assert_signs(run, sharing);
}

fn assert_signs(mut run: Simulation, sharing: ActiveSharing) {
    let wanted = Wanted::payment(&Arc::new(sharing), 1, 60_000);
    let requester = Requester::new(wanted, 0, Persistence::UntilDecided);
    run.add(Client::Requester(Box::new(requester)));
    run.run();
    let verdict = run.requester(1).verdict();
    assert!(matches!(verdict, Some(Verdict::Signed(_))), "{verdict:?}");
}

/// What a step's number decides, so that all variants come up among the steps.
fn crash_of(member: usize, step: u64) -> Fault {
    Fault::CrashMember {
        member,
        disk: [Disk::Synced, Disk::Written][usize::try_from(step / 2 % 2).unwrap()],
        arrives: step.is_multiple_of(2),
    }
}

/// Every step, or every `stride`-th of them unless a campaign asks for more (`FIRN_SIM_TIMES`).
fn steps(stride: usize) -> impl Iterator<Item = u64> {
    let stride = if seeds(1).len() > 1 { 1 } else { stride };
    (0..length()).step_by(stride)
}

fn member_crashes(member: usize, stride: usize) {
    for step in steps(stride) {
        let setting = Setting::quiet(1).with(step, crash_of(member, step));
        assert_makes_a_key(setting);
    }
}

#[test]
fn a_ceremony_in_which_member_1_is_killed_at_any_step_makes_a_key_in_the_end() {
    member_crashes(0, 1);
}

#[test]
fn a_ceremony_in_which_member_2_is_killed_makes_a_key_in_the_end() {
    member_crashes(1, 3);
}

#[test]
fn a_ceremony_in_which_member_3_is_killed_makes_a_key_in_the_end() {
    member_crashes(2, 3);
}

#[test]
fn a_ceremony_whose_coordinator_is_killed_at_any_step_makes_a_key_in_the_end() {
    for step in 0..length() {
        let fault = Fault::CrashCoordinator {
            coordinator: 0,
            arrives: step.is_multiple_of(2),
        };
        assert_makes_a_key(Setting::quiet(1).with(step, fault));
    }
}

#[test]
fn a_ceremony_that_failed_leaves_no_usable_key_and_can_be_repeated() {
    for step in steps(2) {
        let member = usize::try_from(step / 2).unwrap() % MEMBERS.len();
        let setting = Setting::quiet(1).with(step, crash_of(member, step));
        let Ceremony { mut run, _folders } = ceremony(setting, false);
        run.run();
        if run.operators(0).certified().is_none() {
            let stages = stages(&mut run);
            assert!(
                stages
                    .iter()
                    .all(|stage| *stage != Some(ShareStage::Active)),
                "{stages:?}"
            );
        }
    }
}

#[test]
fn a_disk_that_fails_at_any_step_of_a_ceremony_costs_an_attempt_and_no_more() {
    for step in 0.. {
        let member = usize::try_from(step).unwrap() % MEMBERS.len();
        let setting = Setting::quiet(1).with(0, Fault::FailDisk(member, step));
        let mut ceremony = ceremony(setting.clone(), true);
        ceremony.run.run();
        if ceremony.run.ended.is_empty() {
            assert!(step > 20, "only {step} steps of the disk");
            break;
        }
        assert_makes_a_key(setting);
    }
}

#[test]
fn ceremonies_among_crashes_make_a_key_in_the_end() {
    for seed in seeds(10) {
        let order = Order::Hostile {
            steps: 600,
            faults: 3 + u32::try_from(seed % 8).unwrap(),
        };
        assert_makes_a_key(Setting::quiet(seed).in_order(order));
    }
}

//! `firn demo` as a stranger runs it: real processes, one JSON object, and transactions that other
//! people's implementations accept.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests"
)]

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use firn_ceremony::DemoReport;
use firn_tests::{
    binaries::binaries,
    cluster::{independent, process::command_name},
};

/// How many children of each branch the demo may use.
const CHILDREN: u32 = 10;

#[test]
fn a_demo_of_2_of_3_holds_for_people_who_trust_none_of_it() {
    hold(3, 2);
}

#[test]
fn a_demo_of_3_of_5_holds_for_people_who_trust_none_of_it() {
    hold(5, 3);
}

#[test]
fn a_demo_of_5_of_7_holds_for_people_who_trust_none_of_it() {
    hold(7, 5);
}

/// Runs the demo once and looks at everything that it leaves.
fn hold(participants: usize, threshold: usize) {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("demo");
    let (object, seen) = run(participants, threshold, &dir);
    let dir = dir.canonicalize().unwrap();
    let report: DemoReport = serde_json::from_value(object.clone()).unwrap();
    every_field_is_there(&object);

    // Processes: distinct, children of the demo while it ran, and gone afterwards.
    let pids: BTreeSet<u32> = report.participant_pids.iter().copied().collect();
    assert_eq!(pids.len(), participants, "{:?}", report.participant_pids);
    for pid in &pids {
        assert!(seen.contains(pid), "nobody has seen process {pid} run");
    }
    assert!(seen.contains(&report.coordinator_pid) && !pids.contains(&report.coordinator_pid));
    for pid in pids.iter().chain([&report.coordinator_pid]) {
        let name = command_name(*pid).unwrap_or_default();
        assert!(
            !name.starts_with("firn-"),
            "process {pid} outlives the demo"
        );
    }

    // Transactions: signed by t members, two own inputs and change, valid for others than Firn.
    let [receiving, change] = independent::scripts(&report.descriptor, CHILDREN);
    let address = bitcoin::Address::from_script(
        bitcoin::Script::from_bytes(&receiving[0]),
        bitcoin::Network::Regtest,
    );
    assert_eq!(address.unwrap().to_string(), report.address);
    assert_eq!(report.transactions.len(), 2);
    let mut txids = BTreeSet::new();
    for signed in &report.transactions {
        let bytes = hex::decode(&signed.tx).unwrap();
        let spent: Vec<_> = signed
            .prevouts
            .iter()
            .map(|prevout| (prevout.value, hex::decode(&prevout.script).unwrap()))
            .collect();
        let transaction = independent::verify(&bytes, &spent).unwrap();
        assert_eq!(transaction.compute_txid().to_string(), signed.txid);
        assert!(txids.insert(signed.txid.clone()));
        assert_eq!(spent.len(), 2);
        for (_, script) in &spent {
            assert!(receiving.contains(script), "not an address of the key");
        }
        let outputs = transaction.output.iter();
        let own = outputs.filter(|output| change.contains(&output.script_pubkey.to_bytes()));
        assert_eq!(own.count(), 1, "exactly one change output");
        let signers: BTreeSet<_> = signed.signers.iter().collect();
        assert_eq!(signers.len(), threshold);
        for text in [&signed.request_id, &signed.session_id] {
            assert_eq!(hex::decode(text).unwrap().len(), 32);
        }
        refuses_a_changed_amount(&bytes, &spent);
    }
    // The victim of the second transaction signed the first.
    let [first, second] = &report.transactions[..] else {
        unreachable!("counted above")
    };
    assert_ne!(first.request_id, second.request_id);
    let signers = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
    assert_ne!(signers(&first.signers), signers(&second.signers));

    // What it leaves.
    assert!(report.verdicts.iter().all(|verdict| verdict.holds));
    assert!(report.authorities.is_file() && report.evidence.is_dir());
    assert_eq!(report.participant_dirs.len(), participants);
    for folder in &report.participant_dirs {
        assert!(folder.starts_with(&dir), "{}", folder.display());
        check_ledger(folder);
    }
    refuses_the_folder_again(&dir);
}

/// Runs the demo; its object, and the processes that were seen to run as its children.
fn run(participants: usize, threshold: usize, dir: &Path) -> (serde_json::Value, BTreeSet<u32>) {
    let mut demo = Command::new(&binaries().firn)
        .args(["demo", "--json", "--no-build"])
        .args(["--participants", &participants.to_string()])
        .args(["--threshold", &threshold.to_string()])
        .arg("--dir")
        .arg(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = BTreeSet::new();
    let mut told = String::new();
    // Each process is looked at when the demo tells of it, which is before any of them is stopped.
    for line in BufReader::new(demo.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [.., "process", pid] = words[..]
            && let Ok(pid) = pid.parse()
            && is_child_of(pid, demo.id())
        {
            seen.insert(pid);
        }
        told.push_str(&line);
        told.push('\n');
    }
    // The object is small: it fits the pipe, so that nobody waits.
    let mut said = String::new();
    demo.stdout
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(demo.wait().unwrap().code(), Some(0), "{told}");
    // Exactly one object, and nothing after it.
    let object = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    (object, seen)
}

/// Whether it is one of Firn's daemons, and started by `parent`. Anybody may read this.
fn is_child_of(pid: u32, parent: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some((head, rest)) = stat.rsplit_once(')') else {
        return false;
    };
    // The state comes first, then the parent.
    let found = rest.split_whitespace().nth(1);
    head.contains("(firn-") && found == Some(parent.to_string().as_str())
}

fn every_field_is_there(object: &serde_json::Value) {
    for name in [
        "group_key",
        "descriptor",
        "address",
        "transactions",
        "participant_pids",
        "participant_dirs",
        "authorities",
        "evidence",
    ] {
        assert!(object.get(name).is_some(), "{name}");
    }
    for transaction in object["transactions"].as_array().unwrap() {
        for name in [
            "tx",
            "prevouts",
            "request_id",
            "session_id",
            "signers",
            "elapsed_ms",
        ] {
            assert!(transaction.get(name).is_some(), "{name}");
        }
        for prevout in transaction["prevouts"].as_array().unwrap() {
            assert!(prevout["value"].is_u64() && prevout["script"].is_string());
        }
    }
}

/// So that the verdicts above are worth something.
fn refuses_a_changed_amount(transaction: &[u8], spent: &[(u64, Vec<u8>)]) {
    let mut changed = spent.to_vec();
    changed[1].0 += 1;
    assert!(independent::verify(transaction, &changed).is_err());
}

fn check_ledger(folder: &Path) {
    let output = Command::new(&binaries().firn)
        .args(["--json", "ledger", "check"])
        .arg(folder)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", folder.display());
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["is_sound"], true);
    assert!(report["size"].as_u64().unwrap() > 10, "{report}");
}

fn demo_in(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(&binaries().firn)
        .args(["demo", "--no-build", "--dir"])
        .arg(dir)
        .args(arguments)
        .output()
        .unwrap()
}

fn files(dir: &Path) -> BTreeSet<(PathBuf, Vec<u8>)> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        // The control socket of a member that was killed stays behind.
        } else if path.is_file() {
            let bytes = fs::read(&path).unwrap();
            found.insert((path, bytes));
        }
    }
    found
}

/// A folder in use is refused, and nothing in it is touched.
fn refuses_the_folder_again(dir: &Path) {
    let before = files(dir);
    let output = demo_in(dir, &[]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("folder_not_empty") && said.contains("is not empty"),
        "{said}"
    );
    assert_eq!(files(dir), before, "something was written or lost");
}

#[test]
fn refuses_quorums_that_need_not_meet_with_a_reason_and_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("demo");
    for (participants, threshold) in [("4", "2"), ("3", "1"), ("3", "4"), ("33", "17"), ("0", "0")]
    {
        let options = ["--participants", participants, "--threshold", threshold];
        let output = demo_in(&dir, &options);
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        let reason = format!("{threshold} of {participants} cannot be");
        assert!(
            said.contains(&reason) && said.contains("more than half"),
            "{said}"
        );
        assert!(!dir.exists(), "{options:?}");
    }
    // For scripts the reason is an object.
    let options = ["--participants", "4", "--threshold", "2", "--json"];
    let output = demo_in(&dir, &options);
    assert_eq!(output.status.code(), Some(2));
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["error"]["code"], "usage");
}

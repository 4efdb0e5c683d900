//! `firn verify` on what a real run leaves: the real binary, a folder of real processes, and random bytes
//! changed in it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use firn_tests::binaries::binaries;
use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
use serde_json::Value;

const CHANGES: usize = 100;

#[test]
fn refuses_100_of_100_folders_in_which_one_byte_was_changed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("demo");
    let demo = Command::new(&binaries().firn)
        .args(["demo", "--json", "--no-build", "--dir"])
        .arg(&dir)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        demo.status.success(),
        "{}",
        String::from_utf8_lossy(&demo.stderr)
    );
    let evidence = dir.join("evidence");
    let files = files_in(&evidence);
    assert_eq!(files.len(), 5 + 2, "five files and two requests: {files:?}");

    let (code, report) = verify(&evidence, &dir);
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(report["holds"], true);
    assert_eq!(report["acknowledged"], 3);
    assert_eq!(report["would_have_to_lie"], 2);
    let fingerprint = report["authorities"]["words"].as_str().unwrap().to_owned();
    let (code, report) = verify_as(&evidence, &dir, Some(&fingerprint));
    assert_eq!(
        (code, &report["authorities_compared"]),
        (0, &Value::Bool(true))
    );
    let other = "00".repeat(32);
    assert_eq!(verify_as(&evidence, &dir, Some(&other)).0, 1);
    assert_eq!(verify_as(&evidence, &dir, Some("no fingerprint")).0, 2);

    // The seed is fixed: what fails once can be looked at again.
    let mut rng = ChaCha20Rng::from_seed([0x16; 32]);
    let total: usize = files.iter().map(|path| fs::read(path).unwrap().len()).sum();
    for change in 0..CHANGES {
        let mut place = rng.next_u64() as usize % total;
        let bit = 1_u8 << (rng.next_u32() % 8);
        for path in &files {
            let honest = fs::read(path).unwrap();
            if place >= honest.len() {
                place -= honest.len();
                continue;
            }
            let mut changed = honest.clone();
            changed[place] ^= bit;
            fs::write(path, &changed).unwrap();
            let (code, report) = verify(&evidence, &dir);
            fs::write(path, &honest).unwrap();
            let name = path.strip_prefix(&evidence).unwrap().to_str().unwrap();
            assert_eq!(code, 1, "change {change}: {name} at {place}");
            assert_eq!(report["holds"], false);
            let failed = report["checks"].as_array().unwrap().iter();
            let mut failed = failed.filter(|check| check["holds"] == false);
            assert!(
                failed.any(|check| check["file"] == name),
                "{name} at {place}: {report:#}"
            );
            break;
        }
    }
    assert_eq!(verify(&evidence, &dir).0, 0);
}

fn verify(evidence: &Path, dir: &Path) -> (i32, Value) {
    verify_as(evidence, dir, None)
}

/// How `firn verify` ends, and its object.
fn verify_as(evidence: &Path, dir: &Path, fingerprint: Option<&str>) -> (i32, Value) {
    let mut command = Command::new(&binaries().firn);
    command.arg("verify").arg(evidence).arg("--json");
    command
        .arg("--authorities")
        .arg(dir.join("authorities.cbor"));
    if let Some(fingerprint) = fingerprint {
        command.args(["--fingerprint", fingerprint]);
    }
    let output = command.stdin(Stdio::null()).output().unwrap();
    let object = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code().unwrap(), object)
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_in(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

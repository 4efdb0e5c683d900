//! The real program as a script runs it: one object on the standard output, exit codes, and nobody asked
//! who is not there.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test states what it expects"
)]

use std::{
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;

/// Exit code, and the one object on the standard output.
fn firn(folder: &Path, line: &str) -> (i32, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_firn"))
        .args(line.split_whitespace())
        .arg("--json")
        .current_dir(folder)
        .env_remove("FIRN_PROFILE")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let object = serde_json::from_slice(&output.stdout);
    (output.status.code().unwrap(), object.unwrap())
}

#[test]
fn a_script_founds_a_domain_and_enrolls_a_member() {
    let folder = tempfile::tempdir().unwrap();
    let run = |line: &str| firn(folder.path(), line);
    let init = "init domain --trust-domain test.firn --operator ada --operators-needed 1 \
                --requester treasury --coordinator relay=127.0.0.1:7600";
    let (exit, founded) = run(init);
    assert_eq!(exit, 0, "{founded}");
    let (exit, again) = run(init);
    assert_eq!(
        (exit, &again["error"]["code"]),
        (2, &"folder_not_empty".into())
    );

    let enroll = "enroll p1 --domain domain/domain.toml";
    let (exit, asked) = run(enroll);
    assert_eq!(
        (exit, &asked["error"]["code"]),
        (2, &"nobody_to_ask".into())
    );
    let message = asked["error"]["message"].as_str().unwrap();
    assert!(message.contains("--authorities-fingerprint"), "{message}");
    assert!(!folder.path().join("p1").exists());

    let fingerprint = founded["fingerprint"]["hex"].as_str().unwrap();
    let (exit, enrolled) = run(&format!("{enroll} --authorities-fingerprint {fingerprint}"));
    assert_eq!(exit, 0, "{enrolled}");
    let admit = "admit p1/enrollment.cbor --ca domain/ca --out p1.pem";
    let (exit, asked) = run(admit);
    assert_eq!(
        (exit, &asked["error"]["code"]),
        (2, &"nobody_to_ask".into())
    );
    let (exit, other) = run(&format!("{admit} --fingerprint {fingerprint}"));
    assert_eq!(
        (exit, &other["error"]["code"]),
        (1, &"fingerprint_differs".into())
    );
    let fingerprint = enrolled["fingerprint"]["hex"].as_str().unwrap();
    assert_eq!(run(&format!("{admit} --fingerprint {fingerprint}")).0, 0);
    let (exit, done) = run("enroll p1 --certificate p1.pem");
    assert_eq!((exit, &done["has_certificate"]), (0, &true.into()));
    let (exit, shown) = run("authorities show domain/domain.toml");
    assert_eq!((exit, &shown["missing"]), (0, &0.into()));
    let (exit, rules) = run("policy example");
    assert_eq!(exit, 0);
    assert!(rules["rules"].as_str().unwrap().contains("[sighash]"));
}

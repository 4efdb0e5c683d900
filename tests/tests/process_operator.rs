//! A ceremony by hand: the real tool as several people type it, against real daemons, with a machine that
//! is stopped at the wrong moment (killed ones are noticed only after the idle timeout, and tried elsewhere).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use firn_ceremony::{
    authority,
    domain::{Party, files::write_document},
};
use firn_client::{Coordinator, Profile, profile::TlsFiles};
use firn_protocol::ids::PlanDigest;
use firn_tests::{
    binaries::binaries,
    cluster::{Cluster, key::rule_terms},
};
use serde_json::Value;
use tokio::process::Command;

/// How the tool ended, and its object.
struct Said {
    code: i32,
    object: Value,
    told: String,
}

async fn firn(profile: &Path, arguments: &[&str]) -> Said {
    let output = Command::new(&binaries().firn)
        .args(arguments)
        .arg("--json")
        .env("FIRN_PROFILE", profile)
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let object = serde_json::from_slice(&output.stdout);
    Said {
        code: output.status.code().unwrap(),
        object: object.unwrap_or_else(|error| panic!("{arguments:?}: {error}: {told}")),
        told,
    }
}

/// The profile of an operator, as `firn init` writes it.
fn profile(cluster: &Cluster, operator: &Party) -> PathBuf {
    let peer = cluster.peer();
    let files = &operator.folder;
    let profile = Profile {
        name: operator.id.clone(),
        identity_key: files.identity(),
        authorities: cluster.domain().authorities_file(),
        authorities_digest: cluster.domain().authorities_digest(),
        tls: TlsFiles {
            certificate: files.certificate(),
            key: files.tls_key(),
            roots: files.roots(),
        },
        coordinators: vec![Coordinator {
            name: peer.holder.id,
            address: peer.address.to_string().parse().unwrap(),
        }],
    };
    let path = files.path().join("by-hand.toml");
    fs::write(&path, profile.to_toml().unwrap()).unwrap();
    path
}

fn error<'a>(said: &'a Said, code: &str) -> &'a str {
    assert_eq!(said.object["error"]["code"], code, "{:#}", said.object);
    said.object["error"]["message"].as_str().unwrap()
}

#[tokio::test]
async fn a_ceremony_by_hand_from_a_plan_to_a_key_that_signs() {
    let mut cluster = Cluster::start(3, 2).await;
    let scratch = tempfile::tempdir().unwrap();
    let file = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let (plan_file, policy_file, folder) = (file("plan.cbor"), file("policy.cbor"), file("made"));
    let [ada, ben, _] = cluster.domain().operators() else {
        panic!("three operators");
    };
    let (ada, ben) = (profile(&cluster, ada), profile(&cluster, ben));

    let plan = cluster.plan();
    write_document(Path::new(&plan_file), plan.endorsed()).unwrap();
    let key_id = plan.key_id(PlanDigest::from_bytes(plan.digest()));
    let authority = cluster.domain().policy_authority().unwrap();
    let rules = || authority::rules(&rule_terms()).unwrap();
    let policy = authority::first_policy(key_id, rules(), &authority).unwrap();
    write_document(Path::new(&policy_file), &policy).unwrap();
    let run = [
        "run",
        &plan_file,
        "--policy",
        &policy_file,
        "--out",
        &folder,
    ];

    // A policy that does not fit is found before anybody is asked.
    let mut terms = rule_terms();
    terms.fee = terms.output;
    let other = authority::rules(&terms).unwrap();
    let other = authority::first_policy(key_id, other, &authority).unwrap();
    let other_file = file("other.cbor");
    write_document(Path::new(&other_file), &other).unwrap();
    let said = firn(
        &ada,
        &["run", &plan_file, "--policy", &other_file, "--out", &folder],
    )
    .await;
    assert!(error(&said, "unfit").contains("rules"));

    // Who has not accepted is named, and so is who is not there.
    for member in &cluster.domain().members()[..2] {
        cluster.accept(member, &plan).await;
    }
    let said = firn(&ada, &run).await;
    assert_eq!(said.code, 1);
    let message = error(&said, "plan_not_accepted");
    assert!(message.contains(cluster.member(3).name()), "{message}");
    assert!(!message.contains(cluster.member(1).name()), "{message}");
    cluster.accept(cluster.member(3), &plan).await;
    cluster.stop(2).await;
    cluster.is_missed(2).await;
    let said = firn(&ada, &run).await;
    assert_eq!(said.code, 3, "{}", said.told);
    assert!(error(&said, "quorum_unavailable").contains(cluster.member(2).name()));
    assert!(!Path::new(&folder).exists());
    cluster.start_again(2).await;

    let said = firn(&ada, &run).await;
    assert_eq!(said.code, 0, "{}", said.told);
    assert!(said.told.contains("certificates: 3 of 3"), "{}", said.told);
    assert_eq!(said.object["proofs_of_life"].as_array().unwrap().len(), 3);
    assert_eq!(said.object["missing"], 1);
    let fingerprint = said.object["activation"]["words"]
        .as_str()
        .unwrap()
        .to_owned();
    let again = firn(&ada, &run).await;
    assert_eq!(again.code, 2);
    assert!(error(&again, "file_exists").contains("made"));

    // One signature is not enough, and the second needs the words.
    let activate = ["activate", folder.as_str()];
    let said = firn(&ada, &activate).await;
    assert_eq!(said.code, 1);
    assert!(error(&said, "quorum_not_met").contains("ada"));
    let sign = ["activation", "sign", folder.as_str()];
    error(&firn(&ben, &sign).await, "nobody_to_ask");
    let wrong = "0".repeat(64);
    let said = firn(&ben, &[&sign[..], &["--fingerprint", &wrong]].concat()).await;
    error(&said, "fingerprint_differs");
    let said = firn(
        &ben,
        &[&sign[..], &["--fingerprint", &fingerprint]].concat(),
    )
    .await;
    assert_eq!((said.code, &said.object["missing"]), (0, &Value::from(0)));

    // One machine is missing when the key is activated.
    let authorities = cluster.domain().authorities_file();
    let authorities = authorities.to_str().unwrap();
    let verify = ["verify", folder.as_str(), "--authorities", authorities];
    let said = firn(&ada, &verify).await;
    assert_eq!((said.code, &said.object["holds"]), (1, &Value::Bool(false)));
    cluster.stop(3).await;
    cluster.is_missed(3).await;
    let said = firn(&ada, &activate).await;
    assert_eq!(said.code, 0, "{}", said.told);
    assert_eq!(said.object["would_have_to_lie"], 1);
    assert_eq!(
        said.object["missing"][0]["member"],
        cluster.member(3).name()
    );
    let said = firn(&ada, &verify).await;
    assert_eq!(said.code, 0, "{:#}", said.object);
    assert_eq!(said.object["acknowledged"], 2);

    // It comes back, and gets it.
    cluster.start_again(3).await;
    let status = ["status", "--key", folder.as_str()];
    let said = firn(&ada, &status).await;
    assert_eq!(said.code, 0, "{}", said.told);
    let key = &said.object["keys"][0];
    assert_eq!(key["can_sign_now"], true);
    assert!(
        key["not_ready"][0]
            .as_str()
            .unwrap()
            .contains("firn activate")
    );
    let said = firn(&ben, &activate).await;
    assert_eq!(said.object["missing"], Value::Array(Vec::new()));
    assert_eq!(said.object["would_have_to_lie"], 2);
    let said = firn(&ada, &verify).await;
    assert_eq!(
        (said.code, &said.object["acknowledged"]),
        (0, &Value::from(3))
    );

    // By its id, the key is had from the members; with two gone it cannot sign, and why is said.
    let id = key_id.to_string();
    let said = firn(&ada, &["status", "--key", &id]).await;
    assert_eq!(said.object["keys"][0]["ready"].as_array().unwrap().len(), 3);
    for number in [1, 2] {
        cluster.stop(number).await;
        cluster.is_missed(number).await;
    }
    let said = firn(&ada, &status).await;
    assert_eq!(said.code, 3);
    let key = &said.object["keys"][0];
    assert_eq!(key["can_sign_now"], false);
    assert_eq!(key["not_ready"].as_array().unwrap().len(), 2);
    let member = said.object["members"].as_array().unwrap().iter();
    let gone = member.filter(|member| member["connected_since_ms"].is_null());
    assert_eq!(gone.clone().count(), 2);
    assert!(
        gone.clone()
            .all(|member| member["last_seen_ms"].is_number())
    );
}

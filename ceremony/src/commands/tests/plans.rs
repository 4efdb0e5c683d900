//! plan and policy.

use std::fs;

use super::world::{World, code};
use crate::fingerprint;

const ALL: [&str; 3] = ["p1", "p2", "p3"];

#[test]
fn a_plan_says_what_it_means_and_who_stands_behind_it() {
    let world = World::with_members();
    let report = world.plan("plan.cbor", "2", &ALL).unwrap();
    assert_eq!(report["ceremony"], "dkg");
    assert_eq!(report["network"], "regtest");
    assert_eq!(report["purpose"], "rehearsal");
    assert_eq!(
        (&report["threshold"], &report["members"]),
        (&2.into(), &3.into())
    );
    assert_eq!(
        (&report["tolerated_liars"], &report["tolerated_thefts"]),
        (&0.into(), &1.into())
    );
    assert_eq!(report["roster"][2]["name"], "p3");
    assert_eq!(report["roster"][2]["identifier"], 3);
    assert_eq!(report["authorities"], world.authorities("domain"));
    assert_eq!(report["is_expired"], false);
    assert_eq!(report["signatures"]["missing"], 2);
    let words = report["fingerprint"]["words"].as_str().unwrap();

    let sign = |operator: &str| world.sign("plan.cbor", &world.profile(operator), words);
    assert_eq!(sign("ada").unwrap()["signatures"]["missing"], 1);
    assert_eq!(
        sign("ada").unwrap()["signatures"]["missing"],
        1,
        "signed once"
    );
    let signed = sign("ben").unwrap();
    assert_eq!(
        signed["signatures"]["signed_by"],
        serde_json::json!(["ada", "ben"])
    );
    assert_eq!(signed["fingerprint"], report["fingerprint"]);
    assert_eq!(code(world.plan("plan.cbor", "2", &ALL)), "file_exists");

    let (rules, authorities) = (world.text("rules.toml"), world.text("domain/domain.toml"));
    let shown = world
        .show(
            "plan.cbor",
            &["--rules", &rules, "--authorities", &authorities],
        )
        .unwrap();
    assert_eq!(shown["signatures"]["missing"], 0);
    assert_eq!(shown["rules_in_words"].as_array().unwrap().len(), 6);
    // Without Authorities it says that it does not know.
    let shown = world.show("plan.cbor", &[]).unwrap();
    assert!(shown["signatures"].is_null());
    assert_eq!(shown["signature_count"], 2);
}

#[test]
fn five_of_seven_stands_two_liars_and_four_thefts() {
    let world = World::with_members();
    for name in ["p4", "p5", "p6", "p7"] {
        world.member(name, "domain").unwrap();
    }
    let members = ["p1", "p2", "p3", "p4", "p5", "p6", "p7"];
    let report = world.plan("plan.cbor", "5", &members).unwrap();
    assert_eq!(
        (&report["tolerated_liars"], &report["tolerated_thefts"]),
        (&2.into(), &4.into())
    );
}

#[test]
fn refuses_plans_that_cannot_be() {
    let world = World::with_members();
    world.init("other", "other.firn", &[]).unwrap();
    world.member("p4", "domain").unwrap();
    world.member("q1", "other").unwrap();
    world
        .enroll(
            "dan",
            &["--role", "operator", "--trust-domain", "test.firn"],
        )
        .unwrap();
    let four = ["p1", "p2", "p3", "p4"];
    for (threshold, members, wanted) in [
        ("2", &four[..], "usage"),
        ("1", &four[..1], "usage"),
        ("4", &ALL[..], "usage"),
        ("2", &["p1", "p2", "p1"], "usage"),
        ("2", &["p1", "p2", "q1"], "unfit"),
        ("2", &["p1", "p2", "dan"], "unfit"),
        ("2", &["p1", "p2", "p9"], "file"),
    ] {
        assert_eq!(
            code(world.plan("plan.cbor", threshold, members)),
            wanted,
            "{members:?}"
        );
    }
    // Another's enrollment under a member's name.
    fs::copy(
        world.path("p4/enrollment.cbor"),
        world.path("p3/enrollment.cbor"),
    )
    .unwrap();
    assert_eq!(code(world.plan("plan.cbor", "2", &ALL)), "unfit");
    let signet = ["--network", "signet", "--valid", "4h"];
    assert_eq!(
        code(world.plan_with("plan.cbor", "2", &ALL, &signet)),
        "unfit"
    );
    fs::write(world.path("rules.toml"), "[network]\nonly = \"regtest\"\n").unwrap();
    assert_eq!(
        code(world.plan("plan.cbor", "2", &ALL)),
        "policy_missing_rule"
    );
    fs::write(world.path("rules.toml"), "surprise = 1\n").unwrap();
    assert_eq!(code(world.plan("plan.cbor", "2", &ALL)), "file_invalid");
    assert!(!world.path("plan.cbor").exists());
}

#[test]
fn signs_no_plan_of_other_authorities_none_that_is_over_and_none_that_differs() {
    let world = World::with_members();
    world.init("other", "test.firn", &[]).unwrap();
    let fingerprint = world.signed_plan();
    let stranger = world.text("other/operators/ada/firn.toml");
    assert_eq!(
        code(world.sign("plan.cbor", &stranger, &fingerprint)),
        "authorities_mismatch"
    );
    let other = world.text("other/domain.toml");
    assert_eq!(
        code(world.show("plan.cbor", &["--authorities", &other])),
        "authorities_mismatch"
    );
    let requester = world.text("domain/requesters/treasury/firn.toml");
    assert_eq!(
        code(world.sign("plan.cbor", &requester, &fingerprint)),
        "unknown_signer"
    );
    let wrong = world.authorities("domain");
    assert_eq!(
        code(world.sign("plan.cbor", &world.profile("cleo"), &wrong)),
        "fingerprint_differs"
    );
    // One word read wrongly is a wrong fingerprint, not a usage error.
    let mut digest = fingerprint::parse(&fingerprint).unwrap();
    digest[31] ^= 1;
    let misheard = fingerprint::words(&digest).join(" ");
    assert_eq!(
        code(world.sign("plan.cbor", &world.profile("cleo"), &misheard)),
        "fingerprint_differs"
    );

    let rules = fs::read_to_string(world.path("rules.toml")).unwrap();
    fs::write(world.path("mine.toml"), rules.replace("20000", "20001")).unwrap();
    let mine = world.text("mine.toml");
    assert_eq!(code(world.show("plan.cbor", &["--rules", &mine])), "unfit");

    let brief = ["--network", "regtest", "--valid", "1s"];
    let report = world.plan_with("brief.cbor", "2", &ALL, &brief).unwrap();
    let fingerprint = report["fingerprint"]["hex"].as_str().unwrap();
    let end = report["expires_ms"].as_u64().unwrap();
    while crate::now().value() < end {
        std::thread::yield_now();
    }
    assert_eq!(
        code(world.sign("brief.cbor", &world.profile("ada"), fingerprint)),
        "plan_expired"
    );
    assert_eq!(world.show("brief.cbor", &[]).unwrap()["is_expired"], true);
}

#[test]
fn a_plan_with_a_changed_byte_is_never_signed_further() {
    let world = World::with_members();
    let fingerprint = world.signed_plan();
    let path = world.path("plan.cbor");
    let good = fs::read(&path).unwrap();
    for index in (0..good.len()).step_by(11) {
        let mut bytes = good.clone();
        bytes[index] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert_ne!(
            code(world.sign("plan.cbor", &world.profile("cleo"), &fingerprint)),
            "done",
            "{index}"
        );
    }
}

#[test]
fn a_policy_is_the_plans_rules_signed_by_the_policy_authority() {
    let world = World::with_members();
    let fingerprint = world.signed_plan();
    let authority = "domain/policy-authority/identity.key";
    let report = world.sign_policy(authority, "policy.cbor").unwrap();
    assert_eq!(report["key_id"], fingerprint);
    assert_eq!(report["version"], 1);
    assert_eq!(report["is_by_authority"], true);
    assert_eq!(
        report["rules_digest"],
        world.show("plan.cbor", &[]).unwrap()["rules"]
    );
    assert_eq!(
        code(world.sign_policy(authority, "policy.cbor")),
        "file_exists"
    );
    let grants = "domain/grant-authority/identity.key";
    assert_eq!(
        code(world.sign_policy(grants, "other.cbor")),
        "unknown_signer"
    );
    let shown = world
        .show_policy("policy.cbor", "domain/domain.toml")
        .unwrap();
    assert_eq!(shown, report);
    world.init("other", "test.firn", &[]).unwrap();
    assert_eq!(
        code(world.show_policy("policy.cbor", "other/domain.toml")),
        "unfit"
    );

    let rules = fs::read_to_string(world.path("rules.toml")).unwrap();
    fs::write(world.path("rules.toml"), rules.replace("20000", "20001")).unwrap();
    assert_eq!(code(world.sign_policy(authority, "other.cbor")), "unfit");
    assert!(!world.path("other.cbor").exists());
}

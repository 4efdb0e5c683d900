//! init, authorities, enroll, admit.

use std::{fs, path::Path};

use firn_client::Profile;
use firn_protocol::{codec, documents::Enrollment, envelope::Envelope};

use super::world::{World, code, must_be_private};
use crate::{
    domain::{
        Description,
        files::{read_identity, write_document},
    },
    fingerprint,
};

#[test]
fn a_domain_is_ready_for_everybody_whose_keys_were_made() {
    let world = World::empty();
    let report = world.init("domain", "test.firn", &[]).unwrap();
    assert_eq!(report["trust_domain"], "test.firn");
    assert_eq!(report["signed_by"].as_array().unwrap().len(), 2);
    assert_eq!(report["missing"], 0);
    assert_eq!(report["made"].as_array().unwrap().len(), 5);
    assert!(report["ca"].as_str().unwrap().ends_with("/ca"));
    let words = report["fingerprint"]["words"].as_str().unwrap();
    assert_eq!(
        hex::encode(fingerprint::parse(words).unwrap()),
        report["fingerprint"]["hex"].as_str().unwrap()
    );
    let description = Description::read(&world.path("domain/domain.toml")).unwrap();
    assert_eq!(
        description.digest().to_string(),
        world.authorities("domain")
    );
    for person in ["operators/ada", "operators/cleo", "requesters/treasury"] {
        let folder = world.path("domain").join(person);
        let profile = Profile::load(&folder).unwrap();
        profile.caller().unwrap();
        assert_eq!(
            profile.authorities().unwrap().digest(),
            description.digest()
        );
        assert_eq!(profile.coordinators.as_slice(), description.coordinators());
        must_be_private(&folder.join("identity.key"));
        must_be_private(&folder.join("tls/key.pem"));
    }
    let coordinator = world.path("domain/coordinators/relay/coordinator.toml");
    let text = fs::read_to_string(coordinator).unwrap();
    assert!(text.contains("listen = \"127.0.0.1:7600\""), "{text}");
    for private in [
        "ca/key.pem",
        "grant-authority/identity.key",
        "policy-authority/identity.key",
    ] {
        must_be_private(&world.path("domain").join(private));
    }
    assert_eq!(
        code(world.init("domain", "test.firn", &[])),
        "folder_not_empty"
    );
}

#[test]
fn nothing_is_made_for_a_domain_that_cannot_be() {
    let world = World::new();
    world
        .enroll(
            "ada",
            &["--role", "operator", "--trust-domain", "other.firn"],
        )
        .unwrap();
    let ada = format!("ada={}", world.text("ada/enrollment.cbor"));
    for (more, wanted) in [
        (vec!["--operator", "ada"], "usage"),
        (vec!["--operator", "A"], "bad_name"),
        (vec!["--operator", &ada], "usage"),
        (vec!["--requester", &ada], "usage"),
        (vec!["--operator", "dan=/nowhere"], "file"),
        (vec!["--coordinator", "second"], "usage"),
        (vec!["--coordinator", "second=nowhere"], "usage"),
        (vec!["--roots", "/nowhere"], "file"),
        (
            vec!["--roots", &world.text("ada/enrollment.cbor")],
            "bad_file",
        ),
    ] {
        assert_eq!(
            code(world.init("second", "other.firn", &more)),
            wanted,
            "{more:?}"
        );
        assert!(!world.path("second").exists(), "{more:?}");
    }
}

/// Every piece is the operators' own: CA, operators' and coordinators' keys, authorities' keys.
#[test]
fn every_piece_can_be_brought() {
    let world = World::new();
    let roots = world.text("domain/ca/certificate.pem");
    for (name, role) in [
        ("ada", "operator"),
        ("ben", "operator"),
        ("relay", "coordinator"),
    ] {
        world
            .enroll(name, &["--role", role, "--trust-domain", "test.firn"])
            .unwrap();
    }
    let brought = |name: &str, place: &str| {
        format!(
            "{name}={place}{}",
            world.text(&format!("{name}/enrollment.cbor"))
        )
    };
    let (ada, ben) = (brought("ada", ""), brought("ben", ""));
    let relay = brought("relay", "relay.test:7600=");
    let (second, key) = (world.text("second"), "07".repeat(32));
    let report = world
        .init_with(&[
            "init",
            &second,
            "--trust-domain",
            "test.firn",
            "--operators-needed",
            "2",
            "--operator",
            &ada,
            "--operator",
            &ben,
            "--requester",
            "treasury",
            "--coordinator",
            &relay,
            "--grant-authority",
            &key,
            "--policy-authority",
            &key,
            "--roots",
            &roots,
        ])
        .unwrap();
    assert!(report["ca"].is_null());
    assert_eq!(report["missing"], 2);
    assert!(!world.path("second/ca").exists());
    assert!(!world.path("second/grant-authority").exists());
    // Unsigned Authorities are believed by nobody.
    let description = world.text("second/domain.toml");
    let fingerprint = world.authorities("second");
    let join = [
        "--domain",
        &description,
        "--authorities-fingerprint",
        &fingerprint,
    ];
    assert_eq!(code(world.enroll("ada", &join)), "quorum_not_met");
    assert_eq!(code(world.enroll("p9", &join)), "quorum_not_met");
    assert!(!world.path("p9").exists());

    let words = fingerprint::words(&fingerprint::parse(&fingerprint).unwrap()).join(" ");
    let sign = |key: &str, fingerprint: &str| {
        world.sign_authorities("second/domain.toml", key, fingerprint)
    };
    let wrong = world.authorities("domain");
    assert_eq!(
        code(sign("ada/identity.key", &wrong)),
        "fingerprint_differs"
    );
    assert_eq!(code(sign("ada/identity.key", "topmost")), "usage");
    assert_eq!(code(sign("relay/identity.key", &words)), "unknown_signer");
    assert_eq!(sign("ada/identity.key", &words).unwrap()["missing"], 1);
    assert_eq!(
        sign("ada/identity.key", &words).unwrap()["missing"],
        1,
        "signed once"
    );
    assert_eq!(sign("ben/identity.key", &words).unwrap()["missing"], 0);
    // The other form beside it is signed, too.
    crate::authority::read_authorities(&world.path("second/authorities.cbor")).unwrap();

    let report = world.enroll("ada", &join).unwrap();
    assert_eq!(
        (&report["is_named"], &report["has_certificate"]),
        (&true.into(), &false.into())
    );
    world.admit("ada", "domain/ca", "ada.pem").unwrap();
    let report = world
        .enroll("ada", &["--certificate", &world.text("ada.pem")])
        .unwrap();
    assert_eq!(report["has_certificate"], true);
    Profile::load(&world.path("ada")).unwrap().caller().unwrap();
    let coordinator = world.enroll("relay", &join).unwrap();
    assert_eq!(coordinator["is_named"], true);
    let text = fs::read_to_string(world.path("relay/coordinator.toml")).unwrap();
    assert!(text.contains("listen = \"0.0.0.0:7600\""), "{text}");
}

#[test]
fn a_description_is_believed_as_a_whole_or_not_at_all() {
    let world = World::new();
    let path = world.path("domain/domain.toml");
    let good = fs::read_to_string(&path).unwrap();
    let digest = world.authorities("domain");
    let (before, after) = good.split_once("authorities = \"").unwrap();
    let (_, rest) = after.split_once('"').unwrap();
    for (text, wanted) in [
        (good.replace("test.firn\"", "best.firn\""), "unfit"),
        (good.replace(&digest, &"00".repeat(32)), "unfit"),
        (
            good.replace("coordinator/relay", "coordinator/delay"),
            "unfit",
        ),
        (good.replace("127.0.0.1:7600", "127.0.0.1"), "file_invalid"),
        (
            good.replace("BEGIN CERTIFICATE", "BEGIN CERTIFICATF"),
            "unfit",
        ),
        (format!("surprise = 1\n{good}"), "file_invalid"),
        (
            format!("{before}authorities = \"00\"{rest}")
                .replace("authorities = \"authorities", "authorities"),
            "unfit",
        ),
        (
            good.replacen("[[coordinators]]", "[[coordinators]]\nport = 1", 1),
            "file_invalid",
        ),
    ] {
        assert_ne!(text, good);
        fs::write(&path, text).unwrap();
        let found = code(Description::read(&path));
        assert_eq!(found, wanted);
    }
    fs::write(&path, &good).unwrap();
    Description::read(&path).unwrap();
}

#[test]
fn a_member_is_enrolled_admitted_and_put_in_place() {
    let world = World::new();
    let report = world.member("p1", "domain").unwrap();
    assert_eq!(report["name"], "spiffe://test.firn/participant/p1");
    assert_eq!(report["has_certificate"], false);
    assert!(report["is_named"].is_null());
    for private in ["identity.key", "tls/key.pem", "vault.key"] {
        must_be_private(&world.path("p1").join(private));
    }
    for private in ["", "data", "anchor", "tls"] {
        must_be_private(&world.path("p1").join(private));
    }
    assert_eq!(fs::read(world.path("p1/vault.key")).unwrap().len(), 32);
    let config = fs::read_to_string(world.path("p1/participant.toml")).unwrap();
    assert!(config.contains(&world.authorities("domain")), "{config}");

    let admitted = world.admit("p1", "domain/ca", "p1.pem").unwrap();
    assert_eq!(admitted["name"], report["name"]);
    assert_eq!(
        code(world.admit("p1", "domain/ca", "p1.pem")),
        "file_exists"
    );
    let done = world
        .enroll("p1", &["--certificate", &world.text("p1.pem")])
        .unwrap();
    assert_eq!(done["has_certificate"], true);
    assert!(
        done["next"]
            .as_str()
            .unwrap()
            .starts_with("firn-participant --config")
    );
    // A later certificate takes the place of the first.
    world.admit("p1", "domain/ca", "renewed.pem").unwrap();
    world
        .enroll("p1", &["--certificate", &world.text("renewed.pem")])
        .unwrap();
    let (renewed, there) = (
        world.path("renewed.pem"),
        world.path("p1/tls/certificate.pem"),
    );
    assert_eq!(fs::read(renewed).unwrap(), fs::read(there).unwrap());
}

#[test]
fn a_certificate_of_another_domain_key_or_name_is_not_put_in_place() {
    let world = World::new();
    world.init("other", "test.firn", &[]).unwrap();
    world.member("p1", "domain").unwrap();
    world.member("p2", "domain").unwrap();
    // The same name and key, and a root that nobody here believes.
    world.admit("p1", "other/ca", "foreign.pem").unwrap();
    world.admit("p2", "domain/ca", "p2.pem").unwrap();
    fs::write(world.path("none.pem"), "nothing").unwrap();
    for (certificate, wanted) in [
        ("foreign.pem", "tls_unknown_ca"),
        ("p2.pem", "identity_key_mismatch"),
        ("none.pem", "identity_bad_pem"),
        ("missing.pem", "file"),
    ] {
        let found = world.enroll("p1", &["--certificate", &world.text(certificate)]);
        assert_eq!(code(found), wanted, "{certificate}");
        assert!(!world.path("p1/tls/certificate.pem").exists());
    }
    // The key of p1 with the name of another.
    fs::copy(world.path("p2/tls/key.pem"), world.path("p1/tls/key.pem")).unwrap();
    let found = world.enroll("p1", &["--certificate", &world.text("p2.pem")]);
    assert_eq!(code(found), "unfit");
}

#[test]
fn enrolling_says_what_is_missing_and_changes_no_mind() {
    let world = World::new();
    world.init("other", "other.firn", &[]).unwrap();
    let description = world.text("domain/domain.toml");
    let wrong = world.authorities("other");
    let compared = [
        "--domain",
        &description,
        "--authorities-fingerprint",
        &wrong,
    ];
    assert_eq!(code(world.enroll("p1", &compared)), "fingerprint_differs");
    assert!(
        !world.path("p1").exists(),
        "no keys before the fingerprint was compared"
    );
    assert_eq!(code(world.enroll("p1", &[])), "usage");
    assert_eq!(
        code(world.enroll("p1", &["--certificate", &description])),
        "bad_file"
    );
    world
        .enroll("p1", &["--trust-domain", "test.firn"])
        .unwrap();
    assert_eq!(
        code(world.enroll("p1", &["--certificate", &description])),
        "usage"
    );
    assert_eq!(code(world.enroll("p1", &["--name", "p2"])), "usage");
    assert_eq!(
        code(world.enroll("p1", &["--trust-domain", "other.firn"])),
        "usage"
    );
    assert_eq!(code(world.member("p1", "other")), "unfit");
    world.member("p1", "domain").unwrap();
    world.member("p1", "domain").unwrap();
    fs::write(world.path("p1/participant.toml"), "mine").unwrap();
    assert_eq!(code(world.member("p1", "domain")), "file_exists");
    let other = read_identity(&world.path("domain/operators/ada/identity.key")).unwrap();
    fs::write(world.path("p1/identity.key"), hex::encode(*other.seed())).unwrap();
    assert_eq!(code(world.enroll("p1", &[])), "unfit");
    fs::create_dir(world.path("used")).unwrap();
    fs::write(world.path("used/file"), "").unwrap();
    assert_eq!(
        code(world.enroll("used", &["--trust-domain", "test.firn"])),
        "folder_not_empty"
    );
}

fn enrollment(path: &Path) -> Enrollment {
    let bytes = fs::read(path.join("enrollment.cbor")).unwrap();
    let envelope: Envelope<Enrollment> = codec::decode(&bytes, 1 << 16).unwrap();
    let signer = envelope.claimed_signer().unwrap();
    (*envelope.verify(&signer).unwrap()).clone()
}

#[test]
fn admits_nobody_whose_enrollment_does_not_hold() {
    let world = World::new();
    for name in ["p1", "p2"] {
        world.member(name, "domain").unwrap();
    }
    let (one, two) = (enrollment(&world.path("p1")), enrollment(&world.path("p2")));
    let key = |name: &str| read_identity(&world.path(name).join("identity.key")).unwrap();
    // The certificate request of another name; another's identity; another's signature.
    let foreign_request = Enrollment {
        csr: two.csr.clone(),
        ..one.clone()
    };
    let renamed = Enrollment {
        name: two.name.clone(),
        ..one.clone()
    };
    for (name, forged, signer) in [
        ("request", &foreign_request, "p1"),
        ("renamed", &renamed, "p1"),
        ("stolen", &one, "p2"),
    ] {
        let path = world.path(&format!("{name}.cbor"));
        let envelope = Envelope::sign(forged, &key(signer)).unwrap();
        write_document(&path, &envelope).unwrap();
        let found = world.admit_as(
            path.to_str().unwrap(),
            "domain/ca",
            "out.pem",
            &"00".repeat(32),
        );
        assert_eq!(code(found), "unfit", "{name}");
    }
    let path = world.path("p1/enrollment.cbor");
    let good = fs::read(&path).unwrap();
    for index in (0..good.len()).step_by(7) {
        let mut bytes = good.clone();
        bytes[index] ^= 1;
        fs::write(&path, bytes).unwrap();
        let fingerprint = "00".repeat(32);
        let found =
            code(world.admit_as(path.to_str().unwrap(), "domain/ca", "out.pem", &fingerprint));
        assert!(
            ["unfit", "bad_file"].contains(&found.as_str()),
            "{index}: {found}"
        );
    }
    fs::write(&path, good).unwrap();
    let wrong = world.fingerprint("p2");
    let found = world.admit_as(path.to_str().unwrap(), "domain/ca", "out.pem", &wrong);
    assert_eq!(code(found), "fingerprint_differs");
    world.init("other", "other.firn", &[]).unwrap();
    assert_eq!(code(world.admit("p1", "other/ca", "out.pem")), "unfit");
    assert!(!world.path("out.pem").exists());
}

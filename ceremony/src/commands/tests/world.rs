//! A trust domain that the commands themselves have made, in a folder that goes with it.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use clap::Parser;
use firn_protocol::{codec, documents::Enrollment, envelope::Envelope};
use serde::Serialize;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    cli::{Arguments, Command},
    commands::{admit, authorities, enroll, init, plan, policy},
    error::Error,
    output::Output,
};

/// What a script would see, and nothing on the terminal.
pub(super) fn quiet() -> Output {
    Output::new(true)
}

/// A command as it is typed.
pub(super) fn typed(words: &[&str]) -> Command {
    let words = std::iter::once(&"firn").chain(words);
    match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments.command,
        Err(error) => panic!("{error}"),
    }
}

pub(super) fn json<T: Serialize>(report: &T) -> Value {
    serde_json::to_value(report).unwrap()
}

pub(super) fn code<T>(result: Result<T, Error>) -> String {
    match result {
        Ok(_) => "done".to_owned(),
        Err(error) => error.code().to_owned(),
    }
}

/// Files that only this user may read, among those that a folder holds.
pub(super) fn must_be_private(path: &Path) {
    let mode = fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{}", path.display());
}

pub(super) struct World {
    folder: TempDir,
}

impl World {
    /// Two of three operators decide; one requester, one coordinator.
    pub(super) fn new() -> Self {
        let world = Self::empty();
        world.init("domain", "test.firn", &[]).unwrap();
        world
    }

    pub(super) fn empty() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub(super) fn init(&self, dir: &str, domain: &str, more: &[&str]) -> Result<Value, Error> {
        let dir = self.text(dir);
        let mut words = vec![
            "init",
            &dir,
            "--trust-domain",
            domain,
            "--operators-needed",
            "2",
        ];
        for operator in ["ada", "ben", "cleo"] {
            words.extend(["--operator", operator]);
        }
        words.extend([
            "--requester",
            "treasury",
            "--coordinator",
            "relay=127.0.0.1:7600",
        ]);
        words.extend(more);
        self.init_with(&words)
    }

    pub(super) fn init_with(&self, words: &[&str]) -> Result<Value, Error> {
        let Command::Init(arguments) = typed(words) else {
            unreachable!()
        };
        init::perform(&arguments).map(|(report, _)| json(&report))
    }

    /// The fingerprint of the Authorities of a domain's description.
    pub(super) fn authorities(&self, domain: &str) -> String {
        let text = fs::read_to_string(self.path(domain).join("domain.toml")).unwrap();
        let (_, rest) = text.split_once("authorities_digest = \"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }

    pub(super) fn enroll(&self, dir: &str, more: &[&str]) -> Result<Value, Error> {
        let dir = self.text(dir);
        let mut words = vec!["enroll", &dir];
        words.extend(more);
        let Command::Enroll(arguments) = typed(&words) else {
            unreachable!()
        };
        enroll::perform(&arguments, quiet()).map(|(report, _)| json(&report))
    }

    /// A new member of a domain, whose keeper has compared the Authorities.
    pub(super) fn member(&self, name: &str, domain: &str) -> Result<Value, Error> {
        let description = self.text(&format!("{domain}/domain.toml"));
        let fingerprint = self.authorities(domain);
        self.enroll(
            name,
            &[
                "--domain",
                &description,
                "--authorities-fingerprint",
                &fingerprint,
            ],
        )
    }

    pub(super) fn fingerprint(&self, member: &str) -> String {
        let bytes = fs::read(self.path(member).join("enrollment.cbor")).unwrap();
        let envelope: Envelope<Enrollment> = codec::decode(&bytes, 1 << 16).unwrap();
        let signer = envelope.claimed_signer().unwrap();
        hex::encode(envelope.verify(&signer).unwrap().digest())
    }

    pub(super) fn admit(&self, member: &str, ca: &str, out: &str) -> Result<Value, Error> {
        let fingerprint = self.fingerprint(member);
        self.admit_as(
            &self.text(&format!("{member}/enrollment.cbor")),
            ca,
            out,
            &fingerprint,
        )
    }

    pub(super) fn admit_as(
        &self,
        enrollment: &str,
        ca: &str,
        out: &str,
        fingerprint: &str,
    ) -> Result<Value, Error> {
        let (ca, out) = (self.text(ca), self.text(out));
        let words = [
            "admit",
            enrollment,
            "--ca",
            &ca,
            "--out",
            &out,
            "--fingerprint",
            fingerprint,
        ];
        let Command::Admit(arguments) = typed(&words) else {
            unreachable!()
        };
        admit::perform(&arguments, quiet()).map(|report| json(&report))
    }

    /// Three members of the domain, and the example's rules.
    pub(super) fn with_members() -> Self {
        let world = Self::new();
        for name in ["p1", "p2", "p3"] {
            world.member(name, "domain").unwrap();
        }
        fs::write(world.path("rules.toml"), crate::authority::RULES_EXAMPLE).unwrap();
        world
    }

    pub(super) fn profile(&self, operator: &str) -> String {
        self.text(&format!("domain/operators/{operator}/firn.toml"))
    }

    pub(super) fn plan(
        &self,
        out: &str,
        threshold: &str,
        members: &[&str],
    ) -> Result<Value, Error> {
        self.plan_with(
            out,
            threshold,
            members,
            &["--network", "regtest", "--valid", "4h"],
        )
    }

    pub(super) fn plan_with(
        &self,
        out: &str,
        threshold: &str,
        members: &[&str],
        more: &[&str],
    ) -> Result<Value, Error> {
        let (out, rules, profile) = (self.text(out), self.text("rules.toml"), self.profile("ada"));
        let members: Vec<String> = members
            .iter()
            .map(|name| format!("{name}={}", self.text(&format!("{name}/enrollment.cbor"))))
            .collect();
        let mut words = vec!["plan", "new", "--out", &out, "--threshold", threshold];
        for member in &members {
            words.extend(["--member", member]);
        }
        words.extend([
            "--purpose",
            "rehearsal",
            "--rules",
            &rules,
            "--profile",
            &profile,
        ]);
        words.extend(more);
        let Command::Plan(plan::Command::New(arguments)) = typed(&words) else {
            unreachable!()
        };
        plan::new::perform(&arguments).map(|described| json(&described.report))
    }

    pub(super) fn show(&self, plan: &str, more: &[&str]) -> Result<Value, Error> {
        let plan = self.text(plan);
        let mut words = vec!["plan", "show", &plan];
        words.extend(more);
        let Command::Plan(plan::Command::Show(arguments)) = typed(&words) else {
            unreachable!()
        };
        plan::show::perform(&arguments).map(|described| json(&described.report))
    }

    pub(super) fn sign(
        &self,
        plan: &str,
        profile: &str,
        fingerprint: &str,
    ) -> Result<Value, Error> {
        let plan = self.text(plan);
        let words = [
            "plan",
            "sign",
            &plan,
            "--profile",
            profile,
            "--fingerprint",
            fingerprint,
        ];
        let Command::Plan(plan::Command::Sign(arguments)) = typed(&words) else {
            unreachable!()
        };
        plan::sign::perform(&arguments, quiet()).map(|described| json(&described.report))
    }

    /// A plan that two operators have signed; its fingerprint.
    pub(super) fn signed_plan(&self) -> String {
        let report = self.plan("plan.cbor", "2", &["p1", "p2", "p3"]).unwrap();
        let fingerprint = report["fingerprint"]["hex"].as_str().unwrap().to_owned();
        for operator in ["ada", "ben"] {
            self.sign("plan.cbor", &self.profile(operator), &fingerprint)
                .unwrap();
        }
        fingerprint
    }

    pub(super) fn sign_authorities(
        &self,
        file: &str,
        key: &str,
        fingerprint: &str,
    ) -> Result<Value, Error> {
        let (file, key) = (self.text(file), self.text(key));
        let words = [
            "authorities",
            "sign",
            &file,
            "--identity-key",
            &key,
            "--fingerprint",
            fingerprint,
        ];
        let Command::Authorities(authorities::Command::Sign(arguments)) = typed(&words) else {
            unreachable!()
        };
        authorities::sign(&arguments, quiet()).map(|report| json(&report))
    }

    pub(super) fn sign_policy(&self, key: &str, out: &str) -> Result<Value, Error> {
        let (key, out) = (self.text(key), self.text(out));
        let (plan, rules) = (self.text("plan.cbor"), self.text("rules.toml"));
        let profile = self.profile("ada");
        let words = [
            "policy",
            "sign",
            "--plan",
            &plan,
            "--rules",
            &rules,
            "--authority-key",
            &key,
            "--out",
            &out,
            "--profile",
            &profile,
        ];
        let Command::Policy(policy::Command::Sign(arguments)) = typed(&words) else {
            unreachable!()
        };
        policy::sign(&arguments).map(|report| json(&report))
    }

    pub(super) fn show_policy(&self, file: &str, authorities: &str) -> Result<Value, Error> {
        let (file, authorities) = (self.text(file), self.text(authorities));
        let words = ["policy", "show", &file, "--authorities", &authorities];
        let Command::Policy(policy::Command::Show(arguments)) = typed(&words) else {
            unreachable!()
        };
        policy::show(&arguments).map(|report| json(&report))
    }
}

//! The frozen examples: one of each kind, and what is to be refused, each named for its defect. They
//! change only with the version of the protocol.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests"
)]

use std::{collections::BTreeSet, fs};

use firn_protocol::reject::{Class, Reject};
use firn_tests::{
    diagnostic, malformed,
    samples::{self, World},
    vectors::{self, BLESS},
};
use serde_json::Value;

/// How many cases are refused at least.
const AT_LEAST: usize = 150;

/// Compares a file, or writes it when that is asked for.
fn compare(file: &std::path::Path, now: &Value) {
    let text = vectors::text_of(now);
    if vectors::is_blessing() {
        fs::write(file, text).unwrap();
        return;
    }
    let shown = file.display();
    let frozen = fs::read_to_string(file)
        .unwrap_or_else(|error| panic!("{shown}: {error}; {BLESS}=1 writes it"));
    assert!(
        frozen == text,
        "{shown}: the format has changed. What was signed before no longer reads the same: undo the \
         change, or raise the version of the protocol and write the vectors with {BLESS}=1"
    );
}

#[test]
fn every_kind_still_has_its_bytes_and_its_digest() {
    let samples = samples::all();
    for sample in &samples {
        compare(&vectors::file_of(sample), &vectors::example(sample));
    }
    let mut expected: BTreeSet<_> = samples
        .iter()
        .map(|sample| format!("{}.json", sample.name))
        .collect();
    expected.insert("malformed.json".to_owned());
    let found: BTreeSet<_> = fs::read_dir(vectors::folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(
        found, expected,
        "a vector without a kind, or a kind without a vector"
    );
}

#[test]
fn the_page_of_examples_shows_the_vectors() {
    let page = diagnostic::page(&samples::all());
    let file = vectors::folder().join("../../docs/EXAMPLES.md");
    if vectors::is_blessing() {
        fs::write(file, page).unwrap();
        return;
    }
    let written = fs::read_to_string(file).unwrap();
    assert!(
        written == page,
        "docs/EXAMPLES.md is not of these samples; {BLESS}=1 writes it"
    );
}

#[test]
fn the_cases_that_are_refused_are_still_the_same() {
    let cases = malformed::all(&samples::all());
    compare(&vectors::malformed_file(), &vectors::refusals(&cases));
}

#[test]
fn refuses_every_frozen_case_with_its_code() {
    let samples = samples::all();
    let text = fs::read_to_string(vectors::malformed_file()).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert!(cases.len() >= AT_LEAST, "{} cases", cases.len());
    let field = |case: &Value, name: &str| case[name].as_str().unwrap().to_owned();
    let mut names = BTreeSet::new();
    let mut covered = BTreeSet::new();
    let mut wrong = Vec::new();
    for case in &cases {
        let (kind, name) = (field(case, "kind"), field(case, "name"));
        assert!(
            names.insert((kind.clone(), name.clone())),
            "{kind}: {name} stands twice"
        );
        let sample = samples.iter().find(|sample| sample.name == kind).unwrap();
        let bytes = hex::decode(field(case, "hex")).unwrap();
        let code = field(case, "code");
        match (sample.judge)(World::fixed(), &bytes) {
            Err(got) if got.name() == code => {
                covered.insert(got);
            }
            other => wrong.push(format!("{kind}: {name}: {other:?}, not {code}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{} cases, {} codes", cases.len(), covered.len());
    let missing: Vec<_> = Reject::ALL
        .iter()
        .filter(|code| code.class() == Class::Malformed && !covered.contains(code))
        .collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
    let uncovered: Vec<_> = Reject::ALL
        .iter()
        .filter(|code| !covered.contains(code))
        .collect();
    assert_eq!(uncovered, NOT_HERE, "codes without a case");
}

/// Codes that no bytes alone can bring about: they depend on the peer's certificate, on what happened
/// before, on the machine, or on a policy that the samples do not have.
const NOT_HERE: &[&Reject] = &[
    &Reject::WrongRole,
    &Reject::ShareNotActive,
    &Reject::Deadline,
    &Reject::WitnessConflict,
    &Reject::AttemptAbandoned,
    &Reject::PolicyNetwork,
    &Reject::PolicyMissingRule,
    &Reject::Busy,
    &Reject::QuorumUnavailable,
    &Reject::SessionFailed,
    &Reject::ClockRewound,
    &Reject::LedgerUnavailable,
    &Reject::Frozen,
    &Reject::ShareUnavailable,
    &Reject::Internal,
    &Reject::ClockSkew,
];

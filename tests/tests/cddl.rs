//! docs/protocol.cddl says what is on the wire: every sample of every kind is of its rule, and of no
//! other kind's.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test states what it expects"
)]

use std::collections::BTreeSet;

use cddl_cat::{cbor::validate_cbor, context::BasicContext, flatten::flatten_from_str};
use firn_tests::samples::{self, Kind, Sample};

const SCHEMA: &str = include_str!("../../docs/protocol.cddl");

fn context() -> BasicContext {
    BasicContext::new(flatten_from_str(SCHEMA).unwrap())
}

/// The rule of a sample's whole bytes: a document travels signed or endorsed.
fn rule(sample: &Sample) -> String {
    match sample.kind {
        Kind::Document(_) => {
            let rule = sample.rule;
            let endorsed = ["authorities", "plan", "activation"].contains(&rule);
            format!("{}-{rule}", if endorsed { "endorsed" } else { "signed" })
        }
        Kind::Message(..) => sample.rule.to_owned(),
    }
}

fn validates(context: &BasicContext, rule: &str, bytes: &[u8]) -> Result<(), String> {
    use cddl_cat::context::LookupContext;
    let node = context
        .lookup_rule(rule)
        .map_err(|error| format!("{rule}: {error}"))?;
    let value: ciborium::Value = ciborium::from_reader(bytes).map_err(|error| error.to_string())?;
    validate_cbor(node, &value, context).map_err(|error| format!("{rule}: {error}"))
}

#[test]
fn every_sample_is_of_its_rule() {
    let context = context();
    for sample in samples::all() {
        if let Err(error) = validates(&context, &rule(&sample), &sample.bytes) {
            panic!("{}: {error}", sample.name);
        }
    }
}

#[test]
fn no_sample_is_of_another_kinds_rule() {
    let context = context();
    let samples = samples::all();
    let rules: BTreeSet<_> = samples.iter().map(rule).collect();
    for sample in &samples {
        let own = rule(sample);
        let others: Vec<_> = rules
            .iter()
            .filter(|other| **other != own && validates(&context, other, &sample.bytes).is_ok())
            .collect();
        assert!(others.is_empty(), "{} is also of {others:?}", sample.name);
    }
}

#[test]
fn the_schema_says_no_to_a_shortened_array_and_a_longer_digest() {
    let context = context();
    let grant = samples::all()
        .into_iter()
        .find(|sample| sample.rule == "grant")
        .unwrap();
    let value: ciborium::Value = ciborium::from_reader(grant.bytes.as_slice()).unwrap();
    let mut parts = value.into_array().unwrap();
    let payload = parts.remove(2).into_bytes().unwrap();
    let document: ciborium::Value = ciborium::from_reader(payload.as_slice()).unwrap();
    let fields = document.into_array().unwrap();
    let bytes = |fields: Vec<ciborium::Value>| {
        let mut bytes = Vec::new();
        ciborium::into_writer(&ciborium::Value::Array(fields), &mut bytes).unwrap();
        bytes
    };
    assert_eq!(validates(&context, "grant", &bytes(fields.clone())), Ok(()));
    let mut shorter = fields.clone();
    shorter.pop();
    assert!(validates(&context, "grant", &bytes(shorter)).is_err());
    let mut longer = fields;
    let digest = longer.first_mut().unwrap();
    *digest = ciborium::Value::Bytes(vec![0; 33]);
    assert!(validates(&context, "grant", &bytes(longer)).is_err());
}

/// Every rule is used by another, or is a sample's own: the schema has no dead words.
#[test]
fn every_rule_is_used() {
    let own: BTreeSet<_> = samples::all().iter().map(rule).collect();
    let roots = [
        "to-member",
        "from-member",
        "to-requests",
        "from-requests",
        "to-ceremony",
    ];
    let words: Vec<&str> = SCHEMA
        .lines()
        .map(|line| line.split(';').next().unwrap_or_default())
        .flat_map(|line| line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')))
        .collect();
    let defined = SCHEMA
        .lines()
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name);
    for name in defined.filter(|name| !name.starts_with([' ', ';'])) {
        let uses = words.iter().filter(|word| **word == name).count();
        let is_root = roots.contains(&name) || name == "from-ceremony" || name.ends_with("-frame");
        assert!(
            uses > 1 || is_root || own.contains(name),
            "{name} is used nowhere"
        );
    }
}

//! docs/protocol.cddl says what is on the wire: every sample of every kind is of its rule, and of no
//! other kind's.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test states what it expects"
)]

use std::collections::BTreeSet;

use cddl_cat::{cbor::validate_cbor, context::BasicContext, flatten::flatten_from_str};
use ciborium::Value;
use firn_protocol::{bitcoin::Sats, limits, reject::Reject};
use firn_tests::{
    rewriting::{self, Expect},
    samples::{self, Kind, Sample, World},
};

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
    let value: Value = ciborium::from_reader(bytes).map_err(|error| error.to_string())?;
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

/// Where the decoder says that bytes are well formed and of no such type, the schema says so too.
#[test]
fn the_schema_refuses_what_the_decoder_calls_another_type() {
    let context = context();
    let mut tried = 0;
    for sample in samples::all() {
        // The large ones are made of the others.
        if sample.bytes.len() > 1_000 {
            continue;
        }
        let rule = rule(&sample);
        rewriting::each(&sample.bytes, |rewritten| {
            // Which characters a text has is not a question of type.
            let is_type = rewritten.expect == Expect::Code(Reject::Schema)
                && rewritten.how != "text with a control character";
            if is_type {
                tried += 1;
                let accepted = validates(&context, &rule, &rewritten.bytes).is_ok();
                let (how, at) = (rewritten.how, rewritten.at);
                assert!(!accepted, "{}: {how} at {at} is of {rule}", sample.name);
            }
        });
    }
    assert!(tried > 1_000, "{tried}");
}

/// A field more or less is another kind, whatever it is.
#[test]
fn the_schema_refuses_a_field_more_or_less() {
    let context = context();
    for sample in samples::all() {
        let rule = rule(&sample);
        let value: Value = ciborium::from_reader(sample.bytes.as_slice()).unwrap();
        let fields = value.into_array().unwrap();
        let mut shorter = fields.clone();
        shorter.pop();
        let longer = [fields, vec![Value::Integer(0.into())]].concat();
        for fields in [shorter, longer] {
            let accepted = validates(&context, &rule, &bytes(&Value::Array(fields))).is_ok();
            assert!(!accepted, "{}", sample.name);
        }
    }
}

/// The last value within each bound, and the first beyond. RFC 8610 matches a whole text with an
/// expression; this validator only finds it there, so that names beyond their length pass here.
#[test]
fn the_schema_has_the_bounds_of_the_decoder() {
    let context = context();
    let number = |number: u64| Value::Integer(number.into());
    let blob = |length: usize| Value::Bytes(vec![2; length]);
    let text = |length: usize| Value::Text("a".repeat(length));
    let word = |word: &str| Value::Text(word.to_owned());
    let list = |count: usize, item: Value| Value::Array(vec![item; count]);
    let signature = Value::Array(vec![number(0), blob(64)]);
    let envelope = world_certificate();
    let news = Value::Array(vec![number(5), Value::Array(vec![blob(1)])]);
    let news = |count| Value::Array(vec![number(0), number(0), list(count, news.clone())]);
    let id = |name: &str| word(&format!("spiffe://td/{name}"));
    for (rule, within, beyond) in [
        ("u16", number(65_535), number(65_536)),
        (
            "u32",
            number(u32::MAX.into()),
            number(u64::from(u32::MAX) + 1),
        ),
        ("identifier", number(1), number(0)),
        ("identifier", number(65_535), number(65_536)),
        (
            "sats",
            number(Sats::MAX.value()),
            number(Sats::MAX.value() + 1),
        ),
        ("network", number(4), number(5)),
        ("network", number(1), number(0)),
        ("reject", number(799), number(800)),
        ("digest", blob(32), blob(33)),
        ("digest", blob(32), blob(31)),
        ("point", blob(33), blob(32)),
        ("ed25519", blob(32), blob(33)),
        ("signature", blob(64), blob(63)),
        ("ceremony-id", blob(16), blob(17)),
        (
            "script",
            blob(limits::MAX_SCRIPT),
            blob(limits::MAX_SCRIPT + 1),
        ),
        (
            "small",
            blob(limits::SMALL_DOCUMENT),
            blob(limits::SMALL_DOCUMENT + 1),
        ),
        (
            "short-text",
            text(limits::MAX_NAME),
            text(limits::MAX_NAME + 1),
        ),
        (
            "long-text",
            text(limits::MAX_PURPOSE),
            text(limits::MAX_PURPOSE + 1),
        ),
        ("name", word("a"), word("-")),
        ("spiffe-id", id("requester/a"), id("signer/a")),
        ("spiffe-id", id("operator/a"), word("http://td/operator/a")),
        (
            "signatures",
            list(limits::MAX_SESSION_INPUTS, signature.clone()),
            { list(limits::MAX_SESSION_INPUTS + 1, signature) },
        ),
        (
            "certificates",
            list(limits::MAX_MEMBERS, envelope.clone()),
            { list(limits::MAX_MEMBERS + 1, envelope) },
        ),
        ("approvals", list(limits::MAX_APPROVALS, blob(1)), {
            list(limits::MAX_APPROVALS + 1, blob(1))
        }),
        ("csr", blob(limits::MAX_CSR), blob(limits::MAX_CSR + 1)),
        (
            "sentence",
            text(limits::MAX_REASON),
            text(limits::MAX_REASON + 1),
        ),
        ("progress", number(4), number(5)),
        ("stage", number(3), number(4)),
        ("stage", number(1), number(0)),
        ("news", news(limits::MAX_NEWS), news(limits::MAX_NEWS + 1)),
    ] {
        assert_eq!(validates(&context, rule, &bytes(&within)), Ok(()), "{rule}");
        let accepted = validates(&context, rule, &bytes(&beyond)).is_ok();
        assert!(!accepted, "{rule}: {beyond:?}");
    }
}

fn world_certificate() -> Value {
    let certificate = World::fixed().certified.certificates()[0].envelope();
    Value::Bytes(certificate.as_bytes().to_vec())
}

fn bytes(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).unwrap();
    bytes
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
        "to-daemon",
        "from-daemon",
    ];
    let words: Vec<&str> = SCHEMA
        .lines()
        .map(|line| line.split(';').next().unwrap_or_default())
        .flat_map(|line| line.split(|c: char| !(c.is_ascii_alphanumeric() || "-:".contains(c))))
        // What a colon follows is a field's label.
        .filter(|word| !word.ends_with(':'))
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

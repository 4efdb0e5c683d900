//! The frozen examples in `tests/vectors/`: how they are written down and found again.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{malformed::Case, samples::Sample};

/// Set to 1, the vectors are written instead of compared. Only a new version of the protocol may.
pub const BLESS: &str = "FIRN_BLESS_VECTORS";

/// Where the vectors are.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors")
}

/// The file of one sample.
#[must_use]
pub fn file_of(sample: &Sample) -> PathBuf {
    folder().join(format!("{}.json", sample.name))
}

/// The file of what is to be refused.
#[must_use]
pub fn malformed_file() -> PathBuf {
    folder().join("malformed.json")
}

/// Whether the vectors are to be written.
#[must_use]
pub fn is_blessing() -> bool {
    std::env::var_os(BLESS).is_some_and(|value| value == "1")
}

/// One example.
#[must_use]
pub fn example(sample: &Sample) -> Value {
    json!({
        "name": sample.name,
        "rule": sample.rule,
        "bytes": hex::encode(&sample.bytes),
        "digest": hex::encode(sample.digest()),
    })
}

/// What is to be refused, one object for each case.
#[must_use]
pub fn refusals(cases: &[Case]) -> Value {
    let cases = cases.iter().map(|case| {
        json!({
            "kind": case.kind,
            "name": case.name,
            "code": case.code.name(),
            "hex": hex::encode(&case.bytes),
        })
    });
    Value::Array(cases.collect())
}

/// As the files have it: one line for each field, so that a difference can be read.
#[must_use]
pub fn text_of(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap();
    text.push('\n');
    text
}

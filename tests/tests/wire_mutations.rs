//! Every kind of message and document, changed in every way: each truncation, each single bit, each
//! rewriting that CBOR offers at each item. Nothing is accepted, nothing panics, and where the code
//! follows from the change it is that code.
//!
//! A few messages carry the word of the other end alone (see `Carried::OnItsWord`). Other words there
//! are another message; what must hold is that no other bytes stand for the same message.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::print_stdout,
    reason = "tests"
)]

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::OnceLock,
};

use firn_protocol::{
    codec,
    messages::{FromCeremony, FromDaemon, FromRequests, ToDaemon},
    reject::{Class, Reject},
};
use firn_tests::{
    rewriting::{self, Expect},
    samples::{self, Carried, DOCUMENTS, Kind, MESSAGES, Sample, Signer, World},
};

/// How many changes are made at least, all kinds together.
const AT_LEAST: usize = 250_000;

fn samples() -> &'static [Sample] {
    static SAMPLES: OnceLock<Vec<Sample>> = OnceLock::new();
    SAMPLES.get_or_init(samples::all)
}

/// What a receiver makes of changed bytes. A panic is reported with what made it.
fn verdict(sample: &Sample, bytes: &[u8], how: &str) -> Result<(), Reject> {
    let judge = AssertUnwindSafe(|| (sample.judge)(World::fixed(), bytes));
    catch_unwind(judge)
        .unwrap_or_else(|_| panic!("{}: {how}: panics on {}", sample.name, hex::encode(bytes)))
}

/// A refusal, or another message on the other end's word.
fn refused(sample: &Sample, bytes: &[u8], how: &str) -> Option<Reject> {
    match verdict(sample, bytes, how) {
        Err(code) => Some(code),
        Ok(()) => {
            let is_other = match (&sample.kind, sample.carried) {
                (Kind::Message("FromRequests", _), Carried::OnItsWord) => {
                    decode::<FromRequests>(bytes) != decode::<FromRequests>(&sample.bytes)
                }
                (Kind::Message("FromCeremony", _), Carried::OnItsWord) => {
                    decode::<FromCeremony>(bytes) != decode::<FromCeremony>(&sample.bytes)
                }
                (Kind::Message("ToDaemon", _), Carried::OnItsWord) => {
                    decode::<ToDaemon>(bytes) != decode::<ToDaemon>(&sample.bytes)
                }
                (Kind::Message("FromDaemon", _), Carried::OnItsWord) => {
                    decode::<FromDaemon>(bytes) != decode::<FromDaemon>(&sample.bytes)
                }
                _ => false,
            };
            let name = &sample.name;
            assert!(is_other, "{name}: {how}: accepted {}", hex::encode(bytes));
            None
        }
    }
}

fn decode<T: serde::Serialize + serde::de::DeserializeOwned>(bytes: &[u8]) -> T {
    codec::decode(bytes, bytes.len()).unwrap()
}

fn truncate(sample: &Sample) -> usize {
    for length in 0..sample.bytes.len() {
        let how = format!("cut to {length} bytes");
        let code = refused(sample, &sample.bytes[..length], &how);
        assert_eq!(code, Some(Reject::Truncated), "{}: {how}", sample.name);
    }
    sample.bytes.len()
}

fn flip(sample: &Sample) -> usize {
    let mut bytes = sample.bytes.clone();
    for place in 0..bytes.len() {
        for bit in 0..8 {
            bytes[place] ^= 1 << bit;
            refused(sample, &bytes, "one bit");
            bytes[place] ^= 1 << bit;
        }
    }
    bytes.len() * 8
}

fn rewrite(sample: &Sample) -> usize {
    let mut count = 0;
    rewriting::each(&sample.bytes, |rewritten| {
        count += 1;
        let how = format!(
            "{} at {} in {}",
            rewritten.how, rewritten.at, rewritten.wraps
        );
        let got = refused(sample, &rewritten.bytes, &how);
        let as_expected = match (rewritten.expect, got) {
            (Expect::Code(expected), Some(code)) => {
                // A member knows its own words by their bytes, before it looks into them.
                code == expected || code == Reject::PackageAltered
            }
            (Expect::Malformed, Some(code)) => {
                code.class() == Class::Malformed || code == Reject::PackageAltered
            }
            (Expect::Refused, Some(_)) => true,
            (Expect::Refused, None) => sample.carried == Carried::OnItsWord,
            (Expect::Code(_) | Expect::Malformed, None) => false,
        };
        let (name, expect) = (&sample.name, rewritten.expect);
        let hex = hex::encode(&rewritten.bytes);
        assert!(as_expected, "{name}: {how}: {got:?}, not {expect:?}: {hex}");
    });
    count
}

/// The payload rewritten and signed by the one who may: only the codec stands in the way.
fn rewrite_signed(sample: &Sample) -> usize {
    let (Kind::Document(kind), Some(Signer::One(signer))) = (&sample.kind, sample.signer) else {
        return 0;
    };
    let secret = signer(World::fixed()).secret();
    let payload = rewriting::payload(&sample.bytes);
    assert_eq!(
        rewriting::sign(kind, secret, payload),
        sample.bytes,
        "{kind}"
    );
    let mut count = 0;
    rewriting::each(payload, |rewritten| {
        let Expect::Code(expected) = rewritten.expect else {
            return;
        };
        if rewritten.wraps > 0 {
            return;
        }
        count += 1;
        let bytes = rewriting::sign(kind, secret, &rewritten.bytes);
        let how = format!("{} at {}, signed", rewritten.how, rewritten.at);
        let got = verdict(sample, &bytes, &how);
        assert_eq!(
            got,
            Err(expected),
            "{}: {how}: {}",
            sample.name,
            hex::encode(&bytes)
        );
    });
    assert!(count > 0, "{kind}");
    count
}

/// How many changes each sample sees, without making them.
fn changes(sample: &Sample) -> usize {
    let mut rewritten = 0;
    rewriting::each(&sample.bytes, |_| rewritten += 1);
    sample.bytes.len() * 9 + rewritten
}

fn refuses_every_change(of: impl Fn(&Sample) -> bool) {
    let mut total = 0;
    let mut kinds = 0;
    for sample in samples().iter().filter(|sample| of(sample)) {
        let made = [
            truncate(sample),
            flip(sample),
            rewrite(sample),
            rewrite_signed(sample),
        ];
        let count: usize = made.iter().sum();
        assert!(count >= changes(sample));
        println!(
            "{:<32} {:>6} bytes {count:>7} changes",
            sample.name,
            sample.bytes.len()
        );
        total += count;
        kinds += 1;
    }
    assert!(kinds > 0);
    println!("{total} changes to {kinds} kinds");
}

#[test]
fn accepts_every_sample_as_it_is() {
    for sample in samples() {
        let got = verdict(sample, &sample.bytes, "unchanged");
        assert_eq!(got, Ok(()), "{}", sample.name);
        assert!(sample.bytes.len() <= sample.limit, "{}", sample.name);
    }
}

#[test]
fn refuses_more_bytes_than_a_kind_may_have() {
    for sample in samples() {
        // What is over the limit is not looked at: these bytes would not even be an item.
        let bytes = [&sample.bytes[..2], &vec![0xff; sample.limit - 1]].concat();
        let got = verdict(sample, &bytes, "over the limit");
        assert_eq!(got, Err(Reject::TooLarge), "{}", sample.name);
    }
}

#[test]
fn every_kind_has_a_sample() {
    let have: BTreeSet<_> = samples().iter().map(|sample| sample.kind.clone()).collect();
    assert_eq!(have.len(), samples().len());
    let documents = DOCUMENTS.iter().map(|kind| Kind::Document(kind));
    let messages = MESSAGES
        .iter()
        .map(|(sum, number, _)| Kind::Message(sum, *number));
    let want: BTreeSet<_> = documents.chain(messages).collect();
    assert_eq!(have, want);
}

/// The sums are tied to the samples by a match; documents have no list of their own in the protocol.
#[test]
fn every_document_in_the_sources_has_a_sample() {
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../protocol/src");
    let mut found = Vec::new();
    let mut folders = vec![std::path::PathBuf::from(sources)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let kinds = text.lines().filter_map(|line| {
                let line = line.trim().strip_prefix("const KIND: &'static str = \"")?;
                line.strip_suffix("\";").map(str::to_owned)
            });
            found.extend(kinds);
        }
    }
    found.sort();
    let mut known: Vec<_> = DOCUMENTS.iter().map(|kind| (*kind).to_owned()).collect();
    known.sort();
    assert_eq!(found, known);
}

#[test]
fn enough_changes_are_made() {
    let total: usize = samples().iter().map(changes).sum();
    println!("{total} changes");
    assert!(total >= AT_LEAST, "{total}");
}

#[test]
fn refuses_every_change_to_a_document() {
    refuses_every_change(|sample| matches!(sample.kind, Kind::Document(_)));
}

#[test]
fn refuses_every_change_to_what_a_member_is_told() {
    refuses_every_change(|sample| matches!(sample.kind, Kind::Message("ToMember", _)));
}

#[test]
fn refuses_every_change_to_what_a_member_says() {
    refuses_every_change(|sample| matches!(sample.kind, Kind::Message("FromMember", _)));
}

#[test]
fn refuses_every_change_between_requester_and_coordinator() {
    refuses_every_change(|sample| {
        matches!(sample.kind, Kind::Message("ToRequests" | "FromRequests", _))
    });
}

#[test]
fn refuses_every_change_between_operator_and_coordinator() {
    refuses_every_change(|sample| {
        matches!(sample.kind, Kind::Message("ToCeremony", _))
            || matches!(sample.kind, Kind::Message("FromCeremony", number) if number != 2)
    });
}

#[test]
fn refuses_every_change_on_the_socket_of_a_daemon() {
    refuses_every_change(|sample| {
        matches!(sample.kind, Kind::Message("ToDaemon" | "FromDaemon", _))
    });
}

/// The largest sample, in two halves that run side by side.
#[test]
fn refuses_every_flipped_bit_of_the_record_of_a_ceremony() {
    let sample = record_of_a_ceremony();
    println!("{}: {} bits", sample.name, flip(sample));
}

#[test]
fn refuses_every_other_change_to_the_record_of_a_ceremony() {
    let sample = record_of_a_ceremony();
    println!(
        "{}: {} changes",
        sample.name,
        truncate(sample) + rewrite(sample)
    );
}

fn record_of_a_ceremony() -> &'static Sample {
    let found = samples()
        .iter()
        .find(|sample| sample.kind == Kind::Message("FromCeremony", 2));
    found.unwrap()
}

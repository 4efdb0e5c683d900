//! PSBTs that are none, that contradict themselves, or that the policy does not allow. Intent, grant
//! and session are about each of them.

use firn_protocol::{
    bitcoin::{
        OutPoint, ScriptPubKey, SighashType, TxIn, Txid,
        psbt::{NewInput, NewOutput, build_v0, build_v2},
    },
    ids::IntentDigest,
    reject::Reject,
};

use super::{Case, Cases, requests::message};
use crate::samples::{DESTINATION, World, output};

pub(super) fn cases(world: &World) -> Vec<Case> {
    let mut cases = Cases::of("to-member-sign-open");
    malformed(world, &mut cases);
    inconsistent(world, &mut cases);
    not_allowed(world, &mut cases);
    cases.cases
}

/// An opening for a PSBT that has no intent digest.
fn not_understood(world: &World, psbt: Vec<u8>) -> Vec<u8> {
    let digest = IntentDigest::from_bytes([0x0d; 32]);
    message(world.signed(&world.opening_for(world.intent(psbt), digest, 0x21)))
}

/// An opening for a PSBT that can be understood.
fn understood(world: &World, psbt: Vec<u8>) -> Vec<u8> {
    message(world.signed(&world.opening(world.intent(psbt), 0x22)))
}

fn malformed(world: &World, cases: &mut Cases) {
    let good = world.psbt(60_000);
    let (inputs, outputs) = world.payment(60_000);
    let old = build_v0(2, 0, &inputs, &outputs).unwrap();
    let mut magic = good.clone();
    magic[4] = 0xfe;
    let mut no_magic = good.clone();
    no_magic.drain(..5);
    let unknown_version = {
        let at = good
            .windows(7)
            .position(|w| w == [0x01, 0xfb, 0x04, 2, 0, 0, 0])
            .unwrap();
        let mut bytes = good.clone();
        bytes[at + 3] = 3;
        bytes
    };
    let longer = {
        // The first key's length in three bytes instead of one.
        let mut bytes = good.clone();
        bytes.splice(5..6, [0xfd, bytes[5], 0x00]);
        bytes
    };
    let base64 = b"cHNidP8BAgQCAAAA".to_vec();
    let malformed = Reject::PsbtMalformed;
    for (name, psbt) in [
        ("a PSBT of nothing", Vec::new()),
        ("a PSBT without its magic", no_magic),
        ("a PSBT with other magic", magic),
        ("a PSBT in base64", base64),
        (
            "a PSBT of which half is missing",
            good[..good.len() / 2].to_vec(),
        ),
        (
            "a PSBT without its last byte",
            good[..good.len() - 1].to_vec(),
        ),
        ("bytes behind a PSBT", [good.as_slice(), &[0x00]].concat()),
        ("two PSBTs", [good.as_slice(), &good].concat()),
        ("a PSBT of version 3", unknown_version),
        ("a PSBT with a length too long", longer),
        (
            "a PSBT of version 0 cut short",
            old[..old.len() - 3].to_vec(),
        ),
        ("a PSBT with a key twice", twice(&good)),
        ("a PSBT without its transaction", b"psbt\xff\x00".to_vec()),
    ] {
        cases.add(name, malformed, not_understood(world, psbt));
    }
}

fn inconsistent(world: &World, cases: &mut Cases) {
    let (inputs, outputs) = world.payment(60_000);
    let good = world.psbt(60_000);
    let spent = without(&good, 1, 0x01);
    cases.add(
        "an input without its spent output",
        Reject::PsbtSpentOutputMissing,
        not_understood(world, spent),
    );
    let foreign = inputs.iter().cloned().map(|input| NewInput {
        origin: None,
        ..input
    });
    let foreign = build_v2(2, 0, &foreign.collect::<Vec<_>>(), &outputs).unwrap();
    cases.add("no input that is the key's", Reject::PsbtNothingToSign, {
        not_understood(world, foreign)
    });
    let inconsistent = Reject::PsbtInconsistent;
    let mut richer = outputs.clone();
    richer[0].output = output(99_999, ScriptPubKey::taproot(&DESTINATION));
    let richer = build_v2(2, 0, &inputs, &richer).unwrap();
    cases.add(
        "outputs worth more than the inputs",
        inconsistent,
        not_understood(world, richer),
    );
    // Both inputs spend the first one's output.
    let duplicate = {
        let mut bytes = good.clone();
        let index = [0x01, 0x0f, 0x04, 0x01, 0x00, 0x00, 0x00];
        let at = bytes.windows(7).position(|w| w == index).unwrap();
        bytes[at + 3] = 0;
        bytes
    };
    cases.add(
        "an output spent twice",
        inconsistent,
        not_understood(world, duplicate),
    );
    let internal = {
        // PSBT_IN_TAP_INTERNAL_KEY of the first input.
        let mut bytes = good.clone();
        let at = bytes
            .windows(3)
            .position(|w| w == [0x01, 0x17, 0x20])
            .unwrap();
        bytes[at + 3] ^= 1;
        bytes
    };
    cases.add(
        "another internal key",
        inconsistent,
        not_understood(world, internal),
    );
    let signed = {
        // PSBT_IN_TAP_KEY_SIG, in front of the first input's internal key.
        let at = good
            .windows(3)
            .position(|w| w == [0x01, 0x17, 0x20])
            .unwrap();
        let field = [&[0x01, 0x13, 0x40][..], &[0x01; 64]].concat();
        [&good[..at], &field, &good[at..]].concat()
    };
    cases.add(
        "an input that is signed already",
        inconsistent,
        not_understood(world, signed),
    );
}

fn not_allowed(world: &World, cases: &mut Cases) {
    let psbt = |inputs: &[NewInput], outputs: &[NewOutput]| {
        understood(world, build_v2(2, 0, inputs, outputs).unwrap())
    };
    let (inputs, outputs) = world.payment(60_000);
    let paying = |sats: &[u64]| {
        let pay = |sats: &u64| NewOutput {
            output: output(*sats, ScriptPubKey::taproot(&DESTINATION)),
            origin: None,
        };
        sats.iter().map(pay).collect::<Vec<_>>()
    };
    let mut elsewhere = outputs.clone();
    elsewhere[0].output.script = ScriptPubKey::taproot(&[0x12; 32]);
    cases.add(
        "a destination that is not allowed",
        Reject::PolicyDestination,
        psbt(&inputs, &elsewhere),
    );
    let mut hidden = outputs.clone();
    hidden[1].origin = None;
    cases.add(
        "change that does not show whose it is",
        Reject::PolicyDestination,
        psbt(&inputs, &hidden),
    );
    cases.add(
        "more than may leave",
        Reject::PolicyOutflow,
        psbt(&inputs, &paying(&[49_500, 49_500])),
    );
    cases.add("an output that is too large", Reject::PolicyOutput, {
        understood(world, world.psbt(70_001))
    });
    let fee = |fee: u64| {
        let mut outputs = outputs.clone();
        outputs[1].output = output(40_000 - fee, outputs[1].output.script.clone());
        psbt(&inputs, &outputs)
    };
    cases.add("a fee that is too high", Reject::PolicyFee, fee(10_001));
    cases.add(
        "a fee rate that is too high",
        Reject::PolicyFeeRate,
        fee(9_999),
    );
    let mut all = inputs.clone();
    all[0].sighash_type = Some(SighashType::All);
    cases.add(
        "SIGHASH_ALL where it is not allowed",
        Reject::PolicySighash,
        psbt(&all, &outputs),
    );
    for sighash in [
        SighashType::None,
        SighashType::Single,
        SighashType::AllAnyoneCanPay,
    ] {
        let mut inputs = inputs.clone();
        inputs[1].sighash_type = Some(sighash);
        let name = format!("SIGHASH {:#04x}", sighash.to_u8());
        let bytes = build_v2(2, 0, &inputs, &outputs).unwrap();
        cases.add(name, Reject::PolicySighash, not_understood(world, bytes));
    }
    let mut foreign = inputs.clone();
    foreign.push(NewInput {
        txin: TxIn {
            outpoint: OutPoint {
                txid: Txid::new([0x0f; 32]),
                vout: 0,
            },
            sequence: 0xffff_fffd,
        },
        spent: output(500, ScriptPubKey::taproot(&[0x13; 32])),
        origin: None,
        sighash_type: None,
    });
    cases.add(
        "an input that is not the key's",
        Reject::PolicyForeignInput,
        psbt(&foreign, &outputs),
    );
}

/// The maps of a PSBT, each a list of spans of whole fields.
fn maps(psbt: &[u8]) -> Vec<Vec<(u8, std::ops::Range<usize>)>> {
    let mut maps = vec![Vec::new()];
    let mut at = 5;
    while at < psbt.len() {
        if psbt[at] == 0 {
            maps.push(Vec::new());
            at += 1;
            continue;
        }
        let key = usize::from(psbt[at]);
        let value = usize::from(psbt[at + 1 + key]);
        let end = at + 2 + key + value;
        maps.last_mut().unwrap().push((psbt[at + 1], at..end));
        at = end;
    }
    maps
}

/// A PSBT without the fields of this type in one map.
fn without(psbt: &[u8], map: usize, key_type: u8) -> Vec<u8> {
    let mut bytes = psbt.to_vec();
    let fields = &maps(psbt)[map];
    for (_, span) in fields.iter().rev().filter(|(of, _)| *of == key_type) {
        bytes.drain(span.clone());
    }
    assert_ne!(bytes.len(), psbt.len());
    bytes
}

/// A PSBT with its first field twice.
fn twice(psbt: &[u8]) -> Vec<u8> {
    let (_, span) = &maps(psbt)[0][0];
    [&psbt[..span.end], &psbt[span.clone()], &psbt[span.end..]].concat()
}

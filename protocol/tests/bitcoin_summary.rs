//! What signing would do: PSBTs that Bitcoin Core wrote, and own ones with one thing wrong.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]
#![allow(clippy::arithmetic_side_effects, missing_docs)]

use firn_protocol::{
    bitcoin::{
        Child, ChildRange, ExtendedKey, KeyOrigin, Network, OutPoint, OwnScripts, Psbt, PsbtError,
        Sats, ScriptPubKey, SighashError, SighashType, Summary, SummaryError, TxIn, TxOut, Txid,
        psbt::{NewInput, NewOutput, Place, build_v0, build_v2},
    },
    ids::GroupKey,
};

fn sats(sats: u64) -> Sats {
    Sats::new(sats).unwrap()
}

fn child(branch: u32, index: u32) -> Child {
    Child::new(branch, index).unwrap()
}

/// The wallet whose descriptors stand in the data folder's README.
fn core_wallet(fingerprint: [u8; 4], max_index: u32) -> OwnScripts {
    let tpub = "tpubD6NzVbkrYhZ4Wyg7Bg8EFnVWzyUq8yKAtGKSFdSSRmiX2xPTkn4aAVNBK4owzJ38Sj2hAMq1DNyJh\
                zApBiqEQ5LPfvXbNP2nMFaEEsqrLke";
    let key = ExtendedKey::from_xpub(tpub, fingerprint, vec![0, 0]).unwrap();
    OwnScripts::new(key, ChildRange::new(1, max_index).unwrap()).unwrap()
}

#[test]
fn tells_own_foreign_change_and_fee_in_what_bitcoin_core_writes() {
    let own = core_wallet([0x4a, 0x34, 0x01, 0x58], 1_000);
    let (large, small) = (349_998_450, 150_000_000);
    let cases: [(&[u8], _, _); 3] = [
        (
            include_bytes!("data/core_selfsend.psbt"),
            [(large, Some(child(1, 0))), (small, Some(child(0, 1)))],
            1_550,
        ),
        (
            include_bytes!("data/core_stranger.psbt"),
            [(small, None), (large, Some(child(1, 1)))],
            1_550 + small,
        ),
        (
            include_bytes!("data/core_to_internal.psbt"),
            [(small, Some(child(1, 2))), (large, Some(child(1, 3)))],
            1_550,
        ),
    ];
    for (bytes, outputs, outflow) in cases {
        let psbt = Psbt::parse(bytes).unwrap();
        let summary = Summary::of(&psbt, Network::Regtest, &own).unwrap();
        assert_eq!(summary.fee(), sats(1_550));
        assert_eq!(summary.outflow(), sats(outflow));
        assert_eq!(summary.inputs().len(), 1);
        assert_eq!(summary.inputs()[0].spent.value, sats(500_000_000));
        let signing: Vec<_> = summary.own_inputs().collect();
        assert_eq!(signing.len(), 1);
        assert_eq!(signing[0].key.child(), child(0, 0));
        assert_eq!(signing[0].sighash_type, SighashType::Default);
        for (found, (value, expected)) in summary.outputs().iter().zip(outputs) {
            assert_eq!((found.output.value, found.own), (sats(value), expected));
        }
    }
}

#[test]
fn an_origin_is_only_a_hint_and_children_outside_the_range_are_foreign() {
    let bytes = include_bytes!("data/core_to_internal.psbt");
    let psbt = Psbt::parse(bytes).unwrap();
    // Nobody's fingerprint: nothing is found, though the key is the right one.
    let stranger = core_wallet([1, 2, 3, 4], 1_000);
    assert_eq!(
        Summary::of(&psbt, Network::Regtest, &stranger),
        Err(SummaryError::NoOwnInput)
    );
    // The index that ends before the second output's.
    let own = core_wallet([0x4a, 0x34, 0x01, 0x58], 2);
    let summary = Summary::of(&psbt, Network::Regtest, &own).unwrap();
    assert_eq!(summary.outputs()[0].own, Some(child(1, 2)));
    assert_eq!(summary.outputs()[1].own, None);
    assert_eq!(summary.outflow(), sats(349_998_450 + 1_550));
}

/// The generator as a group key: an even one.
fn own_scripts() -> OwnScripts {
    let group = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    let key = ExtendedKey::of_group(&GroupKey::from_hex(group).unwrap()).unwrap();
    OwnScripts::new(key, ChildRange::new(1, 100).unwrap()).unwrap()
}

/// What a test changes: two own inputs, a payment and change.
struct Parts {
    inputs: Vec<NewInput>,
    outputs: Vec<NewOutput>,
    version: u32,
    lock_time: u32,
}

impl Parts {
    fn new() -> Self {
        let own = own_scripts();
        let input = |vout, index, value| {
            let child = child(0, index);
            NewInput {
                txin: TxIn {
                    outpoint: OutPoint {
                        txid: Txid::new([9; 32]),
                        vout,
                    },
                    sequence: 0xffff_fffd,
                },
                spent: TxOut {
                    value: sats(value),
                    script: own.derive(child).unwrap().script(),
                },
                origin: Some(own.origin(child).unwrap()),
                sighash_type: None,
            }
        };
        let change = child(1, 7);
        let script = own.derive(change).unwrap().script();
        Self {
            inputs: vec![input(0, 3, 50_000), input(1, 4, 30_000)],
            outputs: vec![
                NewOutput {
                    output: TxOut {
                        value: sats(60_000),
                        script: ScriptPubKey::taproot(&[2; 32]),
                    },
                    origin: None,
                },
                NewOutput {
                    output: TxOut {
                        value: sats(19_000),
                        script,
                    },
                    origin: Some(own.origin(change).unwrap()),
                },
            ],
            version: 2,
            lock_time: 800_000,
        }
    }

    fn v0(&self) -> Vec<u8> {
        build_v0(self.version, self.lock_time, &self.inputs, &self.outputs).unwrap()
    }

    fn v2(&self) -> Vec<u8> {
        build_v2(self.version, self.lock_time, &self.inputs, &self.outputs).unwrap()
    }

    fn summary(&self) -> Result<Summary, SummaryError> {
        let [first, second] = [self.v0(), self.v2()].map(|bytes| summary_of(&bytes));
        assert_eq!(first, second, "both versions say the same");
        first
    }
}

fn summary_of(bytes: &[u8]) -> Result<Summary, SummaryError> {
    Summary::of(&Psbt::parse(bytes)?, Network::Signet, &own_scripts())
}

#[test]
fn both_versions_of_one_transaction_give_the_same_intent_and_any_change_another() {
    let original = Parts::new().summary().unwrap();
    assert_eq!(original.fee(), sats(1_000));
    assert_eq!(original.outflow(), sats(61_000));
    let mut seen = vec![original.intent_preimage()];
    let changes: [fn(&mut Parts); 14] = [
        |parts| parts.outputs[0].output.value = sats(59_999),
        |parts| parts.outputs[1].output.value = sats(18_999),
        |parts| parts.outputs[0].output.script = ScriptPubKey::taproot(&[3; 32]),
        |parts| parts.outputs[0].output.script = ScriptPubKey::new(vec![0x6a]),
        |parts| parts.outputs.swap(0, 1),
        |parts| parts.outputs[1].origin = None,
        |parts| parts.inputs[0].spent.value = sats(50_001),
        |parts| parts.inputs[0].txin.sequence = 0,
        |parts| parts.inputs[0].txin.outpoint.vout = 5,
        |parts| parts.inputs[0].txin.outpoint.txid = Txid::new([8; 32]),
        |parts| parts.inputs[0].origin = None,
        |parts| parts.inputs[1].sighash_type = Some(SighashType::All),
        |parts| parts.version = 1,
        |parts| parts.lock_time = 800_001,
    ];
    for change in changes {
        let mut parts = Parts::new();
        change(&mut parts);
        let preimage = parts.summary().unwrap().intent_preimage();
        assert!(!seen.contains(&preimage));
        seen.push(preimage);
    }
    let psbt = Psbt::parse(&Parts::new().v0()).unwrap();
    let elsewhere = Summary::of(&psbt, Network::Regtest, &own_scripts()).unwrap();
    assert!(!seen.contains(&elsewhere.intent_preimage()));
}

#[test]
fn sighash_default_written_out_means_the_same_as_none() {
    let mut parts = Parts::new();
    parts.inputs[0].sighash_type = Some(SighashType::Default);
    assert_eq!(parts.summary(), Parts::new().summary());
}

#[test]
fn refuses_what_cannot_be_told_for_sure() {
    let cases: Vec<(&str, fn(&mut Parts), SummaryError)> = vec![
        (
            "outputs worth more than inputs",
            |parts| parts.outputs[0].output.value = sats(61_001),
            SummaryError::OutputsExceedInputs,
        ),
        (
            "a key that would gain",
            |parts| {
                parts.inputs[0].origin = None;
                parts.outputs[1].output.value = sats(30_001);
                parts.outputs[0].output.value = sats(1);
            },
            SummaryError::NegativeOutflow,
        ),
        (
            "no own input",
            |parts| {
                parts
                    .inputs
                    .iter_mut()
                    .for_each(|input| input.origin = None)
            },
            SummaryError::NoOwnInput,
        ),
        (
            "no output",
            |parts| parts.outputs.clear(),
            SummaryError::NoOutput,
        ),
        (
            "another internal key at an input",
            |parts| parts.inputs[1].origin.as_mut().unwrap().x_only_key = [6; 32],
            SummaryError::InputInternalKeyMismatch(1),
        ),
        (
            "another internal key at an output",
            |parts| parts.outputs[1].origin.as_mut().unwrap().x_only_key = [6; 32],
            SummaryError::OutputInternalKeyMismatch(1),
        ),
        (
            "a type that leaves outputs open",
            |parts| parts.inputs[0].sighash_type = Some(SighashType::Single),
            SummaryError::Sighash(SighashError::TypeRefused(SighashType::Single)),
        ),
        (
            "a type that leaves inputs open",
            |parts| parts.inputs[1].sighash_type = Some(SighashType::AllAnyoneCanPay),
            SummaryError::Sighash(SighashError::TypeRefused(SighashType::AllAnyoneCanPay)),
        ),
    ];
    for (name, change, expected) in cases {
        let mut parts = Parts::new();
        change(&mut parts);
        assert_eq!(parts.summary(), Err(expected), "{name}");
    }
}

#[test]
fn refuses_spent_outputs_that_no_chain_can_hold() {
    let mut parts = Parts::new();
    parts.inputs[0].spent.value = Sats::MAX;
    parts.inputs[1].spent.value = sats(1);
    for build in [build_v0, build_v2] {
        let psbt = build(2, 0, &parts.inputs, &parts.outputs);
        assert_eq!(psbt, Err(PsbtError::SpentAmountTooLarge));
    }
}

/// Puts a field into the first map that has `after`, behind it.
fn with_field(psbt: &[u8], after: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
    let at = psbt
        .windows(after.len())
        .position(|window| window == after)
        .unwrap()
        + after.len();
    let mut field = Vec::new();
    for part in [key, value] {
        field.push(u8::try_from(part.len()).unwrap());
        field.extend_from_slice(part);
    }
    [&psbt[..at], &field, &psbt[at..]].concat()
}

#[test]
fn refuses_script_paths_signatures_and_odd_sighash_types_on_what_is_own() {
    let parts = Parts::new();
    let internal_key = parts.inputs[1].origin.as_ref().unwrap().x_only_key;
    let input = [&[1, 0x17, 32][..], &internal_key].concat();
    let internal_key = parts.outputs[1].origin.as_ref().unwrap().x_only_key;
    let output = [&[1, 0x05, 32][..], &internal_key].concat();
    let control_block = [&[0x15, 0xc0][..], &[2; 32]].concat();
    let public_key = [&[0x02, 0x02][..], &[2; 32]].concat();
    let script_signature = [&[0x14][..], &[2; 64]].concat();
    let path = SummaryError::InputScriptPath(1);
    let signed = SummaryError::AlreadySigned(1);
    let unknown = SummaryError::UnknownSighashType {
        input: 1,
        number: 4,
    };
    let cases: Vec<(&[u8], &[u8], &[u8], SummaryError)> = vec![
        (&input, &[0x18], &[1; 32], path),
        (&input, &control_block, &[0x51, 0xc0], path),
        (&input, &script_signature, &[1; 64], path),
        (&input, &[0x13], &[1; 64], signed),
        (&input, &[0x08], &[1, 1, 7], signed),
        (&input, &[0x07], &[], signed),
        (&input, &public_key, &[1], signed),
        (&input, &[0x03], &[4, 0, 0, 0], unknown),
        (
            &output,
            &[0x06],
            &[0, 0xc0, 1, 0x51],
            SummaryError::OutputScriptPath(1),
        ),
    ];
    for (after, key, value, expected) in cases {
        for psbt in [parts.v0(), parts.v2()] {
            let psbt = with_field(&psbt, after, key, value);
            assert_eq!(summary_of(&psbt), Err(expected), "{key:02x?}");
        }
    }
}

#[test]
fn only_a_few_stated_origins_are_tried() {
    let own = own_scripts();
    let right = own.origin(child(0, 3)).unwrap();
    let script = own.derive(child(0, 3)).unwrap().script();
    let wrong: Vec<KeyOrigin> = (50..90)
        .map(|index| own.origin(child(0, index)).unwrap())
        .collect();
    let other_wallet = KeyOrigin {
        fingerprint: [0; 4],
        ..right.clone()
    };
    let hardened = KeyOrigin {
        path: vec![0, 1 << 31],
        ..right.clone()
    };
    let longer = KeyOrigin {
        path: vec![0, 0, 3],
        ..right.clone()
    };
    let found = |origins: &[KeyOrigin]| own.find(origins, &script).is_some();
    assert!(found(&[
        wrong[0].clone(),
        wrong[1].clone(),
        wrong[2].clone(),
        right.clone()
    ]));
    // What does not even name a child of this key costs nothing and does not count.
    let elsewhere = vec![vec![other_wallet, hardened, longer]; 9].concat();
    assert!(found(&[elsewhere, vec![right.clone()]].concat()));
    assert!(!found(&[wrong.clone(), vec![right]].concat()));
    assert!(!found(&wrong));
    assert!(!found(&[]));
}

#[test]
fn a_tree_of_leaves_must_be_complete() {
    let parts = Parts::new();
    let internal_key = parts.outputs[1].origin.as_ref().unwrap().x_only_key;
    let output = [&[1, 0x05, 32][..], &internal_key].concat();
    let (place, field) = (Place::Output(1), "PSBT_OUT_TAP_TREE");
    let leaf = |depth: u8| vec![depth, 0xc0, 1, 0x51];
    for (depths, is_tree) in [
        (&[0][..], true),
        (&[1, 1], true),
        (&[1, 2, 2], true),
        (&[2, 2, 1], true),
        (&[2, 2, 2, 2], true),
        (&[], false),
        (&[1], false),
        (&[0, 0], false),
        (&[2, 1, 2], false),
        (&[1, 1, 1], false),
        (&[129], false),
    ] {
        let tree: Vec<u8> = depths.iter().copied().flat_map(leaf).collect();
        let psbt = Psbt::parse(&with_field(&parts.v0(), &output, &[0x06], &tree));
        let expected = Err(PsbtError::WrongValue { place, field });
        assert_eq!(psbt.is_ok(), is_tree, "{depths:?}");
        assert!(is_tree || psbt == expected);
    }
}

//! From a PSBT to the final transaction: signatures go where they belong and nothing else moves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]
#![allow(clippy::arithmetic_side_effects, missing_docs)]

use bitcoin::{
    secp256k1::{Keypair, Message, Parity, PublicKey, Scalar, Secp256k1, SecretKey},
    sighash::{Prevouts, SighashCache, TapSighashType},
};
use firn_protocol::{
    bitcoin::{
        Child, ChildRange, DerivedKey, ExtendedKey, Network, OutPoint, OwnScripts, Psbt, PsbtError,
        Sats, ScriptPubKey, SighashType, Summary, TxIn, TxOut, Txid,
        psbt::{
            KeyPathSignature, NewInput, NewOutput, PsbtVersion, build_v0, build_v2,
            extract_transaction, insert_key_path_signatures,
        },
        verify_bip340,
    },
    ids::GroupKey,
};

fn own(secret: &SecretKey) -> OwnScripts {
    let public = PublicKey::from_secret_key(&Secp256k1::new(), secret);
    let key = ExtendedKey::of_group(&GroupKey::from_bytes(public.serialize())).unwrap();
    OwnScripts::new(key, ChildRange::new(1, 1_000).unwrap()).unwrap()
}

fn parts(own: &OwnScripts) -> (Vec<NewInput>, Vec<NewOutput>) {
    let inputs = (0..3_u32).map(|number| {
        let child = Child::new(number % 2, number).unwrap();
        NewInput {
            txin: TxIn {
                outpoint: OutPoint {
                    txid: Txid::new([4; 32]),
                    vout: number,
                },
                sequence: 0xffff_fffd,
            },
            spent: TxOut {
                value: Sats::new(10_000).unwrap(),
                script: own.derive(child).unwrap().script(),
            },
            origin: Some(own.origin(child).unwrap()),
            sighash_type: (number == 1).then_some(SighashType::All),
        }
    });
    let output = TxOut {
        value: Sats::new(29_000).unwrap(),
        script: ScriptPubKey::taproot(&[1; 32]),
    };
    (
        inputs.collect(),
        vec![NewOutput {
            output,
            origin: None,
        }],
    )
}

/// What t members would do together: the child's secret, the sign of its point, the tweak.
fn sign(secret: &SecretKey, key: &DerivedKey, sighash: [u8; 32]) -> [u8; 64] {
    let secp = Secp256k1::new();
    let scalar = |bytes: &[u8; 32]| Scalar::from_be_bytes(*bytes).unwrap();
    let mut own = secret.add_tweak(&scalar(key.additive_tweak())).unwrap();
    if own.x_only_public_key(&secp).1 == Parity::Odd {
        own = own.negate();
    }
    let own = own.add_tweak(&scalar(key.taproot_tweak())).unwrap();
    assert_eq!(
        own.x_only_public_key(&secp).1 == Parity::Odd,
        key.is_output_key_odd()
    );
    let pair = Keypair::from_secret_key(&secp, &own);
    secp.sign_schnorr_no_aux_rand(&Message::from_digest(sighash), &pair)
        .serialize()
}

fn signatures(secret: &SecretKey, psbt: &[u8]) -> Vec<KeyPathSignature> {
    let psbt = Psbt::parse(psbt).unwrap();
    let summary = Summary::of(&psbt, Network::Regtest, &own(secret)).unwrap();
    let signatures = summary.own_inputs().map(|input| {
        let signature = sign(secret, &input.key, input.sighash);
        assert!(verify_bip340(
            input.key.output_key(),
            &input.sighash,
            &signature
        ));
        KeyPathSignature {
            input: input.index,
            sighash_type: input.sighash_type,
            signature,
        }
    });
    signatures.collect()
}

#[test]
fn signs_for_even_and_odd_groups_in_both_versions_as_rust_bitcoin_would_check() {
    let secp = Secp256k1::new();
    let mut parities = Vec::new();
    for number in 1..=6_u8 {
        let secret = SecretKey::from_slice(&[number; 32]).unwrap();
        parities.push(secret.x_only_public_key(&secp).1);
        let (inputs, outputs) = parts(&own(&secret));
        let v0 = build_v0(2, 5, &inputs, &outputs).unwrap();
        let v2 = build_v2(2, 5, &inputs, &outputs).unwrap();
        let made = [(v0, PsbtVersion::V0), (v2, PsbtVersion::V2)].map(|(psbt, version)| {
            let signed = insert_key_path_signatures(&psbt, &signatures(&secret, &psbt)).unwrap();
            assert_eq!(Psbt::parse(&signed).unwrap().version(), version);
            extract_transaction(&signed).unwrap()
        });
        assert_eq!(made[0], made[1]);
        let theirs: bitcoin::Transaction = bitcoin::consensus::deserialize(&made[0]).unwrap();
        assert_eq!(theirs.lock_time.to_consensus_u32(), 5);
        let prevouts: Vec<bitcoin::TxOut> = inputs
            .iter()
            .map(|input| bitcoin::consensus::deserialize(&input.spent.to_bytes()).unwrap())
            .collect();
        let mut cache = SighashCache::new(&theirs);
        for (index, input) in inputs.iter().enumerate() {
            let witness = theirs.input[index].witness.to_vec();
            assert_eq!(witness.len(), 1);
            let signature = bitcoin::taproot::Signature::from_slice(&witness[0]).unwrap();
            let expected = if index == 1 {
                TapSighashType::All
            } else {
                TapSighashType::Default
            };
            assert_eq!(signature.sighash_type, expected);
            let sighash = cache
                .taproot_key_spend_signature_hash(index, &Prevouts::All(&prevouts), expected)
                .unwrap();
            let key = input.spent.script.taproot_output_key().unwrap();
            let key = bitcoin::XOnlyPublicKey::from_slice(&key).unwrap();
            secp.verify_schnorr(&signature.signature, &Message::from(sighash), &key)
                .unwrap();
        }
    }
    assert!(parities.contains(&Parity::Even) && parities.contains(&Parity::Odd));
}

#[test]
fn keeps_unknown_fields_and_every_other_byte_where_they_were() {
    let secret = SecretKey::from_slice(&[1; 32]).unwrap();
    let (inputs, outputs) = parts(&own(&secret));
    let [v0, v2] = [
        build_v0(2, 5, &inputs, &outputs).unwrap(),
        build_v2(2, 5, &inputs, &outputs).unwrap(),
    ];
    for original in [v0, v2] {
        // Unknown and proprietary fields: in the global map, in each input (last), out of order.
        let unknown = [&[4, 0xf0, 1, 2, 3, 2, 8, 9][..], &[3, 0xfc, 1, 7, 0]].concat();
        let mut psbt = [&original[..5], &unknown, &original[5..]].concat();
        for input in &inputs {
            let key = input.origin.as_ref().unwrap().x_only_key;
            let internal = [&[1, 0x17, 32][..], &key].concat();
            let at = psbt
                .windows(internal.len())
                .position(|window| window == internal)
                .unwrap();
            psbt.splice(at..at, unknown.iter().copied());
        }
        let all = signatures(&secret, &psbt);
        let signed = insert_key_path_signatures(&psbt, &all).unwrap();
        // Taking the signatures' fields out again leaves the original.
        let mut stripped = signed.clone();
        for signature in &all {
            let value = signature.to_bytes();
            let field = [&[1, 0x13, u8::try_from(value.len()).unwrap()][..], &value].concat();
            let at = stripped
                .windows(field.len())
                .position(|window| window == field)
                .unwrap();
            stripped.drain(at..at + field.len());
        }
        assert_eq!(stripped, psbt);
        assert_eq!(
            signed
                .windows(unknown.len())
                .filter(|window| *window == unknown)
                .count(),
            4
        );
        // Rust-bitcoin reads what was written, where it reads the version at all.
        if let Ok(theirs) = bitcoin::Psbt::deserialize(&signed) {
            assert!(
                theirs
                    .inputs
                    .iter()
                    .all(|input| input.tap_key_sig.is_some())
            );
        }
        for end in 0..signed.len() {
            assert!(Psbt::parse(&signed[..end]).is_err());
        }
    }
}

#[test]
fn a_signed_version_2_psbt_says_that_nothing_may_be_added() {
    let secret = SecretKey::from_slice(&[1; 32]).unwrap();
    let (inputs, outputs) = parts(&own(&secret));
    let psbt = build_v2(2, 5, &inputs, &outputs).unwrap();
    let with = |flags| [&psbt[..5], &[1, 0x06, 1, flags], &psbt[5..]].concat();
    for (before, after) in [(0b11, 0), (0b01, 0), (0b1111, 0b1100), (0, 0)] {
        let all = signatures(&secret, &with(before));
        let signed = insert_key_path_signatures(&with(before), &all).unwrap();
        assert_eq!(signed[5..9], [1, 0x06, 1, after]);
    }
}

#[test]
fn refuses_signatures_that_have_no_place() {
    let secret = SecretKey::from_slice(&[1; 32]).unwrap();
    let (mut inputs, outputs) = parts(&own(&secret));
    let psbt = build_v0(2, 5, &inputs, &outputs).unwrap();
    let all = signatures(&secret, &psbt);
    let signed = insert_key_path_signatures(&psbt, &all).unwrap();
    let first = all[0];
    let of = |change: fn(&mut KeyPathSignature)| {
        let mut signature = first;
        change(&mut signature);
        insert_key_path_signatures(&psbt, &[signature])
    };
    assert_eq!(
        of(|signature| signature.input = 3),
        Err(PsbtError::NoSuchInput(3))
    );
    assert_eq!(
        of(|signature| signature.sighash_type = SighashType::All),
        Err(PsbtError::SighashTypeMismatch(0))
    );
    assert_eq!(
        of(|signature| signature.input = 1),
        Err(PsbtError::SighashTypeMismatch(1))
    );
    let twice = insert_key_path_signatures(&psbt, &[first, first]);
    assert_eq!(twice, Err(PsbtError::AlreadySigned(0)));
    assert_eq!(
        insert_key_path_signatures(&signed, &[first]),
        Err(PsbtError::AlreadySigned(0))
    );
    assert_eq!(extract_transaction(&psbt), Err(PsbtError::NotSigned(0)));
    let partly = insert_key_path_signatures(&psbt, &all[..2]).unwrap();
    assert_eq!(extract_transaction(&partly), Err(PsbtError::NotSigned(2)));
    let mut key_hash = vec![0x00, 0x14];
    key_hash.extend_from_slice(&[3; 20]);
    inputs[0].spent.script = ScriptPubKey::new(key_hash);
    let foreign = build_v0(2, 5, &inputs, &outputs).unwrap();
    assert_eq!(
        insert_key_path_signatures(&foreign, &[first]),
        Err(PsbtError::NotTaproot(0))
    );
}

#[test]
fn takes_out_the_transaction_that_others_finalised() {
    let secret = SecretKey::from_slice(&[1; 32]).unwrap();
    let (inputs, outputs) = parts(&own(&secret));
    let psbt = build_v0(2, 5, &inputs, &outputs).unwrap();
    let all = signatures(&secret, &psbt);
    // The third input is finalised by somebody else: a witness of two items.
    let partly = insert_key_path_signatures(&psbt, &all[..2]).unwrap();
    let key = inputs[2].origin.as_ref().unwrap().x_only_key;
    let internal = [&[1, 0x17, 32][..], &key].concat();
    let at = partly
        .windows(internal.len())
        .position(|window| window == internal)
        .unwrap();
    let finalised = [&partly[..at], &[1, 0x08, 5, 2, 1, 7, 1, 8], &partly[at..]].concat();
    let transaction = extract_transaction(&finalised).unwrap();
    let theirs: bitcoin::Transaction = bitcoin::consensus::deserialize(&transaction).unwrap();
    assert_eq!(theirs.input[2].witness.to_vec(), [vec![7], vec![8]]);
    assert_eq!(theirs.input[0].witness.to_vec(), [all[0].to_bytes()]);
    let unsigned = Psbt::parse(&psbt).unwrap();
    assert_eq!(
        theirs.compute_txid().to_string(),
        unsigned.transaction().txid().to_string()
    );
}

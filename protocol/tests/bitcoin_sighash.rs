//! What is signed: BIP-341's wallet vectors, and rust-bitcoin on many inputs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]
#![allow(clippy::arithmetic_side_effects, missing_docs)]

use bitcoin::{
    secp256k1::{Keypair, Message, Secp256k1},
    sighash::{Prevouts, SighashCache, TapSighashType},
};
use firn_protocol::bitcoin::{
    KeyPathSighashes, OutPoint, Sats, ScriptPubKey, SighashError, SighashType, TxIn, TxOut, Txid,
    UnsignedTransaction, psbt::KeyPathSignature, signature::verify_bip340,
};
use serde_json::Value;

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

#[test]
fn reproduces_the_key_path_signatures_of_bip341_and_refuses_the_open_types() {
    let file: Value = serde_json::from_str(include_str!("data/bip341-wallet.json")).unwrap();
    let case = &file["keyPathSpending"][0];
    let raw = hex::decode(text(&case["given"], "rawUnsignedTx")).unwrap();
    let transaction = UnsignedTransaction::parse(&raw).unwrap();
    assert_eq!(transaction.to_bytes(), raw);
    let spent: Vec<TxOut> = case["given"]["utxosSpent"]
        .as_array()
        .unwrap()
        .iter()
        .map(|output| TxOut {
            value: Sats::new(output["amountSats"].as_u64().unwrap()).unwrap(),
            script: ScriptPubKey::new(hex::decode(text(output, "scriptPubKey")).unwrap()),
        })
        .collect();
    let sighashes = KeyPathSighashes::new(&transaction, &spent).unwrap();
    let (mut signed, mut refused) = (Vec::new(), Vec::new());
    for spending in case["inputSpending"].as_array().unwrap() {
        let input = usize::try_from(spending["given"]["txinIndex"].as_u64().unwrap()).unwrap();
        let number = u32::try_from(spending["given"]["hashType"].as_u64().unwrap()).unwrap();
        let of = SighashType::of_field(Some(number)).unwrap();
        let sighash = sighashes.sighash(input, of);
        if !of.covers_everything() {
            assert_eq!(sighash, Err(SighashError::TypeRefused(of)));
            refused.push(number);
            continue;
        }
        let sighash = sighash.unwrap();
        assert_eq!(
            hex::encode(sighash),
            text(&spending["intermediary"], "sigHash")
        );
        let secp = Secp256k1::new();
        let secret = text(&spending["intermediary"], "tweakedPrivkey");
        let pair = Keypair::from_seckey_str(&secp, secret).unwrap();
        let message = Message::from_digest(sighash);
        let signature = secp
            .sign_schnorr_with_aux_rand(&message, &pair, &[0; 32])
            .serialize();
        let witness = KeyPathSignature {
            input,
            sighash_type: of,
            signature,
        }
        .to_bytes();
        assert_eq!(
            hex::encode(witness),
            spending["expected"]["witness"][0].as_str().unwrap()
        );
        let key = spent[input].script.taproot_output_key().unwrap();
        assert!(verify_bip340(&key, &sighash, &signature));
        signed.push(number);
    }
    assert_eq!(signed, [1, 0]);
    assert_eq!(refused, [3, 131, 2, 130, 129]);
}

#[test]
fn knows_the_seven_types_and_no_other() {
    let known: Vec<u32> = (0..=0x1ff)
        .filter(|number| SighashType::of_field(Some(*number)).is_some())
        .collect();
    assert_eq!(known, [0, 1, 2, 3, 0x81, 0x82, 0x83]);
    assert_eq!(SighashType::of_field(Some(0x0100_0001)), None);
    assert_eq!(SighashType::of_field(None), Some(SighashType::Default));
}

#[test]
fn agrees_with_rust_bitcoin_for_every_input_of_a_large_transaction() {
    let script = |number: u32| ScriptPubKey::taproot(&[u8::try_from(number % 251).unwrap(); 32]);
    let value = |number: u32| Sats::new(1_000 + u64::from(number)).unwrap();
    let inputs = (0..300).map(|vout| TxIn {
        outpoint: OutPoint {
            txid: Txid::new([5; 32]),
            vout,
        },
        sequence: 0xffff_fffe - vout,
    });
    let output = |number| TxOut {
        value: value(number),
        script: script(number),
    };
    let spent: Vec<TxOut> = (0..300).map(output).collect();
    let outputs: Vec<TxOut> = (300..310).map(output).collect();
    let transaction = UnsignedTransaction::new(2, inputs.collect(), outputs, 77).unwrap();
    let sighashes = KeyPathSighashes::new(&transaction, &spent).unwrap();
    let theirs: bitcoin::Transaction =
        bitcoin::consensus::deserialize(&transaction.to_bytes()).unwrap();
    let prevouts: Vec<bitcoin::TxOut> = spent
        .iter()
        .map(|output| bitcoin::consensus::deserialize(&output.to_bytes()).unwrap())
        .collect();
    let mut cache = SighashCache::new(&theirs);
    for input in 0..300 {
        for (of, type_) in [
            (SighashType::Default, TapSighashType::Default),
            (SighashType::All, TapSighashType::All),
        ] {
            let expected = cache
                .taproot_key_spend_signature_hash(input, &Prevouts::All(&prevouts), type_)
                .unwrap();
            assert_eq!(
                sighashes.sighash(input, of).unwrap(),
                *AsRef::<[u8; 32]>::as_ref(&expected)
            );
        }
    }
    assert_eq!(
        sighashes.sighash(300, SighashType::Default),
        Err(SighashError::NoSuchInput(300))
    );
    assert!(matches!(
        KeyPathSighashes::new(&transaction, &spent[1..]),
        Err(SighashError::SpentOutputCount)
    ));
}

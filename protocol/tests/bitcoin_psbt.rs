//! Which PSBTs are read and which are refused: all examples of BIP-174, BIP-370 and BIP-371, and
//! damage of our own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]
#![allow(clippy::arithmetic_side_effects, missing_docs)]

mod bitcoin_vectors;

use bitcoin_vectors::{Example, psbt_examples};
use firn_protocol::bitcoin::{
    Psbt, PsbtError, TransactionError,
    psbt::{Place, extract_transaction, insert_key_path_signatures},
};

const CORE: [&[u8]; 3] = [
    include_bytes!("data/core_selfsend.psbt"),
    include_bytes!("data/core_stranger.psbt"),
    include_bytes!("data/core_to_internal.psbt"),
];

/// The invalid examples of BIP-174 and BIP-371, with the rule that each breaks. Those of BIP-370
/// name their rule themselves.
fn broken_rule(case: &str) -> PsbtError {
    use Place::{Global, Input, Output};
    let key = |place, field| PsbtError::WrongKeyLength { place, field };
    let value = |place, field| PsbtError::WrongValue { place, field };
    let missing_tx = PsbtError::MissingField {
        place: Global,
        field: "PSBT_GLOBAL_UNSIGNED_TX",
    };
    let witness_form = PsbtError::Transaction(TransactionError::WitnessSerialization);
    let rules = [
        ("Network transaction", PsbtError::BadMagic),
        ("PSBT missing outputs", PsbtError::Truncated),
        (
            "filled scriptSig",
            PsbtError::Transaction(TransactionError::ScriptSig(0)),
        ),
        ("without an unsigned tx", missing_tx),
        (
            "duplicate keys",
            PsbtError::DuplicateKey {
                place: Input(0),
                key_type: 0,
            },
        ),
        (
            "global transaction typed key",
            key(Global, "PSBT_GLOBAL_UNSIGNED_TX"),
        ),
        (
            "input witness utxo typed key",
            key(Input(0), "PSBT_IN_WITNESS_UTXO"),
        ),
        (
            "partial signature typed key",
            key(Input(0), "PSBT_IN_PARTIAL_SIG"),
        ),
        (
            "invalid redeemscript typed key",
            key(Input(0), "PSBT_IN_REDEEM_SCRIPT"),
        ),
        (
            "invalid witnessscript typed key",
            key(Input(0), "PSBT_IN_WITNESS_SCRIPT"),
        ),
        (
            "input BIP 32 derivation",
            key(Input(0), "PSBT_IN_BIP32_DERIVATION"),
        ),
        (
            "non-witness utxo typed key",
            key(Input(0), "PSBT_IN_NON_WITNESS_UTXO"),
        ),
        (
            "final scriptsig typed key",
            key(Input(0), "PSBT_IN_FINAL_SCRIPTSIG"),
        ),
        (
            "final script witness typed key",
            key(Input(1), "PSBT_IN_FINAL_SCRIPTWITNESS"),
        ),
        (
            "output BIP 32 derivation",
            key(Output(0), "PSBT_OUT_BIP32_DERIVATION"),
        ),
        (
            "sighash type typed key",
            key(Input(0), "PSBT_IN_SIGHASH_TYPE"),
        ),
        (
            "output redeemScript typed key",
            key(Output(0), "PSBT_OUT_REDEEM_SCRIPT"),
        ),
        (
            "output witnessScript typed key",
            key(Output(1), "PSBT_OUT_WITNESS_SCRIPT"),
        ),
        ("witness serialization format", witness_form),
        ("not the stated size", witness_form),
        (
            "PSBT_IN_TAP_INTERNAL_KEY key",
            value(Input(0), "PSBT_IN_TAP_INTERNAL_KEY"),
        ),
        (
            "PSBT_IN_TAP_KEY_SIG signature",
            value(Input(0), "PSBT_IN_TAP_KEY_SIG"),
        ),
        (
            "PSBT_IN_TAP_BIP32_DERIVATION key",
            key(Input(0), "PSBT_IN_TAP_BIP32_DERIVATION"),
        ),
        (
            "PSBT_OUT_TAP_INTERNAL_KEY key",
            value(Output(1), "PSBT_OUT_TAP_INTERNAL_KEY"),
        ),
        (
            "PSBT_OUT_TAP_BIP32_DERIVATION key",
            key(Output(1), "PSBT_OUT_TAP_BIP32_DERIVATION"),
        ),
        (
            "PSBT_IN_TAP_SCRIPT_SIG key",
            key(Input(0), "PSBT_IN_TAP_SCRIPT_SIG"),
        ),
        (
            "PSBT_IN_TAP_SCRIPT_SIG signature",
            value(Input(0), "PSBT_IN_TAP_SCRIPT_SIG"),
        ),
        (
            "PSBT_IN_TAP_LEAF_SCRIPT Control",
            key(Input(0), "PSBT_IN_TAP_LEAF_SCRIPT"),
        ),
    ];
    let found = rules.iter().find(|(text, _)| case.contains(text));
    found.unwrap_or_else(|| panic!("no rule for: {case}")).1
}

fn is_invalid(example: &Example) -> bool {
    example.section.contains("invalid") || example.section.contains("cannot be computed")
}

fn valid_psbts() -> Vec<Vec<u8>> {
    let examples = psbt_examples()
        .into_iter()
        .filter(|example| !is_invalid(example));
    examples
        .map(|example| example.bytes)
        .chain(CORE.map(<[u8]>::to_vec))
        .collect()
}

#[test]
fn refuses_each_invalid_example_for_the_rule_that_it_breaks() {
    let mut refused = 0;
    for example in psbt_examples().iter().filter(|example| is_invalid(example)) {
        let case = &example.case;
        let error = Psbt::parse(&example.bytes).expect_err(case);
        refused += 1;
        // BIP-370 names the field in capitals.
        let named = case
            .split([' ', '.', ','])
            .find(|word| word.starts_with("PSBT_"));
        if example.bip != "bip0370" {
            assert_eq!(error, broken_rule(case), "{case}");
        } else if case.contains("GLOBAL_VERSION set to 2") {
            let field = "PSBT_GLOBAL_UNSIGNED_TX";
            assert_eq!(
                error,
                PsbtError::FieldOfOtherVersion {
                    place: Place::Global,
                    field
                }
            );
        } else if case.contains("but with") {
            assert!(
                matches!(error, PsbtError::FieldOfOtherVersion { field, .. } if Some(field) == named),
                "{case}: {error:?}"
            );
        } else if case.contains("missing") {
            assert!(
                matches!(error, PsbtError::MissingField { field, .. } if Some(field) == named),
                "{case}: {error:?}"
            );
        } else if case.starts_with("Input 1 has") {
            assert_eq!(error, PsbtError::ConflictingLockTimes);
        } else {
            assert_eq!(error, PsbtError::RequiredLockTimeOutOfRange(0), "{case}");
        }
    }
    assert_eq!(refused, 20 + 25 + 11);
}

#[test]
fn reads_each_valid_example_and_writes_it_back_byte_for_byte() {
    let psbts = valid_psbts();
    assert_eq!(psbts.len(), 24 + 23 + 6 + 3);
    for bytes in psbts {
        Psbt::parse(&bytes).unwrap();
        // Nothing is signed, so nothing changes.
        assert_eq!(insert_key_path_signatures(&bytes, &[]).unwrap(), bytes);
    }
}

#[test]
fn what_fails_signer_checks_is_read_but_not_good_enough_to_sign() {
    let expected = [
        PsbtError::WitnessUtxoForNonWitness(0),
        PsbtError::ScriptMismatch(0),
        PsbtError::ScriptMismatch(1),
        PsbtError::ScriptMismatch(1),
    ];
    let examples = psbt_examples();
    let failing: Vec<_> = examples
        .iter()
        .filter(|example| example.section == "Fails Signer checks")
        .collect();
    assert_eq!(failing.len(), expected.len());
    for (example, expected) in failing.iter().zip(expected) {
        let psbt = Psbt::parse(&example.bytes).unwrap();
        assert_eq!(psbt.spent_outputs(), Err(expected), "{}", example.case);
    }
}

#[test]
fn determines_lock_times_as_bip370_does() {
    let mut seen = 0;
    for example in psbt_examples() {
        let Some((_, number)) = example.section.split_once("should be computed to be ") else {
            continue;
        };
        let expected: u32 = number.trim_end_matches(':').parse().unwrap();
        let psbt = Psbt::parse(&example.bytes).unwrap();
        assert_eq!(psbt.transaction().lock_time(), expected, "{}", example.case);
        seen += 1;
    }
    assert_eq!(seen, 9);
}

#[test]
fn reads_the_same_transaction_as_rust_bitcoin() {
    let mut compared = 0;
    for bytes in valid_psbts() {
        let Ok(oracle) = bitcoin::Psbt::deserialize(&bytes) else {
            continue;
        };
        let psbt = Psbt::parse(&bytes).unwrap();
        let transaction = psbt.transaction();
        let theirs = &oracle.unsigned_tx;
        assert_eq!(
            transaction.txid().to_string(),
            theirs.compute_txid().to_string()
        );
        assert_eq!(transaction.lock_time(), theirs.lock_time.to_consensus_u32());
        compared += 1;
    }
    assert!(compared >= 25, "{compared}");
}

#[test]
fn no_truncation_of_a_valid_psbt_is_read() {
    for bytes in valid_psbts() {
        for end in 0..bytes.len() {
            assert!(
                Psbt::parse(&bytes[..end]).is_err(),
                "{end} of {}",
                bytes.len()
            );
            assert!(extract_transaction(&bytes[..end]).is_err());
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(Psbt::parse(&longer), Err(PsbtError::TrailingBytes));
    }
}

#[test]
fn no_flipped_bit_makes_it_panic_or_lose_a_byte() {
    for original in valid_psbts() {
        // Seven and eight have no common factor, so that every bit has its turn.
        for bit in (0..original.len() * 8).step_by(7) {
            let mut bytes = original.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let Ok(psbt) = Psbt::parse(&bytes) else {
                continue;
            };
            let _ = psbt.spent_outputs();
            let _ = extract_transaction(&bytes);
            assert_eq!(insert_key_path_signatures(&bytes, &[]).unwrap(), bytes);
        }
    }
}

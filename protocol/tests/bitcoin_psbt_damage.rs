//! PSBTs made wrong on purpose, each in one way.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]
#![allow(clippy::arithmetic_side_effects, missing_docs)]

use firn_protocol::{
    bitcoin::{
        Psbt, PsbtError, TransactionError,
        psbt::{MAX_FIELDS, Place},
    },
    limits,
};

const CORE: &[u8] = include_bytes!("data/core_selfsend.psbt");

/// A PSBT from the pairs of each map.
fn psbt(maps: &[&[(&[u8], &[u8])]]) -> Vec<u8> {
    let mut out = b"psbt\xff".to_vec();
    for map in maps {
        for (key, value) in *map {
            for part in [key, value] {
                assert!(part.len() < 0xfd);
                out.push(u8::try_from(part.len()).unwrap());
                out.extend_from_slice(part);
            }
        }
        out.push(0);
    }
    out
}

const VERSION_2: (&[u8], &[u8]) = (&[0xfb], &[2, 0, 0, 0]);
const TX_VERSION: (&[u8], &[u8]) = (&[0x02], &[2, 0, 0, 0]);

/// A version 2 PSBT with one input and one output, and more fields in either.
fn small(more_in: &[(&[u8], &[u8])], amount: u64) -> Vec<u8> {
    let amount = amount.to_le_bytes();
    let mut input: Vec<(&[u8], &[u8])> = vec![(&[0x0e], &[7; 32]), (&[0x0f], &[0, 0, 0, 0])];
    input.extend_from_slice(more_in);
    let global = [VERSION_2, TX_VERSION, (&[0x04], &[1]), (&[0x05], &[1])];
    psbt(&[&global, &input, &[(&[0x03], &amount), (&[0x04], &[0x6a])]])
}

#[test]
fn refuses_what_rust_bitcoin_lets_through_and_what_would_cost_memory() {
    let good = small(&[], 5);
    Psbt::parse(&good).unwrap();
    let place = Place::Global;
    let two_inputs = {
        let global = [
            VERSION_2,
            TX_VERSION,
            (&[0x04][..], &[2][..]),
            (&[0x05], &[0]),
        ];
        let input: &[(&[u8], &[u8])] = &[(&[0x0e], &[7; 32]), (&[0x0f], &[0, 0, 0, 0])];
        psbt(&[&global, input, input])
    };
    assert!(matches!(
        Psbt::parse(&two_inputs),
        Err(PsbtError::DuplicateInput(_))
    ));

    let mut too_many = b"psbt\xff".to_vec();
    for number in 0..=u32::try_from(MAX_FIELDS).unwrap() {
        too_many.extend_from_slice(&[5, 0xf0]);
        too_many.extend_from_slice(&number.to_be_bytes());
        too_many.push(0);
    }
    too_many.push(0);
    let count = |key: u8, value: &[u8]| {
        let mut global = vec![
            VERSION_2,
            TX_VERSION,
            (&[0x04][..], &[0][..]),
            (&[0x05], &[0]),
        ];
        global[if key == 4 { 2 } else { 3 }].1 = value;
        psbt(&[&global])
    };
    let too_many_inputs = PsbtError::Transaction(TransactionError::TooManyInputs);
    let too_many_outputs = PsbtError::Transaction(TransactionError::TooManyOutputs);
    let too_much = PsbtError::Transaction(TransactionError::AmountTooLarge);
    let most = [0xff; 9];
    let cases: Vec<(&str, Vec<u8>, PsbtError)> = vec![
        (
            "an amount above 21 million",
            small(&[], 2_100_000_000_000_001),
            too_much,
        ),
        ("a negative amount", small(&[], u64::MAX), too_much),
        (
            "a version of the future",
            psbt(&[&[(&[0xfb], &[3, 0, 0, 0])]]),
            PsbtError::UnsupportedVersion(3),
        ),
        (
            "version 1",
            psbt(&[&[(&[0xfb], &[1, 0, 0, 0])]]),
            PsbtError::UnsupportedVersion(1),
        ),
        (
            "a version of one byte",
            psbt(&[&[(&[0xfb], &[2])]]),
            PsbtError::WrongValue {
                place,
                field: "PSBT_GLOBAL_VERSION",
            },
        ),
        ("too many fields", too_many, PsbtError::TooManyFields),
        ("2^64 - 1 inputs", count(4, &most), too_many_inputs),
        (
            "1001 inputs",
            count(4, &[0xfd, 0xe9, 0x03]),
            too_many_inputs,
        ),
        ("2^64 - 1 outputs", count(5, &most), too_many_outputs),
        (
            "a count in a longer form",
            count(4, &[0xfd, 0, 0]),
            PsbtError::WrongValue {
                place,
                field: "PSBT_GLOBAL_INPUT_COUNT",
            },
        ),
        (
            "a length in a longer form",
            [&b"psbt\xff\xfd\x01\x00"[..], &good[6..]].concat(),
            PsbtError::NonMinimalCompactSize(place),
        ),
        (
            "a length beyond the end",
            b"psbt\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff".to_vec(),
            PsbtError::Truncated,
        ),
        (
            "more bytes than the limit",
            [&good[..], &vec![0; limits::MAX_PSBT]].concat(),
            PsbtError::TooLarge,
        ),
        ("nothing", Vec::new(), PsbtError::BadMagic),
    ];
    for (name, bytes, expected) in cases {
        assert_eq!(Psbt::parse(&bytes), Err(expected), "{name}");
    }
}

#[test]
fn believes_a_spent_output_only_from_the_transaction_that_made_it() {
    let core = Psbt::parse(CORE).unwrap();
    let previous = core.transaction();
    let (bytes, txid) = (previous.to_bytes(), *previous.txid().as_bytes());
    let stated = previous.outputs()[0].to_bytes();
    let other = previous.outputs()[1].to_bytes();
    let parse = |txid: &[u8; 32], vout: u32, fields: &[(&[u8], &[u8])]| {
        let vout = vout.to_le_bytes();
        let mut input: Vec<(&[u8], &[u8])> = fields.to_vec();
        input.extend([(&[0x0e][..], &txid[..]), (&[0x0f], &vout)]);
        let global = [
            VERSION_2,
            TX_VERSION,
            (&[0x04][..], &[1][..]),
            (&[0x05], &[0]),
        ];
        Psbt::parse(&psbt(&[&global, &input]))
    };
    let previous_tx: (&[u8], &[u8]) = (&[0x00], &bytes);
    let found = parse(&txid, 0, &[previous_tx, (&[0x01], &stated)]).unwrap();
    assert_eq!(found.spent_outputs().unwrap(), previous.outputs()[..1]);
    let error = TransactionError::NoSuchOutput(2);
    let utxo = |value: &[u8]| parse(&txid, 0, &[(&[0x01], value)]).map(|_| ());
    let (place, field) = (Place::Input(0), "PSBT_IN_WITNESS_UTXO");
    assert_eq!(
        parse(&[9; 32], 0, &[previous_tx]),
        Err(PsbtError::PreviousTransactionIdMismatch(0))
    );
    assert_eq!(
        parse(&txid, 0, &[previous_tx, (&[0x01], &other)]),
        Err(PsbtError::SpentOutputMismatch(0))
    );
    assert_eq!(
        parse(&txid, 2, &[previous_tx]),
        Err(PsbtError::PreviousTransaction { input: 0, error })
    );
    assert_eq!(utxo(&stated), Ok(()));
    let longer = [&stated[..], &[0]].concat();
    let shorter = &stated[..stated.len() - 1];
    let too_much = [&u64::MAX.to_le_bytes()[..], &stated[8..]].concat();
    for value in [&longer[..], shorter, &too_much, &[]] {
        assert_eq!(utxo(value), Err(PsbtError::WrongValue { place, field }));
    }
    assert_eq!(
        parse(&txid, 0, &[]).unwrap().spent_outputs(),
        Err(PsbtError::MissingSpentOutput(0))
    );
}

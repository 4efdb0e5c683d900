//! The transaction that made a spent output, as BIP-174 lets a PSBT carry it. Decides its id and what
//! the output was; never whether it is in the chain.

use super::{
    transaction::{
        ScriptPubKey, TransactionError, TxOut, Txid, double_sha256, read_input, read_output,
    },
    wire::Cursor,
};

/// The id of a serialised previous transaction, and its output `vout`. Reads either form, copies
/// only that output.
pub(super) fn previous_output(bytes: &[u8], vout: u32) -> Result<(Txid, TxOut), TransactionError> {
    let mut cursor = Cursor::new(bytes);
    let version = cursor.array::<4>()?;
    let has_witnesses = cursor.rest().first() == Some(&0);
    if has_witnesses {
        cursor.u8()?;
        if cursor.u8()? != 1 {
            return Err(TransactionError::BadWitness);
        }
    }
    // What the id covers is contiguous: from the input count to the last output.
    let body = cursor.rest();
    let inputs = cursor.compact_size()?;
    for _ in 0..inputs {
        read_input(&mut cursor)?;
    }
    let outputs = cursor.compact_size()?;
    let mut spent = None;
    for index in 0..outputs {
        let output = read_output(&mut cursor)?;
        if index == u64::from(vout) {
            spent = Some(output);
        }
    }
    let body = body
        .get(..body.len().saturating_sub(cursor.rest().len()))
        .ok_or(TransactionError::Truncated)?;
    if has_witnesses {
        let mut items = 0_u64;
        for _ in 0..inputs {
            let stack = cursor.compact_size()?;
            items = items.saturating_add(stack);
            for _ in 0..stack {
                cursor.prefixed()?;
            }
        }
        if items == 0 {
            return Err(TransactionError::BadWitness);
        }
    }
    let lock_time = cursor.array::<4>()?;
    if !cursor.is_empty() {
        return Err(TransactionError::TrailingBytes);
    }
    let (value, script) = spent.ok_or(TransactionError::NoSuchOutput(vout))?;
    let output = TxOut {
        value,
        script: ScriptPubKey::new(script.to_vec()),
    };
    Ok((
        Txid::new(double_sha256(&[&version, body, &lock_time])),
        output,
    ))
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            Sats,
            transaction::{OutPoint, TxIn, UnsignedTransaction},
        },
        *,
    };

    fn output(sats: u64) -> TxOut {
        TxOut {
            value: Sats::new(sats).unwrap(),
            script: ScriptPubKey::taproot(&[7; 32]),
        }
    }

    #[test]
    fn finds_a_previous_output_as_rust_bitcoin_does() {
        use ::bitcoin::consensus::deserialize;
        let outpoint = OutPoint {
            txid: Txid::new([1; 32]),
            vout: 0,
        };
        let input = TxIn {
            outpoint,
            sequence: 5,
        };
        let unsigned =
            UnsignedTransaction::new(2, vec![input], vec![output(4), output(6)], 9).unwrap();
        let signed = unsigned.signed(&[(&[], vec![&[3; 64]])]);
        for bytes in [unsigned.to_bytes(), signed] {
            let oracle: ::bitcoin::Transaction = deserialize(&bytes).unwrap();
            let (txid, found) = previous_output(&bytes, 1).unwrap();
            assert_eq!(txid.to_string(), oracle.compute_txid().to_string());
            assert_eq!(txid, unsigned.txid());
            assert_eq!(found, output(6));
            assert_eq!(
                previous_output(&bytes, 2),
                Err(TransactionError::NoSuchOutput(2))
            );
            for end in 0..bytes.len() {
                assert!(previous_output(&bytes[..end], 1).is_err(), "{end}");
            }
            let longer = [&bytes[..], &[0]].concat();
            assert_eq!(
                previous_output(&longer, 1),
                Err(TransactionError::TrailingBytes)
            );
        }
        let superfluous = [
            &unsigned.to_bytes()[..4],
            &[0, 1],
            &unsigned.to_bytes()[4..unsigned.to_bytes().len() - 4],
            &[0, 9, 0, 0, 0],
        ]
        .concat();
        assert_eq!(
            previous_output(&superfluous, 1),
            Err(TransactionError::BadWitness)
        );
    }
}

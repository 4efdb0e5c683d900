//! The bytes that the digest of a PSBT's intent is made over: everything that signing would mean,
//! and nothing of how it was written down. Two PSBTs of one transaction give the same bytes.

use super::{extended_key::Child, summary::Summary};

impl Summary {
    /// Network, transaction, every spent output in order, for each own input and output its child,
    /// and the sighash type of each own input. Integers are little endian, scripts follow their
    /// length, lists their count, so no two summaries share these bytes. The key itself is not in
    /// them: the caller binds its id.
    #[must_use]
    pub fn intent_preimage(&self) -> Vec<u8> {
        let transaction = self.transaction();
        let mut out = Vec::new();
        out.extend_from_slice(&self.network().number().to_le_bytes());
        out.extend_from_slice(&transaction.version().to_le_bytes());
        out.extend_from_slice(&transaction.lock_time().to_le_bytes());
        put_length(&mut out, self.inputs().len());
        for input in self.inputs() {
            out.extend_from_slice(input.outpoint.txid.as_bytes());
            out.extend_from_slice(&input.outpoint.vout.to_le_bytes());
            out.extend_from_slice(&input.sequence.to_le_bytes());
            out.extend_from_slice(&input.spent.value.value().to_le_bytes());
            put_script(&mut out, input.spent.script.as_bytes());
            put_child(&mut out, input.own.map(|own| own.key.child()));
            if let Some(own) = input.own {
                out.push(own.sighash_type.to_u8());
            }
        }
        put_length(&mut out, self.outputs().len());
        for output in self.outputs() {
            out.extend_from_slice(&output.output.value.value().to_le_bytes());
            put_script(&mut out, output.output.script.as_bytes());
            put_child(&mut out, output.own);
        }
        out
    }
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    // What is summarised fits into a PSBT of a mebibyte, so every length fits 32 bits.
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
}

fn put_script(out: &mut Vec<u8>, script: &[u8]) {
    put_length(out, script.len());
    out.extend_from_slice(script);
}

fn put_child(out: &mut Vec<u8>, child: Option<Child>) {
    match child {
        None => out.push(0),
        Some(child) => {
            out.push(1);
            out.extend_from_slice(&child.branch().to_le_bytes());
            out.extend_from_slice(&child.index().to_le_bytes());
        }
    }
}

//! What a run of the demo leaves for scripts. The names are an interface.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One object for one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DemoReport {
    /// The key's id.
    pub key_id: String,
    /// The group key with its true parity, 33 bytes in hexadecimal.
    pub group_key: String,
    /// What wallets watch the key with.
    pub descriptor: String,
    /// The first receiving address.
    pub address: String,
    /// How many members sign.
    pub threshold: u16,
    /// What was signed, in order.
    pub transactions: Vec<ReportedTransaction>,
    /// The participants' process ids, by member.
    pub participant_pids: Vec<u32>,
    /// The participants' folders, by member: each is what `firn ledger check` takes.
    pub participant_dirs: Vec<PathBuf>,
    /// The coordinator's process id.
    pub coordinator_pid: u32,
    /// The coordinator's folder.
    pub coordinator_dir: PathBuf,
    /// The folder of the whole run.
    pub dir: PathBuf,
    /// The Authorities that everything is verified with.
    pub authorities: PathBuf,
    /// The folder of everything that was said and signed.
    pub evidence: PathBuf,
    /// What had to hold, and whether it did.
    pub verdicts: Vec<ReportedVerdict>,
    /// How long all of it took.
    pub elapsed_ms: u64,
}

/// A signed transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedTransaction {
    /// The transaction with its witnesses, in hexadecimal.
    pub tx: String,
    /// Its id, as people read it.
    pub txid: String,
    /// What each input spends, in order.
    pub prevouts: Vec<ReportedPrevout>,
    /// The request that it was signed under.
    pub request_id: String,
    /// The session that signed it.
    pub session_id: String,
    /// The members whose shares are in the signatures.
    pub signers: Vec<String>,
    /// From asking to verified signatures.
    pub elapsed_ms: u64,
}

/// A spent output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedPrevout {
    /// The amount in satoshi.
    pub value: u64,
    /// The script in hexadecimal.
    pub script: String,
}

/// One thing that had to hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedVerdict {
    /// What.
    pub name: String,
    /// Whether it did.
    pub holds: bool,
}

#[cfg(test)]
mod tests {
    use super::{DemoReport, ReportedPrevout, ReportedTransaction, ReportedVerdict};

    #[test]
    fn the_names_that_scripts_read_stay() {
        let report = DemoReport {
            key_id: String::new(),
            group_key: "02".to_owned(),
            descriptor: "tr()".to_owned(),
            address: "bcrt1p".to_owned(),
            threshold: 2,
            transactions: vec![ReportedTransaction {
                tx: "00".to_owned(),
                txid: String::new(),
                prevouts: vec![ReportedPrevout {
                    value: 7,
                    script: "5120".to_owned(),
                }],
                request_id: "11".to_owned(),
                session_id: "22".to_owned(),
                signers: vec!["member-1".to_owned()],
                elapsed_ms: 5,
            }],
            participant_pids: vec![1],
            participant_dirs: vec!["/a".into()],
            coordinator_pid: 2,
            coordinator_dir: "/c".into(),
            dir: "/".into(),
            authorities: "/authorities.cbor".into(),
            evidence: "/evidence".into(),
            verdicts: vec![ReportedVerdict {
                name: "x".to_owned(),
                holds: true,
            }],
            elapsed_ms: 9,
        };
        let json = serde_json::to_value(&report).unwrap();
        for name in [
            "group_key",
            "descriptor",
            "address",
            "transactions",
            "participant_pids",
            "participant_dirs",
            "authorities",
            "evidence",
            "verdicts",
        ] {
            assert!(json.get(name).is_some(), "{name}");
        }
        let transaction = &json["transactions"][0];
        for name in ["tx", "request_id", "session_id", "signers", "elapsed_ms"] {
            assert!(transaction.get(name).is_some(), "{name}");
        }
        assert_eq!(transaction["prevouts"][0]["value"], 7);
        assert_eq!(transaction["prevouts"][0]["script"], "5120");
        assert_eq!(serde_json::from_value::<DemoReport>(json).unwrap(), report);
    }
}

//! A key that a ceremony by hand has made, and whoever works with it.

use std::{fs, net::SocketAddr, path::Path, process::Command};

use bitcoin::{Address, Network, Psbt, ScriptBuf, Transaction};
use firn_ceremony::{
    authority,
    domain::{GRANT_KEY, files::write_document},
};
use firn_protocol::ids::PlanDigest;
use firn_tests::{
    cluster::{
        Cluster, independent,
        key::{rule_terms, stranger, unique},
    },
    tool::{Said, Tool},
};
use serde_json::Value;
use tempfile::TempDir;

pub const COIN: u64 = 100_000;
/// More than the clocks of those who take part may differ.
pub const CLOCKS_MS: u64 = 3_000;

/// A key that a ceremony by hand has made, and whoever works with it.
pub struct Office {
    pub cluster: Cluster,
    pub scratch: TempDir,
    /// The ceremony's folder.
    pub key: String,
    pub key_id: String,
    pub ada: Tool,
    pub treasury: Tool,
}

/// A payment that was asked for.
pub struct Order {
    pub psbt: String,
    pub grant: String,
    pub request_id: String,
    /// When its grant ends.
    pub expires_ms: u64,
    /// What it spends, in order.
    pub spent: Vec<(u64, Vec<u8>)>,
}

impl Office {
    pub async fn open() -> Self {
        let cluster = Cluster::start(3, 2).await;
        let scratch = tempfile::tempdir().unwrap();
        let file = |name: &str| path(&scratch.path().join(name));
        let [ada, ben, _] = cluster.domain().operators() else {
            panic!("three operators");
        };
        let (ada, ben) = (Tool::of(ada), Tool::of(ben));
        let treasury = Tool::of(cluster.domain().requester());

        let plan = cluster.plan();
        for member in cluster.domain().members() {
            cluster.accept(member, &plan).await;
        }
        let key_id = plan.key_id(PlanDigest::from_bytes(plan.digest()));
        let rules = authority::rules(&rule_terms()).unwrap();
        let secret = cluster.domain().policy_authority().unwrap();
        let policy = authority::first_policy(key_id, rules, &secret).unwrap();
        let (plan_file, policy_file, key) = (file("plan.cbor"), file("policy.cbor"), file("key"));
        write_document(Path::new(&plan_file), plan.endorsed()).unwrap();
        write_document(Path::new(&policy_file), &policy).unwrap();
        let run = ["run", &plan_file, "--policy", &policy_file, "--out", &key];
        let made = ada.json(&run).await.well();
        let words = made["activation"]["words"].as_str().unwrap();
        let sign = ["activation", "sign", &key, "--fingerprint", words];
        ben.json(&sign).await.well();
        ada.json(&["activate", &key]).await.well();
        Self {
            cluster,
            scratch,
            key,
            key_id: key_id.to_string(),
            ada,
            treasury,
        }
    }

    pub fn file(&self, name: &str) -> String {
        path(&self.scratch.path().join(name))
    }

    pub fn grant_key(&self) -> String {
        path(&self.cluster.domain().path().join(GRANT_KEY))
    }

    /// The key's descriptor, from which other implementations derive everything else.
    pub async fn descriptor(&self) -> String {
        let said = self.ada.json(&["descriptor", "--key", &self.key]).await;
        said.well()["descriptor"].as_str().unwrap().to_owned()
    }

    /// `firn psbt new` with two coins that nobody has used before.
    pub async fn payment(&self, name: &str, to: u8, more: &[&str]) -> Said {
        let coin = |path: &str| format!("{}:1:{COIN}:{path}", hex::encode(unique()));
        let (first, second) = (coin("0/0"), coin("1/3"));
        let to = format!("{}=60000", address(stranger(to).as_bytes()));
        let out = self.file(name);
        let fixed = [
            "psbt", "new", "--key", &self.key, "--coin", &first, "--coin", &second, "--pay", &to,
            "--fee", "2000", "--change", "4", "--out", &out,
        ];
        self.ada.json(&[&fixed[..], more].concat()).await
    }

    /// `firn grant`.
    pub async fn grant(&self, psbt: &str, name: &str, more: &[&str]) -> Said {
        let (authority, out) = (self.grant_key(), self.file(name));
        let fixed = [
            "grant",
            "--key",
            &self.key,
            "--psbt",
            psbt,
            "--owner",
            "treasury",
            "--authority-key",
            &authority,
            "--out",
            &out,
        ];
        self.ada.json(&[&fixed[..], more].concat()).await
    }

    /// A payment with a grant. Its PSBT is of version 0, which rust-bitcoin reads.
    pub async fn order(&self, name: &str, more: &[&str]) -> Order {
        let psbt = format!("{name}.psbt");
        let version = ["--psbt-version", "0"];
        self.payment(&psbt, 7, &version).await.well();
        self.granted(name, &self.file(&psbt), more).await
    }

    pub async fn granted(&self, name: &str, psbt: &str, more: &[&str]) -> Order {
        let grant = format!("{name}.cbor");
        let said = self.grant(psbt, &grant, more).await.well();
        let [receiving, change] = independent::scripts(&self.descriptor().await, 4);
        Order {
            psbt: psbt.to_owned(),
            grant: self.file(&grant),
            request_id: text(&said, "request_id"),
            expires_ms: said["expires_ms"].as_u64().unwrap(),
            spent: vec![(COIN, receiving[0].clone()), (COIN, change[3].clone())],
        }
    }

    pub fn sign_arguments<'a>(&'a self, order: &'a Order, out: &'a str) -> Vec<&'a str> {
        vec![
            "sign",
            "--key",
            &self.key,
            "--psbt",
            &order.psbt,
            "--grant",
            &order.grant,
            "--out",
            out,
        ]
    }

    pub async fn sign(&self, order: &Order, name: &str, more: &[&str]) -> Said {
        let out = self.file(name);
        let arguments = self.sign_arguments(order, &out);
        self.treasury.json(&[&arguments[..], more].concat()).await
    }

    pub async fn status(&self, order: &Order, more: &[&str]) -> Said {
        let fixed = ["request", "status", &order.request_id, "--key", &self.key];
        self.treasury.json(&[&fixed[..], more].concat()).await
    }

    /// The requester behind another address than the coordinator's own.
    pub fn treasury_at(&self, address: SocketAddr) -> Tool {
        let files = &self.cluster.domain().requester().folder;
        let profile = fs::read_to_string(files.config()).unwrap();
        let own = self.cluster.peer().address.to_string();
        assert!(profile.contains(&own), "{profile}");
        let elsewhere = files.path().join(format!("at-{}.toml", address.port()));
        fs::write(&elsewhere, profile.replace(&own, &address.to_string())).unwrap();
        Tool::with(&elsewhere)
    }

    /// Members that are gone, once the coordinator knows.
    pub async fn kill(&mut self, members: &[usize]) {
        for member in members {
            self.cluster.kill(*member).await;
            self.cluster.is_missed(*member).await;
        }
    }

    pub fn names(&self, members: &[usize]) -> Vec<&str> {
        let names = members.iter().map(|member| self.cluster.member(*member));
        names.map(firn_ceremony::domain::Party::name).collect()
    }

    /// How many records each member has written, while it is perhaps writing more.
    pub fn records(&self) -> Vec<u64> {
        (1..=3).map(|n| self.cluster.records_so_far(n)).collect()
    }
}

pub fn path(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

pub fn text(object: &Value, field: &str) -> String {
    let text = object[field].as_str();
    text.unwrap_or_else(|| panic!("no {field}: {object:#}"))
        .to_owned()
}

/// As rust-bitcoin writes it.
pub fn address(script: &[u8]) -> String {
    let script = ScriptBuf::from_bytes(script.to_vec());
    let address = Address::from_script(&script, Network::Regtest).unwrap();
    address.to_string()
}

/// As coreutils decodes it.
pub fn from_base64(file: &str) -> Vec<u8> {
    let decoded = Command::new("base64").args(["-d", file]).output().unwrap();
    assert!(decoded.status.success(), "{file} is not base64");
    decoded.stdout
}

/// The transaction of a report, verified by other implementations than Firn's.
pub fn verified(report: &Value, order: &Order) -> Transaction {
    let bytes = hex::decode(text(report, "transaction")).unwrap();
    let transaction = independent::verify(&bytes, &order.spent).unwrap();
    assert_eq!(transaction.compute_txid().to_string(), text(report, "txid"));
    transaction
}

/// The signatures in a PSBT of version 0, as rust-bitcoin reads it, in the order of its inputs.
pub fn signatures(psbt: &[u8]) -> Vec<String> {
    let psbt = Psbt::deserialize(psbt).unwrap();
    let inputs = psbt.inputs.iter();
    let signatures = inputs.map(|input| input.tap_key_sig.expect("a signature"));
    signatures
        .map(|signature| hex::encode(signature.to_vec()))
        .collect()
}

/// The same as the members' ledgers hold them.
pub fn stated(report: &Value) -> Vec<String> {
    let made = report["signatures"].as_array().unwrap().iter();
    made.map(|made| text(made, "signature")).collect()
}

pub fn missing(report: &Value) -> Vec<String> {
    let members = report["missing"].as_array().unwrap().iter();
    members
        .map(|member| {
            assert!(member["since_ms"].is_number(), "{report:#}");
            text(member, "name")
        })
        .collect()
}

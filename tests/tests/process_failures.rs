//! Everything that fails on one machine, produced with the real programs: each has the code that
//! docs/ERRORS.md says, names the thing and what to do, and nothing is lost once it is put right.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests"
)]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use firn_ceremony::client::RequesterLine;
use firn_tests::cluster::{
    Cluster,
    fault::{ENOSPC, EROFS, Fault, fail_disk},
    key::{Key, Order, Signed},
    process::until,
};

const DAY: i64 = 24 * 60 * 60;
/// Less than a new certificate is dated back.
const MINUTES: i64 = 2 * 60;

/// A cluster with a key, one answered request, and member 1 stopped in order.
struct Failing {
    cluster: Cluster,
    key: Key,
    line: RequesterLine,
    order: Order,
    first: Signed,
}

impl Failing {
    async fn new() -> Self {
        let (mut cluster, key) = Cluster::with_key(3, 2).await;
        let line = cluster.requester().await;
        let order = key.order(cluster.domain());
        let first = key.sign(&line, &order).await.unwrap();
        cluster.stop(1).await;
        Self {
            cluster,
            key,
            line,
            order,
            first,
        }
    }

    fn folder(&self) -> &Path {
        self.cluster.member(1).folder.path()
    }

    fn log_size(&self) -> usize {
        self.cluster.log(self.cluster.member(1)).len()
    }

    /// What member 1 has logged since its log had this size.
    fn said_since(&self, size: usize) -> String {
        let log = self.cluster.log(self.cluster.member(1));
        log[size..].to_owned()
    }

    /// Member 1 does not start, for this reason, and says what to do.
    async fn refuses_to_start(&mut self, code: &str) {
        let size = self.log_size();
        self.cluster.start_faulty(1, &Fault::default());
        self.ends_with(code, size).await;
    }

    async fn ends_with(&mut self, code: &str, size: usize) {
        let ended_well = self.cluster.ends(1).await;
        let said = self.said_since(size);
        assert!(!ended_well, "{said}");
        assert!(has_code(&said, code), "{code} is not in: {said}");
        assert!(has_advice(&said), "no advice: {said}");
    }

    /// Once it is put right, member 1 has its key, and every answer stands.
    async fn nothing_is_lost(mut self) {
        self.cluster.start_again(1).await;
        // With another one down it has to be among those who answer.
        self.cluster.stop(2).await;
        let again = self.key.sign(&self.line, &self.order).await.unwrap();
        assert_eq!(again.payment.txid, self.first.payment.txid);
        let order = self.key.order(self.cluster.domain());
        self.key.sign(&self.line, &order).await.unwrap();
        for member in [1, 3] {
            self.cluster.stop(member).await;
        }
        for member in 1..=3 {
            assert!(!self.cluster.journal(member).is_empty());
        }
    }
}

/// Before the log is open errors stand in brackets, after that in a field.
fn has_code(said: &str, code: &str) -> bool {
    said.contains(&format!("error[{code}]")) || said.contains(&format!("\"code\":\"{code}\""))
}

fn has_advice(said: &str) -> bool {
    said.contains("what to do: ") || said.contains("\"advice\":\"")
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let before = fs::read(path).unwrap();
    let mut after = before.clone();
    change(&mut after);
    assert_ne!(before, after, "nothing was changed");
    fs::write(path, after).unwrap();
    before
}

/// Replaces text in member 1's configuration, and gives the configuration as it was.
fn reconfigure(failing: &Failing, from: &str, to: &str) -> (PathBuf, Vec<u8>) {
    let path = failing.cluster.member(1).folder.config();
    let before = edit(&path, |bytes| {
        let text = String::from_utf8(bytes.clone()).unwrap();
        *bytes = text.replace(from, to).into_bytes();
    });
    (path, before)
}

fn journal_file(folder: &Path) -> PathBuf {
    let journal = folder.join("data/ledger/journal");
    let files = fs::read_dir(&journal).unwrap();
    let mut segments: Vec<PathBuf> = files
        .map(|entry| entry.unwrap().path())
        .filter(|path| fs::metadata(path).unwrap().len() > 4096)
        .collect();
    segments.sort();
    segments.remove(0)
}

#[tokio::test]
async fn a_disk_that_fills_up_or_becomes_read_only_ends_the_member_and_loses_nothing() {
    for (error, code) in [(ENOSPC, "ledger_disk_full"), (EROFS, "ledger_read_only")] {
        let mut failing = Failing::new().await;
        let switch = failing.folder().join("switch");
        let fault = Fault {
            disk: Some(switch.clone()),
            ..Fault::default()
        };
        let size = failing.log_size();
        failing.cluster.start_faulty(1, &fault);
        failing.cluster.is_welcomed(1).await;
        failing.cluster.stop(2).await;
        fail_disk(&switch, error);
        // It cannot write that it takes part, so it takes no part.
        let order = failing.key.order(failing.cluster.domain());
        let refused = failing.key.sign(&failing.line, &order).await.unwrap_err();
        assert_eq!(refused.exit().number(), 3, "{refused}");
        failing.ends_with(code, size).await;
        fs::remove_file(&switch).unwrap();
        failing.cluster.start_again(1).await;
        failing.key.sign(&failing.line, &order).await.unwrap();
        failing.cluster.stop(1).await;
        failing.cluster.start_again(2).await;
        failing.nothing_is_lost().await;
    }
}

#[tokio::test]
async fn a_disk_that_is_full_or_read_only_from_the_start_is_named() {
    let mut failing = Failing::new().await;
    let folder = failing.folder().to_owned();
    let data = folder.join("data");
    let size = failing.log_size();
    failing.cluster.start_mounted(
        1,
        &format!(
            "mount --bind '{0}' '{0}'; mount -o remount,bind,ro '{0}'",
            data.display()
        ),
    );
    let ended_well = failing.cluster.ends(1).await;
    let said = failing.said_since(size);
    assert!(!ended_well, "{said}");
    let named = ["ledger_read_only", "disk_read_only", "index_failed"];
    assert!(named.iter().any(|code| has_code(&said, code)), "{said}");
    assert!(has_advice(&said), "{said}");

    // A new member on a disk without room for its first segment.
    let size = failing.log_size();
    failing.cluster.start_mounted(
        1,
        &format!(
            "mount -t tmpfs -o size=256k,mode=0700 none '{}'",
            data.display()
        ),
    );
    let ended_well = failing.cluster.ends(1).await;
    let said = failing.said_since(size);
    assert!(!ended_well, "{said}");
    let named = [
        "ledger_disk_full",
        "disk_full",
        "anchor_ahead",
        "ledger_behind_anchor",
    ];
    assert!(named.iter().any(|code| has_code(&said, code)), "{said}");
    failing.nothing_is_lost().await;
}

#[tokio::test]
async fn a_journal_that_cannot_be_read_is_refused_with_its_position() {
    let mut failing = Failing::new().await;
    let segment = journal_file(failing.folder());
    let before = edit(&segment, |bytes| bytes[700] ^= 1);
    let size = failing.log_size();
    failing.refuses_to_start("ledger_damaged").await;
    assert!(failing.said_since(size).contains("damaged at"));
    fs::write(&segment, before).unwrap();

    // An old copy of the whole folder is as bad as a damaged one.
    let journal = segment.parent().unwrap().to_owned();
    let kept = journal.with_extension("kept");
    fs::rename(&journal, &kept).unwrap();
    let size = failing.log_size();
    failing.cluster.start_faulty(1, &Fault::default());
    assert!(!failing.cluster.ends(1).await);
    let said = failing.said_since(size);
    assert!(said.contains("ledger_behind_"), "{said}");
    if journal.exists() {
        fs::remove_dir_all(&journal).unwrap();
    }
    fs::rename(&kept, &journal).unwrap();
    failing.nothing_is_lost().await;
}

#[tokio::test]
async fn the_wrong_key_or_passphrase_opens_nothing_and_breaks_nothing() {
    let mut failing = Failing::new().await;
    let file = failing.cluster.member(1).folder.vault_key();
    let before = edit(&file, |bytes| bytes[0] ^= 1);
    failing.refuses_to_start("wrong_key").await;
    fs::write(&file, before).unwrap();

    // A member of its own, which is unlocked by a passphrase.
    let folder = failing.folder().to_owned();
    let (config, before) = {
        let path = failing.cluster.member(1).folder.config();
        let text = fs::read_to_string(&path).unwrap();
        let head = text.split("[vault]").next().unwrap();
        let tail = text.split("[[coordinators]]").nth(1).unwrap();
        let changed = format!("{head}\n[vault]\nunlock = \"passphrase\"\n\n[[coordinators]]{tail}")
            .replace("data_dir = \"data\"", "data_dir = \"other\"")
            .replace("anchor_dir = \"anchor\"", "anchor_dir = \"other-anchor\"");
        fs::write(&path, changed).unwrap();
        (path, text)
    };
    let secret = folder.join("passphrase");
    let write = |text: &str| {
        fs::write(&secret, text).unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    };
    let env = [("FIRN_PASSPHRASE_FILE", secret.clone())];
    fs::create_dir_all(folder.join("other-anchor")).unwrap();
    fs::set_permissions(
        folder.join("other-anchor"),
        fs::Permissions::from_mode(0o700),
    )
    .unwrap();
    write("correct horse battery staple");
    failing.cluster.start_in(1, &env);
    failing.cluster.is_welcomed(1).await;
    failing.cluster.stop(1).await;
    write("incorrect horse battery staple");
    let size = failing.log_size();
    failing.cluster.start_in(1, &env);
    failing.ends_with("wrong_passphrase", size).await;
    write("correct horse battery staple");
    failing.cluster.start_in(1, &env);
    failing.cluster.is_welcomed(1).await;
    failing.cluster.stop(1).await;
    fs::write(config, before).unwrap();
    failing.nothing_is_lost().await;
}

#[tokio::test]
async fn files_that_others_may_read_are_refused_by_name() {
    let mut failing = Failing::new().await;
    let files = failing.cluster.member(1).folder.clone();
    for (path, wide, right) in [
        (files.identity(), 0o644, 0o600),
        (files.vault_key(), 0o640, 0o600),
        (files.tls_key(), 0o604, 0o600),
        (files.data(), 0o755, 0o700),
    ] {
        fs::set_permissions(&path, fs::Permissions::from_mode(wide)).unwrap();
        let size = failing.log_size();
        failing.cluster.start_faulty(1, &Fault::default());
        assert!(!failing.cluster.ends(1).await, "{}", path.display());
        let said = failing.said_since(size);
        let named = [
            "file_permissions",
            "ledger_permissions",
            "identity_key_mode",
        ];
        assert!(named.iter().any(|code| has_code(&said, code)), "{said}");
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(said.contains(&name), "{name} is not named: {said}");
        assert!(has_advice(&said), "{said}");
        fs::set_permissions(&path, fs::Permissions::from_mode(right)).unwrap();
    }
    failing.nothing_is_lost().await;
}

#[tokio::test]
async fn a_certificate_outside_its_time_is_named_and_nothing_is_started() {
    let mut failing = Failing::new().await;
    for (days, code) in [
        (4_000, "certificate_expired"),
        (-4_000, "certificate_not_yet_valid"),
    ] {
        let size = failing.log_size();
        failing.cluster.start_faulty(1, &Fault::clock(days * DAY));
        failing.ends_with(code, size).await;
    }
    failing.nothing_is_lost().await;
}

#[tokio::test]
async fn a_clock_that_is_off_by_a_day_signs_nothing() {
    let mut failing = Failing::new().await;
    let size = failing.log_size();
    failing.cluster.start_faulty(1, &Fault::clock(-DAY));
    // Its own certificate is younger than that.
    failing.ends_with("certificate_not_yet_valid", size).await;
    let size = failing.log_size();
    failing.cluster.start_faulty(1, &Fault::clock(-MINUTES));
    failing.ends_with("clock_rewound", size).await;

    // Ahead, it would leave records that a right clock could not follow: it does not even begin.
    let size = failing.log_size();
    failing.cluster.start_faulty(1, &Fault::clock(DAY));
    until("the refusal of the coordinator's clock", async || {
        has_code(&failing.said_since(size), "clock_skew").then_some(())
    })
    .await;
    assert!(has_advice(&failing.said_since(size)));
    failing.cluster.stop(2).await;
    let order = failing.key.order(failing.cluster.domain());
    let refused = failing.key.sign(&failing.line, &order).await.unwrap_err();
    assert_eq!(refused.code(), "quorum_unavailable");
    failing.cluster.stop(1).await;
}

#[tokio::test]
async fn an_unknown_coordinator_and_another_trust_domain_are_told_apart() {
    let mut failing = Failing::new().await;
    let (path, before) = reconfigure(&failing, "/coordinator/relay", "/coordinator/stranger");
    let size = failing.log_size();
    failing.cluster.start_faulty(1, &Fault::default());
    until("the refusal of a stranger", async || {
        let said = failing.said_since(size);
        (has_code(&said, "unknown_coordinator") || has_code(&said, "tls_wrong_name")).then_some(())
    })
    .await;
    failing.cluster.stop(1).await;
    fs::write(&path, before).unwrap();

    // The roots of another domain: nobody here is vouched for by them.
    let other = Cluster::start(2, 2).await;
    let roots = failing.cluster.member(1).folder.roots();
    let before = fs::read(&roots).unwrap();
    fs::copy(other.member(1).folder.roots(), &roots).unwrap();
    let size = failing.log_size();
    failing.cluster.start_faulty(1, &Fault::default());
    until("the refusal of another domain's coordinator", async || {
        has_code(&failing.said_since(size), "tls_unknown_ca").then_some(())
    })
    .await;
    assert!(has_advice(&failing.said_since(size)));
    failing.cluster.stop(1).await;
    fs::write(&roots, before).unwrap();
    failing.nothing_is_lost().await;
}

/// Starts member 1 so that it dies in its `call`th durable write from the next request on.
async fn doomed(failing: &mut Failing, call: u32, before: bool) {
    let switch = failing.folder().join("count");
    let _ = fs::remove_file(&switch);
    failing.cluster.start_faulty(
        1,
        &Fault {
            kill_before_sync: before.then_some(call),
            kill_after_sync: (!before).then_some(call),
            count_from: Some(switch.clone()),
            ..Fault::default()
        },
    );
    failing.cluster.is_welcomed(1).await;
    fs::write(&switch, "").unwrap();
}

#[tokio::test]
async fn killed_at_every_durable_write_of_a_request_it_comes_back_and_the_request_succeeds() {
    let mut failing = Failing::new().await;
    failing.cluster.stop(3).await;
    failing.cluster.is_missed(3).await;
    let mut deaths = 0;
    // Open, release, complete.
    for call in 1..=3 {
        for before in [true, false] {
            doomed(&mut failing, call, before).await;
            // Only members 1 and 2 are there, so member 1 takes part or nobody signs.
            let order = failing.key.order(failing.cluster.domain());
            let asked = failing.key.sign(&failing.line, &order).await;
            if let Err(error) = &asked {
                assert!([3, 4].contains(&error.exit().number()), "{error}");
            }
            assert!(!failing.cluster.ends(1).await);
            deaths += 1;
            failing.cluster.start_again(1).await;
            let signed = failing.key.sign(&failing.line, &order).await.unwrap();
            if let Ok(asked) = asked {
                assert_eq!(asked.payment.txid, signed.payment.txid);
            }
            failing.cluster.stop(1).await;
            failing.cluster.is_missed(1).await;
        }
    }
    assert_eq!(deaths, 6);
    failing.cluster.start_again(3).await;
    failing.nothing_is_lost().await;
}

#[tokio::test]
async fn a_member_that_dies_between_commitments_and_share_costs_one_retry() {
    let mut failing = Failing::new().await;
    // Which two of the three are asked is the coordinator's choice: until member 1 is one of them.
    for _ in 0..20 {
        doomed(&mut failing, 2, true).await;
        let order = failing.key.order(failing.cluster.domain());
        let signed = failing.key.sign(&failing.line, &order).await.unwrap();
        if failing.cluster.is_running(1) {
            failing.cluster.kill(1).await;
            failing.cluster.is_missed(1).await;
            continue;
        }
        assert!(!failing.cluster.ends(1).await);
        let members = &signed.answer.checked.receipts;
        assert!(members.iter().all(|member| member.value() != 1));
        failing.nothing_is_lost().await;
        return;
    }
    panic!("member 1 was never chosen");
}

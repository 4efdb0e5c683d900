//! The participants are separate: each opens its own files alone, and no share is anywhere but in its own
//! participant's memory and, sealed, in its own vault.

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
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use firn_ceremony::domain::Party;
use firn_participant::vault::{Unlock, Vault};
use firn_protocol::ids::ShareVersion;
use firn_tests::cluster::{
    Cluster,
    key::Key,
    secrets::{Found, Patterns, files},
    trace::{Access, accesses, calls},
};

/// What a process did that it must not: it wrote outside `own`, or looked into another's folder.
fn offences(trace: &str, own: &Path, domain: &Path) -> Vec<Access> {
    let mut offences = accesses(trace, own);
    offences.retain(|access| {
        let is_own = access.path.starts_with(own);
        !is_own && (access.writes || access.path.starts_with(domain))
    });
    offences
}

#[tokio::test]
async fn each_process_opens_only_its_own_folder() {
    let mut cluster = Cluster::start_traced(3, 2).await;
    let key = cluster.activate(cluster.make_key().await).await;
    let line = cluster.requester().await;
    for _ in 0..3 {
        key.sign(&line, &key.order(cluster.domain())).await.unwrap();
    }
    // Also while it starts with a key, and stops.
    cluster.restart(2).await;
    for member in 1..=3 {
        cluster.stop(member).await;
    }
    let domain = cluster.domain().path();
    for member in cluster.domain().members() {
        let own = member.folder.path();
        let trace = fs::read_to_string(cluster.trace(member)).unwrap();
        assert_eq!(offences(&trace, own, domain), [], "{}", member.name());

        // The trace has seen what there is to see.
        let seen = accesses(&trace, own);
        let saw = |path: &Path, writes| {
            seen.iter()
                .any(|access| access.path.starts_with(path) && access.writes == writes)
        };
        assert!(saw(&member.folder.vault_key(), false));
        assert!(saw(&member.folder.data().join("vault"), true));
        assert!(saw(&member.folder.data().join("ledger"), true));

        // And an offence would have been one.
        for other in cluster.domain().members() {
            let name = other.folder.vault_key();
            let line = format!("1 openat(AT_FDCWD, {name:?}, O_RDONLY|O_CLOEXEC) = 3");
            let is_other = other.id != member.id;
            assert_eq!(!offences(&line, own, domain).is_empty(), is_other);
        }

        is_hardened_before_it_reads_a_secret(&trace, member);
        has_no_inbound_port(&trace, member);
    }
    let coordinator = cluster.domain().coordinator();
    let own = coordinator.folder.path();
    let trace = fs::read_to_string(cluster.trace(coordinator)).unwrap();
    assert_eq!(offences(&trace, own, domain), []);
    // No state on its disk: the one file that it writes says where it listens.
    let address = coordinator.folder.address();
    for access in accesses(&trace, own).iter().filter(|access| access.writes) {
        let beside = access.path.to_string_lossy();
        let is_address = beside.starts_with(address.to_string_lossy().as_ref());
        assert!(is_address, "{}", access.path.display());
    }
}

fn is_hardened_before_it_reads_a_secret(trace: &str, member: &Party) {
    assert!(
        calls(trace, "prctl")
            .iter()
            .any(|arguments| arguments.starts_with("PR_SET_DUMPABLE, SUID_DUMP_DISABLE) = 0")),
        "{} can be looked into",
        member.name()
    );
    let hardened = trace.find("PR_SET_DUMPABLE").unwrap();
    for secret in [
        "vault.key",
        "identity.key",
        "tls/key.pem",
        "participant.toml",
    ] {
        let opened = trace.find(&format!("{secret}\"")).unwrap();
        assert!(hardened < opened, "{secret} was read before");
    }
}

/// A participant dials: its sockets have a port that the system picked, and nobody connects to it. What
/// it listens on is a file in its own folder, for the operator of its machine.
fn has_no_inbound_port(trace: &str, member: &Party) {
    let control = format!("sun_path={:?}", member.folder.control_socket());
    let (local, network): (Vec<&str>, Vec<&str>) = calls(trace, "bind")
        .into_iter()
        .partition(|arguments| arguments.contains("AF_UNIX"));
    assert!(!network.is_empty());
    for arguments in network {
        let is_free = ["sin_port=htons(0)", "sin6_port=htons(0)"]
            .iter()
            .any(|port| arguments.contains(port));
        assert!(is_free, "{arguments}");
    }
    for arguments in &local {
        assert!(arguments.contains(&control), "{arguments}");
    }
    assert_eq!(calls(trace, "listen").len(), local.len());
}

/// The bytes of a member's active share, as its own machine would open them.
fn share(member: &Party, key: &Key) -> Vec<u8> {
    let unlock = Unlock::KeyFile(member.folder.vault_key());
    let vault = Vault::open(&member.folder.data().join("vault"), unlock).unwrap();
    let certified = key.active.certified();
    let version: ShareVersion = certified.share_version();
    let opened = vault.load_active(certified.key_id(), version).unwrap();
    opened.share.to_vec()
}

#[tokio::test]
async fn no_share_is_anywhere_but_in_its_own_participants_memory() {
    let (cluster, key) = Cluster::with_key(3, 2).await;
    let line = cluster.requester().await;
    for number in 0..5 {
        let order = key.order(cluster.domain());
        let signed = key.sign(&line, &order).await.unwrap();
        cluster.keep(&format!("request-{number}"), &order.request);
        cluster.keep(&format!("answer-{number}"), &signed.answer.signed);
    }
    let mut shares = Patterns::default();
    for member in cluster.domain().members() {
        shares.add(member.name(), &share(member, &key));
    }

    // Files: those of the participants, the coordinator, operators, requesters, and the evidence.
    assert_eq!(shares.find_in_folder(cluster.domain().path()), []);
    // Memory: each share in its own participant alone, where it must be, or the look is worth nothing.
    for (number, member) in (1..).zip(cluster.domain().members()) {
        let found = shares.find_in_process(cluster.process(number).pid());
        let (own, others): (Vec<Found>, Vec<Found>) = found
            .into_iter()
            .partition(|found| found.whose == member.name());
        assert_eq!(others, [], "in the memory of {}", member.name());
        assert!(!own.is_empty(), "{} does not hold its share", member.name());
    }
    assert_eq!(shares.find_in_process(cluster.coordinator().pid()), []);

    // What is no secret is found in the same places in the same way.
    let mut public = Patterns::default();
    public.add(
        "group key",
        key.active.certified().public().group_key().as_bytes(),
    );
    assert!(
        !public
            .find_in_process(cluster.coordinator().pid())
            .is_empty()
    );
    for member in cluster.domain().members() {
        assert!(!public.find_in_folder(member.folder.path()).is_empty());
    }
    let evidence = cluster.domain().path().join("evidence");
    assert!(!public.find_in_folder(&evidence).is_empty());
    // And a share that lies somewhere would be.
    cluster.keep("planted", &hex::encode(share(cluster.member(1), &key)));
    assert!(!shares.find_in_folder(&evidence).is_empty());
}

#[tokio::test]
async fn files_and_memory_are_closed_to_others() {
    let (cluster, _key) = Cluster::with_key(3, 2).await;
    for (number, member) in (1..).zip(cluster.domain().members()) {
        let folder = &member.folder;
        for secret in [folder.vault_key(), folder.identity(), folder.tls_key()] {
            assert_eq!(mode(&secret), 0o600, "{}", secret.display());
        }
        for private in [folder.data(), folder.anchor()] {
            let all = files(&private);
            assert!(!all.is_empty());
            for file in all {
                assert_eq!(mode(&file), 0o600, "{}", file.display());
                // Every folder from the file up.
                for above in file.ancestors().skip(1) {
                    assert_eq!(mode(above), 0o700, "{}", above.display());
                    if above == private {
                        break;
                    }
                }
            }
        }
        let pid = cluster.process(number).pid().as_raw_nonzero();
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let core = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max core file size"))
            .unwrap();
        let words: Vec<&str> = core.split_whitespace().collect();
        assert_eq!(words[..2], ["0", "0"]);
        // The system gives what is in /proc of a process that cannot be dumped to root; this says
        // something where the tests run as somebody else, and the trace above says it for root.
        let owner = fs::metadata(format!("/proc/{pid}/mem")).unwrap().uid();
        assert_eq!(owner, 0);
    }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

//! A participant is killed again and again while requests flow. It comes back by itself, no session goes
//! on, its journal stays sound, and what was answered stays answered.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm,
    reason = "tests"
)]

use std::{cell::Cell, collections::BTreeSet};

use firn_ceremony::{Exit, client::RequesterLine};
use firn_ledger::rules::Body;
use firn_tests::cluster::{
    Cluster,
    key::{Key, Order, Signed},
    process::until,
};

const KILLS: u64 = 10;
/// How often one request is asked before the test gives up.
const TRIES: usize = 20;

/// Asks the same request until it is answered, as a requester should.
async fn insist(key: &Key, line: &RequesterLine, order: &Order) -> Signed {
    for _ in 0..TRIES {
        match key.sign(line, order).await {
            Ok(signed) => return signed,
            Err(error) => assert!(
                matches!(error.exit(), Exit::TryAgain | Exit::OutcomeUnknown),
                "{error}"
            ),
        }
    }
    panic!("no answer to {}", order.request_id);
}

#[tokio::test]
async fn a_member_killed_ten_times_under_load_forgets_nothing_and_goes_on_with_nothing() {
    let (mut cluster, key) = Cluster::with_key(3, 2).await;
    let line = cluster.requester().await;
    let domain = cluster.shared_domain();
    let is_over = Cell::new(false);
    let flow = async {
        let mut answered = Vec::new();
        while !is_over.get() {
            let order = key.order(&domain);
            let signed = insist(&key, &line, &order).await;
            answered.push((order, signed));
        }
        answered
    };
    let kills = async {
        for kill in 0..KILLS {
            let victim = usize::try_from(kill % 3).unwrap() + 1;
            let before = cluster.records_so_far(victim);
            // Another record each time, so that it is hit between other steps of a session.
            until("requests flow", async || {
                (cluster.records_so_far(victim) > before + kill).then_some(())
            })
            .await;
            cluster.kill(victim).await;
            cluster.restart(victim).await;
        }
        is_over.set(true);
        cluster
    };
    let (answered, mut cluster) = tokio::join!(flow, kills);
    assert!(answered.len() > 10, "{} requests", answered.len());

    let mut points = BTreeSet::new();
    let mut whole = 0;
    for (order, first) in &answered {
        for made in &first.answer.signed.signatures {
            let point = made.signature.as_bytes()[..32].to_vec();
            assert!(points.insert(point), "a nonce was used twice");
        }
        let again = insist(&key, &line, order).await;
        // The same transaction whatever happened; the same bytes where all signers have vouched for
        // them, since every quorum then holds one that knows.
        assert_eq!(again.payment.txid, first.payment.txid);
        if first.answer.checked.receipts.len() == 2 {
            whole += 1;
            assert_eq!(again.payment.transaction, first.payment.transaction);
        }
    }
    assert!(whole > 5, "{whole} of {}", answered.len());

    for member in 1..=3 {
        cluster.stop(member).await;
    }
    let journals: Vec<Vec<Body>> = (1..=3).map(|member| cluster.journal(member)).collect();
    for (number, journal) in (1..).zip(&journals) {
        let starts = journal
            .iter()
            .filter(|body| matches!(body, Body::Started(_)));
        assert!(starts.count() > 3, "member {number}");
        assert!(no_session_goes_on(journal), "member {number}");
        a_start_within_a_session_is_seen(journal);
    }
    for (_, first) in &answered {
        for member in &first.answer.checked.receipts {
            let journal = &journals[usize::from(member.value()) - 1];
            let session = first.answer.signed.session;
            let is_kept = journal.iter().any(
                |body| matches!(body, Body::Completed(completed) if completed.session == session),
            );
            assert!(
                is_kept,
                "member {member} gave a receipt that it has not kept"
            );
        }
    }
}

/// Whether, after a start, nothing is released or completed that was opened before it.
fn no_session_goes_on(journal: &[Body]) -> bool {
    let mut open = BTreeSet::new();
    journal.iter().all(|body| match body {
        Body::Started(_) => {
            open.clear();
            true
        }
        Body::RequestOpened(opened) => open.insert(opened.session),
        Body::ProofOpened(opened) => open.insert(opened.session),
        Body::Released(released) => open.contains(&released.session),
        Body::Completed(completed) => open.remove(&completed.session),
        Body::ProofCompleted(completed) => open.remove(&completed.session),
        Body::SessionEnded(ended) => open.remove(&ended.session),
        _ => true,
    })
}

/// So that the look above is worth something: a start in the middle of a session is seen.
fn a_start_within_a_session_is_seen(journal: &[Body]) {
    let is_start = |body: &&Body| matches!(body, Body::Started(_));
    let start = journal.iter().find(is_start).unwrap().clone();
    let is_release = |body: &Body| matches!(body, Body::Released(_));
    let release = journal.iter().rposition(is_release).unwrap();
    let mut changed = journal.to_vec();
    changed.insert(release, start);
    assert!(!no_session_goes_on(&changed));
}

//! Signing with real processes on loopback: many requests, the same request, members and the coordinator
//! killed in between, and what is refused. Every signature is verified by implementations that are not
//! Firn's (see `Key::sign`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests"
)]

use std::collections::{BTreeMap, BTreeSet};

use firn_ceremony::{
    Error, Exit,
    authority::{self, GrantTerms},
    client::RequesterLine,
    now,
};
use firn_protocol::{
    bitcoin::psbt::PsbtVersion,
    envelope::Envelope,
    ids::{Epoch, Identifier, RequestId},
    keys::IdentitySecret,
};
use firn_tests::cluster::{
    Cluster,
    key::{Key, NETWORK, Order, Signed, sats, stranger, unique},
    process::until,
};

/// Asks for all orders at once over one connection, in as many streams.
async fn at_once(key: &Key, line: &RequesterLine, orders: &[Order]) -> Vec<Result<Signed, Error>> {
    match orders {
        [] => Vec::new(),
        [order] => vec![key.sign(line, order).await],
        _ => {
            let (left, right) = orders.split_at(orders.len() / 2);
            let (mut left, right) = tokio::join!(
                Box::pin(at_once(key, line, left)),
                Box::pin(at_once(key, line, right))
            );
            left.extend(right);
            left
        }
    }
}

fn receipts(signed: &Signed) -> BTreeMap<Identifier, Vec<u8>> {
    let receipts = signed.answer.signed.receipts.iter();
    receipts
        .map(|(member, receipt)| (*member, receipt.as_bytes().to_vec()))
        .collect()
}

#[tokio::test]
async fn a_hundred_requests_in_a_row_are_signed_each_once() {
    let (cluster, key) = Cluster::with_key(3, 2).await;
    let line = cluster.requester().await;
    let (mut txids, mut sessions, mut signatures) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut signers = BTreeSet::new();
    for _ in 0..100 {
        let signed = key.sign(&line, &key.order(cluster.domain())).await.unwrap();
        assert!(!signed.answer.checked.is_stored);
        assert_eq!(signed.answer.checked.receipts.len(), 2);
        txids.insert(signed.payment.txid);
        sessions.insert(signed.answer.signed.session);
        for made in &signed.answer.signed.signatures {
            // The nonce point: never the same in two signatures.
            signatures.insert(made.signature.as_bytes()[..32].to_vec());
        }
        signers.extend(signed.answer.checked.signers);
    }
    assert_eq!((txids.len(), sessions.len()), (100, 100));
    assert_eq!(signatures.len(), 200, "a nonce was used twice");
    assert_eq!(signers.len(), 3, "the load is shared");
}

#[tokio::test]
async fn requests_in_parallel_do_not_mix() {
    let (cluster, key) = Cluster::with_key(3, 2).await;
    let lines = (cluster.requester().await, cluster.requester().await);
    for each in [1, 4] {
        let mut orders = (0..2 * each).map(|_| key.order(cluster.domain()));
        let left: Vec<_> = orders.by_ref().take(each).collect();
        let right: Vec<_> = orders.collect();
        let (mut all, other) = tokio::join!(
            at_once(&key, &lines.0, &left),
            at_once(&key, &lines.1, &right)
        );
        all.extend(other);
        let sessions: BTreeSet<_> = all
            .into_iter()
            .map(|signed| signed.unwrap().answer.signed.session)
            .collect();
        assert_eq!(sessions.len(), 2 * each);
    }
}

#[tokio::test]
async fn the_same_request_at_the_same_time_has_one_answer() {
    let (cluster, key) = Cluster::with_key(3, 2).await;
    let lines = (cluster.requester().await, cluster.requester().await);
    for round in 0..10 {
        let order = key.order(cluster.domain());
        let (left, right) = tokio::join!(key.sign(&lines.0, &order), key.sign(&lines.1, &order));
        let mut answers = Vec::new();
        for answer in [left, right] {
            match answer {
                Ok(signed) => answers.push(signed),
                Err(error) => assert_eq!(error.exit(), Exit::TryAgain, "{error}"),
            }
        }
        assert!(!answers.is_empty(), "round {round}: nobody got an answer");
        // Whichever members are asked later, and whoever asks.
        for line in [&lines.0, &lines.1, &lines.0, &lines.1] {
            let stored = key.sign(line, &order).await.unwrap();
            assert!(stored.answer.checked.is_stored);
            answers.push(stored);
        }
        let distinct: BTreeSet<_> = answers
            .iter()
            .map(|signed| signed.payment.transaction.clone())
            .collect();
        assert_eq!(
            distinct.len(),
            1,
            "round {round}: two answers to one request"
        );
    }
}

#[tokio::test]
async fn the_first_request_after_everybody_was_killed_gets_the_stored_receipts() {
    let (mut cluster, key) = Cluster::with_key(3, 2).await;
    let order = key.order(cluster.domain());
    let line = cluster.requester().await;
    let first = key.sign(&line, &order).await.unwrap();
    let before = receipts(&first);
    assert_eq!(before.len(), 2);
    for member in 1..=3 {
        cluster.kill(member).await;
    }
    for member in 1..=3 {
        cluster.restart(member).await;
    }
    let mut again = BTreeMap::new();
    // Until both signers have been asked: the coordinator picks two of the three.
    until("an answer of each signer", async || {
        let answer = key.sign(&line, &order).await.unwrap();
        assert!(answer.answer.checked.is_stored);
        assert_eq!(answer.answer.signed.session, first.answer.signed.session);
        assert_eq!(answer.payment, first.payment);
        for (member, receipt) in receipts(&answer) {
            assert_eq!(before.get(&member), Some(&receipt), "member {member}");
            again.insert(member, receipt);
        }
        (again == before).then_some(())
    })
    .await;
}

#[tokio::test]
async fn one_killed_member_is_done_without_and_two_are_said_to_be_missing() {
    let (mut cluster, key) = Cluster::with_key(3, 2).await;
    let line = cluster.requester().await;
    let first = key.sign(&line, &key.order(cluster.domain())).await.unwrap();
    // One of those that have just signed.
    let victim = first.answer.checked.signers[0];
    cluster.kill(victim.value().into()).await;
    for _ in 0..3 {
        let signed = key.sign(&line, &key.order(cluster.domain())).await.unwrap();
        assert!(!signed.answer.checked.signers.contains(&victim));
    }

    let other = (1..=3).find(|member| *member != usize::from(victim.value()));
    cluster.kill(other.unwrap()).await;
    let order = key.order(cluster.domain());
    let error = key.sign(&line, &order).await.unwrap_err();
    assert_eq!(error.exit(), Exit::TryAgain, "{error}");
    let operator = cluster.operator().await;
    until("the coordinator notices that two are gone", async || {
        (cluster.connected(&operator).await.len() == 1).then_some(())
    })
    .await;
    let error = key.sign(&line, &order).await.unwrap_err();
    assert_eq!(error.code(), "quorum_unavailable");
    assert_eq!(error.exit(), Exit::TryAgain);
    let said = error.to_string();
    for missing in [victim.value().into(), other.unwrap()] {
        let name = cluster.member(missing).name();
        assert!(
            said.contains(&format!("{name} cannot be reached")),
            "{said}"
        );
    }
    // The same request, with the same id, once enough are back.
    cluster.restart(other.unwrap()).await;
    key.sign(&line, &order).await.unwrap();
}

#[tokio::test]
async fn the_same_request_succeeds_after_the_coordinator_was_killed() {
    let (mut cluster, key) = Cluster::with_key(3, 2).await;
    let line = cluster.requester().await;
    let answered = key.order(cluster.domain());
    let first = key.sign(&line, &answered).await.unwrap();
    cluster.restart_coordinator().await;
    let pending = key.order(cluster.domain());
    let error = key.sign(&line, &pending).await.unwrap_err();
    assert!(
        matches!(error.exit(), Exit::TryAgain | Exit::OutcomeUnknown),
        "{error}"
    );
    let line = cluster.requester().await;
    key.sign(&line, &pending).await.unwrap();
    let again = key.sign(&line, &answered).await.unwrap();
    assert!(again.answer.checked.is_stored);
    assert_eq!(again.payment, first.payment);
}

/// The maps of a PSBT, each a list of key and value (BIP-174, "Specification").
type Map = Vec<(Vec<u8>, Vec<u8>)>;

fn maps(psbt: &[u8]) -> Vec<Map> {
    fn number(bytes: &mut &[u8]) -> usize {
        let width = match bytes[0] {
            0xfd => 2,
            0xfe => 4,
            small => {
                *bytes = &bytes[1..];
                return small.into();
            }
        };
        let mut wide = [0; 8];
        wide[..width].copy_from_slice(&bytes[1..=width]);
        *bytes = &bytes[1 + width..];
        u64::from_le_bytes(wide).try_into().unwrap()
    }
    let mut rest = psbt.strip_prefix(b"psbt\xff").unwrap();
    let (mut maps, mut map) = (Vec::new(), Map::new());
    while !rest.is_empty() {
        let length = number(&mut rest);
        if length == 0 {
            maps.push(std::mem::take(&mut map));
            continue;
        }
        let (key, after) = rest.split_at(length);
        rest = after;
        let length = number(&mut rest);
        let (value, after) = rest.split_at(length);
        rest = after;
        map.push((key.to_vec(), value.to_vec()));
    }
    maps
}

fn psbt_of(maps: &[Map]) -> Vec<u8> {
    fn put(bytes: &mut Vec<u8>, item: &[u8]) {
        match u8::try_from(item.len()) {
            Ok(small) if small < 0xfd => bytes.push(small),
            _ => {
                bytes.push(0xfd);
                bytes.extend(u16::try_from(item.len()).unwrap().to_le_bytes());
            }
        }
        bytes.extend(item);
    }
    let mut bytes = b"psbt\xff".to_vec();
    for map in maps {
        for (key, value) in map {
            put(&mut bytes, key);
            put(&mut bytes, value);
        }
        bytes.push(0);
    }
    bytes
}

#[tokio::test]
async fn a_psbt_comes_back_in_its_version_with_everything_that_was_in_it() {
    const TAP_KEY_SIG: &[u8] = &[0x13];
    let (cluster, key) = Cluster::with_key(3, 2).await;
    let line = cluster.requester().await;
    for version in [PsbtVersion::V0, PsbtVersion::V2] {
        let mut before = maps(&key.psbt(&key.payment(3, version)));
        // Global, three inputs, two outputs.
        assert_eq!(before.len(), 6);
        for (number, map) in before.iter_mut().enumerate() {
            // A proprietary field and one of a type that nobody has defined.
            let value = format!("of map {number}").into_bytes();
            map.push((b"\xfc\x04firn\x00key".to_vec(), value.clone()));
            map.push((b"\x77unknown".to_vec(), value));
        }
        let order = key.order_for(cluster.domain(), psbt_of(&before), |_| {});
        let signed = key.sign(&line, &order).await.unwrap();
        let after = maps(&signed.payment.psbt);
        assert_eq!(after.len(), before.len());
        for (number, (before, after)) in before.iter().zip(&after).enumerate() {
            let (before, after): (BTreeMap<_, _>, BTreeMap<_, _>) = (
                before.iter().cloned().collect(),
                after.iter().cloned().collect(),
            );
            let mut expected = before.clone();
            if (1..=3).contains(&number) {
                let signature = after.get(TAP_KEY_SIG).unwrap();
                let made = signed.answer.signed.signatures[number - 1];
                assert_eq!(signature, made.signature.as_bytes());
                expected.insert(TAP_KEY_SIG.to_vec(), signature.clone());
            }
            assert_eq!(after, expected, "{version:?}, map {number}");
        }
        // The unsigned transaction is a field of version 0 alone; the version's own field, of 2.
        let has = |field: u8| after[0].iter().any(|(key, _)| *key == [field]);
        let is_v2 = version == PsbtVersion::V2;
        assert_eq!((has(0x00), has(0xfb)), (!is_v2, is_v2));
    }
}

#[tokio::test]
async fn a_hundred_inputs_are_signed_in_one_session() {
    let (cluster, key) = Cluster::with_key(3, 2).await;
    let line = cluster.requester().await;
    let psbt = key.psbt(&key.payment(100, PsbtVersion::V2));
    let order = key.order_for(cluster.domain(), psbt, |_| {});
    let signed = key.sign(&line, &order).await.unwrap();
    let inputs: Vec<_> = signed
        .answer
        .signed
        .signatures
        .iter()
        .map(|made| made.input)
        .collect();
    assert_eq!(inputs, (0..100).collect::<Vec<u32>>());
    assert_eq!(signed.answer.checked.receipts.len(), 2);
    let again = key.sign(&line, &order).await.unwrap();
    assert_eq!(again.payment, signed.payment);
}

#[tokio::test]
async fn every_refusal_has_its_code_and_its_exit() {
    let (cluster, key) = Cluster::with_key(3, 2).await;
    let line = cluster.requester().await;
    let domain = cluster.domain();
    let fresh = |change: &dyn Fn(&mut GrantTerms)| {
        let psbt = key.psbt(&key.payment(2, PsbtVersion::V2));
        key.order_for(domain, psbt, change)
    };
    let paying = |change: &dyn Fn(&mut firn_ceremony::payment::Payment)| {
        let mut payment = key.payment(2, PsbtVersion::V0);
        change(&mut payment);
        key.order_for(domain, key.psbt(&payment), |_| {})
    };
    let stranger_key = IdentitySecret::from_seed(&zeroize::Zeroizing::new([9; 32]));
    let key_id = key.active.certified().key_id();

    let mut foreign_intent = fresh(&|_| {});
    foreign_intent.request.intent =
        authority::intent(NETWORK, key_id, &foreign_intent.psbt, &stranger_key).unwrap();
    let mut foreign_grant = fresh(&|_| {});
    let terms = foreign_grant.request.grant.clone();
    let granted = terms.verify(&domain.authorities().grant_authority).unwrap();
    foreign_grant.request.grant = Envelope::sign(&*granted, &stranger_key).unwrap();
    let mut unsigned_grant = fresh(&|_| {});
    let mut bytes = unsigned_grant.request.grant.as_bytes().to_vec();
    let end = bytes.len();
    bytes[end - 64..].fill(0);
    unsigned_grant.request.grant = Envelope::from_bytes(bytes).unwrap();
    let mut of_another = fresh(&|_| {});
    of_another.request.grant = fresh(&|_| {}).request.grant;

    let long_ago = now().value() - 60_000;
    let elsewhere = "spiffe://cluster.test/requester/somebody-else"
        .parse()
        .unwrap();
    let done = fresh(&|_| {});
    key.sign(&line, &done).await.unwrap();
    let same_id = fresh(&|terms| terms.request_id = done.request_id);
    let same_intent = key.order_for(domain, done.psbt.clone(), |terms| {
        terms.request_id = RequestId::from_bytes(unique());
    });

    let cases = [
        ("unknown_signer", Exit::Refused, foreign_intent),
        ("unknown_signer", Exit::Refused, foreign_grant),
        ("bad_signature", Exit::Refused, unsigned_grant),
        ("grant_intent_mismatch", Exit::Refused, of_another),
        (
            "grant_expired",
            Exit::Refused,
            fresh(&|terms| {
                terms.not_before = firn_protocol::ids::UnixMillis::new(long_ago - 1_000);
                terms.expires = firn_protocol::ids::UnixMillis::new(long_ago);
            }),
        ),
        (
            "grant_not_yet_valid",
            Exit::TryAgain,
            fresh(&|terms| terms.not_before = now().plus(60_000)),
        ),
        (
            "unknown_requester",
            Exit::Refused,
            fresh(&|terms| terms.owner = firn_protocol::names::SpiffeId::clone(&elsewhere)),
        ),
        (
            "policy_destination",
            Exit::Refused,
            paying(&|payment| payment.to = stranger(8)),
        ),
        (
            "policy_fee",
            Exit::Refused,
            paying(&|payment| payment.fee = sats(20_001)),
        ),
        (
            "policy_fee_rate",
            Exit::Refused,
            paying(&|payment| payment.fee = sats(15_000)),
        ),
        ("request_conflict", Exit::Conflict, same_id),
        ("intent_already_signed", Exit::Conflict, same_intent),
        (
            "epoch_jump",
            Exit::Refused,
            fresh(&|terms| terms.epoch = Epoch::new(5_000)),
        ),
    ];
    for (code, exit, order) in cases {
        let error = key.sign(&line, &order).await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert_eq!(error.exit(), exit, "{code}");
    }
    // Nothing of this has cost the first owner anything; a higher epoch does, for every member that
    // has seen it, and two have.
    key.sign(&line, &fresh(&|_| {})).await.unwrap();
    let second = fresh(&|terms| terms.epoch = Epoch::new(2));
    key.sign(&line, &second).await.unwrap();
    let error = key.sign(&line, &fresh(&|_| {})).await.unwrap_err();
    assert_eq!((error.code(), error.exit()), ("stale_epoch", Exit::Refused));
}

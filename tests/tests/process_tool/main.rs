//! From a key to a signed payment by hand: the real tool as the control plane and a requester type it,
//! against real daemons, with members, the coordinator, answers and grants that go away in between.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    unreachable_pub,
    reason = "tests"
)]

mod office;

use std::{fs, net::SocketAddr, path::Path};

use bitcoin::Psbt;
use firn_ceremony::{domain::files::write_document, evidence::Folder, ledger, now};
use firn_protocol::ids::RequestId;
use firn_tests::{
    cluster::{independent, key::stranger, process::until},
    tool::{Running, Tool},
};
use rustix::process::Signal;
use serde_json::Value;
use tokio::net::UdpSocket;

use office::*;

#[tokio::test]
async fn what_a_key_is_and_what_a_payment_would_do_is_what_others_derive() {
    let office = Office::open().await;
    let (ada, treasury) = (&office.ada, &office.treasury);
    let [receiving, change] = independent::scripts(&office.descriptor().await, 5);

    // However the key is named, and whoever asks.
    let carried = office.file("key.cbor");
    let documents = Folder::at(&office.key).key_documents().unwrap();
    write_document(Path::new(&carried), &documents).unwrap();
    for (tool, key) in [
        (ada, &office.key),
        (ada, &carried),
        (ada, &office.key_id),
        (treasury, &office.key_id),
    ] {
        for (branch, scripts, more) in [(0, &receiving, None), (1, &change, Some("--change"))] {
            let arguments = ["address", "--key", key, "--index", "1", "--count", "4"];
            let arguments = [&arguments[..], more.as_slice()].concat();
            let said = tool.json(&arguments).await.well();
            assert_eq!(text(&said, "key_id"), office.key_id);
            let lines = said["addresses"].as_array().unwrap();
            assert_eq!(lines.len(), 4);
            for (index, line) in (1..).zip(lines) {
                assert_eq!(text(line, "address"), address(&scripts[index]));
                assert_eq!(text(line, "path"), format!("/{branch}/{index}"));
            }
        }
    }

    let made = office.payment("a.psbt", 7, &["--psbt-version", "0"]).await;
    let made = made.well();
    let file = office.file("a.psbt");
    let psbt = Psbt::deserialize(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(
        psbt.unsigned_tx.compute_txid().to_string(),
        text(&made, "txid")
    );
    assert_eq!(psbt.fee().unwrap().to_sat(), 2000);
    let paid = &psbt.unsigned_tx.output;
    let to = |script: &[u8]| {
        let found = paid
            .iter()
            .find(|out| out.script_pubkey.as_bytes() == script);
        found.map(|output| output.value.to_sat())
    };
    assert_eq!(paid.len(), 2);
    assert_eq!(to(stranger(7).as_bytes()), Some(60_000));
    assert_eq!(to(&change[4]), Some(2 * COIN - 62_000));
    assert_eq!(made["change_sats"], 2 * COIN - 62_000);
    assert_eq!(made["outflow_sats"], 62_000);
    let show = ["psbt", "show", &file, "--key", &office.key];
    assert_eq!(treasury.json(&show).await.well(), made);

    // The same in base64.
    let in_text = ["--psbt-version", "0", "--base64"];
    let made = office.payment("b.txt", 7, &in_text).await.well();
    let file = office.file("b.txt");
    let show = ["psbt", "show", &file, "--key", &office.key];
    assert_eq!(treasury.json(&show).await.well(), made);
    let psbt = Psbt::deserialize(&from_base64(&file)).unwrap();
    let txid = psbt.unsigned_tx.compute_txid();
    assert_eq!(txid.to_string(), text(&made, "txid"));

    // What the policy would refuse is no error to look at, unless it is asked for.
    let refused = office.payment("c.psbt", 8, &[]).await.well();
    assert_eq!(
        refused["policy_violations"][0]["code"],
        "policy_destination"
    );
    let file = office.file("c.psbt");
    let show = ["psbt", "show", &file, "--key", &office.key];
    treasury.json(&show).await.well();
    let checked = treasury.json(&[&show[..], &["--check"]].concat()).await;
    assert_eq!((checked.code, &checked.object), (1, &refused));
    let (code, said) = treasury.text(&[&show[..], &["--check"]].concat()).await;
    assert_eq!(code, 1);
    assert!(said.contains("would refuse it"), "{said}");
    assert!(said.contains("[policy_destination]"), "{said}");

    // What cannot be done leaves nothing.
    let key = office.key.as_str();
    let known = office.file("a.psbt");
    office
        .payment("a.psbt", 7, &[])
        .await
        .failed(2, "file_exists");
    office
        .payment("d.psbt", 7, &["--psbt-version", "1"])
        .await
        .failed(2, "usage");
    for (arguments, exit, code) in [
        (vec!["address", "--key", "nowhere"], 2, "usage"),
        (vec!["address", "--key", key, "--count", "0"], 2, "usage"),
        (vec!["address", "--key", &known], 1, "bad_file"),
        (vec!["address"], 2, "usage"),
        (vec!["psbt", "show", &carried, "--key", key], 1, "bad_file"),
        (vec!["psbt", "show", "none.psbt", "--key", key], 1, "file"),
        (vec!["request", "status", "17", "--key", key], 2, "usage"),
    ] {
        let said = ada.json(&arguments).await;
        assert!(said.object["error"].is_object(), "{arguments:?}");
        let found = (said.code, said.object["error"]["code"].as_str());
        assert_eq!(found, (exit, Some(code)), "{arguments:?}: {}", said.told);
    }
    let nobody = Tool::with(Path::new("/nowhere/firn.toml"));
    let said = nobody.json(&["descriptor", "--key", key]).await;
    assert_eq!(said.code, 2, "{}", said.told);
    assert!(said.told.contains("/nowhere/firn.toml"), "{}", said.told);
    assert!(!Path::new(&office.file("d.psbt")).exists());
}

#[tokio::test]
async fn a_granted_payment_is_signed_once_and_kept_and_everything_else_is_refused() {
    let office = Office::open().await;
    let authorities = path(&office.cluster.domain().authorities_file());
    let verify = ["verify", &office.key, "--authorities", &authorities];
    let evidence = ["--evidence", office.key.as_str()];

    let first = office.order("first", &[]).await;
    let said = office.sign(&first, "first-signed.psbt", &evidence).await;
    let signed = said.well();
    let transaction = verified(&signed, &first);
    assert_eq!(signed["is_stored"], false);
    assert_eq!(signed["receipts"].as_array().unwrap().len(), 2);
    let written = fs::read(office.file("first-signed.psbt")).unwrap();
    let made = signatures(&written);
    let witnesses = transaction.input.iter();
    let witnesses: Vec<_> = witnesses
        .map(|input| hex::encode(&input.witness[0]))
        .collect();
    assert_eq!(made, witnesses);
    office.ada.json(&verify).await.well();
    let id = RequestId::from_hex(&first.request_id).unwrap();
    let kept = Folder::at(&office.key).request(&id);
    let evidence_file = fs::read(&kept).unwrap();

    // The same in base64, of either version.
    office.payment("v2.txt", 7, &["--base64"]).await.well();
    let second = office.granted("v2", &office.file("v2.txt"), &[]).await;
    let said = office.sign(&second, "v2-signed.txt", &evidence).await;
    verified(&said.well(), &second);
    let bytes = from_base64(&office.file("v2-signed.txt"));
    assert!(bytes.starts_with(b"psbt\xff"));
    office.ada.json(&verify).await.well();

    // Asking again gives the same, whatever it is called, and takes nothing from the evidence.
    let said = office.sign(&first, "again.psbt", &evidence).await;
    let again = said.well();
    assert_eq!(again["is_stored"], true);
    assert_eq!(again["transaction"], signed["transaction"]);
    assert_eq!(fs::read(office.file("again.psbt")).unwrap(), written);
    assert_eq!(fs::read(&kept).unwrap(), evidence_file);
    office.ada.json(&verify).await.well();
    let said = office.status(&first, &[]).await;
    assert_eq!(said.object["outcome"], "signed");
    assert_eq!(stated(&said.well()), made);
    office
        .sign(&first, "again.psbt", &[])
        .await
        .failed(2, "file_exists");

    // The request id stands for the first payment alone.
    let id = ["--request-id", first.request_id.as_str()];
    let other = office.order("other", &id).await;
    let said = office.sign(&other, "other-signed.psbt", &[]).await;
    said.failed(5, "request_conflict");
    let said = office.status(&other, &["--psbt", &other.psbt]).await;
    assert_eq!(
        (said.code, &said.object["outcome"]),
        (5, &Value::from("conflicting"))
    );
    let mut swapped = office.order("swapped", &[]).await;
    swapped.psbt.clone_from(&first.psbt);
    let said = office.sign(&swapped, "other-signed.psbt", &[]).await;
    said.failed(2, "grant_intent_mismatch");

    // The policy, a request that nobody knows, and people in the wrong place.
    office.payment("astray.psbt", 8, &[]).await.well();
    let astray = office
        .granted("astray", &office.file("astray.psbt"), &[])
        .await;
    let said = office.sign(&astray, "other-signed.psbt", &[]).await;
    said.failed(1, "policy_destination");
    let unknown = office.order("unknown", &[]).await;
    let said = office.status(&unknown, &[]).await;
    assert_eq!(
        (said.code, &said.object["outcome"]),
        (3, &Value::from("not_signed"))
    );
    let out = office.file("other-signed.psbt");
    let as_operator = office
        .ada
        .json(&office.sign_arguments(&unknown, &out))
        .await;
    as_operator.failed(2, "unknown_requester");
    let ask = ["request", "status", &first.request_id, "--key", &office.key];
    office.ada.json(&ask).await.failed(2, "unknown_requester");
    let grant = [
        "grant",
        "--key",
        &office.key,
        "--psbt",
        &first.psbt,
        "--out",
        &out,
        "--owner",
    ];
    let authority = office.grant_key();
    let stranger = [&grant[..], &["nobody", "--authority-key", &authority]].concat();
    office
        .ada
        .json(&stranger)
        .await
        .failed(1, "unknown_requester");
    let own = path(&office.cluster.domain().requester().folder.identity());
    let self_made = [&grant[..], &["treasury", "--authority-key", &own]].concat();
    office
        .ada
        .json(&self_made)
        .await
        .failed(1, "unknown_signer");
    let elsewhere = path(office.scratch.path());
    let said = office
        .sign(&unknown, "other-signed.psbt", &["--evidence", &elsewhere])
        .await;
    said.failed(1, "file");
    assert!(!Path::new(&out).exists());
    // None of that has used the grant up.
    let said = office.sign(&unknown, "unknown-signed.psbt", &[]).await;
    verified(&said.well(), &unknown);
}

#[tokio::test]
async fn who_is_missing_is_named_and_the_same_grant_is_good_once_they_are_back() {
    let mut office = Office::open().await;
    let order = office.order("order", &[]).await;
    office.kill(&[2, 3]).await;
    let names = office.names(&[2, 3]);
    let patience = ["--patience", "1s"];
    let said = office.sign(&order, "signed.psbt", &patience).await;
    let error = said.failed(3, "quorum_unavailable");
    assert_eq!(missing(&error), names);
    let out = office.file("signed.psbt");
    let arguments = office.sign_arguments(&order, &out);
    let (code, told) = office
        .treasury
        .text(&[&arguments[..], &patience].concat())
        .await;
    assert_eq!(code, 3, "{told}");
    for name in &names {
        let line = format!("{name} cannot be reached, last seen 20");
        assert!(told.contains(&line), "{told}");
    }
    // One member proves nothing.
    let said = office.status(&order, &[]).await;
    assert_eq!(
        (said.code, &said.object["outcome"]),
        (4, &Value::from("undetermined"))
    );
    assert_eq!(missing(&said.object), names);

    // Without a coordinator nothing is sent at all.
    office.cluster.kill_coordinator().await;
    for arguments in [
        [&office.sign_arguments(&order, &out)[..], &patience].concat(),
        vec!["request", "status", &order.request_id, "--key", &office.key],
        vec!["descriptor", "--key", &office.key_id],
    ] {
        let said = office.treasury.json(&arguments).await;
        assert_eq!(said.code, 3, "{arguments:?}: {}", said.told);
        let advice = text(&said.object["error"], "advice");
        assert!(advice.contains("nothing was sent"), "{advice}");
    }
    assert!(!Path::new(&out).exists());

    office.cluster.start_coordinator_again().await;
    office.cluster.start_again(2).await;
    let said = office.sign(&order, "signed.psbt", &[]).await;
    verified(&said.well(), &order);
}

#[tokio::test]
async fn a_coordinator_that_dies_in_between_leaves_a_question_that_is_answered_later() {
    let mut office = Office::open().await;
    let order = office.order("order", &[]).await;
    // Only members 1 and 2 can sign, and 2 does not answer.
    office.kill(&[3]).await;
    office.cluster.tell(2, Signal::STOP);
    let before = office.records();
    let out = office.file("signed.psbt");
    let arguments = office.sign_arguments(&order, &out);
    let arguments = [&arguments[..], &["--patience", "6s"]].concat();
    let running = office.treasury.start(&arguments);
    until("the request at the first member", async || {
        (office.records()[0] > before[0]).then_some(())
    })
    .await;
    office.cluster.kill_coordinator().await;
    let error = running.end().await.failed(4, "outcome_unknown");
    let message = text(&error, "message");
    let command = format!("firn request status {}", order.request_id);
    assert!(message.contains(&command), "{message}");
    assert_eq!(office.status(&order, &[]).await.code, 3);

    office.cluster.tell(2, Signal::CONT);
    office.cluster.start_coordinator_again().await;
    let said = office.status(&order, &["--psbt", &order.psbt]).await;
    assert_eq!(
        (said.code, &said.object["outcome"]),
        (3, &Value::from("not_signed"))
    );
    let said = office.sign(&order, "signed.psbt", &[]).await;
    verified(&said.well(), &order);
    let said = office.status(&order, &["--psbt", &order.psbt]).await;
    let written = fs::read(&out).unwrap();
    assert_eq!(stated(&said.well()), signatures(&written));
}

/// Whose answers are lost, from the first that follows from a member's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// Everybody's.
    All,
    /// Those on the connection that there is then; a new one is a good one.
    OneConnection,
}

/// A way to the coordinator, for one process, on which answers are lost.
async fn lossy(office: &Office, loss: Loss) -> SocketAddr {
    let near = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let far = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    far.connect(office.cluster.peer().address).await.unwrap();
    let address = near.local_addr().unwrap();
    let domain = office.cluster.shared_domain();
    // A member writes before it answers, so nothing that follows from a record is older than it.
    let written = move || -> u64 {
        let sizes = domain.members().iter().map(|member| {
            let checked = ledger::check(member.folder.path()).unwrap();
            checked.report.head.size.leaves()
        });
        sizes.sum()
    };
    let before = written();
    tokio::spawn(async move {
        let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
        let mut tool = None;
        let (mut is_lost, mut is_new) = (false, false);
        loop {
            tokio::select! {
                Ok((length, from)) = near.recv_from(&mut asked) => {
                    tool = Some(from);
                    // What a QUIC connection begins with (RFC 9000, section 17.2.2).
                    let begins = asked[0] & 0xf0 == 0xc0;
                    is_new |= is_lost && begins && loss == Loss::OneConnection;
                    far.send(&asked[..length]).await.unwrap();
                }
                Ok(length) = far.recv(&mut answered) => {
                    is_lost = is_lost || written() != before;
                    if is_new || !is_lost {
                        near.send_to(&answered[..length], tool.unwrap()).await.unwrap();
                    }
                }
            }
        }
    });
    address
}

#[tokio::test]
async fn a_lost_answer_is_had_again_by_what_the_tool_says_to_type() {
    let office = Office::open().await;
    let order = office.order("order", &[]).await;
    let out = office.file("signed.psbt");
    let behind = office.treasury_at(lossy(&office, Loss::All).await);
    let before = office.records();
    let mut running: Running = behind.start(&office.sign_arguments(&order, &out));
    until("the request at a member", async || {
        (office.records() != before).then_some(())
    })
    .await;
    // Members have signed while the tool still waits.
    let signed = until("the signatures", async || {
        let said = office.status(&order, &["--psbt", &order.psbt]).await;
        (said.object["outcome"] == "signed").then_some(said.object)
    })
    .await;
    assert_eq!(signed["proof"], "signatures");
    running.interrupt();
    let error = running.end().await.failed(4, "outcome_unknown");
    assert!(!Path::new(&out).exists());

    let message = text(&error, "message");
    let (_, command) = message.split_once(": firn ").unwrap();
    let arguments: Vec<&str> = command.split(' ').collect();
    assert_eq!(arguments[..3], ["request", "status", &order.request_id]);
    let said = office.treasury.json(&arguments).await;
    assert_eq!(text(&said.object, "file"), out);
    assert_eq!(stated(&said.well()), stated(&signed));
    let written = fs::read(&out).unwrap();
    assert_eq!(signatures(&written), stated(&signed));
    let again = office.sign(&order, "again.psbt", &[]).await.well();
    verified(&again, &order);
    assert_eq!(again["is_stored"], true);
    assert_eq!(fs::read(office.file("again.psbt")).unwrap(), written);

    // A connection that ends is dialled again, without anybody's help.
    let order = office.order("second", &[]).await;
    let behind = office.treasury_at(lossy(&office, Loss::OneConnection).await);
    let out = office.file("second-signed.psbt");
    let said = behind.json(&office.sign_arguments(&order, &out)).await;
    let said = said.well();
    assert_eq!(said["is_stored"], true);
    verified(&said, &order);
}

#[tokio::test]
async fn what_was_signed_stays_known_after_its_grant_and_every_process_have_ended() {
    let mut office = Office::open().await;
    let valid = ["--valid", "20s"];
    let order = office.order("order", &valid).await;
    let late = office.order("late", &valid).await;
    let signed = office.sign(&order, "signed.psbt", &[]).await.well();
    let written = fs::read(office.file("signed.psbt")).unwrap();
    for member in 1..=3 {
        office.cluster.kill(member).await;
    }
    office.cluster.kill_coordinator().await;
    office.cluster.start_coordinator_again().await;
    for member in 1..=3 {
        office.cluster.start_again(member).await;
    }
    until("the end of the grants", async || {
        (now().value() > late.expires_ms + CLOCKS_MS).then_some(())
    })
    .await;

    let out = office.file("from-ledgers.psbt");
    let said = office
        .status(&order, &["--psbt", &order.psbt, "--out", &out])
        .await;
    assert_eq!(stated(&said.well()), signatures(&written));
    assert_eq!(fs::read(&out).unwrap(), written);
    let again = office.sign(&order, "again.psbt", &[]).await.well();
    assert_eq!(again["transaction"], signed["transaction"]);
    assert_eq!(fs::read(office.file("again.psbt")).unwrap(), written);

    // One that was never asked for is too late, until it is granted again.
    let said = office.sign(&late, "late-signed.psbt", &[]).await;
    said.failed(1, "grant_expired");
    assert_eq!(
        office.status(&late, &[]).await.object["outcome"],
        "not_signed"
    );
    let id = ["--request-id", late.request_id.as_str()];
    let renewed = office.granted("renewed", &late.psbt, &id).await;
    let said = office.sign(&renewed, "late-signed.psbt", &[]).await;
    verified(&said.well(), &late);
}

//! A client against coordinators that lose, lie, refuse and die.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use firn_protocol::{
    codec::{self, List, Maybe, Text},
    ids::{KeyId, RequestId, SessionId, Signature, UnixMillis},
    messages::{FromRequests, MissingMember, RequestFailed, RequestSigned, ToRequests},
    reject::Reject,
};

use super::{Client, Inquiry, Settings};
use crate::{
    Coordinator, Error, Profile, RequestOutcome, WhatNext,
    evidence::{Proof, Prospect},
    profile::TlsFiles,
    testing::{
        Knows, Reaction, Relay, World,
        world::{failed, nonce_of, refusal, report, request_id},
    },
};

fn signed(answer: &RequestSigned) -> impl Fn(usize, &ToRequests) -> Reaction + use<> {
    let answer = answer.clone();
    move |_, _| FromRequests::Signed(answer.clone()).into()
}

fn coordinator(relay: &Relay) -> Coordinator {
    Coordinator {
        name: relay.id.clone(),
        address: relay.address.into(),
    }
}

fn always(answer: FromRequests) -> impl Fn(usize, &ToRequests) -> Reaction {
    move |_, _| answer.clone().into()
}

#[tokio::test]
async fn signs_and_puts_the_signatures_where_they_belong() {
    let world = World::new(3, 2);
    let proposal = world.proposal();
    let relay = world.relay(1, signed(&world.answer(&proposal)));
    let client = world.client(&[&relay]);
    let grant = world.grant(proposal.digest(), |_| {});
    let answer = client.sign(&world.key, &proposal, &grant).await.unwrap();
    assert!(answer.checked.is_stored);
    let payment = proposal.finish(&answer.signed.signatures).unwrap();
    assert_eq!(payment.txid, proposal.overview().unwrap().txid);
    // The connection is kept.
    client.sign(&world.key, &proposal, &grant).await.unwrap();
    assert_eq!(relay.heard().len(), 2);
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_with_the_same_request_elsewhere() {
    for lost in [|| Reaction::Silence, || Reaction::Hangup] {
        let world = World::new(3, 2);
        let proposal = world.proposal();
        let first = world.relay(1, move |_, _| lost());
        let second = world.relay(2, signed(&world.answer(&proposal)));
        let client = world.client(&[&first, &second]);
        let grant = world.grant(proposal.digest(), |_| {});
        client.sign(&world.key, &proposal, &grant).await.unwrap();
        assert_eq!(first.heard(), second.heard());
        // Who has answered is asked first from now on.
        client.sign(&world.key, &proposal, &grant).await.unwrap();
        assert_eq!((first.heard().len(), second.heard().len()), (1, 2));
    }
}

#[tokio::test]
async fn silence_of_everybody_is_an_unknown_outcome_and_no_failure() {
    let world = World::new(3, 2);
    let proposal = world.proposal();
    let relay = world.relay(1, |_, _| Reaction::Never);
    let settings = Settings {
        patience: Duration::from_millis(120),
        answer: Duration::from_millis(50),
        ..Settings::default()
    };
    let client = world.client_with(&[coordinator(&relay)], settings);
    let grant = world.grant(proposal.digest(), |_| {});
    let error = client
        .sign(&world.key, &proposal, &grant)
        .await
        .unwrap_err();
    assert_eq!(error.what_next(), WhatNext::AskOutcome, "{error}");
    assert_eq!(error.code(), "outcome_unknown");
}

#[tokio::test]
async fn a_no_after_silence_does_not_hide_that_something_was_sent() {
    let world = World::new(3, 2);
    let proposal = world.proposal();
    let first = world.relay(1, |_, _| Reaction::Silence);
    let second = world.relay(2, always(failed(Reject::GrantExpired, &[1, 2, 3])));
    let client = world.client(&[&first, &second]);
    let grant = world.grant(proposal.digest(), |_| {});
    let error = client
        .sign(&world.key, &proposal, &grant)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::OutcomeUnknown { .. }), "{error}");
}

#[tokio::test]
async fn answers_that_do_not_prove_themselves_are_not_believed() {
    let world = World::new(3, 2);
    let proposal = world.proposal();
    let honest = world.answer(&proposal);
    let other = crate::Proposal::payment(&world.caller(), &world.key, &world.psbt(71_000)).unwrap();
    let flipped = {
        let mut signatures = honest.signatures.to_vec();
        let mut bytes = *signatures[1].signature.as_bytes();
        bytes[40] ^= 1;
        signatures[1].signature = Signature::from_bytes(bytes);
        RequestSigned {
            signatures: List::new(signatures).unwrap(),
            ..honest.clone()
        }
    };
    let other_request = {
        let receipts = [1, 2].map(|member| {
            let change = |receipt: &mut firn_protocol::documents::Receipt| {
                receipt.request_id = RequestId::from_bytes([6; 32]);
            };
            let word = world.receipt(member, proposal.digest(), &honest.signatures, change);
            (firn_protocol::ids::Identifier::new(member).unwrap(), word)
        });
        RequestSigned {
            receipts: List::new(receipts.to_vec()).unwrap(),
            ..honest.clone()
        }
    };
    let without_receipts = RequestSigned {
        receipts: List::empty(),
        ..honest.clone()
    };
    let other_session = RequestSigned {
        session: SessionId::from_bytes([1; 32]),
        ..honest.clone()
    };
    let lies: Vec<FromRequests> = vec![
        FromRequests::Signed(flipped),
        FromRequests::Signed(world.answer(&other)),
        FromRequests::Signed(other_request),
        FromRequests::Signed(without_receipts),
        FromRequests::Signed(other_session),
        FromRequests::Key(world.documents.clone()),
        FromRequests::Outcome(report(Vec::new())),
    ];
    let grant = world.grant(proposal.digest(), |_| {});
    for (number, lie) in lies.into_iter().enumerate() {
        let liar = world.relay(1, always(lie));
        let honest = world.relay(2, signed(&honest));
        let client = world.client(&[&liar, &honest]);
        let answer = client.sign(&world.key, &proposal, &grant).await;
        assert!(answer.is_ok(), "lie {number}: {answer:?}");
        assert_eq!(
            (liar.heard().len(), honest.heard().len()),
            (1, 1),
            "lie {number}"
        );
    }
}

#[tokio::test]
async fn a_stored_answer_of_an_older_epoch_is_still_the_answer() {
    let world = World::new(3, 2);
    let proposal = world.proposal();
    let relay = world.relay(1, signed(&world.answer(&proposal)));
    let settings = Settings {
        patience: Duration::from_secs(1),
        ..Settings::default()
    };
    let client = world.client_with(&[coordinator(&relay)], settings);
    let raised = world.grant(proposal.digest(), |grant| {
        grant.epoch = firn_protocol::ids::Epoch::new(7);
    });
    client.sign(&world.key, &proposal, &raised).await.unwrap();
    let lower = world.grant(proposal.digest(), |grant| {
        grant.epoch = firn_protocol::ids::Epoch::new(0);
    });
    assert!(client.sign(&world.key, &proposal, &lower).await.is_err());
}

#[tokio::test]
async fn each_kind_of_no_has_its_own_variant() {
    let world = World::new(3, 2);
    let proposal = world.proposal();
    let grant = world.grant(proposal.digest(), |_| {});
    for (code, next, is_definite) in [
        (Reject::PolicyFee, WhatNext::GiveUp, true),
        (Reject::StaleEpoch, WhatNext::GiveUp, true),
        (Reject::RequestConflict, WhatNext::Conflict, true),
        (Reject::EpochOwnerConflict, WhatNext::Conflict, true),
        (Reject::QuorumUnavailable, WhatNext::RetrySameRequest, false),
        (Reject::ClockSkew, WhatNext::RetrySameRequest, false),
    ] {
        let relay = world.relay(1, always(failed(code, &[1, 2])));
        let settings = Settings {
            patience: Duration::from_millis(100),
            first_pause: Duration::from_millis(10),
            ..Settings::default()
        };
        let client = world.client_with(&[coordinator(&relay)], settings);
        let error = client
            .sign(&world.key, &proposal, &grant)
            .await
            .unwrap_err();
        assert_eq!(
            (error.what_next(), error.code()),
            (next, code.name()),
            "{error}"
        );
        assert!(error.to_string().contains("member-1"), "{error}");
        let times = relay.heard().len();
        assert_eq!(times == 1, is_definite, "{code}: asked {times} times");
    }
}

#[tokio::test]
async fn a_coordinator_cannot_refuse_in_the_members_name() {
    let world = World::new(3, 2);
    let proposal = world.proposal();
    let grant = world.grant(proposal.digest(), |_| {});
    // Its own word, one member's, and one member's under two names.
    let twice = FromRequests::Failed(RequestFailed {
        code: Reject::PolicyFee,
        refusals: List::new(vec![
            refusal(1, Reject::PolicyFee, None),
            (
                firn_protocol::ids::Identifier::new(2).unwrap(),
                refusal(1, Reject::PolicyFee, None).1,
            ),
            refusal(1, Reject::PolicyFee, None),
        ])
        .unwrap(),
        missing: List::empty(),
        detail: Text::new("").unwrap(),
    });
    for no in [
        failed(Reject::PolicyFee, &[]),
        failed(Reject::PolicyFee, &[1]),
        twice,
    ] {
        let first = world.relay(1, always(no));
        let second = world.relay(2, signed(&world.answer(&proposal)));
        let client = world.client(&[&first, &second]);
        client.sign(&world.key, &proposal, &grant).await.unwrap();
    }
}

#[tokio::test]
async fn busy_is_asked_again_after_a_pause_until_it_is_signed() {
    let world = World::new(3, 2);
    let proposal = world.proposal();
    let answer = FromRequests::Signed(world.answer(&proposal));
    let relay = world.relay(1, move |before, _| {
        if before < 3 {
            failed(Reject::Busy, &[]).into()
        } else {
            answer.clone().into()
        }
    });
    let client = world.client(&[&relay]);
    let grant = world.grant(proposal.digest(), |_| {});
    client.sign(&world.key, &proposal, &grant).await.unwrap();
    let heard = relay.heard();
    assert_eq!(heard.len(), 4);
    assert!(
        heard.iter().all(|question| *question == heard[0]),
        "another request"
    );
}

#[tokio::test]
async fn who_cannot_be_reached_was_not_sent_anything() {
    let world = World::new(3, 2);
    let proposal = world.proposal();
    let relay = world.relay(1, |_, _| Reaction::Silence);
    // Somebody else's certificate under the name of the second coordinator.
    let coordinator = Coordinator {
        name: crate::testing::world::relay_id(2),
        address: relay.address.into(),
    };
    let settings = Settings {
        patience: Duration::from_millis(50),
        ..Settings::default()
    };
    let client = world.client_with(&[coordinator], settings);
    let grant = world.grant(proposal.digest(), |_| {});
    let error = client
        .sign(&world.key, &proposal, &grant)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert_eq!(error.what_next(), WhatNext::RetrySameRequest);
    assert_eq!(relay.heard(), []);
}

#[tokio::test]
async fn what_does_not_fit_together_is_never_sent() {
    let world = World::new(3, 2);
    let proposal = world.proposal();
    let relay = world.relay(1, |_, _| Reaction::Silence);
    let client = world.client(&[&relay]);
    type Change = fn(&mut firn_protocol::documents::Grant);
    let cases: [(Reject, Change); 5] = [
        (Reject::GrantIntentMismatch, |grant| {
            grant.intent = firn_protocol::ids::IntentDigest::from_bytes([1; 32]);
        }),
        (Reject::GrantOwnerMismatch, |grant| {
            grant.owner = crate::testing::world::relay_id(1);
        }),
        (Reject::GrantKeyMismatch, |grant| {
            grant.key_id = KeyId::from_bytes([1; 32])
        }),
        (Reject::ActivationMismatch, |grant| {
            grant.activation = firn_protocol::ids::ActivationDigest::from_bytes([1; 32]);
        }),
        (Reject::GrantPolicyMismatch, |grant| {
            grant.policy = firn_protocol::ids::PolicyDigest::from_bytes([1; 32]);
        }),
    ];
    for (code, change) in cases {
        let grant = world.grant(proposal.digest(), change);
        let error = client
            .sign(&world.key, &proposal, &grant)
            .await
            .unwrap_err();
        assert_eq!(
            (error.what_next(), error.code()),
            (WhatNext::Usage, code.name())
        );
    }
    assert_eq!(relay.heard(), []);
}

#[tokio::test]
async fn a_dropped_call_leaves_a_client_that_works_and_a_request_that_can_be_asked_again() {
    let world = World::new(3, 2);
    let proposal = world.proposal();
    let answer = FromRequests::Signed(world.answer(&proposal));
    let heard = Arc::new((AtomicUsize::new(0), tokio::sync::Notify::new()));
    let at_relay = Arc::clone(&heard);
    let relay = world.relay(1, move |before, _| {
        at_relay.0.fetch_add(1, Ordering::SeqCst);
        at_relay.1.notify_one();
        if before == 0 {
            Reaction::Never
        } else {
            answer.clone().into()
        }
    });
    let client = world.client(&[&relay]);
    let grant = world.grant(proposal.digest(), |_| {});
    tokio::select! {
        answer = client.sign(&world.key, &proposal, &grant) => panic!("{answer:?}"),
        () = heard.1.notified() => {}
    }
    client.sign(&world.key, &proposal, &grant).await.unwrap();
    assert_eq!(heard.0.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_key_is_what_its_documents_prove_and_the_one_that_was_asked_for() {
    let world = World::new(3, 2);
    let mut damaged = world.documents.clone();
    damaged.certificates = List::new(damaged.certificates[..2].to_vec()).unwrap();
    let liar = world.relay(1, always(FromRequests::Key(damaged)));
    let honest = world.relay(2, always(FromRequests::Key(world.documents.clone())));
    let client = world.client(&[&liar, &honest]);
    let key_id = world.key.key_id();
    let key = client.key(key_id).await.unwrap();
    assert_eq!(key.group_key(), world.key.group_key());
    let other = client.key(KeyId::from_bytes([1; 32])).await.unwrap_err();
    assert!(matches!(other, Error::Unverified { .. }), "{other:?}");
}

/// A coordinator that has these members say this of the request.
fn saying(
    world: &World,
    number: usize,
    proposal: &crate::Proposal,
    signatures: &[firn_protocol::documents::InputSignature],
    members: &[(u16, Knows)],
) -> Relay {
    // Statements need the query's nonce, which is only known when it comes.
    let again = World::new(
        u16::try_from(world.key.members().len()).unwrap(),
        u16::try_from(world.key.threshold()).unwrap(),
    );
    let (digest, signatures, members) = (proposal.digest(), signatures.to_vec(), members.to_vec());
    let again = std::sync::Mutex::new(again);
    world.relay(number, move |_, question| {
        let ToRequests::Outcome(query) = question else {
            return Reaction::Silence;
        };
        let nonce = nonce_of(query);
        let world = again.lock().unwrap();
        let statements = members.iter().map(|(member, knows)| {
            world.statement(*member, nonce, *knows, digest, &signatures, |_| {})
        });
        let missing = MissingMember {
            name: "member-3".parse().unwrap(),
            since: Maybe(Some(UnixMillis::new(77))),
        };
        let mut report = report(statements.collect());
        report.missing = List::new(vec![missing]).unwrap();
        FromRequests::Outcome(report).into()
    })
}

#[tokio::test]
async fn a_lost_answer_is_had_from_the_members_receipts() {
    let world = World::new(3, 2);
    let proposal = world.proposal();
    let signatures = world.signatures(proposal.signable());
    let says = [(1, Knows::Completed), (2, Knows::Released)];
    let relay = saying(&world, 1, &proposal, &signatures, &says);
    let client = world.client(&[&relay]);
    let inquiry = Inquiry::of(request_id()).about(&proposal);
    let RequestOutcome::Signed(signed) = client.outcome(&world.key, inquiry).await.unwrap() else {
        panic!("not signed");
    };
    assert_eq!(
        (signed.signatures.clone(), signed.proof),
        (signatures, Proof::Signatures)
    );
    proposal.finish(&signed.signatures).unwrap();
    // Without the intent it is the members' word: one receipt where nobody may lie.
    let outcome = client.outcome(&world.key, request_id()).await.unwrap();
    assert!(matches!(outcome, RequestOutcome::Signed(signed) if signed.proof == Proof::Members));
}

#[tokio::test]
async fn statements_through_several_coordinators_count_together() {
    let world = World::new(3, 2);
    let proposal = world.proposal();
    let first = saying(&world, 1, &proposal, &[], &[(1, Knows::Open(1))]);
    let second = saying(&world, 2, &proposal, &[], &[(2, Knows::Nothing)]);
    let client = world.client(&[&first, &second]);
    let outcome = client.outcome(&world.key, request_id()).await.unwrap();
    let RequestOutcome::NotSigned(not_signed) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(not_signed.prospect, Prospect::Open { attempts: 1 });
    let alone: Client = world.client(&[&second]);
    let outcome = alone.outcome(&world.key, request_id()).await.unwrap();
    let RequestOutcome::Undetermined(undetermined) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(undetermined.needed, 2);
    let missing: Vec<_> = undetermined
        .missing
        .iter()
        .map(|m| m.name.as_str())
        .collect();
    assert_eq!(missing, ["member-1", "member-3"]);
    assert_eq!(undetermined.missing[1].since.0, Some(UnixMillis::new(77)));
}

#[tokio::test]
async fn nobody_who_answers_an_outcome_query_is_no_outcome() {
    let world = World::new(3, 2);
    let relay = world.relay(1, |_, _| Reaction::Silence);
    let client = world.client(&[&relay]);
    let error = client.outcome(&world.key, request_id()).await.unwrap_err();
    assert_eq!(error.what_next(), WhatNext::RetrySameRequest, "{error}");
    let refusing = world.relay(1, |_, _| {
        let mut report = report(Vec::new());
        report.refusals = List::new(vec![refusal(1, Reject::EpochOwnerConflict, None)]).unwrap();
        FromRequests::Outcome(report).into()
    });
    let client = world.client(&[&refusing]);
    let error = client.outcome(&world.key, request_id()).await.unwrap_err();
    assert_eq!(
        (error.what_next(), error.code()),
        (WhatNext::Conflict, "epoch_owner_conflict")
    );
}

#[tokio::test]
async fn a_profile_is_all_that_a_client_needs() {
    use std::{fs, os::unix::fs::PermissionsExt};

    let world = World::new(3, 2);
    let proposal = world.proposal();
    let relay = world.relay(1, signed(&world.answer(&proposal)));
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let write = |name: &str, mode, bytes: &[u8]| {
        fs::write(at(name), bytes).unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    let (certificate, key) = world.ca.issue(&crate::testing::world::requester());
    write("certificate.pem", 0o644, certificate.as_bytes());
    write("key.pem", 0o600, key.as_bytes());
    write("roots.pem", 0o644, world.ca.roots().as_bytes());
    write("identity.key", 0o600, hex::encode([4; 32]).as_bytes());
    let endorsed = world.authorities.approved().endorsed();
    write("authorities.cbor", 0o644, &codec::encode(endorsed).unwrap());
    let profile = Profile {
        name: crate::testing::world::requester(),
        identity_key: "identity.key".into(),
        authorities: "authorities.cbor".into(),
        authorities_digest: world.authorities.digest(),
        tls: TlsFiles {
            certificate: "certificate.pem".into(),
            key: "key.pem".into(),
            roots: "roots.pem".into(),
        },
        coordinators: vec![coordinator(&relay)],
    };
    write("firn.toml", 0o644, profile.to_toml().unwrap().as_bytes());

    let profile = Profile::load(folder.path()).unwrap();
    let client = profile.client(Settings::default()).unwrap();
    let grant = world.grant(proposal.digest(), |_| {});
    client.sign(&world.key, &proposal, &grant).await.unwrap();

    let yesterday = time::OffsetDateTime::now_utc().saturating_sub(time::Duration::days(1));
    let requester = crate::testing::world::requester();
    let (certificate, key) = world.ca.issue_around(&requester, yesterday);
    write("certificate.pem", 0o644, certificate.as_bytes());
    write("key.pem", 0o600, key.as_bytes());
    let error = profile.client(Settings::default()).unwrap_err();
    assert_eq!(error.what_next(), WhatNext::Usage, "{error}");
    let other = crate::testing::world::relay_id(2);
    let (certificate, key) = world.ca.issue(&other);
    write("certificate.pem", 0o644, certificate.as_bytes());
    write("key.pem", 0o600, key.as_bytes());
    let error = profile.client(Settings::default()).unwrap_err();
    assert_eq!(error.code(), "profile_other_name", "{error}");
    write("key.pem", 0o644, key.as_bytes());
    let error = profile.client(Settings::default()).unwrap_err();
    assert_eq!(
        (error.code(), error.what_next()),
        ("file_permissions", WhatNext::Usage)
    );
    let mut pinned = profile.clone();
    pinned.authorities_digest = firn_protocol::ids::AuthoritiesDigest::from_bytes([0; 32]);
    let error = pinned.authorities().unwrap_err();
    assert_eq!(error.code(), "authorities_mismatch");
}

#[tokio::test]
async fn a_client_can_be_moved_to_another_task() {
    let world = World::new(3, 2);
    let proposal = world.proposal();
    let relay = world.relay(1, signed(&world.answer(&proposal)));
    let client = world.client(&[&relay]);
    let (grant, key) = (world.grant(proposal.digest(), |_| {}), world.key.clone());
    let task = tokio::spawn(async move { client.sign(&key, &proposal, &grant).await });
    task.await.unwrap().unwrap();
}

//! One thing wrong with the credentials of one side, against a peer that checks nothing itself:
//! nobody reaches the welcome, each for its own reason, and an honest peer is served afterwards.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

mod support;

use std::sync::Arc;

use firn_protocol::names::Role;
use firn_transport::{Limits, TransportError};
use rcgen::ExtendedKeyUsagePurpose;
use support::{
    COORDINATOR, Ca, GUARD, Issued, Leaf, PARTICIPANT, PARTICIPANT_ALPN, REQUESTER, REQUESTER_ALPN,
    RogueClient, RogueServer, dialer, greeting, id, listen, pair,
};
use time::Duration;
use tokio::time::timeout;

const OTHER_DOMAIN_PARTICIPANT: &str = "spiffe://other.example/participant/p1";
const OTHER_DOMAIN_COORDINATOR: &str = "spiffe://other.example/coordinator/c1";

struct Case {
    name: &'static str,
    issued: Option<Issued>,
    code: &'static str,
}

/// The certificates with one thing wrong that both sides must refuse. `good` is the name that would
/// have been right.
fn bad_certificates(ca: &Ca, good: &'static str, other_domain: &'static str) -> Vec<Case> {
    let case = |name, code, ca: &Ca, change: &dyn Fn(&mut Leaf)| {
        let mut leaf = Leaf::of(good);
        change(&mut leaf);
        Case {
            name,
            issued: Some(ca.issue(leaf)),
            code,
        }
    };
    let other = Ca::new("other root");
    let namesake = Ca::new("root");
    vec![
        case("wrong root", "tls_unknown_ca", &other, &|_| {}),
        case(
            "wrong root of the right name",
            "tls_unknown_ca",
            &namesake,
            &|_| {},
        ),
        case("expired", "tls_expired", ca, &|leaf| {
            leaf.not_before -= Duration::hours(3);
            leaf.not_after -= Duration::hours(2);
        }),
        case("not yet valid", "tls_not_yet_valid", ca, &|leaf| {
            leaf.not_before += Duration::hours(2);
            leaf.not_after += Duration::hours(3);
        }),
        case("CA as leaf", "tls_ca_as_leaf", ca, &|leaf| {
            leaf.is_ca = true
        }),
        case("two URI names", "tls_two_uris", ca, &|leaf| {
            leaf.uris.push("urn:other")
        }),
        case("the same URI name twice", "tls_two_uris", ca, &|leaf| {
            leaf.uris.push(good)
        }),
        case("no URI name", "tls_no_uri", ca, &|leaf| leaf.uris.clear()),
        case("no SPIFFE id", "tls_not_spiffe", ca, &|leaf| {
            leaf.uris = vec!["https://custody.example/participant/p1"];
        }),
        case(
            "wrong trust domain",
            "tls_wrong_trust_domain",
            ca,
            &|leaf| {
                leaf.uris = vec![other_domain];
            },
        ),
        case("wrong purpose", "tls_wrong_purpose", ca, &|leaf| {
            leaf.purposes = vec![ExtendedKeyUsagePurpose::CodeSigning];
        }),
    ]
}

#[tokio::test]
async fn a_client_with_bad_credentials_never_reaches_the_welcome() {
    let ca = Ca::new("root");
    let mut cases = bad_certificates(&ca, PARTICIPANT, OTHER_DOMAIN_PARTICIPANT);
    let revoked = ca.issue(Leaf::of(PARTICIPANT));
    let trust = ca.trust().with_revoked([revoked.fingerprint()]);
    cases.extend([
        Case {
            name: "none",
            issued: None,
            code: "tls_no_certificate",
        },
        Case {
            name: "revoked",
            issued: Some(revoked),
            code: "tls_revoked",
        },
        Case {
            name: "wrong role",
            issued: Some(ca.issue(Leaf::of("spiffe://custody.example/operator/o1"))),
            code: "tls_wrong_role",
        },
        Case {
            name: "a coordinator",
            issued: Some(ca.issue(Leaf::of(COORDINATOR))),
            code: "tls_wrong_role",
        },
        Case {
            name: "wrong ALPN for its role",
            issued: Some(ca.issue(Leaf::of(REQUESTER))),
            code: "alpn_mismatch",
        },
    ]);
    let roles = [Role::Participant, Role::Requester];
    let listener = listen(&ca, trust, &roles, Limits::small());
    let address = listener.local_address().unwrap();

    for Case { name, issued, code } in cases {
        let client = RogueClient::new(issued.as_ref(), PARTICIPANT_ALPN);
        let accepting = async {
            match greeting(&listener).await {
                Ok(greeting) => panic!("{name}: greeted {}", greeting.peer()),
                Err(error) => error,
            }
        };
        let both = async { tokio::join!(accepting, client.reach_welcome(address)) };
        let (error, welcome) = timeout(GUARD, both).await.expect(name);
        assert_eq!(error.code(), code, "{name}");
        assert_eq!(welcome, None, "{name}");
        assert!(!error.advice().is_empty());
    }

    let honest = dialer(&ca.identity(PARTICIPANT), ca.trust());
    let (accepted, _dialled) = timeout(GUARD, pair(&listener, &honest)).await.unwrap();
    assert_eq!(*accepted.peer(), id(PARTICIPANT));
}

#[tokio::test]
async fn a_protocol_that_the_listener_is_not_for_is_not_negotiated() {
    let ca = Ca::new("root");
    let listener = listen(&ca, ca.trust(), &[Role::Participant], Limits::small());
    let address = listener.local_address().unwrap();
    let participant = ca.issue(Leaf::of(PARTICIPANT));
    for alpn in [REQUESTER_ALPN, b"firn-participant/2", b"h3"] {
        let client = RogueClient::new(Some(&participant), alpn);
        let both = async { tokio::join!(greeting(&listener), client.reach_welcome(address)) };
        let (accepted, welcome) = timeout(GUARD, both).await.unwrap();
        assert_eq!(
            accepted.err().map(|error| error.code()),
            Some("alpn_mismatch")
        );
        assert_eq!(welcome, None);
    }
}

#[tokio::test]
async fn a_dialer_learns_that_its_certificate_was_refused_and_gets_no_connection() {
    let ca = Ca::new("root");
    let listener = listen(&ca, ca.trust(), &[Role::Participant], Limits::small());
    let address = listener.local_address().unwrap();
    for case in bad_certificates(&ca, PARTICIPANT, OTHER_DOMAIN_PARTICIPANT) {
        // Some defects are found before anything is dialled.
        let Ok(identity) = case.issued.unwrap().identity() else {
            assert!(["tls_two_uris", "tls_no_uri", "tls_not_spiffe"].contains(&case.code));
            continue;
        };
        if case.code == "tls_wrong_trust_domain" {
            continue;
        }
        let dialer = dialer(&identity, ca.trust());
        let expected = id(COORDINATOR);
        let both = async {
            tokio::join!(
                greeting(&listener),
                dialer.connect(address, &expected, b"hello")
            )
        };
        let (accepted, dialled) = timeout(GUARD, both).await.unwrap();
        assert_eq!(accepted.err().map(|error| error.code()), Some(case.code));
        assert_eq!(
            dialled.err().map(|error| error.code()),
            Some("tls_refused_by_peer")
        );
    }
}

#[tokio::test]
async fn a_dialer_refuses_a_server_with_bad_credentials_before_it_says_hello() {
    let ca = Ca::new("root");
    let mut cases = bad_certificates(&ca, COORDINATOR, OTHER_DOMAIN_COORDINATOR);
    let revoked = ca.issue(Leaf::of(COORDINATOR));
    let trust = ca.trust().with_revoked([revoked.fingerprint()]);
    cases.extend([
        // A TLS 1.3 server without a certificate can only give up itself.
        Case {
            name: "none",
            issued: None,
            code: "tls_refused_by_peer",
        },
        Case {
            name: "revoked",
            issued: Some(revoked),
            code: "tls_revoked",
        },
        Case {
            name: "wrong role",
            issued: Some(ca.issue(Leaf::of(PARTICIPANT))),
            code: "tls_wrong_role",
        },
        Case {
            name: "wrong name",
            issued: Some(ca.issue(Leaf::of("spiffe://custody.example/coordinator/c2"))),
            code: "tls_wrong_name",
        },
    ]);
    let dialer = dialer(&ca.identity(PARTICIPANT), trust);
    for Case { name, issued, code } in cases {
        let server = RogueServer::new(issued.as_ref(), &[PARTICIPANT_ALPN]);
        refuses(&dialer, &server, name, code).await;
    }

    let good = ca.issue(Leaf::of(COORDINATOR));
    for alpn in [&[REQUESTER_ALPN][..], &[b"h3"], &[]] {
        let server = RogueServer::new(Some(&good), alpn);
        refuses(&dialer, &server, "wrong ALPN", "alpn_mismatch").await;
    }

    let server = RogueServer::new(Some(&good), &[PARTICIPANT_ALPN]);
    let expected = id(COORDINATOR);
    let dialling = dialer.connect(server.address(), &expected, b"hello");
    let both = async { tokio::join!(server.hear_hello(), dialling) };
    let (hello, dialled) = timeout(GUARD, both).await.unwrap();
    assert_eq!(hello.unwrap(), b"\0\0\0\x05hello");
    assert_eq!(dialled.unwrap().1, b"welcome");
}

async fn refuses(dialer: &firn_transport::Dialer, server: &RogueServer, name: &str, code: &str) {
    let expected = id(COORDINATOR);
    let dialling = dialer.connect(server.address(), &expected, b"hello");
    let both = async { tokio::join!(server.hear_hello(), dialling) };
    let (hello, dialled) = timeout(GUARD, both).await.expect(name);
    assert_eq!(hello, None, "{name}");
    assert_eq!(
        dialled.err().map(|error| error.code()),
        Some(code),
        "{name}"
    );
}

#[test]
fn an_endpoint_does_not_start_with_an_identity_that_no_peer_would_accept() {
    let ca = Ca::new("root");
    let trust = Arc::new(ca.trust());
    let bind = |identity: &firn_transport::TlsIdentity, listens: bool| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let _inside = runtime.enter();
        let (at, trust, limits) = (support::loopback(), Arc::clone(&trust), Limits::small());
        let bound = if listens {
            firn_transport::Listener::bind(at, identity, trust, &Role::ALL, limits).map(|_| ())
        } else {
            firn_transport::Dialer::bind(at, identity, trust, limits).map(|_| ())
        };
        bound.err().map(|error| error.code())
    };
    for (uri, listens, code) in [
        (COORDINATOR, true, None),
        (PARTICIPANT, false, None),
        (COORDINATOR, false, Some("identity_wrong_role")),
        (PARTICIPANT, true, Some("identity_wrong_role")),
        (
            OTHER_DOMAIN_COORDINATOR,
            true,
            Some("identity_bad_certificate"),
        ),
        (
            OTHER_DOMAIN_PARTICIPANT,
            false,
            Some("identity_bad_certificate"),
        ),
    ] {
        assert_eq!(bind(&ca.identity(uri), listens), code, "{uri} {listens}");
    }
}

#[test]
fn an_identity_is_a_certificate_with_its_own_key() {
    let ca = Ca::new("root");
    let (one, two) = (
        ca.issue(Leaf::of(PARTICIPANT)),
        ca.issue(Leaf::of(PARTICIPANT)),
    );
    let load = |chain: &str, key: &str| {
        firn_transport::TlsIdentity::from_pem(chain.as_bytes(), key.as_bytes())
            .err()
            .map(|error: TransportError| error.code())
    };
    assert_eq!(load(&one.pem, &one.key_pem), None);
    assert_eq!(load(&one.pem, &two.key_pem), Some("identity_key_mismatch"));
    assert_eq!(load("", &one.key_pem), Some("identity_bad_pem"));
    assert_eq!(load(&one.pem, ""), Some("identity_bad_pem"));
    assert_eq!(
        load(&one.pem.repeat(9), &one.key_pem),
        Some("identity_bad_pem")
    );

    let shown = format!("{:?}", one.identity().unwrap());
    assert!(shown.contains("p1") && shown.len() < 200, "{shown}");
}

//! What a connection costs and what it carries: Retry, deadlines, the welcome, changed identities,
//! frames.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing
)]

mod support;

use std::{sync::Arc, time::Duration};

use firn_protocol::names::Role;
use firn_transport::{
    Connection, Dialer, Limits, Listener, MAX_GREETING, MAX_INCOMING, TimeProvider, TransportError,
};
use rustls::pki_types::UnixTime;
use support::{
    COORDINATOR, Ca, GUARD, Leaf, PARTICIPANT, PARTICIPANT_ALPN, RogueClient, dialer, greeting, id,
    listen, pair,
};
use tokio::{net::UdpSocket, time::timeout};

const ROLES: &[Role] = &[Role::Participant];

fn endpoints(ca: &Ca) -> (Listener, Dialer) {
    let listener = listen(ca, ca.trust(), ROLES, Limits::small());
    (listener, dialer(&ca.identity(PARTICIPANT), ca.trust()))
}

/// A rogue client behind the welcome, and the connection that it has with us.
async fn welcomed_rogue(
    ca: &Ca,
    listener: &Listener,
) -> (RogueClient, quinn::Connection, Connection) {
    let client = RogueClient::new(Some(&ca.issue(Leaf::of(PARTICIPANT))), PARTICIPANT_ALPN);
    let address = listener.local_address().unwrap();
    let dialling = async {
        let raw = client.connect(address).await.unwrap();
        let (mut send, mut receive) = raw.open_bi().await.unwrap();
        send.write_all(b"\0\0\0\0").await.unwrap();
        send.finish().unwrap();
        assert_eq!(receive.read_to_end(64).await.unwrap(), b"\0\0\0\0");
        raw
    };
    let accepting = async {
        greeting(listener)
            .await
            .unwrap()
            .welcome(b"")
            .await
            .unwrap()
    };
    let (raw, connection) = tokio::join!(dialling, accepting);
    (client, raw, connection)
}

#[tokio::test]
async fn hello_and_welcome_arrive_and_both_sides_know_who_the_other_is() {
    let ca = Ca::new("root");
    let (listener, dialer) = endpoints(&ca);
    let address = listener.local_address().unwrap();
    let (hello, welcome) = (vec![7; MAX_GREETING], vec![8; MAX_GREETING]);
    let accepting = async {
        let greeting = greeting(&listener).await.unwrap();
        assert_eq!(greeting.hello(), hello);
        assert_eq!(*greeting.peer(), id(PARTICIPANT));
        greeting.welcome(&welcome).await.unwrap()
    };
    let expected = id(COORDINATOR);
    let both = async { tokio::join!(accepting, dialer.connect(address, &expected, &hello)) };
    let (accepted, dialled) = timeout(GUARD, both).await.unwrap();
    let (dialled, received) = dialled.unwrap();
    assert_eq!(received, welcome);
    assert_eq!(*dialled.peer(), expected);

    dialled.close(7);
    let why = timeout(GUARD, accepted.closed()).await.unwrap();
    assert!(
        matches!(why, TransportError::PeerClosed { code: 7 }),
        "{why}"
    );
}

#[tokio::test]
async fn a_refusal_brings_the_applications_code_and_no_connection() {
    let ca = Ca::new("root");
    let (listener, dialer) = endpoints(&ca);
    let address = listener.local_address().unwrap();
    let expected = id(COORDINATOR);
    let refusing = async { greeting(&listener).await.unwrap().refuse(4711) };
    let both = async { tokio::join!(refusing, dialer.connect(address, &expected, b"hello")) };
    let (_, dialled) = timeout(GUARD, both).await.unwrap();
    assert!(
        matches!(dialled, Err(TransportError::Refused { code: 4711 })),
        "{dialled:?}"
    );
}

#[tokio::test]
async fn an_attempt_that_nobody_drives_holds_up_no_other() {
    let ca = Ca::new("root");
    let (listener, slow) = endpoints(&ca);
    let fast = dialer(&ca.identity(PARTICIPANT), ca.trust());
    let address = listener.local_address().unwrap();
    let expected = id(COORDINATOR);
    let accepting = async {
        let pending = listener.accept().await.unwrap();
        let _pair = pair(&listener, &fast).await;
        // Dropped without a handshake: refused.
        drop(pending);
    };
    let both = async { tokio::join!(accepting, slow.connect(address, &expected, b"hello")) };
    let ((), dialled) = timeout(GUARD, both).await.unwrap();
    assert_eq!(dialled.err().map(|error| error.code()), Some("peer_busy"));
}

#[tokio::test]
async fn connections_beyond_the_limit_are_turned_away() {
    let ca = Ca::new("root");
    let listener = listen(&ca, ca.trust(), ROLES, Limits::small().with_connections(1));
    let address = listener.local_address().unwrap();
    let dialer = dialer(&ca.identity(PARTICIPANT), ca.trust());
    let (_accepted, _dialled) = timeout(GUARD, pair(&listener, &dialer)).await.unwrap();
    let expected = id(COORDINATOR);
    let second = async {
        tokio::select! {
            pending = listener.accept() => panic!("accepted {pending:?}"),
            dialled = dialer.connect(address, &expected, b"hello") => dialled,
        }
    };
    let dialled = timeout(GUARD, second).await.unwrap();
    assert_eq!(dialled.err().map(|error| error.code()), Some("peer_busy"));
}

#[tokio::test]
async fn handshakes_under_way_are_bounded_and_make_room_when_they_end() {
    let ca = Ca::new("root");
    let listener = listen(
        &ca,
        ca.trust(),
        ROLES,
        Limits::small().with_handshake_deadline(2 * GUARD),
    );
    let address = listener.local_address().unwrap();
    // Clients that never say hello.
    let client = RogueClient::new(Some(&ca.issue(Leaf::of(PARTICIPANT))), PARTICIPANT_ALPN);
    let (mut silent, mut under_way) = (Vec::new(), Vec::new());
    for _ in 0..MAX_INCOMING {
        let config = client.config.clone();
        let connecting = client
            .endpoint
            .connect_with(config, address, "firn.invalid")
            .unwrap();
        let pending = timeout(GUARD, listener.accept()).await.unwrap().unwrap();
        under_way.push(tokio::spawn(pending.handshake()));
        silent.push(timeout(GUARD, connecting).await.unwrap().unwrap());
    }
    let dialer = dialer(&ca.identity(PARTICIPANT), ca.trust());
    let expected = id(COORDINATOR);
    let another = async {
        tokio::select! {
            more = listener.accept() => panic!("accepted {more:?}"),
            dialled = dialer.connect(address, &expected, b"hello") => dialled,
        }
    };
    let dialled = timeout(GUARD, another).await.unwrap();
    assert_eq!(dialled.err().map(|error| error.code()), Some("peer_busy"));

    let one = under_way.pop().unwrap();
    one.abort();
    assert!(one.await.unwrap_err().is_cancelled());
    timeout(GUARD, pair(&listener, &dialer)).await.unwrap();
}

#[tokio::test]
async fn the_first_answer_to_an_unknown_address_is_a_retry() {
    let ca = Ca::new("root");
    let (listener, dialer) = endpoints(&ca);
    let relay = UdpSocket::bind(support::loopback()).await.unwrap();
    let relay_address = relay.local_addr().unwrap();
    let expected = id(COORDINATOR);
    let relaying = async {
        let mut datagram = [0; 2048];
        let (length, _) = relay.recv_from(&mut datagram).await.unwrap();
        relay
            .send_to(&datagram[..length], listener.local_address().unwrap())
            .await
            .unwrap();
        loop {
            let (_, from) = relay.recv_from(&mut datagram).await.unwrap();
            if from == listener.local_address().unwrap() {
                return datagram[0];
            }
        }
    };
    let looking = async {
        tokio::select! {
            first = relaying => first,
            pending = listener.accept() => panic!("accepted without Retry: {pending:?}"),
            dialled = dialer.connect(relay_address, &expected, b"hello") => panic!("{dialled:?}"),
        }
    };
    let first = timeout(GUARD, looking).await.unwrap();
    // A long header of type Retry (RFC 9000, section 17.2.5).
    assert_eq!(first & 0xf0, 0xf0);
}

#[tokio::test]
async fn silence_ends_at_the_deadline_on_either_side() {
    let ca = Ca::new("root");
    let limits = Limits::small()
        .with_handshake_deadline(Duration::from_millis(300))
        .with_welcome_deadline(Duration::from_millis(300));
    let identity = ca.identity(PARTICIPANT);
    let trust = Arc::new(ca.trust());
    let dialer = Dialer::bind(support::loopback(), &identity, trust, limits).unwrap();
    let expected = id(COORDINATOR);

    let nobody = UdpSocket::bind(support::loopback()).await.unwrap();
    let dialling = dialer.connect(nobody.local_addr().unwrap(), &expected, b"hello");
    let dialled = timeout(GUARD, dialling).await.unwrap();
    assert_eq!(
        dialled.err().map(|error| error.code()),
        Some("handshake_timeout")
    );

    // A listener whose application never answers.
    let listener = listen(&ca, ca.trust(), ROLES, limits);
    let address = listener.local_address().unwrap();
    let dialling = dialer.connect(address, &expected, b"hello");
    let both = async { tokio::join!(greeting(&listener), dialling) };
    let (_greeting, dialled) = timeout(GUARD, both).await.unwrap();
    assert_eq!(
        dialled.err().map(|error| error.code()),
        Some("handshake_timeout")
    );

    // A client that never says hello.
    let client = RogueClient::new(Some(&ca.issue(Leaf::of(PARTICIPANT))), PARTICIPANT_ALPN);
    let both = async { tokio::join!(greeting(&listener), client.connect(address)) };
    let (accepted, _) = timeout(GUARD, both).await.unwrap();
    assert_eq!(
        accepted.err().map(|error| error.code()),
        Some("handshake_timeout")
    );
}

#[tokio::test]
async fn a_hello_that_is_none_is_refused() {
    let ca = Ca::new("root");
    let listener = listen(&ca, ca.trust(), ROLES, Limits::small());
    let address = listener.local_address().unwrap();
    for bytes in [
        &b""[..],
        b"\0\0",
        b"\0\0\0\x02x",
        b"\0\x01\0\x01",
        b"\xff\xff\xff\xff",
    ] {
        let client = RogueClient::new(Some(&ca.issue(Leaf::of(PARTICIPANT))), PARTICIPANT_ALPN);
        let dialling = async {
            let raw = client.connect(address).await.unwrap();
            let (mut send, _receive) = raw.open_bi().await.unwrap();
            send.write_all(bytes).await.unwrap();
            send.finish().unwrap();
            raw.closed().await
        };
        let both = async { tokio::join!(greeting(&listener), dialling) };
        let (accepted, _) = timeout(GUARD, both).await.unwrap();
        assert_eq!(
            accepted.err().map(|error| error.code()),
            Some("bad_greeting"),
            "{bytes:?}"
        );
    }
}

#[tokio::test]
async fn a_replaced_identity_serves_the_next_peer_and_recheck_finds_the_revoked_one() {
    let ca = Ca::new("root");
    let listener = listen(&ca, ca.trust(), ROLES, Limits::small());
    let leaving = ca.issue(Leaf::of(PARTICIPANT));
    let old = dialer(&leaving.identity().unwrap(), ca.trust());
    let (before, dialled) = timeout(GUARD, pair(&listener, &old)).await.unwrap();
    before.recheck(&ca.trust()).unwrap();
    assert_eq!(before.fingerprint(), leaving.fingerprint());

    let renewed = ca.identity(COORDINATOR);
    let trust = ca.trust().with_revoked([leaving.fingerprint()]);
    listener
        .replace_identity(&renewed, Arc::new(trust.clone()))
        .unwrap();
    let why = before.recheck(&trust).err().map(|error| error.code());
    assert_eq!(why, Some("tls_revoked"));

    let expected = id(COORDINATOR);
    let address = listener.local_address().unwrap();
    let both = async {
        tokio::join!(
            greeting(&listener),
            old.connect(address, &expected, b"hello")
        )
    };
    let (accepted, refused) = timeout(GUARD, both).await.unwrap();
    assert_eq!(
        accepted.err().map(|error| error.code()),
        Some("tls_revoked")
    );
    assert_eq!(
        refused.err().map(|error| error.code()),
        Some("tls_refused_by_peer")
    );

    old.replace_identity(&ca.identity(PARTICIPANT), Arc::new(ca.trust()))
        .unwrap();
    let (_accepted, after) = timeout(GUARD, pair(&listener, &old)).await.unwrap();
    assert_eq!(Some(after.fingerprint()), renewed.fingerprint());
    assert_ne!(after.fingerprint(), dialled.fingerprint());
    assert!(!after.is_same(&dialled));
}

#[derive(Debug)]
struct Stopped(UnixTime);

impl TimeProvider for Stopped {
    fn current_time(&self) -> Option<UnixTime> {
        Some(self.0)
    }
}

#[tokio::test]
async fn validity_is_judged_by_the_clock_that_was_given() {
    let ca = Ca::new("root");
    let at = |ahead: u64| {
        let now = UnixTime::now().as_secs() + ahead;
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
        ca.trust().with_clock(Arc::new(Stopped(now)))
    };
    let mut leaf = Leaf::of(PARTICIPANT);
    leaf.not_before += time::Duration::hours(9);
    leaf.not_after += time::Duration::hours(9);
    let dialer = dialer(&ca.issue(leaf).identity().unwrap(), ca.trust());
    let listener = listen(&ca, at(9 * 3600), ROLES, Limits::small());
    let (accepted, _dialled) = timeout(GUARD, pair(&listener, &dialer)).await.unwrap();
    let later = accepted
        .recheck(&at(11 * 3600))
        .err()
        .map(|error| error.code());
    assert_eq!(later, Some("tls_expired"));
}

#[tokio::test]
async fn offers_no_one_way_streams_no_datagrams_and_no_early_data() {
    let ca = Ca::new("root");
    let listener = listen(&ca, ca.trust(), ROLES, Limits::small());
    let (client, raw, connection) = timeout(GUARD, welcomed_rogue(&ca, &listener))
        .await
        .unwrap();
    assert_eq!(raw.max_datagram_size(), None);

    let round_trip = async {
        let (mut send, mut receive) = raw.open_bi().await.unwrap();
        send.write_all(b"\0\0\0\x01x").await.unwrap();
        let (mut sender, mut receiver) = connection.accept_stream().await.unwrap();
        let frame = receiver.receive(1).await.unwrap().unwrap();
        sender.send(&frame).await.unwrap();
        sender.finish();
        receive.read_to_end(64).await.unwrap()
    };
    let racing = async {
        tokio::select! {
            biased;
            _ = raw.open_uni() => panic!("a one-way stream"),
            echoed = round_trip => echoed,
        }
    };
    assert_eq!(timeout(GUARD, racing).await.unwrap(), b"\0\0\0\x01x");

    let address = listener.local_address().unwrap();
    let again = client
        .endpoint
        .connect_with(client.config.clone(), address, "firn.invalid");
    assert!(again.unwrap().into_0rtt().is_err(), "a session was kept");
}

#[tokio::test]
async fn frames_arrive_whole_in_order_and_up_to_the_limit() {
    let ca = Ca::new("root");
    let (listener, dialer) = endpoints(&ca);
    let (accepted, dialled) = timeout(GUARD, pair(&listener, &dialer)).await.unwrap();
    let frames = [
        vec![],
        vec![1; 3],
        vec![],
        vec![2; (64 << 10) + 1],
        vec![3; 1 << 20],
    ];
    let sending = async {
        let (mut sender, receiver) = dialled.open_stream().await.unwrap();
        for frame in &frames {
            sender.send(frame).await.unwrap();
        }
        sender.finish();
        receiver
    };
    let receiving = async {
        let (_sender, mut receiver) = accepted.accept_stream().await.unwrap();
        for frame in &frames {
            let received = receiver.receive(frame.len()).await.unwrap().unwrap();
            assert!(received == *frame);
            assert_eq!(
                received.capacity(),
                frame.len(),
                "room for more than the frame"
            );
        }
        assert_eq!(receiver.receive(0).await.unwrap(), None);
    };
    timeout(GUARD, async { tokio::join!(sending, receiving) })
        .await
        .unwrap();
}

#[tokio::test]
async fn refuses_an_oversize_frame_on_its_length_alone() {
    let ca = Ca::new("root");
    let listener = listen(&ca, ca.trust(), ROLES, Limits::small());
    let (_client, raw, connection) = timeout(GUARD, welcomed_rogue(&ca, &listener))
        .await
        .unwrap();
    for (header, length) in [([0, 0, 0, 9], 9), ([0xff; 4], u32::MAX as usize)] {
        let (mut send, _receive) = raw.open_bi().await.unwrap();
        // No body follows, and the stream stays open.
        send.write_all(&header).await.unwrap();
        let receiving = async {
            let (_sender, mut receiver) = connection.accept_stream().await.unwrap();
            receiver.receive(8).await
        };
        let refused = timeout(GUARD, receiving).await.unwrap().unwrap_err();
        assert_eq!(refused.code(), "frame_too_large");
        assert!(
            matches!(refused, TransportError::FrameTooLarge { length: l, limit: 8 } if l == length)
        );
        assert!(
            timeout(GUARD, send.stopped())
                .await
                .unwrap()
                .unwrap()
                .is_some()
        );
    }
}

#[tokio::test]
async fn tells_a_clean_end_from_a_truncated_frame_and_from_a_reset() {
    let ca = Ca::new("root");
    let listener = listen(&ca, ca.trust(), ROLES, Limits::small());
    let (_client, raw, connection) = timeout(GUARD, welcomed_rogue(&ca, &listener))
        .await
        .unwrap();
    for (bytes, expected) in [
        (&b"\0\0\0\x01x"[..], None),
        (b"\0\0\0\x01x\0", Some("frame_truncated")),
        (b"\0\0\0\x01x\0\0\0", Some("frame_truncated")),
        (b"\0\0\0\x01x\0\0\0\x02", Some("frame_truncated")),
        (b"\0\0\0\x01x\0\0\0\x02y", Some("frame_truncated")),
    ] {
        let (mut send, _receive) = raw.open_bi().await.unwrap();
        send.write_all(bytes).await.unwrap();
        send.finish().unwrap();
        let receiving = async {
            let (_sender, mut receiver) = connection.accept_stream().await.unwrap();
            assert_eq!(receiver.receive(8).await.unwrap().unwrap(), b"x");
            receiver.receive(8).await
        };
        let end = timeout(GUARD, receiving).await.unwrap();
        assert_eq!(
            end.as_ref().err().map(TransportError::code),
            expected,
            "{bytes:?}"
        );
        assert!(end.is_err() || end.unwrap().is_none());
    }

    let (mut send, _receive) = raw.open_bi().await.unwrap();
    send.write_all(b"\0\0\0\x02y").await.unwrap();
    let receiving = async {
        let (_sender, mut receiver) = connection.accept_stream().await.unwrap();
        send.reset(quinn::VarInt::from_u32(5)).unwrap();
        receiver.receive(8).await
    };
    let reset = timeout(GUARD, receiving).await.unwrap();
    assert!(
        matches!(reset, Err(TransportError::StreamReset { code: 5 })),
        "{reset:?}"
    );
}

#[tokio::test]
async fn a_cancelled_receive_loses_nothing() {
    let ca = Ca::new("root");
    let listener = listen(&ca, ca.trust(), ROLES, Limits::small());
    let (_client, raw, connection) = timeout(GUARD, welcomed_rogue(&ca, &listener))
        .await
        .unwrap();
    let (mut send, _receive) = raw.open_bi().await.unwrap();
    let (mut ping, _) = raw.open_bi().await.unwrap();
    let working = async {
        send.write_all(b"\0\0").await.unwrap();
        let (_sender, mut receiver) = connection.accept_stream().await.unwrap();
        for piece in [&b"\0"[..], b"\x03a", b"bc"] {
            ping.write_all(b"\0\0\0\0").await.unwrap();
            // Runs into the middle of the frame, then is dropped.
            tokio::select! {
                biased;
                early = receiver.receive(8) => panic!("{early:?}"),
                () = tokio::task::yield_now() => {}
            }
            send.write_all(piece).await.unwrap();
        }
        receiver.receive(8).await.unwrap().unwrap()
    };
    assert_eq!(timeout(GUARD, working).await.unwrap(), b"abc");
}

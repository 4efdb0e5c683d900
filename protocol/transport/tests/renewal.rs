//! Certificates and roots are replaced while the process runs, by what fits and by nothing else.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test states what it expects"
)]

mod support;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use firn_protocol::names::Role;
use firn_transport::{
    CredentialFiles, DefaultTimeProvider, Dialer, Fingerprint, Limits, Listener, Renewal,
    TimeProvider, TransportError, UnixTime,
};
use support::*;
use time::OffsetDateTime;

const ROLES: &[Role] = &[Role::Participant];
const HOUR: time::Duration = time::Duration::HOUR;

/// A clock that stands where it is put.
#[derive(Debug)]
struct Clock(AtomicU64);

impl Clock {
    fn at(time: OffsetDateTime) -> Arc<Self> {
        let clock = Self(AtomicU64::new(0));
        clock.set(time);
        Arc::new(clock)
    }

    fn set(&self, time: OffsetDateTime) {
        let seconds = u64::try_from(time.unix_timestamp()).unwrap();
        self.0.store(seconds, Ordering::SeqCst);
    }
}

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = self.0.load(Ordering::SeqCst);
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

/// The files of a coordinator.
struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new(ca: &Ca, issued: &Issued) -> Self {
        let files = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        files.write(issued);
        files.write_roots(&ca.pem);
        files
    }

    fn paths(&self) -> CredentialFiles {
        let at = |name: &str| self.folder.path().join(name);
        CredentialFiles {
            certificate: at("tls.pem"),
            key: at("tls.key"),
            roots: at("roots.pem"),
        }
    }

    fn write(&self, issued: &Issued) {
        fs::write(self.paths().certificate, &issued.pem).unwrap();
        self.write_key(&issued.key_pem, 0o600);
    }

    fn write_key(&self, pem: &str, mode: u32) {
        let path = self.paths().key;
        fs::write(&path, pem).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn write_roots(&self, pem: &str) {
        fs::write(self.paths().roots, pem).unwrap();
    }

    fn begin(&self, clock: Arc<dyn TimeProvider>) -> Result<(Renewal, Listener), TransportError> {
        let domain = "custody.example".parse().unwrap();
        let (renewal, identity, trust) = Renewal::begin(self.paths(), domain, None, clock)?;
        let listener = Listener::bind(
            loopback(),
            &identity,
            Arc::new(trust),
            ROLES,
            Limits::small(),
        )?;
        Ok((renewal, listener))
    }

    fn begin_now(&self) -> (Renewal, Listener) {
        self.begin(Arc::new(DefaultTimeProvider)).unwrap()
    }
}

fn coordinator(ca: &Ca) -> Issued {
    ca.issue(Leaf::of(COORDINATOR))
}

fn participant(ca: &Ca) -> Dialer {
    dialer(&ca.identity(PARTICIPANT), ca.trust())
}

async fn shown(listener: &Listener, dialer: &Dialer) -> Fingerprint {
    pair(listener, dialer).await.1.fingerprint()
}

#[tokio::test]
async fn shows_the_new_certificate_and_leaves_connections_alone() {
    let ca = Ca::new("ca");
    let (first, second) = (coordinator(&ca), coordinator(&ca));
    let files = Files::new(&ca, &first);
    let (mut renewal, listener) = files.begin_now();
    let member = participant(&ca);
    let (accepted, dialled) = pair(&listener, &member).await;
    assert_eq!(dialled.fingerprint(), first.fingerprint());

    assert!(!renewal.look(&listener).unwrap(), "nothing has changed");
    files.write(&second);
    assert!(renewal.look(&listener).unwrap());
    assert!(!renewal.look(&listener).unwrap(), "it is taken once");
    assert_eq!(shown(&listener, &member).await, second.fingerprint());

    let (mut sender, _receiver) = dialled.open_stream().await.unwrap();
    sender.send(b"still here").await.unwrap();
    let (_sender, mut receiver) = accepted.accept_stream().await.unwrap();
    assert_eq!(receiver.receive(64).await.unwrap().unwrap(), b"still here");
}

#[tokio::test]
async fn believes_by_the_new_roots() {
    let (old, new) = (Ca::new("old"), Ca::new("new"));
    let certificate = coordinator(&old);
    let files = Files::new(&old, &certificate);
    let (mut renewal, listener) = files.begin_now();
    let of_old = participant(&old);
    // It has a certificate of the new CA, and goes on believing the old one.
    let of_new = dialer(&new.identity(PARTICIPANT), old.trust());
    shown(&listener, &of_old).await;

    files.write_roots(&new.pem);
    renewal.reload(&listener).unwrap();
    shown(&listener, &of_new).await;
    let address = listener.local_address().unwrap();
    let expected = id(COORDINATOR);
    let (accepted, dialled) = tokio::join!(
        greeting(&listener),
        of_old.connect(address, &expected, b"hello")
    );
    assert_eq!(accepted.unwrap_err().code(), "tls_unknown_ca");
    assert!(dialled.is_err());
}

#[tokio::test]
async fn refuses_what_does_not_fit_and_keeps_the_old_one() {
    let ca = Ca::new("ca");
    let now = OffsetDateTime::now_utc();
    let old = coordinator(&ca);
    let other = coordinator(&ca);
    let lasting = |change: &dyn Fn(&mut Leaf)| {
        let mut leaf = Leaf::of(COORDINATOR);
        change(&mut leaf);
        ca.issue(leaf)
    };
    let expired = lasting(&|leaf| leaf.not_after = now - HOUR / 2);
    let early = lasting(&|leaf| leaf.not_before = now + HOUR / 2);
    let nameless = lasting(&|leaf| leaf.uris.clear());
    let named_otherwise = ca.issue(Leaf::of("spiffe://custody.example/coordinator/c2"));
    let of_other_domain = ca.issue(Leaf::of("spiffe://other.example/coordinator/c1"));
    let dead = Ca::until("dead", now - HOUR);

    let files = Files::new(&ca, &old);
    let (mut renewal, listener) = files.begin_now();
    let member = participant(&ca);
    let cases: [(&str, &dyn Fn(&Path)); 11] = [
        ("certificate_expired", &|_| files.write(&expired)),
        ("certificate_not_yet_valid", &|_| files.write(&early)),
        ("certificate_other_name", &|_| files.write(&named_otherwise)),
        ("certificate_other_name", &|_| files.write(&of_other_domain)),
        ("identity_bad_certificate", &|_| files.write(&nameless)),
        ("identity_key_mismatch", &|path| {
            fs::write(path, &other.pem).unwrap();
        }),
        ("identity_bad_pem", &|path| {
            fs::write(path, "half a").unwrap()
        }),
        ("identity_unreadable", &|path| {
            fs::remove_file(path).unwrap()
        }),
        ("identity_unreadable", &|path| {
            fs::write(path, vec![b'x'; 1 << 20]).unwrap();
        }),
        ("identity_key_mode", &|_| {
            files.write(&other);
            files.write_key(&other.key_pem, 0o644);
        }),
        ("certificate_expired", &|_| {
            files.write(&other);
            files.write_roots(&dead.pem);
        }),
    ];
    for (code, spoil) in cases {
        files.write(&old);
        spoil(&files.paths().certificate);
        for refused in [
            renewal.look(&listener).map(|_| ()),
            renewal.look(&listener).map(|_| ()),
            renewal.reload(&listener),
        ] {
            assert_eq!(refused.unwrap_err().code(), code);
        }
        assert_eq!(shown(&listener, &member).await, old.fingerprint(), "{code}");
    }

    // What is right afterwards is taken, whatever was refused before.
    files.write_roots(&ca.pem);
    files.write(&other);
    assert!(renewal.look(&listener).unwrap());
    assert_eq!(shown(&listener, &member).await, other.fingerprint());
}

#[tokio::test]
async fn a_dialling_side_shows_its_new_certificate_too() {
    let ca = Ca::new("ca");
    let (first, second) = (
        ca.issue(Leaf::of(PARTICIPANT)),
        ca.issue(Leaf::of(PARTICIPANT)),
    );
    let files = Files::new(&ca, &first);
    let domain = "custody.example".parse().unwrap();
    let (mut renewal, identity, trust) =
        Renewal::begin(files.paths(), domain, None, Arc::new(DefaultTimeProvider)).unwrap();
    let member = dialer(&identity, trust);
    let listener = listen(&ca, ca.trust(), ROLES, Limits::small());
    let (accepted, _dialled) = pair(&listener, &member).await;
    assert_eq!(accepted.fingerprint(), first.fingerprint());
    files.write(&second);
    renewal.reload(&member).unwrap();
    let (accepted, _dialled) = pair(&listener, &member).await;
    assert_eq!(accepted.fingerprint(), second.fingerprint());
}

#[tokio::test]
async fn does_not_begin_outside_the_period() {
    let ca = Ca::new("ca");
    let mut leaf = Leaf::of(COORDINATOR);
    let begin = OffsetDateTime::from_unix_timestamp(2_000_000_000).unwrap();
    (leaf.not_before, leaf.not_after) = (begin, begin + HOUR);
    let files = Files::new(&ca, &ca.issue(leaf));
    let clock = Clock::at(begin);
    for (time, refused) in [
        (
            begin - time::Duration::SECOND,
            Some("certificate_not_yet_valid"),
        ),
        (begin, None),
        (begin + HOUR, None),
        (
            begin + HOUR + time::Duration::SECOND,
            Some("certificate_expired"),
        ),
    ] {
        clock.set(time);
        let error = files.begin(clock.clone()).err();
        assert_eq!(error.as_ref().map(TransportError::code), refused);
        let named = match refused {
            Some("certificate_expired") => "2033-05-18T04:33:20Z",
            Some(_) => "2033-05-18T03:33:20Z",
            None => continue,
        };
        assert!(error.unwrap().to_string().contains(named));
    }
}

#[tokio::test]
async fn an_expired_root_vouches_for_nobody() {
    let now = OffsetDateTime::now_utc();
    let ca = Ca::until("ca", now + HOUR);
    let mut leaf = Leaf::of(COORDINATOR);
    leaf.not_after = now + HOUR * 3;
    let files = Files::new(&ca, &ca.issue(leaf));
    let clock = Clock::at(now);
    let (_renewal, listener) = files.begin(clock.clone()).unwrap();
    let mut leaf = Leaf::of(PARTICIPANT);
    leaf.not_after = now + HOUR * 3;
    let member = dialer(&ca.issue(leaf).identity().unwrap(), ca.trust());
    shown(&listener, &member).await;
    clock.set(now + HOUR * 2);
    let address = listener.local_address().unwrap();
    let expected = id(COORDINATOR);
    let (accepted, dialled) = tokio::join!(
        greeting(&listener),
        member.connect(address, &expected, b"hello")
    );
    assert_eq!(accepted.unwrap_err().code(), "tls_unknown_ca");
    assert!(dialled.is_err());
}

#[tokio::test]
async fn warns_once_a_day_and_no_more_after_renewal() {
    let start = OffsetDateTime::from_unix_timestamp(2_000_000_000).unwrap();
    let day = time::Duration::DAY;
    // The root ends long after; the new certificate lasts a year.
    let ca = Ca::until("ca", start + day * 2000);
    let lasting = |from: OffsetDateTime, days: i32| {
        let mut leaf = Leaf::of(COORDINATOR);
        (leaf.not_before, leaf.not_after) = (from, from + day * days);
        ca.issue(leaf)
    };
    let files = Files::new(&ca, &lasting(start, 30));
    let clock = Clock::at(start);
    let (mut renewal, listener) = files.begin(clock.clone()).unwrap();
    for (at, codes) in [
        (time::Duration::ZERO, &[][..]),
        (day * 20 - HOUR, &[]),
        (day * 20, &["certificate_expires_soon"]),
        (day * 20 + HOUR, &[]),
        (day * 21 - HOUR, &[]),
        (day * 21, &["certificate_expires_soon"]),
        (day * 30 + HOUR, &["certificate_expired"]),
        (day * 30 + HOUR * 2, &[]),
    ] {
        clock.set(start + at);
        let warned: Vec<_> = renewal.warn().iter().map(|ending| ending.code()).collect();
        assert_eq!(warned, codes, "{at}");
    }
    files.write(&lasting(start + day * 30, 365));
    renewal.reload(&listener).unwrap();
    assert!(renewal.warn().is_empty());

    // The roots' turn: both are named.
    let soon = Ca::until("soon", start + day * 40);
    files.write_roots(&format!("{}{}", ca.pem, soon.pem));
    renewal.reload(&listener).unwrap();
    let warned = renewal.warn();
    assert_eq!(warned.len(), 1);
    assert!(
        warned[0]
            .to_string()
            .starts_with("a root certificate expires at 2033-06-27T")
    );
}

//! The daemons as a service manager sees them: ready, reloading, alive, stopping, and with certificates
//! that end. Each test has processes of its own and no key.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test states what it expects"
)]

use std::{
    fs,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    time::Duration,
};

use firn_ceremony::{
    domain::{CA, DevelopmentCa, Domain, DomainTerms, Enrolled, Party},
    now,
};
use firn_protocol::ids::UnixMillis;
use firn_tests::{
    binaries::binaries,
    cluster::process::{Process, until},
};
use rustix::process::Signal;

/// Only ever reached by a test that fails.
const GUARD: Duration = Duration::from_secs(60);
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// A shell's word for a process that SIGTERM ended.
const ENDED_BY_SIGTERM: i32 = 143;

/// Who the daemons under test are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Daemon {
    Coordinator,
    Participant,
}

/// A domain whose certificates were issued some days ago, for 30 days, and the socket that systemd would
/// listen at.
struct Machine {
    domain: Domain,
    manager: UnixDatagram,
    folder: tempfile::TempDir,
}

impl Machine {
    fn with_certificates_of(issued: UnixMillis) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let domain = domain(&folder.path().join("domain"), issued);
        domain.configure_coordinator().unwrap();
        // Nobody answers there: a participant is ready without.
        domain
            .configure_members(([127, 0, 0, 1], 9).into())
            .unwrap();
        let manager = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        manager.set_read_timeout(Some(GUARD)).unwrap();
        Self {
            domain,
            manager,
            folder,
        }
    }

    fn party(&self, daemon: Daemon) -> &Party {
        match daemon {
            Daemon::Coordinator => self.domain.coordinator(),
            Daemon::Participant => self.domain.members().first().unwrap(),
        }
    }

    fn start(&self, daemon: Daemon, watchdog: Option<Duration>) -> Process {
        let mut variables = vec![("NOTIFY_SOCKET", self.folder.path().join("notify"))];
        if let Some(time) = watchdog {
            variables.push(("WATCHDOG_USEC", PathBuf::from(time.as_micros().to_string())));
        }
        let program = match daemon {
            Daemon::Coordinator => &binaries().coordinator,
            Daemon::Participant => &binaries().participant,
        };
        Process::start_in(program, self.party(daemon), &variables)
    }

    /// The next thing that a process says, but for signs of life.
    fn said(&self) -> String {
        loop {
            let said = self.said_at_all();
            if said != "WATCHDOG=1\n" {
                return said;
            }
        }
    }

    fn said_at_all(&self) -> String {
        let mut bytes = [0; 4096];
        let length = self.manager.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    fn log(&self, daemon: Daemon) -> String {
        fs::read_to_string(self.party(daemon).folder.log()).unwrap()
    }

    /// Puts a certificate of another time in the place of a daemon's.
    fn reissue(&self, daemon: Daemon, issued: UnixMillis) {
        let party = self.party(daemon);
        let ca = DevelopmentCa::load(&self.domain.path().join(CA)).unwrap();
        let enrolled = Enrolled::read(&party.folder.enrollment()).unwrap();
        let pem = ca.issue(&party.id, enrolled.key(), issued).unwrap();
        fs::write(party.folder.certificate(), pem).unwrap();
    }

    /// Puts another CA's certificate, key and root in the place of those of a daemon.
    fn renew(&self, daemon: Daemon, issued: UnixMillis) {
        let other = domain(&self.folder.path().join("renewed"), issued);
        let from = match daemon {
            Daemon::Coordinator => other.coordinator(),
            Daemon::Participant => other.members().first().unwrap(),
        };
        let to = self.party(daemon);
        for (from, to) in [
            (from.folder.certificate(), to.folder.certificate()),
            (from.folder.tls_key(), to.folder.tls_key()),
            (from.folder.roots(), to.folder.roots()),
        ] {
            fs::copy(from, to).unwrap();
        }
    }
}

fn domain(path: &Path, issued: UnixMillis) -> Domain {
    let terms = DomainTerms {
        trust_domain: "service.test".parse().unwrap(),
        operators: &["ada"],
        operators_needed: 1,
        requester: "treasury",
        coordinator: "relay",
        members: 2,
    };
    Domain::create(path, &terms, issued).unwrap()
}

fn days_ago(days: u64) -> UnixMillis {
    UnixMillis::new(now().value() - days * DAY_MS)
}

#[tokio::test]
async fn says_that_it_is_ready_alive_reloading_and_stopping() {
    for daemon in [Daemon::Coordinator, Daemon::Participant] {
        let machine = Machine::with_certificates_of(days_ago(1));
        let mut process = machine.start(daemon, Some(Duration::from_millis(300)));
        let ready = machine.said();
        assert!(
            ready.starts_with("READY=1\nSTATUS=serving; certificate good until "),
            "{ready}"
        );
        for _ in 0..3 {
            assert_eq!(machine.said_at_all(), "WATCHDOG=1\n", "{daemon:?}");
        }

        machine.renew(daemon, now());
        process.tell(Signal::HUP);
        let reloading = machine.said();
        assert!(
            reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="),
            "{reloading}"
        );
        let renewed = machine.said();
        assert!(renewed.starts_with("READY=1\nSTATUS="), "{renewed}");
        assert_ne!(renewed, ready, "the date is the new certificate's");

        fs::write(machine.party(daemon).folder.certificate(), "none").unwrap();
        process.tell(Signal::HUP);
        machine.said();
        assert_eq!(machine.said(), renewed, "the old one stays");
        assert!(
            machine
                .log(daemon)
                .contains("\"code\":\"identity_bad_pem\"")
        );

        process.tell(Signal::TERM);
        let stopping = machine.said();
        assert!(stopping.starts_with("STOPPING=1\n"), "{stopping}");
        assert!(process.end().await.success());
    }
}

#[tokio::test]
async fn takes_a_new_certificate_that_it_finds_by_itself() {
    for daemon in [Daemon::Coordinator, Daemon::Participant] {
        let machine = Machine::with_certificates_of(days_ago(1));
        let config = machine.party(daemon).folder.config();
        let text = fs::read_to_string(&config).unwrap();
        let often = text.replace("[tls]", "[tls]\nlook_every_ms = 100");
        fs::write(&config, often).unwrap();
        let _process = machine.start(daemon, None);
        machine.said();
        machine.renew(daemon, now());
        until("a new certificate in use", async || {
            machine
                .log(daemon)
                .contains("new certificate and roots")
                .then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn does_not_start_outside_the_period_of_its_certificate() {
    for daemon in [Daemon::Coordinator, Daemon::Participant] {
        for (issued, code) in [
            (days_ago(31), "certificate_expired"),
            (
                UnixMillis::new(now().value() + DAY_MS),
                "certificate_not_yet_valid",
            ),
        ] {
            let machine = Machine::with_certificates_of(now());
            machine.reissue(daemon, issued);
            let mut process = machine.start(daemon, None);
            assert_eq!(process.end().await.code(), Some(1));
            let log = machine.log(daemon);
            assert!(log.contains(&format!("\"code\":\"{code}\"")), "{log}");
            let data = machine.party(daemon).folder.path().join("data");
            let begun = fs::read_dir(data).map(Iterator::count).unwrap_or(0);
            assert_eq!(begun, 0, "nothing was begun");
        }
    }
}

#[tokio::test]
async fn warns_of_the_end_of_its_certificate_at_the_start() {
    for daemon in [Daemon::Coordinator, Daemon::Participant] {
        let machine = Machine::with_certificates_of(days_ago(25));
        let _process = machine.start(daemon, None);
        machine.said();
        until("a warning", async || {
            let log = machine.log(daemon);
            log.contains("\"code\":\"certificate_expires_soon\"")
                .then_some(())
        })
        .await;
    }
}

/// That the second signal ends it while the first still drains is tried in firn-process; here, that
/// nothing is lost by it.
#[tokio::test]
async fn starts_again_as_it_was_after_it_was_told_to_stop_twice() {
    let machine = Machine::with_certificates_of(days_ago(1));
    let mut process = machine.start(Daemon::Participant, None);
    machine.said();
    process.tell(Signal::TERM);
    machine.said();
    // Whether the first one is done already is not in our hands; that it is one of two ends, is.
    process.tell(Signal::TERM);
    let code = process.end().await.code();
    assert!(
        code == Some(0) || code == Some(ENDED_BY_SIGTERM),
        "{code:?}"
    );
    if code == Some(ENDED_BY_SIGTERM) {
        assert!(
            machine
                .log(Daemon::Participant)
                .contains("told to stop again")
        );
    }
    // Either way it starts again as it was.
    let _process = machine.start(Daemon::Participant, None);
    assert!(machine.said().starts_with("READY=1\n"));
}

//! The whole process on loopback: members and an operator that really dial.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use firn_protocol::{
    codec::{self, List, Maybe, Text},
    documents::{Authorities, KeyHolder, NamedKey, Quorum},
    envelope::{Endorsed, Envelope},
    ids::*,
    keys::{IdentityKey, IdentitySecret},
    limits,
    messages::*,
    names::SpiffeId,
    reject::Reject,
};
use firn_transport::{Connection, Dialer, Limits, TlsIdentity, TransportError, Trust};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};
use tokio::sync::oneshot;
use zeroize::Zeroizing;

mod asking;
mod ceremonies;
mod failing;
mod house;

use super::run;
use crate::{
    config::{Bounds, Config},
    session::{
        Send,
        fake::{
            dkg::{Ceremonial, DkgHabit},
            id,
        },
    },
};

const COORDINATOR: &str = "spiffe://td/coordinator/c-1";
/// Only ever reached by a test that fails.
const GUARD: Duration = Duration::from_secs(30);

struct Ca {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Ca {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    fn issue(&self, id: &str) -> (String, String) {
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::URI(id.try_into().unwrap())];
        let key = KeyPair::generate().unwrap();
        (
            params.signed_by(&key, &self.issuer).unwrap().pem(),
            key.serialize_pem(),
        )
    }
}

fn secret(byte: u8) -> IdentitySecret {
    IdentitySecret::from_seed(&Zeroizing::new([byte; 32]))
}

fn name(text: &str) -> SpiffeId {
    text.parse().unwrap()
}

fn authorities() -> (Endorsed, AuthoritiesDigest) {
    let holder = |id, key: IdentityKey| KeyHolder { id: name(id), key };
    let operator = NamedKey {
        name: Text::new("op").unwrap(),
        key: secret(2).identity(),
    };
    let requester = holder("spiffe://td/requester/r-1", secret(3).identity());
    let document = Authorities {
        version: AuthoritiesVersion::new(1),
        previous: Maybe(None),
        trust_domain: "td".parse().unwrap(),
        grant_authority: secret(4).identity(),
        policy_authority: secret(5).identity(),
        operators: Quorum {
            needed: 1,
            keys: List::new(vec![operator]).unwrap(),
        },
        approvers: List::empty(),
        requesters: List::new(vec![requester]).unwrap(),
        coordinators: List::new(vec![holder(COORDINATOR, secret(1).identity())]).unwrap(),
    };
    let endorsed = Endorsed::unsigned(&document)
        .unwrap()
        .endorse::<Authorities>(&secret(2))
        .unwrap();
    let digest = endorsed.read::<Authorities>().unwrap().1;
    (endorsed, AuthoritiesDigest::from_bytes(digest))
}

fn configure(folder: &Path, ca: &Ca) -> Config {
    let (endorsed, digest) = authorities();
    let (certificate, key) = ca.issue(COORDINATOR);
    let seed = hex::encode(*secret(1).seed());
    for (file, bytes) in [
        ("c.pem", certificate.as_bytes()),
        ("c.key", key.as_bytes()),
        ("ca.pem", ca.pem.as_bytes()),
        ("id", seed.as_bytes()),
        ("auth", &codec::encode(&endorsed).unwrap()),
    ] {
        fs::write(folder.join(file), bytes).unwrap();
    }
    for secret in ["id", "c.key"] {
        fs::set_permissions(folder.join(secret), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let text = format!(
        "address_file = \"address\"\nidentity_key = \"id\"\nauthorities = \"auth\"\n\
         authorities_digest = \"{digest}\"\n\
         [tls]\ncertificate = \"c.pem\"\nkey = \"c.key\"\nroots = \"ca.pem\"\n"
    );
    fs::write(folder.join("config"), text).unwrap();
    Config::load(&folder.join("config")).unwrap()
}

/// A coordinator that runs in this process.
struct Running {
    ca: Ca,
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    daemon: tokio::task::JoinHandle<Result<(), crate::error::CoordinatorError>>,
    _folder: tempfile::TempDir,
}

impl Running {
    async fn start() -> Self {
        Self::start_within(Bounds::default()).await
    }

    async fn start_within(limits: Bounds) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ca = Ca::new();
        let mut config = configure(folder.path(), &ca);
        config.limits = limits;
        let (stop, stopped) = oneshot::channel::<()>();
        let daemon = tokio::spawn(run(config, async { drop(stopped.await) }));
        let file = folder.path().join("address");
        let address = tokio::time::timeout(GUARD, async {
            loop {
                if let Ok(text) = fs::read_to_string(&file) {
                    return text.trim().parse().unwrap();
                }
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap();
        Self {
            ca,
            address,
            stop,
            daemon,
            _folder: folder,
        }
    }

    async fn dial(&self, id: &str, secret: &IdentitySecret) -> Result<Connection, TransportError> {
        let (certificate, key) = self.ca.issue(id);
        let identity = TlsIdentity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        let trust = Trust::from_pem("td".parse().unwrap(), self.ca.pem.as_bytes()).unwrap();
        let local = ([127, 0, 0, 1], 0).into();
        let dialer = Dialer::bind(local, &identity, Arc::new(trust), Limits::small()).unwrap();
        let hello = Hello {
            from: name(id),
            to: name(COORDINATOR),
            nonce: Nonce::from_bytes([1; 32]),
            software: Text::new("test").unwrap(),
            build: BuildDigest::from_bytes([0; 32]),
            time: UnixMillis::new(1),
        };
        let hello = Envelope::sign(&hello, secret).unwrap();
        let to = name(COORDINATOR);
        let (connection, welcome) = dialer.connect(self.address, &to, hello.as_bytes()).await?;
        let welcome = Envelope::<Welcome>::from_bytes(welcome).unwrap();
        let welcome = welcome.verify(&authorities_key()).unwrap();
        assert_eq!(
            (welcome.nonce, &welcome.to),
            (Nonce::from_bytes([1; 32]), &name(id))
        );
        Ok(connection)
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        tokio::time::timeout(GUARD, self.daemon)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
    }
}

fn authorities_key() -> IdentityKey {
    secret(1).identity()
}

/// Members of a ceremony that answer whatever the coordinator asks.
async fn join(running: &Running, ceremony: Ceremonial, count: u16) -> Vec<Connection> {
    let ceremony = Arc::new(Mutex::new(ceremony));
    let mut connections = Vec::new();
    for member in (1..=count).map(id) {
        let key = ceremony.lock().unwrap().secret(member);
        let name = format!("spiffe://td/participant/m-{member}");
        let connection = running.dial(&name, &key).await.unwrap();
        connections.push(connection.clone());
        let ceremony = Arc::clone(&ceremony);
        tokio::spawn(async move {
            while let Ok((mut sender, mut receiver)) = connection.accept_stream().await {
                let ceremony = Arc::clone(&ceremony);
                tokio::spawn(async move {
                    while let Ok(Some(frame)) = receiver.receive(limits::MAX_FRAME).await {
                        let message: ToMember = codec::decode(&frame, limits::MAX_FRAME).unwrap();
                        let answer = ceremony.lock().unwrap().answer(Send {
                            to: member,
                            message,
                        });
                        if let Some(answer) = answer {
                            sender.send(&codec::encode(&answer).unwrap()).await.unwrap();
                        }
                    }
                });
            }
        });
    }
    connections
}

async fn asked<Q: serde::Serialize>(connection: &Connection, question: &Q) -> Vec<Vec<u8>> {
    let (mut sender, mut receiver) = connection.open_stream().await.unwrap();
    sender
        .send(&codec::encode(question).unwrap())
        .await
        .unwrap();
    let mut answers = Vec::new();
    while let Some(frame) = receiver.receive(limits::MAX_FRAME).await.unwrap() {
        answers.push(frame);
    }
    answers
}

/// The last answer, and how many steps were told before it.
async fn operate(connection: &Connection, question: ToCeremony) -> (FromCeremony, usize) {
    let answers = tokio::time::timeout(GUARD, asked(connection, &question))
        .await
        .unwrap();
    let last = answers.last().unwrap();
    (
        codec::decode(last, limits::MAX_FRAME).unwrap(),
        answers.len().saturating_sub(1),
    )
}

#[tokio::test]
async fn a_ceremony_over_real_connections_is_certified() {
    let running = Running::start().await;
    let ceremony = Ceremonial::under(2, 3, &secret(2), authorities().1);
    let plan = ceremony.plan.endorsed().clone();
    let operator = running
        .dial("spiffe://td/operator/o-1", &secret(2))
        .await
        .unwrap();

    let run = || ToCeremony::Run(RunCeremony { plan: plan.clone() });
    let (early, _) = operate(&operator, run()).await;
    let FromCeremony::Failed(early) = early else {
        panic!("nobody is there")
    };
    assert_eq!(
        (early.code, early.culprit),
        (Reject::QuorumUnavailable, Maybe(Some(id(1))))
    );

    let _members = join(&running, ceremony, 3).await;
    let query = PresenceQuery {
        nonce: Nonce::from_bytes([1; 32]),
    };
    let query = Envelope::sign(&query, &secret(2)).unwrap();
    let (there, _) = operate(&operator, ToCeremony::Presence(query)).await;
    let FromCeremony::Presence(there) = there else {
        panic!("{there:?}")
    };
    assert_eq!(there.members.len(), 3);

    let (made, steps) = operate(&operator, run()).await;
    let FromCeremony::Certified(record) = made else {
        panic!("{made:?}")
    };
    assert_eq!((record.certificates.len(), record.proofs.len()), (3, 3));
    assert!(steps > 3, "{steps}");
    running.stop().await;
}

#[tokio::test]
async fn a_ceremony_that_fails_is_told_with_its_culprit() {
    let running = Running::start().await;
    let ceremony =
        Ceremonial::under(2, 3, &secret(2), authorities().1).with(3, DkgHabit::RootOfOtherPackages);
    let plan = ceremony.plan.endorsed().clone();
    let _members = join(&running, ceremony, 3).await;
    let operator = running
        .dial("spiffe://td/operator/o-1", &secret(2))
        .await
        .unwrap();
    let (failed, _) = operate(&operator, ToCeremony::Run(RunCeremony { plan })).await;
    let FromCeremony::Failed(failed) = failed else {
        panic!("{failed:?}")
    };
    assert_eq!(
        (failed.code, failed.culprit),
        (Reject::DkgEquivocation, Maybe(Some(id(3))))
    );
    running.stop().await;
}

#[tokio::test]
async fn nobody_is_welcome_with_a_key_that_does_not_count() {
    let running = Running::start().await;
    for (id, key, code) in [
        ("spiffe://td/requester/r-1", 9, Reject::UnknownSigner),
        ("spiffe://td/requester/r-2", 3, Reject::UnknownRequester),
        ("spiffe://td/operator/o-1", 3, Reject::UnknownSigner),
    ] {
        match running.dial(id, &secret(key)).await {
            Err(TransportError::Refused { code: found }) => {
                assert_eq!(found, code.number(), "{id}")
            }
            other => panic!("{id}: {other:?}"),
        }
    }
    assert!(
        running
            .dial("spiffe://td/requester/r-1", &secret(3))
            .await
            .is_ok()
    );
    running.stop().await;
}

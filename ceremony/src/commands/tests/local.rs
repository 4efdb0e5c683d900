//! accept and status, before a daemon that says what the test wants.

use std::{path::Path, sync::mpsc};

use firn_protocol::{
    codec::{self, List, Maybe, Text},
    documents::Checkpoint,
    envelope::Envelope,
    ids::{AuthoritiesDigest, BuildDigest, UnixMillis},
    keys::IdentitySecret,
    merkle::{MerkleRoot, TreeSize},
    messages::{
        FromDaemon, LinkStatus, LocalFailure, LocalStatus, MAX_LOCAL_MESSAGE, MemberStatus,
        PlanAccepted, ToDaemon,
    },
    reject::Reject,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixListener,
};

use super::world::{World, code, json, quiet, typed};
use crate::{
    cli::Command,
    clock::fresh_identity,
    commands::{accept, status},
    error::{Error, Exit},
    now,
};

/// A daemon that answers every question, and reports them.
fn daemon(
    path: &Path,
    answer: impl Fn(&ToDaemon) -> FromDaemon + Send + 'static,
) -> mpsc::Receiver<ToDaemon> {
    let listener = UnixListener::bind(path).unwrap();
    let (heard, questions) = mpsc::channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            // A line on which nothing is asked is closed by whoever opened it.
            let Ok(length) = stream.read_u32().await else {
                continue;
            };
            let mut bytes = vec![0; usize::try_from(length).unwrap()];
            stream.read_exact(&mut bytes).await.unwrap();
            let question: ToDaemon = codec::decode(&bytes, MAX_LOCAL_MESSAGE).unwrap();
            let bytes = codec::encode(&answer(&question)).unwrap();
            let length = u32::try_from(bytes.len()).unwrap();
            stream.write_all(&length.to_be_bytes()).await.unwrap();
            stream.write_all(&bytes).await.unwrap();
            let _ = heard.send(question);
        }
    });
    questions
}

fn accepts(question: &ToDaemon) -> FromDaemon {
    match question {
        ToDaemon::AcceptPlan(asked) => FromDaemon::Accepted(PlanAccepted {
            plan: asked.fingerprint,
            member: "p1".parse().unwrap(),
        }),
        ToDaemon::Status(_) => FromDaemon::Failed(LocalFailure {
            code: Text::new("busy").unwrap(),
            message: Text::new("not now").unwrap(),
            advice: Text::new("later").unwrap(),
        }),
    }
}

async fn accepting(
    world: &World,
    plan: &str,
    socket: &str,
    more: &[&str],
) -> Result<serde_json::Value, Error> {
    let (plan, socket) = (world.text(plan), world.text(socket));
    let mut words = vec!["accept", &plan, "--socket", &socket];
    words.extend(more);
    let Command::Accept(arguments) = typed(&words) else {
        unreachable!()
    };
    let report = accept::perform(&arguments, quiet()).await?;
    Ok(json(&report))
}

#[tokio::test]
async fn a_plan_is_accepted_by_its_whole_fingerprint() {
    let world = World::with_members();
    let fingerprint = world.signed_plan();
    let questions = daemon(&world.path("socket"), accepts);
    let authorities = world.text("p1/authorities.cbor");
    let rules = world.text("rules.toml");
    let given = [
        "--fingerprint",
        &fingerprint,
        "--rules",
        &rules,
        "--authorities",
        &authorities,
    ];
    let report = accepting(&world, "plan.cbor", "socket", &given)
        .await
        .unwrap();
    assert_eq!(report["member"], "p1");
    assert_eq!(report["fingerprint"]["hex"], fingerprint);
    let ToDaemon::AcceptPlan(asked) = questions.recv().unwrap() else {
        panic!("the daemon was asked something else");
    };
    assert_eq!(asked.fingerprint.to_string(), fingerprint);

    let wrong = world.authorities("domain");
    let cut = &fingerprint[..62];
    for (given, wanted) in [(wrong.as_str(), "fingerprint_differs"), (cut, "usage")] {
        let found = accepting(&world, "plan.cbor", "socket", &["--fingerprint", given]).await;
        assert_eq!(code(found), wanted);
    }
    let nobody = accepting(
        &world,
        "plan.cbor",
        "nobody",
        &["--fingerprint", &fingerprint],
    )
    .await;
    assert_eq!(code(nobody), "file");
    assert!(
        questions.try_recv().is_err(),
        "nothing that differs reaches the daemon"
    );
}

#[tokio::test]
async fn the_daemons_no_keeps_its_code_and_its_exit() {
    let world = World::with_members();
    let fingerprint = world.signed_plan();
    for (name, exit) in [
        ("not_a_member", Exit::Refused),
        ("document_not_kept", Exit::Refused),
        ("ledger_unavailable", Exit::TryAgain),
    ] {
        let socket = format!("socket-{name}");
        let _questions = daemon(&world.path(&socket), move |_| {
            FromDaemon::Failed(LocalFailure {
                code: Text::new(name).unwrap(),
                message: Text::new("no").unwrap(),
                advice: Text::new("Ask the operators.").unwrap(),
            })
        });
        let refused = accepting(
            &world,
            "plan.cbor",
            &socket,
            &["--fingerprint", &fingerprint],
        )
        .await;
        let error = refused.unwrap_err();
        assert_eq!((error.code(), error.exit()), (name, exit));
        assert_eq!(error.advice(), Some("Ask the operators."));
    }
}

fn word(secret: &IdentitySecret, question: &ToDaemon, stopped: Option<Reject>) -> FromDaemon {
    let ToDaemon::Status(nonce) = question else {
        panic!("something else was asked");
    };
    let checkpoint = Checkpoint {
        size: TreeSize::new(7),
        root: MerkleRoot::from_bytes([7; 32]),
        time: now(),
    };
    let status = MemberStatus {
        nonce: *nonce,
        name: "spiffe://test.firn/participant/p1".parse().unwrap(),
        software: Text::new("firn").unwrap(),
        build: BuildDigest::from_bytes([1; 32]),
        authorities: AuthoritiesDigest::from_bytes([2; 32]),
        checkpoint: Envelope::sign(&checkpoint, secret).unwrap(),
        stopped: Maybe(stopped),
        certificate_expires: now().plus(3_600_000),
        accepted: List::empty(),
        keys: List::empty(),
        time: now(),
    };
    let link = LinkStatus {
        coordinator: "spiffe://test.firn/coordinator/relay".parse().unwrap(),
        since: Maybe(Some(UnixMillis::new(5))),
        code: Maybe(None),
    };
    FromDaemon::Status(LocalStatus {
        status: Envelope::sign(&status, secret).unwrap(),
        links: List::new(vec![link]).unwrap(),
    })
}

#[tokio::test]
async fn a_status_is_the_members_own_word() {
    let world = World::empty();
    for (socket, stopped, exit) in [
        ("ready", None, Exit::Done),
        ("stopped", Some(Reject::ClockRewound), Exit::Refused),
    ] {
        let secret = fresh_identity().unwrap();
        let _questions = daemon(&world.path(socket), move |question| {
            word(&secret, question, stopped)
        });
        let report = status::local::perform(&world.path(socket)).await.unwrap();
        assert_eq!(report.exit(), exit);
        let report = json(&report);
        assert_eq!(report["name"], "spiffe://test.firn/participant/p1");
        assert_eq!(report["ledger_size"], 7);
        assert_eq!(report["links"][0]["since_ms"], 5);
        assert_eq!(
            report["stopped"]["code"].as_str(),
            stopped.map(Reject::name)
        );
    }
}

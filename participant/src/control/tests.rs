//! The socket against what may be in its place and whoever may come.

use std::{
    fs,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
};

use firn_protocol::{ids::Nonce, messages::ToDaemon};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixListener,
    sync::Semaphore,
    task::JoinHandle,
};

use super::*;

/// Counts the questions, and answers each once it may.
struct Counting {
    asked: AtomicUsize,
    may: Semaphore,
}

impl Answers for Counting {
    async fn answer(&self, _: ToDaemon) -> FromDaemon {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.may.acquire().await.unwrap().forget();
        failure("not_today", "no", "Ask tomorrow.")
    }
}

struct Daemon {
    answers: Arc<Counting>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    path: PathBuf,
    _folder: TempDir,
}

const LIMITS: ControlLimits = ControlLimits {
    patience: Duration::from_secs(60),
    connections: 2,
};

impl Daemon {
    fn start(limits: ControlLimits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        let control = Control::open(&path, limits).unwrap();
        let answers = Arc::new(Counting {
            asked: AtomicUsize::new(0),
            may: Semaphore::new(100),
        });
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(control.serve(Arc::clone(&answers), stopped));
        Self {
            answers,
            stop,
            task,
            path,
            _folder: folder,
        }
    }

    async fn peer(&self) -> UnixStream {
        UnixStream::connect(&self.path).await.unwrap()
    }
}

fn question() -> Vec<u8> {
    codec::encode(&ToDaemon::Status(Nonce::from_bytes([1; 32]))).unwrap()
}

async fn hear(peer: &mut UnixStream) -> Option<String> {
    let bytes = frame::read(peer, MAX_LOCAL_MESSAGE).await.ok()??;
    match codec::decode(&bytes, MAX_LOCAL_MESSAGE).unwrap() {
        FromDaemon::Failed(failure) => Some(failure.code.as_str().to_owned()),
        answer @ (FromDaemon::Accepted(_) | FromDaemon::Status(_)) => panic!("{answer:?}"),
    }
}

/// Whether the other side has closed.
async fn is_closed(peer: &mut UnixStream) -> bool {
    matches!(peer.read(&mut [0]).await, Ok(0) | Err(_))
}

#[tokio::test]
async fn answers_one_question_after_another_and_leaves_no_file() {
    let daemon = Daemon::start(LIMITS);
    let mut peer = daemon.peer().await;
    for _ in 0..3 {
        frame::write(&mut peer, &question()).await.unwrap();
        assert_eq!(hear(&mut peer).await.as_deref(), Some("not_today"));
    }
    let found = fs::symlink_metadata(&daemon.path).unwrap();
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    daemon.stop.send_replace(true);
    daemon.task.await.unwrap();
    assert!(is_closed(&mut peer).await);
    assert!(fs::symlink_metadata(&daemon.path).is_err());
}

#[tokio::test]
async fn what_is_too_long_or_malformed_is_refused_by_its_code_and_ends_the_connection() {
    let daemon = Daemon::start(LIMITS);
    let over = u32::try_from(MAX_LOCAL_MESSAGE).unwrap() + 1;
    for (bytes, code) in [
        (over.to_be_bytes().to_vec(), "too_large"),
        (u32::MAX.to_be_bytes().to_vec(), "too_large"),
        (vec![0, 0, 0, 1, 0xff], "indefinite_length"),
        (vec![0, 0, 0, 0], "truncated"),
        (vec![0, 0, 0, 3, 0x82, 0x09, 0x00], "schema"),
    ] {
        let mut peer = daemon.peer().await;
        peer.write_all(&bytes).await.unwrap();
        let heard = hear(&mut peer).await;
        assert_eq!(heard.as_deref(), Some(code), "{bytes:?}");
        assert!(is_closed(&mut peer).await, "{bytes:?}");
    }
    assert_eq!(daemon.answers.asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_peer_that_says_nothing_or_half_of_it_is_left() {
    let limits = ControlLimits {
        patience: Duration::from_millis(20),
        ..LIMITS
    };
    let daemon = Daemon::start(limits);
    for bytes in [&[][..], &[0], &[0, 0, 0, 9, 1]] {
        let mut peer = daemon.peer().await;
        peer.write_all(bytes).await.unwrap();
        assert!(is_closed(&mut peer).await, "{bytes:?}");
    }
}

#[tokio::test]
async fn only_so_many_are_served_at_once_and_the_next_waits() {
    let daemon = Daemon::start(LIMITS);
    daemon.answers.may.forget_permits(100);
    let mut peers = Vec::new();
    for _ in 0..3 {
        let mut peer = daemon.peer().await;
        frame::write(&mut peer, &question()).await.unwrap();
        peers.push(peer);
    }
    // Two are asked about, and no third while they are served: it is heard when one has gone.
    while daemon.answers.asked.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(daemon.answers.asked.load(Ordering::SeqCst), 2);
    daemon.answers.may.add_permits(3);
    for mut peer in peers {
        assert_eq!(hear(&mut peer).await.as_deref(), Some("not_today"));
    }
}

#[tokio::test]
async fn a_socket_that_nobody_listens_on_is_replaced_and_one_that_somebody_does_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    // What a killed process leaves.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let control = Control::open(&path, LIMITS).unwrap();
    let error = Control::open(&path, LIMITS).unwrap_err();
    assert_eq!(error.code(), "control_socket_in_use");
    assert!(UnixStream::connect(&path).await.is_ok());
    drop(control);
    assert!(!path.exists());
}

#[tokio::test]
async fn what_is_no_socket_stays_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    fs::write(&path, b"precious").unwrap();
    let error = Control::open(&path, LIMITS).unwrap_err();
    assert_eq!(error.code(), "control_socket_strange");
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(folder.path().join("elsewhere"), &path).unwrap();
    let error = Control::open(&path, LIMITS).unwrap_err();
    assert_eq!(error.code(), "control_socket_strange");
    let nowhere = folder.path().join("nowhere/control.sock");
    let error = Control::open(&nowhere, LIMITS).unwrap_err();
    assert_eq!(error.code(), "control_socket_failed");
}

#[tokio::test]
async fn a_socket_that_another_has_put_in_its_place_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    let control = Control::open(&path, LIMITS).unwrap();
    fs::remove_file(&path).unwrap();
    let _other = UnixListener::bind(&path).unwrap();
    drop(control);
    assert!(path.exists());
}

#[tokio::test]
async fn a_path_that_is_too_long_for_the_system_goes_through_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("d".repeat(120));
    fs::create_dir(&deep).unwrap();
    let path = deep.join("control.sock");
    let control = Control::open(&path, LIMITS).unwrap();
    let found = fs::symlink_metadata(&path).unwrap();
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    let error = Control::open(&path, LIMITS).unwrap_err();
    assert_eq!(error.code(), "control_socket_in_use");
    drop(control);
    assert!(!path.exists());
}

#[test]
fn only_the_daemons_own_user_and_root_may_speak() {
    for (peer, own, may) in [
        (1000, 1000, true),
        (0, 1000, true),
        (0, 0, true),
        (1001, 1000, false),
        (1000, 0, false),
    ] {
        let judged = socket::judge_peer(peer, own);
        assert_eq!(judged.is_ok(), may, "{peer} to {own}");
        if let Err(error) = judged {
            assert_eq!(error.code(), "control_peer_refused");
        }
    }
}

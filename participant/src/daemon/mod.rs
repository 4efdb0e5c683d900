//! The shell around the pure sessions: tasks, sockets and the ledger's thread. It decides nothing
//! about signing; it brings messages to the sessions and carries away what they let out.

mod conversation;
mod error;
mod keys;
mod link;
mod shared;

use std::{future::Future, sync::Arc, time::Duration};

use firn_ledger::rules::{AuthoritiesAccepted, Command, Genesis, Limits, Started};
use firn_protocol::{
    codec::Text,
    ids::{BuildDigest, Nonce},
};
use firn_transport::{Dialer, TlsIdentity, Trust};
use tokio::{sync::watch, task::JoinSet};

pub use error::DaemonError;

use crate::{
    config::Config,
    documents::Documents,
    identity::{load_authorities, load_identity},
    process::SOFTWARE,
    rules::ParticipantRules,
    session::{Speaker, dkg::OwnSoftware},
    store::{Clock, Options, Store, SystemClock, end_process},
    vault::{Asking, Vault},
};
use shared::Shared;

/// How long sessions may go on after the process was asked to stop.
const GRACE: Duration = Duration::from_secs(5);

/// Runs a participant until `stop` is ready: opens vault and ledger, dials every coordinator, and
/// serves what they ask. When it stops it takes no new sessions, lets open ones end for a few
/// seconds, and closes the ledger.
///
/// # Errors
/// [`DaemonError`], before anything was served.
pub async fn run(
    config: Config,
    build: BuildDigest,
    stop: impl Future<Output = ()>,
) -> Result<(), DaemonError> {
    let secret = load_identity(&config.identity_key)?;
    let (authorities, authorities_digest) =
        load_authorities(&config.authorities, config.authorities_digest)?;
    let trust = Trust::load(config.name.trust_domain().clone(), &config.tls.roots)?;
    let tls = TlsIdentity::load(&config.tls.certificate, &config.tls.key)?;
    if *tls.spiffe_id() != config.name {
        return Err(DaemonError::OtherName {
            certificate: tls.spiffe_id().clone(),
            config: config.name,
        });
    }
    crate::private_files::ensure_private_folder(&config.data_dir)?;
    let documents = Documents::open(&config.data_dir)?;
    let folder = config.data_dir.join("vault");
    let asking = if Vault::exists(&folder) {
        Asking::Once
    } else {
        Asking::Twice
    };
    let vault = Vault::open(&folder, config.vault.unlock(asking)?)?;

    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let rules = ParticipantRules {
        limits: Limits {
            max_epoch_jump: config.limits.max_epoch_jump,
            ..Limits::default()
        },
    };
    let options = Options::new(config.data_dir.join("ledger"), config.anchor_dir.clone());
    let store = Store::open(&options, rules, Arc::clone(&clock), Box::new(end_process))?;
    tracing::info!(records = store.opened_at().size.leaves(), "ledger open");

    let own = OwnSoftware {
        sealing: vault.method(),
        software: Text::new(SOFTWARE).ok_or(DaemonError::Start)?,
        build,
    };
    let shared = Arc::new(Shared::new(
        Speaker::new(secret),
        authorities,
        authorities_digest,
        vault,
        documents,
        store.committer(),
        clock,
        own,
        &config,
    ));
    begin(&shared).await?;
    shared.load_keys().await?;

    let dialer = Dialer::bind(
        ([0, 0, 0, 0], 0).into(),
        &tls,
        Arc::new(trust),
        firn_transport::Limits::for_intents(),
    )?;
    let dialer = Arc::new(dialer);
    let (stopping, stopped) = watch::channel(false);
    let mut links = JoinSet::new();
    for coordinator in &config.coordinators {
        let link = link::Link::new(
            Arc::clone(&shared),
            Arc::clone(&dialer),
            coordinator.clone(),
            stopped.clone(),
        );
        links.spawn(link.run());
    }
    links.spawn(shared::count_refusals(Arc::clone(&shared), stopped));
    stop.await;
    tracing::info!("stopping: no new sessions, open ones may end");
    stopping.send_replace(true);
    let drained = async { while links.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, drained).await.is_err() {
        tracing::warn!("open sessions did not end in time; they end now");
        links.shutdown().await;
    }
    dialer.close(0);
    drop(shared);
    let head = tokio::task::spawn_blocking(|| store.close())
        .await
        .ok()
        .flatten();
    match head {
        Some(head) => tracing::info!(records = head.size.leaves(), "ledger closed"),
        None => return Err(DaemonError::LedgerStopped),
    }
    Ok(())
}

/// The first records of a ledger, and of every run.
async fn begin(shared: &Shared) -> Result<(), DaemonError> {
    let empty = shared
        .ledger
        .query(|view| view.tip().size().leaves() == 0)
        .await
        .map_err(|_| DaemonError::LedgerStopped)?;
    if empty {
        let mut nonce = [0; 32];
        getrandom::fill(&mut nonce).map_err(|_| DaemonError::Randomness)?;
        let genesis = Genesis {
            identity: shared.speaker.identity(),
            nonce: Nonce::from_bytes(nonce),
        };
        shared.record(Command::Begin(genesis)).await?;
    }
    let own_ledger = shared
        .ledger
        .query(|view| firn_ledger::rules::View(view.state()).genesis())
        .await
        .map_err(|_| DaemonError::LedgerStopped)?;
    match own_ledger {
        Ok(Some(genesis)) if genesis.identity == shared.speaker.identity() => {}
        _ => return Err(DaemonError::OtherLedger),
    }
    let started = Started {
        software: shared.own.software.clone(),
        build: shared.own.build,
    };
    shared.record(Command::Start(started)).await?;
    let accepted = AuthoritiesAccepted {
        authorities: shared.authorities_digest,
        version: shared.authorities.version,
    };
    shared.record(Command::AcceptAuthorities(accepted)).await?;
    Ok(())
}

//! The shell around the service: tasks, sockets and the ledger's thread. It decides nothing about
//! signing; it brings streams to the service and carries away what it lets out.

mod error;
mod host;
mod link;
mod links;
mod operator;
mod upkeep;

use std::{future::Future, sync::Arc, time::Duration};

use firn_ledger::rules::Limits;
use firn_process::{Upkeep, service_manager};
use firn_protocol::{codec::Text, ids::BuildDigest};
use firn_transport::{DefaultTimeProvider, Dialer, Renewal};
use tokio::{sync::watch, task::JoinSet};

pub use error::DaemonError;

use crate::{
    config::Config,
    control::{Control, ControlLimits},
    documents::Documents,
    identity::{load_authorities, load_identity},
    process::SOFTWARE,
    rules::ParticipantRules,
    service::{Service, Setup},
    session::{Speaker, dkg::OwnSoftware},
    store::{Clock, Options, Store, SystemClock, end_process},
    vault::{Asking, Vault},
};
use host::DaemonHost;
use links::Links;
use operator::OperatorDesk;

/// How long sessions may go on after the process was asked to stop.
const GRACE: Duration = Duration::from_secs(5);
/// How often counted refusals are recorded.
const COUNT_EVERY: Duration = Duration::from_secs(60);

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
    // Here, and not in the middle of a session.
    getrandom::fill(&mut [0; 32]).map_err(|_| DaemonError::Randomness)?;
    let secret = load_identity(&config.identity_key)?;
    let (authorities, authorities_digest) =
        load_authorities(&config.authorities, config.authorities_digest)?;
    let warn_before = config.tls.warn_before_hours.map(Duration::from_hours);
    let (renewal, tls, trust) = Renewal::begin(
        config.tls.files(),
        config.name.trust_domain().clone(),
        warn_before,
        Arc::new(DefaultTimeProvider),
    )?;
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
    let setup = Setup {
        name: config.name.clone(),
        speaker: Speaker::new(secret),
        authorities,
        authorities_digest,
        vault,
        documents,
        own,
        limits: config.limits,
    };
    let host = DaemonHost::new(store.committer(), clock);
    let service = Arc::new(Service::begin(setup, host).await?);
    service.certificate_ends(upkeep::end_of(&renewal));
    let control = Control::open(&config.control_socket, ControlLimits::default())?;

    let dialer = Dialer::bind(
        ([0, 0, 0, 0], 0).into(),
        &tls,
        Arc::new(trust),
        firn_transport::Limits::for_intents(),
    )?;
    let dialer = Arc::new(dialer);
    let (stopping, stopped) = watch::channel(false);
    let mut tasks = JoinSet::new();
    let names = config.coordinators.iter().map(|entry| &entry.name);
    let links = Arc::new(Links::new(names));
    let desk = OperatorDesk {
        service: Arc::clone(&service),
        links: Arc::clone(&links),
    };
    tasks.spawn(control.serve(Arc::new(desk), stopped.clone()));
    for coordinator in &config.coordinators {
        let link = link::Link::new(
            Arc::clone(&service),
            Arc::clone(&dialer),
            Arc::clone(&links),
            coordinator.clone(),
            stopped.clone(),
        );
        tasks.spawn(link.run());
    }
    tasks.spawn(count_refusals(Arc::clone(&service), stopped.clone()));
    let look_every = Duration::from_millis(config.tls.look_every_ms);
    let upkeep = Upkeep::new(renewal, look_every).map_err(DaemonError::Signals)?;
    let mut stop = std::pin::pin!(stop);
    // The first look at it puts the handlers of signals in place: whoever hears that we are ready may
    // tell us to stop. Not earlier, so that a start that waits for a passphrase can be given up.
    let told_already = tokio::select! {
        biased;
        () = &mut stop => true,
        () = std::future::ready(()) => false,
    };
    // Ready is who could sign, whether or not a coordinator is there to ask for it.
    service_manager::ready(&upkeep.status());
    let care = upkeep::Care {
        upkeep,
        dialer: Arc::clone(&dialer),
        ledger: store.committer(),
        service: Arc::clone(&service),
    };
    tasks.spawn(care.keep(stopped));
    if !told_already {
        stop.await;
    }
    tracing::info!("stopping: no new sessions, open ones may end");
    service_manager::stopping("open sessions may end");
    stopping.send_replace(true);
    let drained = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, drained).await.is_err() {
        tracing::warn!("open sessions did not end in time; they end now");
        tasks.shutdown().await;
    }
    dialer.close(0);
    drop(service);
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

/// Records counted refusals, from time to time and at the end.
async fn count_refusals(service: Arc<Service<DaemonHost>>, mut stopped: watch::Receiver<bool>) {
    loop {
        let last = tokio::time::timeout(COUNT_EVERY, stopped.wait_for(|stopped| *stopped))
            .await
            .is_ok();
        service.record_refusals().await;
        if last {
            return;
        }
    }
}

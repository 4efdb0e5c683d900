//! The process: listens, judges who dials in, hands each connection to the part that serves its role,
//! and stops in order. It decides who is welcome, and nothing about what is signed.

use std::{future::Future, sync::Arc};

use firn_process::{Upkeep, service_manager};
use firn_protocol::{
    codec::Text,
    documents::Authorities,
    envelope::{Envelope, Verified},
    messages::{Hello, Welcome},
    names::{Role, SpiffeId},
    reject::Reject,
};
use firn_transport::{
    Connection, DefaultTimeProvider, Greeting, Limits, Listener, PendingConnection, Renewal,
    TransportError,
};
use tokio::time::timeout;

use crate::{
    config::{Config, write_atomically},
    error::CoordinatorError,
    intake,
    line::{Line, before_idle},
    registry::Connected,
    state::{MAX_CEREMONIES, Shared, now},
    voice::Voice,
};

/// What this software calls itself.
pub(crate) const SOFTWARE: &str = concat!("firn-coordinator/", env!("CARGO_PKG_VERSION"));
/// The close code of a coordinator that stops; 0 says no more.
const STOPPING: u16 = 0;
/// Roles that may dial in.
const ROLES: [Role; 3] = [Role::Participant, Role::Requester, Role::Operator];

/// Runs a coordinator until `shutdown`; then lets what is in flight go on for a while.
///
/// Needs a tokio runtime with I/O and time.
///
/// # Errors
/// Files that do not fit together, an address that cannot be bound.
pub async fn run(
    config: Config,
    shutdown: impl Future<Output = ()>,
) -> Result<(), CoordinatorError> {
    let (shared, listener, mut upkeep) = start(&config)?;
    service_manager::ready(&upkeep.status());
    serve_until(&shared, &listener, &mut upkeep, shutdown).await;
    tracing::info!("stopping");
    service_manager::stopping("what is in flight may end");
    shared.stop();
    // Whoever dials in meanwhile is told to come back, not left waiting; and a member that comes back
    // may be what a request in flight waits for.
    let drained = async {
        let idle = idle(&shared);
        serve_until(&shared, &listener, &mut upkeep, idle).await;
    };
    if timeout(shared.bounds.drain(), drained).await.is_err() {
        tracing::warn!(code = %Reject::Deadline, "stopped with work in flight; it can be asked for again");
    }
    listener.close(STOPPING);
    // The peers are told; one that does not answer is not waited for.
    let _ = timeout(shared.bounds.drain(), listener.wait_idle()).await;
    tracing::info!("stopped");
    Ok(())
}

/// Takes in whoever dials, until `end`.
async fn serve_until(
    shared: &Arc<Shared>,
    listener: &Listener,
    upkeep: &mut Upkeep,
    end: impl Future<Output = ()>,
) {
    let mut end = std::pin::pin!(end);
    loop {
        tokio::select! {
            () = &mut end => return,
            due = upkeep.next() => upkeep.act(due, listener),
            pending = listener.accept() => match pending {
                Ok(pending) => drop(tokio::spawn(greet(Arc::clone(shared), pending))),
                Err(_) => return,
            },
        }
    }
}

fn start(config: &Config) -> Result<(Arc<Shared>, Listener, Upkeep), CoordinatorError> {
    let secret = config.load_identity()?;
    let authorities = config.load_authorities()?;
    let tls = &config.tls;
    let (renewal, identity, trust) = Renewal::begin(
        tls.files(),
        authorities.trust_domain.clone(),
        tls.warn_before(),
        Arc::new(DefaultTimeProvider),
    )
    .map_err(|source| CoordinatorError::Transport {
        what: tls.certificate.display().to_string(),
        source,
    })?;
    let upkeep = Upkeep::new(renewal, tls.look_every()).map_err(CoordinatorError::System)?;
    let id = identity.spiffe_id().clone();
    if authorities.coordinator(&id) != Some(&secret.identity()) {
        return Err(CoordinatorError::NotACoordinator {
            path: config.authorities.clone(),
            id: id.to_string(),
            identity: secret.identity().to_string(),
        });
    }
    let listener = Listener::bind(
        config.listen,
        &identity,
        Arc::new(trust),
        &ROLES,
        Limits::for_intents(),
    )
    .map_err(|source| CoordinatorError::Transport {
        what: config.listen.to_string(),
        source,
    })?;
    let address = listener
        .local_address()
        .map_err(|source| CoordinatorError::Transport {
            what: "listener".to_owned(),
            source,
        })?;
    if let Some(file) = &config.address_file {
        write_atomically(file, format!("{address}\n").as_bytes())?;
    }
    tracing::info!(%address, %id, identity = %secret.identity(), software = SOFTWARE, "listening");
    let shared = Shared::new(Voice::new(id, secret), authorities, config.limits);
    Ok((Arc::new(shared), listener, upkeep))
}

/// Returns when no question, no request and no ceremony is in flight, and all have been answered.
async fn idle(shared: &Shared) {
    let places = u32::from(shared.bounds.requests);
    let questions = shared.questions.acquire_many(places);
    let requests = shared.requests.acquire_many(places);
    let ceremonies = shared.ceremonies.acquire_many(u32::from(MAX_CEREMONIES));
    let _ = tokio::join!(questions, requests, ceremonies);
}

/// From the handshake to the end of a connection.
async fn greet(shared: Arc<Shared>, pending: PendingConnection) {
    let address = pending.remote_address();
    let greeting = match pending.handshake().await {
        Ok(greeting) => greeting,
        Err(error) => {
            tracing::info!(%address, code = error.code(), "no connection");
            return;
        }
    };
    let hello = match judge(&greeting, &shared) {
        Ok(hello) => hello,
        Err(code) => {
            tracing::warn!(peer = %greeting.peer(), %address, code = %code, "not welcome");
            greeting.refuse(code.number());
            return;
        }
    };
    let peer = greeting.peer().clone();
    let welcomed = match welcome(&hello, &shared) {
        Ok(welcome) => greeting
            .welcome(&welcome)
            .await
            .map_err(|error| error.code()),
        Err(code) => Err(code.name()),
    };
    match welcomed {
        Ok(connection) => {
            tracing::info!(%peer, %address, software = %hello.software, "connected");
            serve(&shared, connection, &hello).await;
            tracing::info!(%peer, "gone");
        }
        Err(code) => tracing::info!(%peer, code, "gone before the welcome"),
    }
}

/// Whether the peer is who its certificate says, speaks to us, and with a key that may.
fn judge(greeting: &Greeting, shared: &Shared) -> Result<Verified<Hello>, Reject> {
    let envelope = Envelope::<Hello>::from_bytes(greeting.hello().to_vec())?;
    judge_hello(
        envelope,
        greeting.peer(),
        shared.voice.id(),
        &shared.authorities,
    )
}

fn judge_hello(
    envelope: Envelope<Hello>,
    peer: &SpiffeId,
    own: &SpiffeId,
    authorities: &Authorities,
) -> Result<Verified<Hello>, Reject> {
    let hello = match peer.role() {
        // Which key a participant has is for the roster of each of its keys to say; what it says
        // here is remembered and compared then.
        Role::Participant => {
            let claimed = envelope.claimed_signer()?;
            envelope.verify(&claimed)?
        }
        Role::Requester => {
            let key = authorities
                .requester(peer)
                .ok_or(Reject::UnknownRequester)?;
            envelope.verify(key)?
        }
        Role::Operator => envelope.verify_any(&authorities.operators.identities())?,
        Role::Coordinator => return Err(Reject::WrongRole),
    };
    if hello.from != *peer {
        return Err(Reject::NotAMember);
    }
    if hello.to != *own {
        return Err(Reject::UnknownCoordinator);
    }
    Ok(hello)
}

fn welcome(hello: &Hello, shared: &Shared) -> Result<Vec<u8>, Reject> {
    let welcome = Welcome {
        from: shared.voice.id().clone(),
        to: hello.from.clone(),
        nonce: hello.nonce,
        software: Text::new(SOFTWARE).ok_or(Reject::Internal)?,
        time: now(),
    };
    Ok(shared.voice.sign(&welcome)?.envelope().as_bytes().to_vec())
}

/// Serves a connection to its end, by the role in its certificate.
async fn serve(shared: &Arc<Shared>, connection: Connection, hello: &Verified<Hello>) {
    match connection.peer().role() {
        Role::Participant => serve_member(shared, connection, hello).await,
        Role::Requester => intake::requests(shared, &connection, *hello.signer()).await,
        Role::Operator => intake::operators(shared, &connection, *hello.signer()).await,
        Role::Coordinator => {}
    }
}

/// A member only waits to be asked.
async fn serve_member(shared: &Shared, connection: Connection, hello: &Verified<Hello>) {
    let line = Line::new(connection.clone(), *hello.signer());
    let connected = Connected {
        connection: line,
        identity: *hello.signer(),
        software: hello.software.clone(),
        since: now(),
    };
    let id = connection.peer().clone();
    let replaced = shared.registry().join(id.clone(), connected);
    if let Some(replaced) = replaced {
        replaced
            .connection()
            .close(Reject::AttemptAbandoned.number());
    }
    let end = connection.closed().await;
    tracing::debug!(peer = %id, code = end.code(), "a member's connection has ended");
    let has_left = shared
        .registry()
        .leave(&id, |counts| counts.connection().is_same(&connection));
    if has_left {
        let last = if matches!(end, TransportError::IdleTimeout) {
            before_idle()
        } else {
            now()
        };
        let keys = shared.keys();
        shared
            .seen()
            .left(id, *hello.signer(), last, |name| keys.has_member(name));
    }
}

#[cfg(test)]
mod tests;

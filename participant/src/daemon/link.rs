//! The connection to one coordinator: dialled, kept, and dialled again with growing patience. The
//! participant has no inbound port.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use firn_protocol::{
    envelope::{Envelope, Verified},
    ids::Nonce,
    messages::{Hello, Welcome},
    reject::Reject,
};
use firn_transport::{Connection, Dialer, TransportError};
use tokio::{sync::watch, task::JoinSet};

use super::{
    host::{DaemonHost, QuicStream},
    links::Links,
};
use crate::{
    config::CoordinatorConfig,
    service::Service,
    session::{ClockSkew, SaidBetween},
};

/// The first wait before dialling again; it doubles up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Conversations at once with one coordinator; the transport allows no more streams.
const MAX_CONVERSATIONS: usize = 64;

/// One coordinator's link.
pub(super) struct Link {
    service: Arc<Service<DaemonHost>>,
    dialer: Arc<Dialer>,
    links: Arc<Links>,
    coordinator: CoordinatorConfig,
    stopped: watch::Receiver<bool>,
}

/// Why a link is not up.
#[derive(Debug, thiserror::Error)]
enum LinkError {
    #[error(transparent)]
    Transport(#[from] TransportError),
    #[error("the coordinator's welcome is refused: {0}")]
    Welcome(Reject),
    #[error("{0}")]
    Clock(ClockSkew),
    #[error("the address cannot be resolved: {0}")]
    Address(std::io::Error),
}

impl LinkError {
    fn code(&self) -> &'static str {
        match self {
            Self::Transport(error) => error.code(),
            Self::Welcome(code) => code.name(),
            Self::Clock(_) => Reject::ClockSkew.name(),
            Self::Address(_) => "address_unresolved",
        }
    }

    fn advice(&self) -> &'static str {
        match self {
            Self::Transport(error) => error.advice(),
            Self::Welcome(code) => code.advice(),
            Self::Clock(_) => Reject::ClockSkew.advice(),
            Self::Address(_) => "Check the coordinator's address and the resolver.",
        }
    }
}

impl Link {
    pub(super) const fn new(
        service: Arc<Service<DaemonHost>>,
        dialer: Arc<Dialer>,
        links: Arc<Links>,
        coordinator: CoordinatorConfig,
        stopped: watch::Receiver<bool>,
    ) -> Self {
        Self {
            service,
            dialer,
            links,
            coordinator,
            stopped,
        }
    }

    /// Keeps the link up until the process stops.
    pub(super) async fn run(mut self) {
        let mut wait = FIRST_WAIT;
        loop {
            let mut stopped = self.stopped.clone();
            tokio::select! {
                biased;
                () = until_stopped(&mut stopped) => return,
                dialled = self.dial() => match dialled {
                    Ok(connection) => {
                        wait = FIRST_WAIT;
                        tracing::info!(coordinator = %self.coordinator.name, "connected");
                        self.links.up(&self.coordinator.name, self.service.now());
                        let code = self.serve(&connection).await;
                        self.links.down(&self.coordinator.name, code);
                    }
                    Err(error) => {
                        self.links.down(&self.coordinator.name, error.code());
                        tracing::warn!(
                            coordinator = %self.coordinator.name,
                            code = error.code(),
                            advice = error.advice(),
                            "not connected: {error}"
                        );
                    }
                },
            }
            let stopping = until_stopped(&mut self.stopped);
            if tokio::time::timeout(wait, stopping).await.is_ok() {
                return;
            }
            wait = wait.saturating_mul(2).min(LONGEST_WAIT);
        }
    }

    async fn dial(&self) -> Result<Connection, LinkError> {
        let address = self.resolve().await?;
        let nonce = self.service.fresh_nonce();
        let asked = self.service.now();
        let hello = self.hello(nonce).map_err(LinkError::Welcome)?;
        let (connection, welcome) = self
            .dialer
            .connect(address, &self.coordinator.name, &hello)
            .await?;
        let welcome = self
            .check_welcome(welcome, nonce)
            .map_err(LinkError::Welcome)?;
        // Nothing that hangs on time can be judged between two that do not agree what time it is.
        let said = SaidBetween {
            earliest: asked,
            latest: self.service.now(),
        };
        said.compare(welcome.time, self.service.limits.max_clock_skew_ms)
            .map_err(LinkError::Clock)?;
        Ok(connection)
    }

    async fn resolve(&self) -> Result<SocketAddr, LinkError> {
        let address = &self.coordinator.address;
        let mut found = tokio::net::lookup_host((address.host(), address.port()))
            .await
            .map_err(LinkError::Address)?;
        let nothing = || LinkError::Address(std::io::ErrorKind::NotFound.into());
        // The socket is of IPv4, as far as coordinators are addressed by it.
        found.find(SocketAddr::is_ipv4).ok_or_else(nothing)
    }

    fn hello(&self, nonce: Nonce) -> Result<Vec<u8>, Reject> {
        let hello = self.service.speaker.sign(&Hello {
            from: self.service.name.clone(),
            to: self.coordinator.name.clone(),
            nonce,
            software: self.service.own.software.clone(),
            build: self.service.own.build,
            time: self.service.now(),
        })?;
        Ok(hello.as_bytes().to_vec())
    }

    fn check_welcome(&self, bytes: Vec<u8>, nonce: Nonce) -> Result<Verified<Welcome>, Reject> {
        let key = self
            .service
            .authorities
            .coordinator(&self.coordinator.name)
            .ok_or(Reject::UnknownCoordinator)?;
        let welcome = Envelope::<Welcome>::from_bytes(bytes)?.verify(key)?;
        let meant = welcome.from == self.coordinator.name
            && welcome.to == self.service.name
            && welcome.nonce == nonce;
        if meant {
            Ok(welcome)
        } else {
            Err(Reject::SessionMismatch)
        }
    }

    /// Serves streams until the connection ends, or the process stops and the last conversation with
    /// it.
    async fn serve(&mut self, connection: &Connection) -> &'static str {
        let mut conversations = JoinSet::new();
        let code = loop {
            while conversations.try_join_next().is_some() {}
            let room = conversations.len() < MAX_CONVERSATIONS;
            tokio::select! {
                biased;
                () = until_stopped(&mut self.stopped) => break "locally_closed",
                Some(_) = conversations.join_next(), if !room => {}
                stream = connection.accept_stream(), if room => match stream {
                    Ok((sender, receiver)) => {
                        let stream = QuicStream::new(sender, receiver);
                        let service = Arc::clone(&self.service);
                        conversations.spawn(service.converse(self.coordinator.name.clone(), stream));
                    }
                    Err(error) => {
                        tracing::info!(
                            coordinator = %self.coordinator.name,
                            code = error.code(),
                            "disconnected"
                        );
                        break error.code();
                    }
                },
            }
        };
        while conversations.join_next().await.is_some() {}
        code
    }
}

/// Ready once the process is asked to stop. A plain future, since the channel's own keeps a lock.
async fn until_stopped(stopped: &mut watch::Receiver<bool>) {
    drop(stopped.wait_for(|stopped| *stopped).await);
}

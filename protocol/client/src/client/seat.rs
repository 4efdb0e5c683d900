//! One coordinator and the connection to it. It decides when to dial again; a connection that has let an
//! answer down is not used twice.

use std::time::Duration;

use firn_protocol::{
    documents::KeyHolder,
    messages::{FromRequests, ToRequests},
};
use firn_transport::TransportError;
use tokio::{net::lookup_host, sync::Mutex, time::timeout};

use crate::{
    address::Address,
    caller::Caller,
    error::Error,
    line::{Line, Peer},
};

const LOOKING_UP: &str = "looking the coordinator's address up";
/// How long a name server may take.
const LOOKUP: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Seat {
    holder: KeyHolder,
    address: Address,
    // Held while dialling, so that callers at the same time share one connection.
    line: Mutex<Option<Line>>,
}

impl Seat {
    pub(super) fn new(holder: KeyHolder, address: Address) -> Self {
        Self {
            holder,
            address,
            line: Mutex::new(None),
        }
    }

    pub(super) const fn holder(&self) -> &KeyHolder {
        &self.holder
    }

    /// Asks one question, over the connection that there is or a new one.
    pub(super) async fn question(
        &self,
        caller: &Caller,
        doing: &'static str,
        message: &ToRequests,
        patience: Duration,
    ) -> Result<FromRequests, Error> {
        let line = self.line(caller).await?;
        match line.question(doing, message, patience).await {
            // It had been lost since the last question, and nothing was sent.
            Err(Error::Transport { .. }) => {
                self.forget(&line).await;
                let line = self.line(caller).await?;
                let answer = line.question(doing, message, patience).await;
                self.judge(&line, answer).await
            }
            answer => self.judge(&line, answer).await,
        }
    }

    async fn judge(
        &self,
        line: &Line,
        answer: Result<FromRequests, Error>,
    ) -> Result<FromRequests, Error> {
        if answer.is_err() {
            self.forget(line).await;
        }
        answer
    }

    async fn line(&self, caller: &Caller) -> Result<Line, Error> {
        let mut held = self.line.lock().await;
        if let Some(line) = &*held {
            return Ok(line.clone());
        }
        let line = self.dial(caller).await?;
        *held = Some(line.clone());
        Ok(line)
    }

    /// Forgets `line`, unless somebody has dialled anew meanwhile.
    async fn forget(&self, line: &Line) {
        let mut held = self.line.lock().await;
        if held.as_ref().is_some_and(|kept| kept.is_same(line)) {
            *held = None;
        }
    }

    /// Every address that the name stands for, until one of them welcomes.
    async fn dial(&self, caller: &Caller) -> Result<Line, Error> {
        let name = (self.address.host(), self.address.port());
        let addresses = timeout(LOOKUP, lookup_host(name))
            .await
            .map_err(|_| std::io::Error::from(std::io::ErrorKind::TimedOut))
            .and_then(|found| found)
            .map_err(|error| Error::transport(LOOKING_UP)(TransportError::Socket(error)))?;
        let nowhere = std::io::Error::from(std::io::ErrorKind::NotFound);
        let mut failed = Error::transport(LOOKING_UP)(TransportError::Socket(nowhere));
        for address in addresses {
            let peer = Peer {
                address,
                holder: self.holder.clone(),
            };
            match Line::connect(caller, &peer).await {
                Ok(line) => return Ok(line),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

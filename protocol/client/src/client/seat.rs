//! One coordinator and the connection to it. It decides when to dial again; a connection that has let an
//! answer down is not used twice.

use std::time::Duration;

use firn_protocol::{
    documents::KeyHolder,
    messages::{FromRequests, ToRequests},
};
use tokio::sync::Mutex;

use crate::{address::Address, caller::Caller, error::Error, line::Line};

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
        let line = Line::dial(caller, &self.holder, &self.address).await?;
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
}

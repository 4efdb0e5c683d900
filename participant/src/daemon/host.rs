//! The machine under the service: QUIC streams, the ledger's thread, the system's clock and
//! randomness. It decides nothing.

use std::{sync::Arc, time::Duration};

use firn_protocol::ids::UnixMillis;
use firn_transport::{FrameReceiver, FrameSender, TransportError};
use getrandom::{SysRng, rand_core::UnwrapErr};
use tokio::time::timeout;

use crate::{
    rules::ParticipantRules,
    service::{Host, NotReceived, NotSent, Stream},
    store::{Clock, Committer},
    vault::VaultError,
};

/// What the daemon's service stands on.
pub(super) struct DaemonHost {
    ledger: Committer<ParticipantRules>,
    clock: Arc<dyn Clock>,
}

impl DaemonHost {
    pub(super) fn new(ledger: Committer<ParticipantRules>, clock: Arc<dyn Clock>) -> Self {
        Self { ledger, clock }
    }
}

impl Host for DaemonHost {
    type Ledger = Committer<ParticipantRules>;
    type Random = UnwrapErr<SysRng>;

    fn ledger(&self) -> &Self::Ledger {
        &self.ledger
    }

    fn now(&self) -> UnixMillis {
        self.clock.now()
    }

    fn random(&self) -> Self::Random {
        UnwrapErr(SysRng)
    }

    fn vault_failed(&self, error: &VaultError) {
        tracing::error!(
            code = error.code(),
            advice = error.advice(),
            "the vault failed; ending: {error}"
        );
        std::process::exit(70);
    }
}

/// A stream of a connection.
pub(super) struct QuicStream {
    sender: FrameSender,
    receiver: FrameReceiver,
}

impl QuicStream {
    pub(super) const fn new(sender: FrameSender, receiver: FrameReceiver) -> Self {
        Self { sender, receiver }
    }
}

impl Stream for QuicStream {
    async fn receive(&mut self, limit: usize, patience: Duration) -> Result<Vec<u8>, NotReceived> {
        match timeout(patience, self.receiver.receive(limit)).await {
            Err(_) => Err(NotReceived::Deadline),
            Ok(Ok(Some(frame))) => Ok(frame),
            Ok(Ok(None)) => Err(NotReceived::Finished),
            Ok(Err(TransportError::FrameTooLarge { .. })) => Err(NotReceived::TooLarge),
            Ok(Err(error)) => {
                tracing::debug!(code = error.code(), "a stream ended: {error}");
                Err(NotReceived::Lost)
            }
        }
    }

    async fn send(&mut self, frame: &[u8], patience: Duration) -> Result<(), NotSent> {
        match timeout(patience, self.sender.send(frame)).await {
            Err(_) => Err(NotSent::Unread),
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                tracing::debug!(code = error.code(), "a frame was not sent: {error}");
                Err(NotSent::Lost)
            }
        }
    }

    fn finish(self) {
        self.sender.finish();
    }
}

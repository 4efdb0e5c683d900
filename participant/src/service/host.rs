//! What carries the service: streams, ledger, time, randomness. It decides nothing; the daemon's host
//! is the machine, and a simulation's is made of queues, a clock that stands still and a disk that
//! crashes.

use std::time::Duration;

use firn_ledger::rules::{Answer, Command};
use firn_protocol::{ids::UnixMillis, reject::Reject};
use rand_core::CryptoRng;

use crate::{
    rules::ParticipantRules,
    store::{CommitError, Committed, Committer, View},
    vault::VaultError,
};

/// What a service stands on.
pub trait Host: Send + Sync + 'static {
    /// The ledger.
    type Ledger: Ledger;
    /// Where nonces and keys come from.
    type Random: CryptoRng;

    /// The ledger of this participant.
    fn ledger(&self) -> &Self::Ledger;

    /// The time now.
    fn now(&self) -> UnixMillis;

    /// A source of random bytes. A host that has none ends the process.
    fn random(&self) -> Self::Random;

    /// Ends the process where ledger and vault have come apart; the next start puts them together.
    /// Where it returns, because the process is simulated, nothing more is written or sent by whoever
    /// called it.
    fn vault_failed(&self, error: &VaultError);
}

/// The way to a ledger that is kept elsewhere: by a thread, or by a simulation.
///
/// The host ends the process when the ledger's disk fails, before anybody is answered.
pub trait Ledger: Send + Sync + 'static {
    /// Records a command; ready once its records are durable.
    fn commit(
        &self,
        command: Command,
    ) -> impl Future<Output = Result<Committed<Answer>, CommitError<Reject>>> + Send;

    /// Looks at the durable ledger.
    fn query<A, Q>(
        &self,
        question: Q,
    ) -> impl Future<Output = Result<A, CommitError<Reject>>> + Send
    where
        A: Send + 'static,
        Q: FnOnce(&View<'_>) -> A + Send + 'static;
}

impl Ledger for Committer<ParticipantRules> {
    fn commit(
        &self,
        command: Command,
    ) -> impl Future<Output = Result<Committed<Answer>, CommitError<Reject>>> + Send {
        Self::commit(self, command)
    }

    fn query<A, Q>(
        &self,
        question: Q,
    ) -> impl Future<Output = Result<A, CommitError<Reject>>> + Send
    where
        A: Send + 'static,
        Q: FnOnce(&View<'_>) -> A + Send + 'static,
    {
        Self::query(self, question)
    }
}

/// A stream that a coordinator opened: whole frames in both directions, in order.
pub trait Stream: Send + 'static {
    /// The next frame, of at most `limit` bytes.
    ///
    /// # Errors
    /// [`NotReceived`].
    fn receive(
        &mut self,
        limit: usize,
        patience: Duration,
    ) -> impl Future<Output = Result<Vec<u8>, NotReceived>> + Send;

    /// Sends one frame; ready when it is on its way, not when it has arrived. After an error nothing
    /// more is sent.
    ///
    /// # Errors
    /// [`NotSent`].
    fn send(
        &mut self,
        frame: &[u8],
        patience: Duration,
    ) -> impl Future<Output = Result<(), NotSent>> + Send;

    /// Ends the stream after the last frame.
    fn finish(self);
}

/// Why there is no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotReceived {
    /// The peer has said all that it had to say.
    #[error("the peer ended the stream")]
    Finished,
    /// The peer announces more than it may say.
    #[error("the frame is over its limit")]
    TooLarge,
    /// The peer takes too long.
    #[error("no frame came in time")]
    Deadline,
    /// The stream is gone, and nobody is there to be told.
    #[error("the stream is lost")]
    Lost,
}

/// Why a frame is not on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    /// The peer takes nothing off the stream.
    #[error("the peer does not read")]
    Unread,
    /// The stream is gone, and nobody is there to be told.
    #[error("the stream is lost")]
    Lost,
}

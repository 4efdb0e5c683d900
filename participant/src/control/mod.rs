//! The Unix socket through which the operator of this machine speaks with the daemon. It decides who is
//! let in, how much may be said and how long it may take; it never decides what is answered.

mod error;
mod frame;
mod socket;
#[cfg(test)]
mod tests;

use std::{path::Path, sync::Arc, time::Duration};

use firn_protocol::{
    codec::{self, Text},
    messages::{FromDaemon, LocalFailure, MAX_LOCAL_MESSAGE, ToDaemon},
    reject::Reject,
};
use tokio::{net::UnixStream, sync::watch, task::JoinSet, time::timeout};

pub use error::ControlError;
use socket::Socket;

/// How long a peer may take for one frame, and how many may be connected; more wait.
#[derive(Debug, Clone, Copy)]
pub struct ControlLimits {
    /// For a question to come, or an answer to be taken.
    pub patience: Duration,
    /// Connections at once.
    pub connections: usize,
}

impl Default for ControlLimits {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(10),
            connections: 4,
        }
    }
}

/// Whoever answers what comes over the socket.
pub trait Answers: Send + Sync + 'static {
    /// Answers one question.
    fn answer(&self, question: ToDaemon) -> impl Future<Output = FromDaemon> + Send;
}

/// A socket that listens.
#[derive(Debug)]
pub struct Control {
    socket: Socket,
    limits: ControlLimits,
}

impl Control {
    /// Listens at `path`, for this user alone. A socket that nobody listens on any more is replaced.
    /// Must be called within a runtime.
    ///
    /// # Errors
    /// [`ControlError`].
    pub fn open(path: &Path, limits: ControlLimits) -> Result<Self, ControlError> {
        let socket = Socket::listen(path)?;
        Ok(Self { socket, limits })
    }

    /// Answers until the process stops; then the socket's file is removed.
    pub async fn serve<A: Answers>(self, answers: Arc<A>, mut stopped: watch::Receiver<bool>) {
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let room = connections.len() < self.limits.connections;
            tokio::select! {
                biased;
                () = until_stopped(&mut stopped) => break,
                Some(_) = connections.join_next(), if !room => {}
                accepted = self.socket.accept(), if room => match accepted {
                    Ok(stream) => {
                        let answers = Arc::clone(&answers);
                        connections.spawn(converse(stream, answers, self.limits.patience));
                    }
                    Err(error) => {
                        tracing::warn!(code = error.code(), advice = error.advice(), "{error}");
                        // What does not pass, such as too many open files, is not to be tried in a
                        // circle.
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
            }
        }
        connections.shutdown().await;
    }
}

/// A failure in the words of this machine's log, cut to what a message holds.
#[must_use]
pub fn failure(code: &str, message: &str, advice: &str) -> FromDaemon {
    FromDaemon::Failed(LocalFailure {
        code: Text::clipped(code),
        message: Text::clipped(message),
        advice: Text::clipped(advice),
    })
}

/// Answers one peer's questions, one after another.
async fn converse<A: Answers>(mut stream: UnixStream, answers: Arc<A>, patience: Duration) {
    if let Err(error) = socket::check_peer(&stream) {
        tracing::warn!(code = error.code(), "{error}");
        let refusal = failure(error.code(), &error.to_string(), error.advice());
        say(&mut stream, &refusal, patience).await;
        return;
    }
    loop {
        let question = match timeout(patience, frame::read(&mut stream, MAX_LOCAL_MESSAGE)).await {
            Err(_) => {
                tracing::debug!(code = Reject::Deadline.name(), "a local peer says nothing");
                return;
            }
            Ok(Ok(None)) => return,
            Ok(Ok(Some(bytes))) => codec::decode::<ToDaemon>(&bytes, MAX_LOCAL_MESSAGE),
            Ok(Err(frame::FrameError::TooLarge)) => Err(codec::Malformed::TooLarge),
            Ok(Err(frame::FrameError::Io(error))) => {
                tracing::debug!("a local connection ended: {error}");
                return;
            }
        };
        let (answer, goes_on) = match question {
            Ok(question) => (answers.answer(question).await, true),
            Err(malformed) => {
                let code = Reject::from(malformed);
                (failure(code.name(), code.meaning(), code.advice()), false)
            }
        };
        if !say(&mut stream, &answer, patience).await || !goes_on {
            return;
        }
    }
}

/// Whether the peer took the answer in time.
async fn say(stream: &mut UnixStream, answer: &FromDaemon, patience: Duration) -> bool {
    let Ok(bytes) = codec::encode(answer) else {
        return false;
    };
    let written = timeout(patience, frame::write(stream, &bytes)).await;
    matches!(written, Ok(Ok(())))
}

/// Ready once the process is asked to stop. A plain future, since the channel's own keeps a lock.
async fn until_stopped(stopped: &mut watch::Receiver<bool>) {
    drop(stopped.wait_for(|stopped| *stopped).await);
}

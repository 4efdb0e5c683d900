//! The one thread that owns the ledger, and the handle that everybody else has. It decides in which
//! batch a command goes, and lets nobody know anything before it is durable.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread::{self, JoinHandle},
};

use firn_ledger::journal::Head;
use tokio::sync::oneshot;

use super::{
    Clock, CommitError, Committed, Rules, StateTable, StoreError, View,
    anchor::Anchor,
    files::SegmentFiles,
    ledger::{Ledger, Outcome},
};

/// The most requests that are taken into one batch.
const MAX_TAKEN: usize = 256;

/// What happens when a write, a sync or the index fails. The default is [`end_process`].
pub type OnFatal = Box<dyn Fn(&StoreError) + Send>;

/// Logs the error and ends the process, with exit code 70 (an internal failure), at once: no thread
/// runs on, and nothing is answered. It does not abort, because a core dump would hold the share.
pub fn end_process(error: &StoreError) {
    tracing::error!(code = error.code(), %error, advice = error.advice(), "the ledger failed; ending");
    std::process::exit(70);
}

enum Request<R: Rules> {
    Commit {
        command: R::Command,
        reply: oneshot::Sender<Outcome<R>>,
    },
    Query(Box<dyn FnOnce(&View<'_>) + Send>),
    Close,
}

/// The way to the ledger, for any number of sessions.
pub struct Committer<R: Rules> {
    queue: SyncSender<Request<R>>,
}

impl<R: Rules> Clone for Committer<R> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
        }
    }
}

impl<R: Rules> Committer<R> {
    /// Asks for a command to be recorded and waits until its records are on disk.
    ///
    /// # Errors
    /// [`CommitError`]. After [`CommitError::Stopped`] the records may be there or not.
    pub async fn commit(
        &self,
        command: R::Command,
    ) -> Result<Committed<R::Answer>, CommitError<R::Refusal>> {
        let (reply, answer) = oneshot::channel();
        self.send(Request::Commit { command, reply })?;
        answer.await.unwrap_or(Err(CommitError::Stopped))
    }

    /// Looks at the durable ledger, as it is when the question is reached or later.
    ///
    /// # Errors
    /// [`CommitError::Busy`] or [`CommitError::Stopped`].
    pub async fn query<A, Q>(&self, question: Q) -> Result<A, CommitError<R::Refusal>>
    where
        A: Send + 'static,
        Q: FnOnce(&View<'_>) -> A + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        // An asker who went away does not want the answer.
        let ask = move |view: &View<'_>| drop(reply.send(question(view)));
        self.send(Request::Query(Box::new(ask)))?;
        answer.await.map_err(|_| CommitError::Stopped)
    }

    fn send(&self, request: Request<R>) -> Result<(), CommitError<R::Refusal>> {
        self.queue.try_send(request).map_err(|error| match error {
            TrySendError::Full(_) => CommitError::Busy,
            TrySendError::Disconnected(_) => CommitError::Stopped,
        })
    }
}

/// The thread that owns the ledger.
pub(super) struct Writer<R: Rules> {
    committer: Committer<R>,
    thread: JoinHandle<Option<Head>>,
}

/// What the thread owns.
pub(super) struct Work<R, F, T> {
    pub(super) ledger: Ledger<R, F, T>,
    pub(super) anchor: Option<Anchor>,
    /// After how many records the anchor follows.
    pub(super) anchor_every: u64,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) on_fatal: OnFatal,
}

impl<R: Rules> Writer<R> {
    /// Starts the thread; at most `waiting` requests wait for it.
    pub(super) fn start<F: SegmentFiles, T: StateTable>(
        work: Work<R, F, T>,
        waiting: usize,
    ) -> Result<Self, StoreError> {
        let (queue, requests) = sync_channel(waiting);
        let thread = thread::Builder::new()
            .name("ledger".into())
            .spawn(move || work.run(&requests))
            .map_err(StoreError::io("starting the ledger's thread"))?;
        Ok(Self {
            committer: Committer { queue },
            thread,
        })
    }

    pub(super) fn committer(&self) -> Committer<R> {
        self.committer.clone()
    }

    /// Ends the thread after all that was asked before, and gives the last head; none if it failed.
    pub(super) fn close(self) -> Option<Head> {
        // Waits if the queue is full; a thread that is gone needs no telling.
        drop(self.committer.queue.send(Request::Close));
        self.thread.join().ok().flatten()
    }
}

impl<R: Rules, F: SegmentFiles, T: StateTable> Work<R, F, T> {
    /// Serves requests until it is told to close, or everybody who could ask is gone.
    fn run(mut self, requests: &Receiver<Request<R>>) -> Option<Head> {
        let mut closing = false;
        while !closing {
            let Ok(first) = requests.recv() else { break };
            let (mut commands, mut replies, mut questions) = (Vec::new(), Vec::new(), Vec::new());
            // While one batch is being synced the next one gathers in the queue.
            for request in std::iter::once(first)
                .chain(requests.try_iter())
                .take(MAX_TAKEN)
            {
                match request {
                    Request::Commit { command, reply } => {
                        commands.push(command);
                        replies.push(reply);
                    }
                    Request::Query(question) => questions.push(question),
                    Request::Close => closing = true,
                }
                if closing {
                    break;
                }
            }
            match self.ledger.commit(commands, self.clock.now()) {
                // An asker who went away left records behind that the rules account for.
                Ok(outcomes) => replies
                    .into_iter()
                    .zip(outcomes)
                    .for_each(|(reply, outcome)| drop(reply.send(outcome))),
                Err(error) => {
                    // Before the replies are dropped: their askers must not see an end before us.
                    (self.on_fatal)(&error);
                    return None;
                }
            }
            let view = self.ledger.view();
            questions.into_iter().for_each(|question| question(&view));
            if let Err(error) = self.follow_anchor(closing) {
                (self.on_fatal)(&error);
                return None;
            }
        }
        if let Err(error) = self.follow_anchor(true) {
            (self.on_fatal)(&error);
            return None;
        }
        Some(self.ledger.head())
    }

    fn follow_anchor(&mut self, now: bool) -> Result<(), StoreError> {
        let Some(anchor) = &mut self.anchor else {
            return Ok(());
        };
        let head = self.ledger.view().tip().size().leaves();
        let lag = head.saturating_sub(anchor.head().size.leaves());
        if lag >= self.anchor_every || (now && lag > 0) {
            anchor.set(self.ledger.head())?;
        }
        Ok(())
    }
}

//! Runs a conversation over streams, one for each member. It decides when a step has taken too long;
//! what the messages mean is the machine's to say.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use firn_protocol::{
    codec,
    ids::Identifier,
    limits,
    messages::{FromMember, ToMember},
    reject::Reject,
};
use firn_transport::{FrameReceiver, FrameSender, TransportError};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, timeout, timeout_at},
};

use crate::{
    line::Line,
    session::{Conversation, Fault, Send, StepProgress, Turn},
};

/// Messages to one member that wait for its stream. No conversation has more in flight.
const OUTBOX: usize = 4;

/// How to reach a member of a conversation.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) member: Identifier,
    pub(crate) line: Line,
}

/// What came on a member's stream.
type Arrival = (Identifier, Result<FromMember, Fault>);

/// Streams of a conversation, as its machine sees them.
struct Streams {
    outboxes: BTreeMap<Identifier, mpsc::Sender<Arc<[u8]>>>,
    inbox: mpsc::Receiver<Arrival>,
    // Ends the readers when the conversation ends, which stops the members' streams.
    _readers: JoinSet<()>,
}

/// How long members may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// For the first step: a member that is gone is noticed by its silence here, and others can be
    /// asked in its place.
    pub(crate) first: Duration,
    /// For every later step.
    pub(crate) step: Duration,
}

/// Runs a conversation to its end.
pub(crate) async fn converse<C: Conversation>(
    conversation: C,
    opening: Vec<Send>,
    links: Vec<Link>,
    patience: Patience,
    mut progress: impl FnMut(StepProgress),
) -> C::Outcome {
    let step = patience.step;
    let mut streams = Streams::open(links, C::FRAME_LIMIT, step);
    let mut at = conversation.progress();
    let mut deadline = after(patience.first);
    let mut turn = Turn::Goes(conversation, opening);
    loop {
        let conversation = match streams.dispatch(turn) {
            Turn::Goes(conversation, _) => conversation,
            Turn::Ended(outcome) => return outcome,
        };
        let reached = conversation.progress();
        if reached != at {
            if reached.step != at.step {
                deadline = after(step);
            }
            at = reached;
            progress(reached);
        }
        turn = match timeout_at(deadline, streams.inbox.recv()).await {
            Ok(Some((from, Ok(message)))) => conversation.handle(from, message),
            Ok(Some((_, Err(fault)))) => conversation.fail(fault),
            Ok(None) | Err(_) => {
                deadline = after(step);
                conversation.expire()
            }
        };
    }
}

fn after(step: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(step).unwrap_or(now)
}

impl Streams {
    fn open(links: Vec<Link>, limit: usize, patience: Duration) -> Self {
        let (arrivals, inbox) = mpsc::channel(links.len().max(1));
        let mut outboxes = BTreeMap::new();
        let mut readers = JoinSet::new();
        for link in links {
            let (outbox, outgoing) = mpsc::channel(OUTBOX);
            outboxes.insert(link.member, outbox);
            readers.spawn(carry(link, outgoing, arrivals.clone(), limit, patience));
        }
        Self {
            outboxes,
            inbox,
            _readers: readers,
        }
    }

    /// Hands out what a machine wants sent; a member that cannot be sent to has failed.
    fn dispatch<C: Conversation>(&self, mut turn: Turn<C>) -> Turn<C> {
        loop {
            let (conversation, send) = match turn {
                Turn::Goes(conversation, send) if !send.is_empty() => (conversation, send),
                done @ (Turn::Goes(..) | Turn::Ended(_)) => return done,
            };
            turn = match self.send_all(send) {
                Ok(()) => Turn::Goes(conversation, Vec::new()),
                Err(fault) => conversation.fail(fault),
            };
        }
    }

    fn send_all(&self, send: Vec<Send>) -> Result<(), Fault> {
        let mut encoded: Option<(ToMember, Arc<[u8]>)> = None;
        for Send { to, message } in send {
            // Most messages go to everybody.
            let bytes = match &encoded {
                Some((same, bytes)) if *same == message => Arc::clone(bytes),
                Some(_) | None => {
                    let bytes: Arc<[u8]> = encode(&message)
                        .map_err(|code| Fault::silent(to, code))?
                        .into();
                    encoded = Some((message, Arc::clone(&bytes)));
                    bytes
                }
            };
            self.outboxes
                .get(&to)
                .ok_or(Reject::NotAMember)
                .and_then(|outbox| outbox.try_send(bytes).map_err(|_| Reject::Busy))
                .map_err(|code| Fault::silent(to, code))?;
        }
        Ok(())
    }
}

fn encode(message: &ToMember) -> Result<Vec<u8>, Reject> {
    let bytes = codec::encode(message)?;
    if bytes.len() > limits::MAX_FRAME {
        Err(Reject::TooLarge)
    } else {
        Ok(bytes)
    }
}

/// Carries between a member's stream and the conversation until either ends.
async fn carry(
    link: Link,
    outgoing: mpsc::Receiver<Arc<[u8]>>,
    arrivals: mpsc::Sender<Arrival>,
    limit: usize,
    patience: Duration,
) {
    let Link { member, line } = link;
    let (sender, mut receiver) = match line.connection().open_stream().await {
        Ok(stream) => stream,
        Err(error) => {
            let _ = arrivals
                .send((member, Err(transport_fault(member, &error))))
                .await;
            return;
        }
    };
    // A task of its own: two sides that only write would wait for each other. It outlives the
    // conversation by what is left in the outbox.
    tokio::spawn(write(sender, outgoing, patience));
    loop {
        let arrival = read(member, &mut receiver, limit).await;
        let last = arrival.is_err();
        if !last {
            line.hear();
        }
        if arrivals.send((member, arrival)).await.is_err() || last {
            return;
        }
    }
}

async fn write(
    mut sender: FrameSender,
    mut outgoing: mpsc::Receiver<Arc<[u8]>>,
    patience: Duration,
) {
    while let Some(frame) = outgoing.recv().await {
        if !matches!(timeout(patience, sender.send(&frame)).await, Ok(Ok(()))) {
            // The reader finds out why, or the deadline does.
            return;
        }
    }
    sender.finish();
}

async fn read(
    member: Identifier,
    receiver: &mut FrameReceiver,
    limit: usize,
) -> Result<FromMember, Fault> {
    match receiver.receive(limit).await {
        Ok(Some(frame)) => codec::decode(&frame, limit)
            .map_err(|malformed| Fault::misbehaved(member, malformed.into())),
        Ok(None) => Err(Fault::silent(member, Reject::SessionFailed)),
        Err(error) => Err(transport_fault(member, &error)),
    }
}

fn transport_fault(member: Identifier, error: &TransportError) -> Fault {
    tracing::debug!(%member, code = error.code(), "a member's stream has ended");
    if matches!(error, TransportError::FrameTooLarge { .. }) {
        Fault::misbehaved(member, Reject::TooLarge)
    } else {
        Fault::silent(member, Reject::SessionFailed)
    }
}

/// One question and its answer, on a stream of its own.
///
/// # Errors
/// [`Reject::Deadline`], a lost stream, an answer that does not decode.
pub(crate) async fn ask(
    line: &Line,
    question: &ToMember,
    limit: usize,
    patience: Duration,
) -> Result<FromMember, Reject> {
    let frame = encode(question)?;
    let exchange = async {
        let (mut sender, mut receiver) = line.connection().open_stream().await?;
        sender.send(&frame).await?;
        sender.finish();
        receiver.receive(limit).await
    };
    match timeout(patience, exchange).await {
        Ok(Ok(Some(answer))) => {
            line.hear();
            Ok(codec::decode(&answer, limit)?)
        }
        Ok(Ok(None) | Err(_)) => Err(Reject::SessionFailed),
        Err(_) => Err(Reject::Deadline),
    }
}

/// The same question to several members at the same time. Each answer goes to `take`, which says
/// whether those that have come so far would do: then whoever has not answered within the first
/// patience is not waited for, and nobody longer than a step.
pub(crate) async fn ask_all<K>(
    members: impl IntoIterator<Item = (K, Line)>,
    question: ToMember,
    limit: usize,
    patience: Patience,
    mut take: impl FnMut(K, Result<FromMember, Reject>) -> bool,
) where
    K: std::marker::Send + 'static,
{
    let question = Arc::new(question);
    let mut asked = JoinSet::new();
    for (member, line) in members {
        let question = Arc::clone(&question);
        asked.spawn(async move { (member, ask(&line, &question, limit, patience.step).await) });
    }
    let (first, last) = (after(patience.first), after(patience.step));
    let mut would_do = false;
    loop {
        let end = if would_do { first } else { last };
        match timeout_at(end, asked.join_next()).await {
            Ok(Some(Ok((member, answer)))) => would_do = take(member, answer),
            Ok(Some(Err(_))) => {}
            Ok(None) | Err(_) => return,
        }
    }
}

//! What requesters and operators may ask, one question for each stream. It decides whether a
//! question is worth the members' time; they check all of it again.

mod ceremony;
mod operators;
mod outcome;
mod requests;
mod status;

use std::{sync::Arc, time::Duration};

use firn_protocol::{codec, limits, reject::Reject};
use firn_transport::{Connection, FrameReceiver, FrameSender};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

pub(crate) use operators::operators;
pub(crate) use requests::requests;

/// Serves every stream of a connection in a task of its own, until the connection ends. The
/// transport bounds how many a peer may have open.
async fn every_stream<F>(connection: &Connection, serve: impl Fn(FrameSender, FrameReceiver) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    while let Ok((sender, receiver)) = connection.accept_stream().await {
        tokio::spawn(serve(sender, receiver));
    }
}

/// The one question of a stream.
async fn question<T: Serialize + DeserializeOwned>(
    receiver: &mut FrameReceiver,
    limit: usize,
    patience: Duration,
) -> Result<T, Reject> {
    match timeout(patience, receiver.receive(limit)).await {
        Ok(Ok(Some(frame))) => Ok(codec::decode(&frame, limit)?),
        Ok(Ok(None)) => Err(Reject::Truncated),
        Ok(Err(firn_transport::TransportError::FrameTooLarge { .. })) => Err(Reject::TooLarge),
        Ok(Err(_)) => Err(Reject::SessionFailed),
        Err(_) => Err(Reject::Deadline),
    }
}

/// Sends one answer. Whether the peer is still there to read it does not matter here.
async fn tell<T: Serialize>(
    sender: &mut FrameSender,
    message: &T,
    patience: Duration,
) -> Result<(), Reject> {
    let frame = codec::encode(message)?;
    if frame.len() > limits::MAX_FRAME {
        return Err(Reject::TooLarge);
    }
    match timeout(patience, sender.send(&frame)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(Reject::SessionFailed),
        Err(_) => Err(Reject::Deadline),
    }
}

/// The last answer of a stream: returns when it is with the peer, since a coordinator that stops closes
/// the connection after the last of them.
async fn tell_last<T: Serialize>(
    mut sender: FrameSender,
    message: &T,
    patience: Duration,
) -> Result<(), Reject> {
    tell(&mut sender, message, patience).await?;
    match timeout(patience, sender.delivered()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(Reject::SessionFailed),
        Err(_) => Err(Reject::Deadline),
    }
}

/// A place among those that may be at work, unless the process stops or all are taken.
fn room(
    shared: &crate::state::Shared,
    places: &Arc<Semaphore>,
) -> Result<OwnedSemaphorePermit, Reject> {
    if shared.is_stopping() {
        return Err(Reject::Busy);
    }
    Arc::clone(places)
        .try_acquire_owned()
        .map_err(|_| Reject::Busy)
}

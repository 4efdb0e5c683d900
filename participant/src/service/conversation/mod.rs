//! One stream that a coordinator opened: its first message says what it is about. Whatever is
//! refused is answered with a signed refusal, recorded within bounds, and ends the stream.

mod dkg;
mod documents;
mod questions;
mod sign;

use std::sync::Arc;

use firn_ledger::rules::{Command, SessionEnded};
use firn_protocol::{
    codec::{self, Maybe},
    ids::{MessageDigest, RequestId, SessionId},
    limits,
    messages::{FromMember, Refusal, ToMember, message_digest},
    names::SpiffeId,
    reject::{Class, Reject},
};

use crate::{
    service::{Host, NotReceived, NotSent, Service, Stream},
    session::Refusing,
};

/// After which time a busy participant may be asked again.
const RETRY_AFTER_MS: u32 = 250;

/// A conversation under way.
struct Conversation<H, S> {
    service: Arc<Service<H>>,
    peer: SpiffeId,
    stream: S,
    /// The message that is being judged.
    about: MessageDigest,
    session: Option<SessionId>,
    request_id: Option<RequestId>,
    /// Whether the session is open in the ledger.
    open: bool,
}

/// How a conversation ends early.
enum Ended {
    /// Something was refused.
    Refused(Refusing),
    /// The stream is gone: nobody is there to be told.
    Gone,
    /// The coordinator ended the stream.
    Finished,
    /// The coordinator takes nothing off the stream: it would hear no refusal either.
    Unread,
    /// The process is ending: nothing more is written or sent.
    Fatal,
}

impl<E: Into<Refusing>> From<E> for Ended {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

/// Holds one conversation from its first message to its end.
pub(super) async fn hold<H: Host, S: Stream>(service: Arc<Service<H>>, peer: SpiffeId, stream: S) {
    let mut conversation = Conversation {
        service,
        peer,
        stream,
        about: message_digest(&[]),
        session: None,
        request_id: None,
        open: false,
    };
    let ended = match conversation.converse().await {
        Ok(()) => Ended::Finished,
        Err(ended) => ended,
    };
    conversation.end(ended).await;
}

impl<H: Host, S: Stream> Conversation<H, S> {
    async fn converse(&mut self) -> Result<(), Ended> {
        let first = self.receive(limits::MAX_OPEN).await?;
        match first {
            ToMember::SignOpen(open) => self.sign(open).await,
            ToMember::ProofOpen(open) => self.prove_life(open).await,
            ToMember::DkgOpen(open) => self.make_key(open).await,
            ToMember::Deliver(deliver) => self.activate(deliver).await,
            ToMember::KeyQuery(query) => self.answer_key_query(query).await,
            ToMember::OutcomeQuery(query) => self.answer_outcome_query(query).await,
            ToMember::StatusQuery(query) => self.answer_status_query(query).await,
            ToMember::Package(_)
            | ToMember::Final(_)
            | ToMember::DkgRound1Set(_)
            | ToMember::Delivery(_)
            | ToMember::CertificateSet(_) => Err(Reject::UnexpectedMessage.into()),
        }
    }

    /// The next message, within the step's time.
    async fn receive(&mut self, limit: usize) -> Result<ToMember, Ended> {
        let patience = self.service.step_timeout();
        let bytes = match self.stream.receive(limit, patience).await {
            Ok(bytes) => bytes,
            Err(NotReceived::Deadline) => return Err(Reject::Deadline.into()),
            Err(NotReceived::TooLarge) => return Err(Reject::TooLarge.into()),
            Err(NotReceived::Lost) => return Err(Ended::Gone),
            Err(NotReceived::Finished) => return Err(Ended::Finished),
        };
        self.about = message_digest(&bytes);
        Ok(codec::decode(&bytes, limit)?)
    }

    /// Sends a message, within the step's time: a coordinator that does not read keeps no nonces and
    /// no attempt alive. After [`Ended::Unread`] nothing more may be sent.
    async fn send(&mut self, message: impl Into<FromMember>) -> Result<(), Ended> {
        let bytes = codec::encode(&message.into())?;
        let patience = self.service.step_timeout();
        let sent = self.stream.send(&bytes, patience).await;
        sent.map_err(|not_sent| match not_sent {
            NotSent::Unread => Ended::Unread,
            NotSent::Lost => Ended::Gone,
        })
    }

    /// Says no where there is somebody to hear it, and closes the session.
    async fn end(mut self, ended: Ended) {
        let refusing = match ended {
            Ended::Refused(refusing) => Some(refusing),
            Ended::Unread => {
                tracing::info!(peer = %self.peer, code = Reject::Deadline.name(), "not read");
                None
            }
            Ended::Gone | Ended::Finished => None,
            Ended::Fatal => return,
        };
        if let (true, Some(session)) = (self.open, self.session) {
            let code = refusing.map_or(Reject::SessionFailed, |refusing| refusing.code);
            let ended = SessionEnded { session, code };
            if let Err(code) = self.service.commit(Command::End(ended)).await {
                tracing::warn!(
                    code = code.name(),
                    "the end of a session could not be recorded"
                );
            }
        }
        if let Some(refusing) = refusing {
            self.refuse(refusing).await;
        }
        self.stream.finish();
    }

    async fn refuse(&mut self, refusing: Refusing) {
        let code = refusing.code;
        tracing::info!(
            peer = %self.peer,
            code = code.name(),
            session_id = self.session.map(tracing::field::display),
            request_id = self.request_id.map(tracing::field::display),
            culprit = refusing.culprit.map(tracing::field::display),
            "refused"
        );
        self.service
            .note_refusal(&self.peer, code, self.about)
            .await;
        let refusal = Refusal {
            about: self.about,
            session: Maybe(self.session),
            request_id: Maybe(self.request_id),
            code,
            culprit: Maybe(refusing.culprit),
            retry_after_ms: Maybe((code.class() == Class::Busy).then_some(RETRY_AFTER_MS)),
            time: self.service.now(),
        };
        let Ok(refusal) = self.service.speaker.sign(&refusal) else {
            return;
        };
        // Whoever does not hear a refusal does not want it.
        drop(self.send(refusal).await);
    }
}

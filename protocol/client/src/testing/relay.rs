//! A coordinator that does what a test tells it.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use firn_protocol::{
    codec::{self, Text},
    envelope::Envelope,
    ids::UnixMillis,
    keys::IdentitySecret,
    limits,
    messages::{FromRequests, Hello, ToRequests, Welcome},
    names::{Role, SpiffeId},
};
use firn_transport::{Connection, FrameReceiver, FrameSender, Greeting, Limits, Listener};
use tokio::task::JoinHandle;

use super::Ca;

/// What a coordinator does with a question.
pub(crate) enum Reaction {
    Answer(Box<FromRequests>),
    /// Hears it, and ends the stream without a word.
    Silence,
    /// Hears it, and closes the connection.
    Hangup,
    /// Hears it, and says nothing for ever.
    Never,
}

impl From<FromRequests> for Reaction {
    fn from(answer: FromRequests) -> Self {
        Self::Answer(Box::new(answer))
    }
}

type React = dyn Fn(usize, &ToRequests) -> Reaction + Send + Sync;

/// Runs until it is dropped.
pub(crate) struct Relay {
    pub(crate) id: SpiffeId,
    pub(crate) address: SocketAddr,
    heard: Arc<Mutex<Vec<ToRequests>>>,
    task: JoinHandle<()>,
}

struct Part {
    id: SpiffeId,
    secret: IdentitySecret,
    react: Box<React>,
    heard: Arc<Mutex<Vec<ToRequests>>>,
}

impl Relay {
    /// A coordinator on a port that the system picks; `react` hears how many questions came before.
    pub(crate) fn start(
        ca: &Ca,
        id: &SpiffeId,
        seed: u8,
        react: impl Fn(usize, &ToRequests) -> Reaction + Send + Sync + 'static,
    ) -> Self {
        let trust = Arc::new(ca.trust());
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let limits = Limits::for_intents();
        let roles = [Role::Requester, Role::Operator];
        let identity = ca.identity(id);
        let listener = Listener::bind(loopback, &identity, trust, &roles, limits).unwrap();
        let address = listener.local_address().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let part = Arc::new(Part {
            id: id.clone(),
            secret: super::world::secret(seed),
            react: Box::new(react),
            heard: Arc::clone(&heard),
        });
        let task = tokio::spawn(async move {
            while let Ok(pending) = listener.accept().await {
                let part = Arc::clone(&part);
                tokio::spawn(async move {
                    if let Ok(greeting) = pending.handshake().await {
                        part.serve(greeting).await;
                    }
                });
            }
        });
        Self {
            id: id.clone(),
            address,
            heard,
            task,
        }
    }

    /// Everything that it was asked.
    pub(crate) fn heard(&self) -> Vec<ToRequests> {
        self.heard.lock().unwrap().clone()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Part {
    async fn serve(self: Arc<Self>, greeting: Greeting) {
        let hello = Envelope::<Hello>::from_bytes(greeting.hello().to_vec()).unwrap();
        let signer = hello.claimed_signer().unwrap();
        let hello = hello.verify(&signer).unwrap();
        let welcome = Welcome {
            from: self.id.clone(),
            to: hello.from.clone(),
            nonce: hello.nonce,
            software: Text::new("test").unwrap(),
            time: UnixMillis::new(1),
        };
        let welcome = Envelope::sign(&welcome, &self.secret).unwrap();
        let Ok(connection) = greeting.welcome(welcome.as_bytes()).await else {
            return;
        };
        while let Ok((sender, receiver)) = connection.accept_stream().await {
            let (part, connection) = (Arc::clone(&self), connection.clone());
            tokio::spawn(async move { part.answer(connection, sender, receiver).await });
        }
    }

    async fn answer(
        &self,
        connection: Connection,
        mut sender: FrameSender,
        mut receiver: FrameReceiver,
    ) {
        let Ok(Some(frame)) = receiver.receive(limits::MAX_FRAME).await else {
            return;
        };
        let question: ToRequests = codec::decode(&frame, limits::MAX_FRAME).unwrap();
        let before = {
            let mut heard = self.heard.lock().unwrap();
            heard.push(question.clone());
            heard.len() - 1
        };
        match (self.react)(before, &question) {
            Reaction::Answer(answer) => {
                let bytes = codec::encode(&*answer).unwrap();
                let _ = sender.send(&bytes).await;
                sender.finish();
            }
            Reaction::Silence => sender.finish(),
            Reaction::Hangup => connection.close(0),
            Reaction::Never => std::future::pending().await,
        }
    }
}

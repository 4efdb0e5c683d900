//! What a coordinator does with one of its machines: streams, the step's deadline, and what comes on the
//! streams. It mirrors `firn_coordinator`'s carrying, without sockets.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use firn_coordinator::session::{Conversation, Fault, Send, StepProgress, Turn};
use firn_protocol::{codec, ids::Identifier, messages::FromMember, reject::Reject};

use super::{
    domain::place_of,
    host::Carried,
    network::{JobId, Network, StreamId},
};

/// How long the first step of a conversation may take, as by default.
const FIRST_MS: u64 = 2_000;
/// How long every later step may take, as by default.
const STEP_MS: u64 = 10_000;

/// A conversation and its streams.
pub(super) struct Carrier<C: Conversation> {
    machine: Option<C>,
    streams: BTreeMap<Identifier, StreamId>,
    /// Streams that bring nothing any more.
    over: BTreeSet<StreamId>,
    at: StepProgress,
    pub(super) deadline: u64,
}

/// Where a conversation is carried.
pub(super) struct Ground<'a> {
    pub(super) network: &'a mut Network,
    pub(super) coordinator: usize,
    pub(super) job: JobId,
    pub(super) elapsed: u64,
}

impl<C: Conversation> Carrier<C> {
    /// Opens a stream to each member and sends the opening.
    pub(super) fn open(
        machine: C,
        opening: Vec<Send>,
        members: &[Identifier],
        patient_at_first: bool,
        ground: &mut Ground<'_>,
    ) -> Self {
        let mut streams = BTreeMap::new();
        for member in members {
            let stream = ground
                .network
                .open(ground.coordinator, place_of(*member), ground.job);
            streams.insert(*member, stream);
        }
        let first = if patient_at_first { STEP_MS } else { FIRST_MS };
        let carrier = Self {
            at: machine.progress(),
            machine: Some(machine),
            streams,
            over: BTreeSet::new(),
            deadline: ground.elapsed + first,
        };
        carrier.send(opening, ground);
        carrier
    }

    fn send(&self, messages: Vec<Send>, ground: &mut Ground<'_>) {
        for Send { to, message } in messages {
            let frame: Arc<[u8]> = codec::encode(&message).unwrap().into();
            ground
                .network
                .send_to_member(self.streams[&to], Carried::Frame(frame));
        }
    }

    /// Takes what came on a stream, and gives the outcome when that was the last.
    pub(super) fn arrive(
        &mut self,
        stream: StreamId,
        carried: Carried,
        ground: &mut Ground<'_>,
    ) -> Option<C::Outcome> {
        let from = self.streams.iter().find(|(_, id)| **id == stream);
        let from = *from?.0;
        if self.over.contains(&stream) {
            return None;
        }
        if !matches!(carried, Carried::Frame(_)) {
            self.over.insert(stream);
        }
        let silent = Fault::silent(from, Reject::SessionFailed);
        self.turn(ground, |machine| match carried {
            Carried::Frame(frame) => match codec::decode::<FromMember>(&frame, C::FRAME_LIMIT) {
                Ok(message) => machine.handle(from, message),
                Err(malformed) => machine.fail(Fault::misbehaved(from, malformed.into())),
            },
            Carried::Finish | Carried::Reset => machine.fail(silent),
        })
    }

    /// Lets the step's deadline pass.
    pub(super) fn expire(&mut self, ground: &mut Ground<'_>) -> Option<C::Outcome> {
        self.deadline = ground.elapsed + STEP_MS;
        self.turn(ground, C::expire)
    }

    fn turn(
        &mut self,
        ground: &mut Ground<'_>,
        act: impl FnOnce(C) -> Turn<C>,
    ) -> Option<C::Outcome> {
        match act(self.machine.take()?) {
            Turn::Goes(machine, send) => {
                let reached = machine.progress();
                if reached.step != self.at.step {
                    self.deadline = ground.elapsed + STEP_MS;
                }
                self.at = reached;
                self.machine = Some(machine);
                self.send(send, ground);
                None
            }
            Turn::Ended(outcome) => {
                for stream in self.streams.values() {
                    ground.network.close(*stream);
                }
                Some(outcome)
            }
        }
    }
}

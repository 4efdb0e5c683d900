//! Streams between coordinators and members, as queues: in order within a stream, in any order between
//! streams. A frame that was sent may still arrive after its sender has died, or not.

use std::collections::{BTreeMap, VecDeque};

use super::host::Carried;

/// A stream of the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(u64);

/// Which job of a coordinator a stream belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JobId(pub(super) u64);

/// One stream.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) coordinator: usize,
    pub(super) member: usize,
    pub(super) job: JobId,
    pub(super) to_member: VecDeque<Carried>,
    pub(super) to_coordinator: VecDeque<Carried>,
    /// The member has heard of it.
    pub(super) opened: bool,
    /// The coordinator hears no more.
    closed: bool,
    /// The first frame, for a hostile carrier that sends it again.
    opening: Option<Carried>,
}

/// One connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Link {
    /// Frames pass.
    pub(super) up: bool,
    /// The coordinator believes that it is there.
    pub(super) believed: bool,
    /// It cannot be made.
    pub(super) cut: bool,
}

/// All streams and connections.
#[derive(Debug, Default)]
pub(super) struct Network {
    next: u64,
    pub(super) wires: BTreeMap<StreamId, Wire>,
    pub(super) links: BTreeMap<(usize, usize), Link>,
}

impl Network {
    pub(super) fn link(&mut self, coordinator: usize, member: usize) -> &mut Link {
        self.links.entry((coordinator, member)).or_default()
    }

    /// A new stream. Over a connection that is down nothing arrives; whether its opener hears of that
    /// depends on what it believes.
    pub(super) fn open(&mut self, coordinator: usize, member: usize, job: JobId) -> StreamId {
        self.next += 1;
        let id = StreamId(self.next);
        let link = *self.link(coordinator, member);
        let mut wire = Wire {
            coordinator,
            member,
            job,
            to_member: VecDeque::new(),
            to_coordinator: VecDeque::new(),
            opened: false,
            closed: false,
            opening: None,
        };
        if !link.believed {
            wire.to_coordinator.push_back(Carried::Reset);
        }
        self.wires.insert(id, wire);
        id
    }

    /// Sends to the member's side.
    pub(super) fn send_to_member(&mut self, stream: StreamId, carried: Carried) {
        let Some(wire) = self.wires.get_mut(&stream) else {
            return;
        };
        if wire.opening.is_none() {
            wire.opening = Some(carried.clone());
        }
        let link = self.links.get(&(wire.coordinator, wire.member));
        if link.is_some_and(|link| link.up) {
            wire.to_member.push_back(carried);
        }
    }

    /// Sends to the coordinator's side.
    pub(super) fn send_to_coordinator(&mut self, stream: StreamId, carried: Carried) {
        let Some(wire) = self.wires.get_mut(&stream) else {
            return;
        };
        let link = self.links.get(&(wire.coordinator, wire.member));
        if !wire.closed && link.is_some_and(|link| link.up) {
            wire.to_coordinator.push_back(carried);
        }
    }

    /// The coordinator's side is done: what it has sent still arrives, and then the end.
    pub(super) fn close(&mut self, stream: StreamId) {
        self.send_to_member(stream, Carried::Finish);
        if let Some(wire) = self.wires.get_mut(&stream) {
            wire.closed = true;
            wire.to_coordinator.clear();
        }
    }

    /// The connection is gone. With `silent` nobody hears of it; what is on the way is lost unless
    /// `arrives` lets it through.
    pub(super) fn lose(
        &mut self,
        coordinator: usize,
        member: usize,
        silent: bool,
        mut arrives: impl FnMut() -> bool,
    ) {
        let link = self.link(coordinator, member);
        link.up = false;
        let wires = self.wires.values_mut();
        for wire in wires.filter(|wire| (wire.coordinator, wire.member) == (coordinator, member)) {
            // A stream is in order: the rest of what is on the way is lost with its first loss.
            for queue in [&mut wire.to_member, &mut wire.to_coordinator] {
                let kept = queue.iter().take_while(|_| arrives()).count();
                queue.truncate(kept);
            }
            wire.to_member.push_back(Carried::Reset);
            if !silent && !wire.closed {
                wire.to_coordinator.push_back(Carried::Reset);
            }
        }
    }

    /// The coordinator finds out that the connection is gone.
    pub(super) fn notice(&mut self, coordinator: usize, member: usize) {
        self.link(coordinator, member).believed = false;
        let wires = self.wires.values_mut();
        for wire in wires.filter(|wire| (wire.coordinator, wire.member) == (coordinator, member)) {
            if !wire.closed && !wire.to_coordinator.contains(&Carried::Reset) {
                wire.to_coordinator.push_back(Carried::Reset);
            }
        }
    }

    /// One stream is lost, the connection stays.
    pub(super) fn reset(&mut self, stream: StreamId) {
        if let Some(wire) = self.wires.get_mut(&stream) {
            wire.to_member.push_back(Carried::Reset);
            if !wire.closed {
                wire.to_coordinator.push_back(Carried::Reset);
            }
        }
    }

    /// A second stream with the first frame of another one; its answers go nowhere.
    pub(super) fn duplicate(&mut self, stream: StreamId) {
        let Some(wire) = self.wires.get(&stream) else {
            return;
        };
        let (coordinator, member, opening) = (wire.coordinator, wire.member, wire.opening.clone());
        if let Some(opening) = opening {
            let again = self.open(coordinator, member, JobId(u64::MAX));
            self.send_to_member(again, opening);
            self.close(again);
        }
    }

    /// The process at this member's end is gone: nothing on the way is heard by another one.
    pub(super) fn forget_member(&mut self, member: usize) {
        let wires = self.wires.values_mut();
        wires
            .filter(|wire| wire.member == member)
            .for_each(|wire| wire.to_member.clear());
    }

    /// The process at this coordinator's end is gone.
    pub(super) fn forget_coordinator(&mut self, coordinator: usize) {
        for wire in self
            .wires
            .values_mut()
            .filter(|wire| wire.coordinator == coordinator)
        {
            wire.to_coordinator.clear();
            wire.closed = true;
        }
    }

    /// Drops streams on which nothing is under way any more.
    pub(super) fn tidy(&mut self, alive: impl Fn(StreamId, &Wire) -> bool) {
        self.wires.retain(|id, wire| {
            !wire.closed
                || !wire.to_member.is_empty()
                || !wire.to_coordinator.is_empty()
                || alive(*id, wire)
        });
    }
}

//! A whole key in one thread: three members that run the participant's own service, two coordinators
//! that run the coordinator's own machines, and those who ask them. Queues instead of sockets, a clock
//! that moves when everybody waits, disks that lose what was not synced, and a scheduler that chooses
//! each next event from a seed. The same seed gives the same run.
//!
//! A run fails when a rule of `invariants` is broken at any step, or when it comes to no end. Slowness,
//! refusals and lost attempts are no failures; what a test expects of the end is the test's to say.

mod asking;
mod carrier;
mod client;
mod coordinator;
mod domain;
mod failing;
mod fixture;
mod host;
mod invariants;
mod member;
mod network;
mod people;
mod schedule;
mod striking;
mod task;

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use firn_ledger::journal::MemorySegments;
use firn_protocol::{codec, ids::SessionId, limits, messages::FromMember, tagged::tagged_hash};

pub use client::{Client, Operators, Persistence, Requester, Verdict};
pub use domain::{Domain, FIRST_EPOCH, START, Wanted};
pub use fixture::{Fixture, fresh_folders};
pub use member::{Disk, Ended, Job};
pub use network::StreamId;
pub use people::{COORDINATORS, MEMBERS, Person, REQUESTERS};
pub use schedule::{Event, Fault, Order, Setting};

use asking::Slot;
use coordinator::{Coordinator, Mail};
use failing::check;
use host::{Carried, Time};
use invariants::{Invariant, Journal, Seen, Word};
use member::Member;
use network::Network;
use schedule::Chooser;

/// How long a client waits for an answer.
const CLIENT_PATIENCE_MS: u64 = 60_000;
/// After which time it asks again.
const ASK_AGAIN_MS: u64 = 500;
/// The same for operators.
const OPERATORS_PAUSE_MS: u64 = 5_000;
/// The longest that it waits.
const LONGEST_PAUSE_MS: u64 = 600_000;
/// After which time a process that has ended is started again.
const RESTART_MS: u64 = 100;
/// A run that has not ended by then is stuck.
const MAX_STEPS: u64 = 200_000;

/// One run.
pub struct Simulation {
    setting: Setting,
    domain: Arc<Domain>,
    time: Time,
    members: Vec<Member>,
    off: Vec<bool>,
    full: Vec<bool>,
    restart_at: Vec<u64>,
    coordinators: Vec<Coordinator>,
    network: Network,
    clients: Vec<Slot>,
    mail: Vec<Mail>,
    lose_answers: u32,
    jobs: u64,
    step: u64,
    chooser: Chooser,
    rules: Vec<Box<dyn Invariant>>,
    trace: Vec<(u64, Event, &'static str)>,
    digest: [u8; 32],
    /// How often each member's process has ended by itself, and why.
    pub ended: Vec<(usize, Ended)>,
    /// What each member has said, in a word.
    pub said: Vec<(usize, &'static str)>,
    /// Attempts that members have committed to.
    pub attempts: BTreeSet<SessionId>,
}

impl Simulation {
    /// A run that begins with these disks, `elapsed` milliseconds after the world began.
    #[must_use]
    pub fn new(
        setting: Setting,
        domain: Arc<Domain>,
        folders: &[PathBuf],
        journals: Vec<MemorySegments>,
        elapsed: u64,
    ) -> Self {
        let time = Time::default();
        time.pass_until(elapsed);
        let members: Vec<_> = folders
            .iter()
            .zip(journals)
            .enumerate()
            .map(|(number, (folder, journal))| {
                Member::new(number, folder.clone(), journal, time.own_clock())
            })
            .collect();
        let coordinators = (0..COORDINATORS.len())
            .map(|number| Coordinator::new(number, time.own_clock(), setting.seed))
            .collect();
        let count = members.len();
        Self {
            chooser: Chooser::new(setting.order, setting.seed),
            setting,
            domain,
            time,
            members,
            off: vec![false; count],
            full: vec![false; count],
            restart_at: vec![0; count],
            coordinators,
            network: Network::default(),
            clients: Vec::new(),
            mail: Vec::new(),
            lose_answers: 0,
            jobs: 0,
            step: 0,
            rules: invariants::all(),
            trace: Vec::new(),
            digest: [0; 32],
            ended: Vec::new(),
            said: Vec::new(),
            attempts: BTreeSet::new(),
        }
    }

    /// Somebody asks from here on.
    pub fn add(&mut self, client: Client) {
        self.clients.push(Slot {
            client,
            asks: 0,
            waiting: None,
            next_at: self.time.elapsed(),
        });
    }

    /// A custody service with one request.
    #[must_use]
    pub fn requester(&self, number: usize) -> &Requester {
        match &self.clients[number].client {
            Client::Requester(requester) => requester,
            Client::Operators(_) => panic!("client {number} is no requester"),
        }
    }

    /// The operators.
    #[must_use]
    pub fn operators(&self, number: usize) -> &Operators {
        match &self.clients[number].client {
            Client::Operators(operators) => operators,
            Client::Requester(_) => panic!("client {number} is no operator"),
        }
    }

    /// How many steps the run has had.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.step
    }

    /// Milliseconds since the world began.
    #[must_use]
    pub fn elapsed(&self) -> u64 {
        self.time.elapsed()
    }

    /// The digest of everything that has happened.
    #[must_use]
    pub const fn trace_digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Ends every process in order and gives the disks.
    #[must_use]
    pub fn into_journals(mut self) -> Vec<MemorySegments> {
        self.members
            .iter_mut()
            .map(|member| {
                member.process = None;
                member.files.synced()
            })
            .collect()
    }

    /// What a member's state is now; it must be running.
    ///
    /// # Panics
    /// When the member's process does not run.
    pub fn look<A>(
        &self,
        member: usize,
        question: impl FnOnce(&firn_ledger::rules::View<'_>) -> A,
    ) -> A {
        let process = self.members[member].process.as_ref();
        let view = process.expect("the member runs").store.view();
        question(&firn_ledger::rules::View(view.state()))
    }

    /// Whether a member runs and serves.
    #[must_use]
    pub fn serves(&self, member: usize) -> bool {
        self.members[member].serves()
    }

    /// A fault, now.
    pub fn strike(&mut self, fault: Fault) {
        self.apply(fault);
    }

    /// Puts everything right: disks, clocks, connections, power; from here on nothing goes wrong by
    /// chance.
    pub fn heal(&mut self) {
        for number in 0..self.members.len() {
            self.off[number] = false;
            self.full[number] = false;
            self.members[number].files.heal();
            self.members[number].time.put_off_by(0);
            for coordinator in 0..self.coordinators.len() {
                self.network.link(coordinator, number).cut = false;
            }
        }
        for coordinator in &mut self.coordinators {
            coordinator.up = true;
        }
        self.lose_answers = 0;
        self.chooser.calm();
    }

    /// Runs until every client knows.
    pub fn run(&mut self) {
        self.run_until(|simulation| simulation.clients.iter().all(|slot| slot.client.is_done()));
    }

    /// Starts every member and lets it connect, before anything is counted or goes wrong.
    pub fn boot(&mut self) {
        loop {
            let enabled = self.enabled();
            match enabled.first().filter(|event| **event != Event::Pass) {
                Some(event) => self.execute(*event),
                None => break,
            }
        }
    }

    /// Runs until nothing but time is left and every member serves that can.
    pub fn settle(&mut self) {
        let mut enabled = self.enabled();
        while enabled.iter().any(|event| *event != Event::Pass) {
            self.advance(&enabled);
            enabled = self.enabled();
        }
    }

    /// Runs until `done`.
    ///
    /// # Panics
    /// When a rule is broken or the run is stuck.
    pub fn run_until(&mut self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            let enabled = self.enabled();
            if enabled.is_empty() || self.step >= MAX_STEPS {
                self.fail("the run comes to no end");
            }
            self.advance(&enabled);
        }
    }

    /// One step.
    fn advance(&mut self, enabled: &[Event]) {
        let planned: Vec<_> = self
            .setting
            .faults
            .iter()
            .filter(|(step, _)| *step == self.step)
            .map(|(_, fault)| *fault)
            .collect();
        let chance = self
            .chooser
            .fault(self.step, self.members.len(), self.coordinators.len());
        if self.chooser.heals_at(self.step) {
            self.heal();
        }
        let struck = !planned.is_empty() || chance.is_some();
        for fault in planned.into_iter().chain(chance) {
            self.apply(fault);
        }
        self.step += 1;
        let fresh;
        let enabled = if struck {
            fresh = self.enabled();
            &fresh
        } else {
            enabled
        };
        if let Some(event) = self.chooser.choose(enabled) {
            self.execute(event);
        }
        self.network.tidy(|id, wire| {
            let process = self
                .members
                .get(wire.member)
                .and_then(|member| member.process.as_ref());
            process.is_some_and(|process| process.has(id))
        });
    }

    /// All that can happen now, in a fixed order.
    fn enabled(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for (number, member) in self.members.iter().enumerate() {
            if let Some(process) = &member.process {
                events.extend(process.ready().map(|job| Event::Run(number, job)));
                if process.disk_waits() {
                    events.push(Event::Write(number));
                }
            }
        }
        for (id, wire) in &self.network.wires {
            let serves = self.members[wire.member].serves();
            if serves && !wire.to_member.is_empty() {
                events.push(Event::ToMember(*id));
            }
            if self.coordinators[wire.coordinator].up && !wire.to_coordinator.is_empty() {
                events.push(Event::ToCoordinator(*id));
            }
        }
        for (coordinator, machine) in self.coordinators.iter().enumerate() {
            for (member, node) in self.members.iter().enumerate() {
                let link = self.network.links.get(&(coordinator, member));
                let link = link.copied().unwrap_or_default();
                if machine.up && link.believed && !link.up {
                    events.push(Event::Notice(coordinator, member));
                }
                if machine.up && node.serves() && !link.up && !link.cut {
                    events.push(Event::Connect(coordinator, member));
                }
            }
        }
        if !self.mail.is_empty() {
            events.push(Event::Mail);
        }
        let elapsed = self.time.elapsed();
        for (number, member) in self.members.iter().enumerate() {
            let due = self.restart_at[number] <= elapsed;
            if member.process.is_none() && !self.off[number] && due {
                events.push(Event::Start(number));
            }
        }
        for (number, slot) in self.clients.iter().enumerate() {
            let free = slot.waiting.is_none() && slot.next_at <= elapsed;
            if free && !slot.client.is_done() {
                events.push(Event::Ask(number));
            }
        }
        if self.next_deadline().is_some() {
            events.push(Event::Pass);
        }
        events
    }

    /// When somebody's patience ends next.
    fn next_deadline(&self) -> Option<u64> {
        let elapsed = self.time.elapsed();
        let members = self.members.iter().filter_map(|member| {
            let process = member.process.as_ref();
            process.and_then(member::Process::deadline)
        });
        let machines = self.coordinators.iter().filter(|machine| machine.up);
        let machines = machines.filter_map(Coordinator::deadline);
        let clients = self
            .clients
            .iter()
            .filter(|slot| !slot.client.is_done())
            .map(|slot| slot.waiting.map_or(slot.next_at, |(_, deadline)| deadline));
        let starts = self.members.iter().zip(&self.restart_at).zip(&self.off);
        let starts = starts
            .filter(|((member, _), off)| member.process.is_none() && !**off)
            .map(|((_, at), _)| *at);
        members
            .chain(machines)
            .chain(clients)
            .chain(starts)
            .filter(|deadline| *deadline > elapsed)
            .min()
    }

    fn execute(&mut self, event: Event) {
        let mut what = "";
        match event {
            Event::Run(member, job) => {
                let Some(process) = &mut self.members[member].process else {
                    return;
                };
                let (sent, ended) = process.run(job);
                for carried in sent {
                    what = self.sent(member, &carried);
                    if let member::Job::Serve(stream) = job {
                        self.network.send_to_coordinator(stream, carried);
                    }
                }
                if let Err(ended) = ended {
                    self.process_ended(member, ended, Disk::Synced);
                }
            }
            Event::Write(member) => {
                let time = self.members[member].time.clone();
                let Some(process) = &mut self.members[member].process else {
                    return;
                };
                match process.write(&time) {
                    Ok(()) => self.see_durable(member),
                    Err(ended) => {
                        let disk = if self.chooser.below(2) == 0 {
                            Disk::Synced
                        } else {
                            Disk::Written
                        };
                        self.process_ended(member, ended, disk);
                    }
                }
            }
            Event::ToMember(stream) => {
                let Some(wire) = self.network.wires.get_mut(&stream) else {
                    return;
                };
                let Some(carried) = wire.to_member.pop_front() else {
                    return;
                };
                let opens = !wire.opened && matches!(carried, Carried::Frame(_));
                wire.opened |= opens;
                let (member, from) = (wire.member, wire.coordinator);
                what = self.note(&carried);
                let time = self.members[member].time.clone();
                if let Some(process) = &mut self.members[member].process {
                    process.arrive(stream, from, opens, carried, &time);
                }
            }
            Event::ToCoordinator(stream) => {
                let Some(wire) = self.network.wires.get_mut(&stream) else {
                    return;
                };
                let Some(carried) = wire.to_coordinator.pop_front() else {
                    return;
                };
                let (coordinator, job) = (wire.coordinator, wire.job);
                what = self.note(&carried);
                let mail =
                    self.coordinators[coordinator].arrive(job, stream, carried, &mut self.network);
                self.post(mail);
            }
            Event::Ask(client) => self.ask(client),
            Event::Mail => {
                let mail = self.mail.remove(0);
                self.deliver(mail);
            }
            Event::Connect(coordinator, member) => {
                let link = self.network.link(coordinator, member);
                (link.up, link.believed) = (true, true);
                self.coordinators[coordinator].join(member);
            }
            Event::Notice(coordinator, member) => {
                self.network.notice(coordinator, member);
                self.coordinators[coordinator].leave(member);
            }
            Event::Start(member) => self.start(member),
            Event::Pass => self.pass(),
        }
        self.trace.push((self.step, event, what));
        self.digest = tagged_hash(
            "firn/trace",
            &[
                &self.digest,
                format!("{event:?}").as_bytes(),
                what.as_bytes(),
            ],
        );
    }

    /// What is carried, in a word, with its bytes in the run's digest.
    fn note(&mut self, carried: &Carried) -> &'static str {
        match carried {
            Carried::Frame(frame) => {
                self.digest = tagged_hash("firn/trace", &[&self.digest, frame]);
                "frame"
            }
            Carried::Finish => "finish",
            Carried::Reset => "reset",
        }
    }

    fn sent(&mut self, member: usize, carried: &Carried) -> &'static str {
        let Carried::Frame(frame) = carried else {
            return "finish";
        };
        let message: FromMember = codec::decode(frame, limits::MAX_FRAME).unwrap();
        let word = Word::of(message);
        if let Word::Commitments(said) = &word {
            self.attempts.insert(said.session);
        }
        let what = word.name();
        self.said.push((member, what));
        let journal = Journal::new(&self.members[member].files);
        let seen = Seen::Sent {
            member,
            word: &word,
            journal: &journal,
        };
        let broken = check(&mut self.rules, &seen);
        self.judge(broken);
        what
    }

    fn see_durable(&mut self, member: usize) {
        let node = &self.members[member];
        let Some(process) = &node.process else { return };
        let view = process.store.view();
        let journal = Journal::new(&node.files);
        let seen = Seen::Durable {
            member,
            view: &view,
            journal: &journal,
        };
        let broken = check(&mut self.rules, &seen);
        self.judge(broken);
    }

    fn pass(&mut self) {
        let Some(until) = self.next_deadline() else {
            return;
        };
        self.time.pass_until(until);
        for member in &self.members {
            if let Some(process) = &member.process {
                process.expire(until);
            }
        }
        for number in 0..self.coordinators.len() {
            if self.coordinators[number].up {
                let mail = self.coordinators[number].expire(&mut self.network);
                self.post(mail);
            }
        }
        for slot in &mut self.clients {
            if slot.waiting.is_some_and(|(_, deadline)| deadline <= until) {
                slot.waiting = None;
                slot.next_at = until + slot.pause();
                slot.client.hear(None);
            }
        }
    }
}

/// The seeds of a campaign: the one in `FIRN_SIM_SEED`, or `count` of them, times `FIRN_SIM_TIMES`.
#[must_use]
pub fn seeds(count: u64) -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match number("FIRN_SIM_SEED") {
        Some(seed) => vec![seed],
        None => (0..count * number("FIRN_SIM_TIMES").unwrap_or(1)).collect(),
    }
}

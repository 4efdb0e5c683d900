//! What can happen next, and who decides: a plan of faults at given steps, or a seed.

use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};

use super::{
    member::{Disk, Job},
    network::StreamId,
};

/// Something that may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A task of a member runs.
    Run(usize, Job),
    /// A member's disk writes and syncs what waits.
    Write(usize),
    /// A stream brings something to its member.
    ToMember(StreamId),
    /// A stream brings something to its coordinator.
    ToCoordinator(StreamId),
    /// A client asks.
    Ask(usize),
    /// A client is answered.
    Mail,
    /// A member connects to a coordinator.
    Connect(usize, usize),
    /// A coordinator finds out that a member is gone.
    Notice(usize, usize),
    /// A member's process starts again, by its service manager.
    Start(usize),
    /// Time passes, until somebody's patience ends.
    Pass,
}

/// Something that goes wrong, or right again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A member's process is killed.
    CrashMember {
        /// Which.
        member: usize,
        /// What its disk keeps.
        disk: Disk,
        /// Whether what it has sent still arrives.
        arrives: bool,
    },
    /// A member is switched off for good.
    SwitchOff(usize),
    /// A coordinator's process is killed, and starts again at once with nothing in mind.
    CrashCoordinator {
        /// Which.
        coordinator: usize,
        /// Whether what it has sent still arrives.
        arrives: bool,
    },
    /// A coordinator is killed for good.
    StopCoordinator(usize),
    /// A member's disk fails at its n-th step from now on, once.
    FailDisk(usize, u64),
    /// A member's disk is full, until it is emptied.
    FillDisk(usize),
    /// There is room again.
    EmptyDisk(usize),
    /// A member's clock is off by this.
    Clock(usize, i64),
    /// The connection between a coordinator and a member breaks, and is not made again.
    Cut(usize, usize),
    /// It can be made again.
    Mend(usize, usize),
    /// One of the streams is lost, counted round.
    ResetStream(usize),
    /// The first frame of one of the streams comes once more, on a stream of its own.
    Duplicate(usize),
    /// The next answer to a client is lost.
    LoseAnswer,
}

/// Who decides what comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Whatever has waited is done in a fixed order; time passes when nothing else can happen.
    InTurn,
    /// The seed decides.
    Shuffled,
    /// The seed decides, patience may end although something is under way, and things go wrong for this
    /// many steps, up to so many of them.
    Hostile {
        /// Steps.
        steps: u64,
        /// Faults.
        faults: u32,
    },
}

/// The scheduler's own choices.
pub(super) struct Chooser {
    order: Order,
    rng: ChaCha20Rng,
    faults_left: u32,
    /// Patience ends only when nothing else can happen.
    calm: bool,
}

impl Chooser {
    pub(super) fn new(order: Order, seed: u64) -> Self {
        let faults_left = match order {
            Order::InTurn | Order::Shuffled => 0,
            Order::Hostile { faults, .. } => faults,
        };
        Self {
            order,
            rng: ChaCha20Rng::seed_from_u64(seed),
            faults_left,
            calm: false,
        }
    }

    /// A number below `bound`.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.rng.next_u64() % bound.max(1)
    }

    /// Nothing more goes wrong by chance, and nobody is impatient any more.
    pub(super) const fn calm(&mut self) {
        self.faults_left = 0;
        self.calm = true;
    }

    /// Whether everything is to be put right now.
    pub(super) const fn heals_at(&self, step: u64) -> bool {
        matches!(self.order, Order::Hostile { steps, .. } if step == steps)
    }

    /// What is done next.
    pub(super) fn choose(&mut self, enabled: &[Event]) -> Option<Event> {
        let busy = enabled.iter().filter(|event| **event != Event::Pass);
        let busy = busy.count();
        let order = self.order;
        match order {
            Order::InTurn => enabled.first().copied(),
            Order::Shuffled | Order::Hostile { .. } if busy == 0 => enabled.first().copied(),
            Order::Hostile { .. }
                if !self.calm && self.below(64) == 0 && enabled.contains(&Event::Pass) =>
            {
                Some(Event::Pass)
            }
            Order::Shuffled | Order::Hostile { .. } => {
                let place = usize::try_from(self.below(busy as u64)).ok()?;
                let mut busy = enabled.iter().filter(|event| **event != Event::Pass);
                busy.nth(place).copied()
            }
        }
    }

    /// What goes wrong at this step, if anything does.
    pub(super) fn fault(
        &mut self,
        step: u64,
        members: usize,
        coordinators: usize,
    ) -> Option<Fault> {
        let Order::Hostile { steps, .. } = self.order else {
            return None;
        };
        if step >= steps || self.faults_left == 0 || self.below(12) != 0 {
            return None;
        }
        self.faults_left -= 1;
        let member = usize::try_from(self.below(members as u64)).ok()?;
        let coordinator = usize::try_from(self.below(coordinators as u64)).ok()?;
        let coin = self.below(2) == 0;
        Some(match self.below(16) {
            0..=4 => Fault::CrashMember {
                member,
                disk: if coin { Disk::Synced } else { Disk::Written },
                arrives: self.below(2) == 0,
            },
            5..=7 => Fault::CrashCoordinator {
                coordinator,
                arrives: coin,
            },
            8 => Fault::FailDisk(member, self.below(6)),
            9 => Fault::FillDisk(member),
            10 => Fault::Cut(coordinator, member),
            11 => Fault::Mend(coordinator, member),
            12 => Fault::ResetStream(usize::try_from(self.below(64)).ok()?),
            13 => Fault::Duplicate(usize::try_from(self.below(64)).ok()?),
            14 => Fault::LoseAnswer,
            _ => {
                let off = i64::try_from(self.below(7_200_000)).ok()?;
                Fault::Clock(member, off - 3_600_000)
            }
        })
    }
}

/// How a run goes.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Everything that chance decides.
    pub seed: u64,
    /// Who decides what comes first.
    pub order: Order,
    /// What goes wrong, and before which step.
    pub faults: Vec<(u64, Fault)>,
}

impl Setting {
    /// A run in which nothing goes wrong.
    #[must_use]
    pub const fn quiet(seed: u64) -> Self {
        Self {
            seed,
            order: Order::InTurn,
            faults: Vec::new(),
        }
    }

    /// The same with this fault before this step.
    #[must_use]
    pub fn with(mut self, step: u64, fault: Fault) -> Self {
        self.faults.push((step, fault));
        self
    }

    /// The same in another order.
    #[must_use]
    pub const fn in_order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }
}

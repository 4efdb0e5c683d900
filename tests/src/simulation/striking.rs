//! What befalls processes, disks and lines. It decides what is left of them; when it happens is the
//! schedule's to say.

use firn_protocol::tagged::tagged_hash;

use super::{
    ASK_AGAIN_MS, RESTART_MS, Simulation,
    failing::check,
    invariants::Seen,
    member::{Disk, Ended},
    network::StreamId,
    schedule::Fault,
};

impl Simulation {
    pub(super) fn start(&mut self, member: usize) {
        let node = &mut self.members[member];
        if self.full[member] {
            node.files.fail_after(0);
        }
        if let Err(ended) = node.start(&self.domain, self.setting.seed) {
            self.process_ended(member, ended, Disk::Written);
            return;
        }
        let Some(process) = &self.members[member].process else {
            return;
        };
        let view = process.store.view();
        let seen = Seen::Opened {
            member,
            view: &view,
        };
        let broken = check(&mut self.rules, &seen);
        self.judge(broken);
    }

    pub(super) fn process_ended(&mut self, member: usize, ended: Ended, disk: Disk) {
        self.ended.push((member, ended));
        self.crash_member(member, disk, true, false);
    }

    /// The process at a member's end is gone. The system tells its peers unless the machine is gone too.
    pub(super) fn crash_member(&mut self, member: usize, disk: Disk, arrives: bool, silent: bool) {
        self.members[member].crash(disk);
        self.restart_at[member] = self.time.elapsed() + RESTART_MS;
        for coordinator in 0..self.coordinators.len() {
            if self.network.link(coordinator, member).up {
                self.network.lose(coordinator, member, silent, || arrives);
            }
        }
        self.network.forget_member(member);
    }

    pub(super) fn crash_coordinator(&mut self, coordinator: usize, arrives: bool) {
        self.coordinators[coordinator].crash();
        for member in 0..self.members.len() {
            self.network.lose(coordinator, member, true, || arrives);
            self.network.link(coordinator, member).believed = false;
        }
        self.network.forget_coordinator(coordinator);
        // What its process had said may have been lost with it.
        if !arrives {
            self.mail.clear();
        }
        let elapsed = self.time.elapsed();
        for slot in &mut self.clients {
            if let Some((ask, _)) = slot.waiting {
                slot.waiting = Some((ask, elapsed + ASK_AGAIN_MS));
            }
        }
    }

    pub(super) fn apply(&mut self, fault: Fault) {
        self.digest = tagged_hash(
            "firn/trace",
            &[&self.digest, format!("{fault:?}").as_bytes()],
        );
        match fault {
            Fault::CrashMember {
                member,
                disk,
                arrives,
            } => {
                if self.members[member].process.is_some() {
                    self.crash_member(member, disk, arrives, false);
                }
            }
            Fault::SwitchOff(member) => {
                self.off[member] = true;
                if self.members[member].process.is_some() {
                    self.crash_member(member, Disk::Synced, false, true);
                }
            }
            Fault::CrashCoordinator {
                coordinator,
                arrives,
            } => {
                if self.coordinators[coordinator].up {
                    self.crash_coordinator(coordinator, arrives);
                    self.coordinators[coordinator].up = true;
                }
            }
            Fault::StopCoordinator(coordinator) => self.crash_coordinator(coordinator, false),
            Fault::FailDisk(member, after) => self.members[member].files.fail_after(after),
            Fault::FillDisk(member) => {
                self.full[member] = true;
                self.members[member].files.fail_after(0);
            }
            Fault::EmptyDisk(member) => {
                self.full[member] = false;
                self.members[member].files.heal();
            }
            Fault::Clock(member, off) => self.members[member].time.put_off_by(off),
            Fault::Cut(coordinator, member) => {
                self.network.link(coordinator, member).cut = true;
                if self.network.link(coordinator, member).up {
                    self.network.lose(coordinator, member, true, || false);
                }
            }
            Fault::Mend(coordinator, member) => {
                self.network.link(coordinator, member).cut = false;
            }
            Fault::ResetStream(pick) => {
                if let Some(stream) = self.pick(pick) {
                    self.network.reset(stream);
                }
            }
            Fault::Duplicate(pick) => {
                if let Some(stream) = self.pick(pick) {
                    self.network.duplicate(stream);
                }
            }
            Fault::LoseAnswer => self.lose_answers += 1,
        }
    }

    pub(super) fn pick(&self, number: usize) -> Option<StreamId> {
        let count = self.network.wires.len();
        let place = number.checked_rem(count)?;
        self.network.wires.keys().nth(place).copied()
    }
}

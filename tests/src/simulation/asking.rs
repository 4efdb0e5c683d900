//! Those who ask, as the run sees them: when each asks again, and what comes back to whom.

use super::{
    ASK_AGAIN_MS, CLIENT_PATIENCE_MS, LONGEST_PAUSE_MS, OPERATORS_PAUSE_MS, Simulation,
    client::{Client, Verdict},
    coordinator::Mail,
    failing::check,
    invariants::Seen,
    network::JobId,
};

/// Who asks, and what it waits for.
pub(super) struct Slot {
    pub(super) client: Client,
    pub(super) asks: u64,
    pub(super) waiting: Option<(u64, u64)>,
    pub(super) next_at: u64,
}

impl Slot {
    /// How long it waits before it asks again: longer each time, since a clock that was ahead may keep a
    /// member out for as long.
    pub(super) fn pause(&self) -> u64 {
        // Operators are people, and a plan has a bounded number of attempts.
        let (first, doublings) = match &self.client {
            Client::Requester(_) => (ASK_AGAIN_MS, self.asks / 4),
            Client::Operators(_) => (OPERATORS_PAUSE_MS, self.asks),
        };
        let doubled = u32::try_from(doublings).unwrap_or(u32::MAX);
        first
            .saturating_mul(2_u64.saturating_pow(doubled))
            .min(LONGEST_PAUSE_MS)
    }
}

impl Simulation {
    pub(super) fn ask(&mut self, client: usize) {
        let elapsed = self.time.elapsed();
        let slot = &mut self.clients[client];
        let (through, asked) = slot.client.question(self.time.now());
        slot.asks += 1;
        let machine = &mut self.coordinators[through];
        if !machine.up {
            slot.client.turn();
            slot.next_at = elapsed + slot.pause();
            return;
        }
        slot.waiting = Some((slot.asks, elapsed + CLIENT_PATIENCE_MS));
        self.jobs += 1;
        let job = JobId(self.jobs);
        let mail = machine.ask(job, client, slot.asks, asked, &mut self.network);
        self.post(mail);
    }

    pub(super) fn post(&mut self, mail: Vec<Mail>) {
        for one in mail {
            if self.lose_answers > 0 {
                self.lose_answers -= 1;
            } else {
                self.mail.push(one);
            }
        }
    }

    pub(super) fn deliver(&mut self, mail: Mail) {
        let elapsed = self.time.elapsed();
        let slot = &mut self.clients[mail.client];
        if slot.waiting.is_none_or(|(ask, _)| ask != mail.ask) {
            return;
        }
        slot.waiting = None;
        slot.next_at = elapsed + slot.pause();
        slot.client.hear(Some(mail.answer));
        let mut broken = None;
        if let Client::Requester(requester) = &slot.client
            && let Some(Verdict::Signed(signed)) = requester.verdict()
        {
            let seen = Seen::Answered {
                wanted: &requester.wanted,
                signed,
            };
            broken = check(&mut self.rules, &seen);
        }
        self.judge(broken);
    }
}

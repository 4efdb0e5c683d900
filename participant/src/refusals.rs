//! How many refusals are recorded. It decides which are recorded in full and which are only counted, so
//! that a flood fills no disk and pushes no history out; it never decides whether something is refused.

use std::collections::BTreeMap;

use firn_protocol::{ids::UnixMillis, names::SpiffeId, reject::Reject};

/// How long the first refusal of a kind stands for those that follow it.
pub const WINDOW_MS: u64 = 60_000;

/// How many kinds, of one peer and one code each, are told apart at a time.
pub const MAX_KINDS: usize = 256;

/// What becomes of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noted {
    /// It is the first of its kind in its minute: record it in full.
    InFull,
    /// It is counted, for the next [`Refusals::drain`].
    Counted,
}

/// Refusals that were only counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// Of which peer and code; none for all those that were too many kinds to tell apart.
    pub kind: Option<(SpiffeId, Reject)>,
    /// How many; at least 1.
    pub count: u64,
}

/// The refusals of the last minute. At most [`MAX_KINDS`] records in full in a minute, and as many
/// tallies and one for each drain, whatever peers do.
#[derive(Debug, Default)]
pub struct Refusals {
    kinds: BTreeMap<(SpiffeId, Reject), Kind>,
    beyond: u64,
}

#[derive(Debug)]
struct Kind {
    since: UnixMillis,
    counted: u64,
}

impl Kind {
    /// A clock that goes back keeps the minute running: it lets no more through.
    fn is_over(&self, now: UnixMillis) -> bool {
        now >= self.since.plus(WINDOW_MS)
    }
}

impl Refusals {
    /// Nothing refused yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes a refusal of `peer`, the name in its certificate.
    pub fn note(&mut self, peer: &SpiffeId, code: Reject, now: UnixMillis) -> Noted {
        let key = (peer.clone(), code);
        if let Some(kind) = self.kinds.get_mut(&key) {
            if kind.is_over(now) {
                kind.since = now;
                return Noted::InFull;
            }
            kind.counted = kind.counted.saturating_add(1);
            return Noted::Counted;
        }
        if self.kinds.len() >= MAX_KINDS {
            self.forget_finished(now);
        }
        if self.kinds.len() >= MAX_KINDS {
            self.beyond = self.beyond.saturating_add(1);
            return Noted::Counted;
        }
        let kind = Kind {
            since: now,
            counted: 0,
        };
        self.kinds.insert(key, kind);
        Noted::InFull
    }

    /// What was only counted since the last time, by peer and code.
    #[must_use]
    pub fn drain(&mut self, now: UnixMillis) -> Vec<Tally> {
        let mut tallies = Vec::new();
        for (key, kind) in &mut self.kinds {
            let count = std::mem::take(&mut kind.counted);
            if count > 0 {
                tallies.push(Tally {
                    kind: Some(key.clone()),
                    count,
                });
            }
        }
        let count = std::mem::take(&mut self.beyond);
        if count > 0 {
            tallies.push(Tally { kind: None, count });
        }
        self.forget_finished(now);
        tallies
    }

    /// Makes room, losing no count.
    fn forget_finished(&mut self, now: UnixMillis) {
        self.kinds
            .retain(|_, kind| kind.counted > 0 || !kind.is_over(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: usize) -> SpiffeId {
        format!("spiffe://td/requester/p{number}").parse().unwrap()
    }

    fn at(ms: u64) -> UnixMillis {
        UnixMillis::new(1_000_000).plus(ms)
    }

    #[test]
    fn records_the_first_of_a_peer_and_code_in_a_minute_and_counts_the_rest() {
        let mut refusals = Refusals::new();
        let (a, b) = (peer(1), peer(2));
        for (peer, code, ms, noted) in [
            (&a, Reject::Busy, 0, Noted::InFull),
            (&a, Reject::Busy, 1, Noted::Counted),
            (&a, Reject::Frozen, 1, Noted::InFull),
            (&b, Reject::Busy, 1, Noted::InFull),
            (&a, Reject::Busy, 59_999, Noted::Counted),
            (&a, Reject::Busy, 60_000, Noted::InFull),
            (&a, Reject::Busy, 60_001, Noted::Counted),
        ] {
            assert_eq!(refusals.note(peer, code, at(ms)), noted, "{code} at {ms}");
        }
        let tally = Tally {
            kind: Some((a, Reject::Busy)),
            count: 3,
        };
        assert_eq!(refusals.drain(at(60_002)), [tally]);
        assert_eq!(refusals.drain(at(60_002)), []);
    }

    #[test]
    fn bounds_what_a_flood_of_kinds_can_record_and_loses_no_count() {
        let mut refusals = Refusals::new();
        let mut in_full = 0_usize;
        for number in 0..10_000 {
            if refusals.note(&peer(number), Reject::Busy, at(0)) == Noted::InFull {
                in_full += 1;
            }
        }
        assert_eq!(in_full, MAX_KINDS);
        assert_eq!(refusals.kinds.len(), MAX_KINDS);
        let beyond = Tally {
            kind: None,
            count: 10_000 - MAX_KINDS as u64,
        };
        assert_eq!(refusals.drain(at(1)), [beyond]);
    }

    #[test]
    fn makes_room_when_minutes_are_over() {
        let mut refusals = Refusals::new();
        for number in 0..MAX_KINDS {
            refusals.note(&peer(number), Reject::Busy, at(0));
        }
        refusals.note(&peer(0), Reject::Busy, at(1));
        assert_eq!(
            refusals.note(&peer(999), Reject::Busy, at(59_999)),
            Noted::Counted
        );
        assert_eq!(
            refusals.note(&peer(999), Reject::Busy, at(60_000)),
            Noted::InFull
        );
        // What was counted of a finished minute is kept until it is said.
        assert_eq!(refusals.kinds.len(), 2);
        assert_eq!(refusals.drain(at(200_000)).len(), 2);
        assert!(refusals.kinds.is_empty());
    }

    #[test]
    fn a_clock_that_goes_back_lets_no_more_through() {
        let mut refusals = Refusals::new();
        assert_eq!(
            refusals.note(&peer(1), Reject::Busy, at(90_000)),
            Noted::InFull
        );
        for ms in [0, 89_999, 100_000] {
            assert_eq!(
                refusals.note(&peer(1), Reject::Busy, at(ms)),
                Noted::Counted
            );
        }
    }
}

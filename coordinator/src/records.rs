//! Records of ceremonies that have succeeded. An operator whose tool went away while its ceremony ran
//! asks again with the same plan and gets the record: the members could not make it a second time. It
//! decides how long a record is kept, and keeps none over a restart.

use std::{collections::VecDeque, sync::Arc};

use firn_protocol::{
    ids::{CeremonyId, PlanDigest, UnixMillis},
    messages::CeremonyRecord,
};

/// Records that are kept; one more, and the oldest goes. Each may have several megabytes.
const MAX_RECORDS: usize = 4;
/// How long a record is kept.
const KEPT_MS: u64 = 60 * 60 * 1_000;

#[derive(Debug)]
struct Kept<R> {
    ceremony: CeremonyId,
    plan: PlanDigest,
    made: UnixMillis,
    record: Arc<R>,
}

/// The latest records, oldest first.
#[derive(Debug)]
pub(crate) struct Records<R = CeremonyRecord>(VecDeque<Kept<R>>);

impl<R> Default for Records<R> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<R> Records<R> {
    /// Keeps a record for a while.
    pub(crate) fn keep(
        &mut self,
        ceremony: CeremonyId,
        plan: PlanDigest,
        record: Arc<R>,
        made: UnixMillis,
    ) {
        self.expire(made);
        if self.0.len() >= MAX_RECORDS {
            self.0.pop_front();
        }
        self.0.push_back(Kept {
            ceremony,
            plan,
            made,
            record,
        });
    }

    /// The record of this very plan's ceremony.
    pub(crate) fn find(
        &mut self,
        ceremony: CeremonyId,
        plan: PlanDigest,
        now: UnixMillis,
    ) -> Option<Arc<R>> {
        self.expire(now);
        self.0
            .iter()
            .find(|kept| kept.ceremony == ceremony && kept.plan == plan)
            .map(|kept| Arc::clone(&kept.record))
    }

    fn expire(&mut self, now: UnixMillis) {
        self.0
            .retain(|kept| now.value() < kept.made.plus(KEPT_MS).value());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use firn_protocol::ids::{CeremonyId, PlanDigest, UnixMillis};

    use super::{KEPT_MS, MAX_RECORDS, Records};

    fn plan(number: usize) -> (CeremonyId, PlanDigest) {
        let byte = u8::try_from(number).unwrap();
        (
            CeremonyId::from_bytes([byte; 16]),
            PlanDigest::from_bytes([byte; 32]),
        )
    }

    #[test]
    fn a_record_is_of_one_plan_and_kept_for_a_while() {
        let mut records = Records::default();
        let (ceremony, digest) = plan(1);
        records.keep(ceremony, digest, Arc::new("made"), UnixMillis::new(5));
        let mut at = |digest, time| records.find(ceremony, digest, UnixMillis::new(time));
        assert_eq!(at(digest, 6).as_deref(), Some(&"made"));
        assert_eq!(at(plan(2).1, 6), None, "another plan of that name");
        assert!(at(digest, KEPT_MS + 4).is_some());
        assert_eq!(at(digest, KEPT_MS + 5), None);
    }

    #[test]
    fn the_oldest_record_makes_room() {
        let mut records = Records::default();
        let now = UnixMillis::new(1);
        for number in 0..=MAX_RECORDS {
            let (ceremony, digest) = plan(number);
            records.keep(ceremony, digest, Arc::new(number), now);
        }
        for number in 0..=MAX_RECORDS {
            let (ceremony, digest) = plan(number);
            let found = records.find(ceremony, digest, now);
            assert_eq!(found.is_some(), number > 0, "{number}");
        }
    }
}

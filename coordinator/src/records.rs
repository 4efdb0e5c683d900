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
struct Kept {
    ceremony: CeremonyId,
    plan: PlanDigest,
    made: UnixMillis,
    record: Arc<CeremonyRecord>,
}

/// The latest records, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Records(VecDeque<Kept>);

impl Records {
    /// Keeps a record for a while.
    pub(crate) fn keep(
        &mut self,
        ceremony: CeremonyId,
        plan: PlanDigest,
        record: Arc<CeremonyRecord>,
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
    ) -> Option<Arc<CeremonyRecord>> {
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

//! The epoch of a key never goes down, over crashes too, and at one epoch the owner never changes.

use std::collections::BTreeMap;

use firn_ledger::rules::{EpochState, View};
use firn_protocol::ids::KeyId;

use super::{Invariant, Seen};

/// The highest epoch that each member has acknowledged for each key.
#[derive(Default)]
pub(super) struct NeverLower(BTreeMap<(usize, KeyId), EpochState>);

impl Invariant for NeverLower {
    fn rule(&self) -> &'static str {
        "epochs never go down"
    }

    fn see(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        let (member, view) = match seen {
            Seen::Durable { member, view, .. } | Seen::Opened { member, view } => (*member, view),
            Seen::Sent { .. } | Seen::Answered { .. } => return Ok(()),
        };
        let view = View(view.state());
        for (key_id, _) in view.keys().unwrap() {
            let before = self.0.get(&(member, key_id)).cloned();
            let now = view.epoch(key_id).unwrap();
            let lower = match (&before, &now) {
                (Some(before), Some(now)) => {
                    let changed = before.owner.0.is_some() && before.owner != now.owner;
                    now.epoch < before.epoch || (now.epoch == before.epoch && changed)
                }
                (Some(_), None) => true,
                (None, _) => false,
            };
            if lower {
                return Err(format!("{before:?} became {now:?}"));
            }
            if let Some(now) = now {
                self.0.insert((member, key_id), now);
            }
        }
        Ok(())
    }
}

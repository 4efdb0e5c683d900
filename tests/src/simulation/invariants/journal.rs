//! What a member's ledger has acknowledged is on its disk, and there after every crash.

use std::collections::BTreeMap;

use firn_ledger::journal::Head;

use super::{Invariant, Seen};

/// The longest head that each member's ledger has acknowledged.
#[derive(Default)]
pub(super) struct NeverShorter(BTreeMap<usize, Head>);

impl Invariant for NeverShorter {
    fn rule(&self) -> &'static str {
        "a journal that was acknowledged is never shorter after a crash"
    }

    fn see(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match seen {
            Seen::Durable {
                member,
                view,
                journal,
            } => {
                let head = view.tip().head();
                let synced = journal.synced().len();
                self.0.insert(*member, head);
                if u64::try_from(synced).unwrap() < head.size.leaves() {
                    return Err(format!("{synced} records are synced of {:?}", head.size));
                }
                Ok(())
            }
            Seen::Opened { member, view } => {
                let Some(head) = self.0.get(member) else {
                    return Ok(());
                };
                let root = view.tree().root_at(head.size);
                if root.is_ok_and(|root| root == head.root) {
                    Ok(())
                } else {
                    Err(format!("{head:?} was acknowledged"))
                }
            }
            Seen::Sent { .. } | Seen::Answered { .. } => Ok(()),
        }
    }
}

//! When members were last connected. It decides who is forgotten for want of room, and keeps nothing
//! over a restart.

use std::collections::BTreeMap;

use firn_protocol::{
    documents::RosterEntry, ids::UnixMillis, keys::IdentityKey, limits, names::SpiffeId,
};

/// A member that was connected and is not any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Departed {
    identity: IdentityKey,
    last: UnixMillis,
}

/// Everybody that has been connected since the start and has gone, as far as there is room.
#[derive(Debug, Default)]
pub(crate) struct Seen(BTreeMap<SpiffeId, Departed>);

impl Seen {
    /// Notes that a member has gone and when it was last there. For want of room somebody else is
    /// forgotten: first whoever is in no roster that `matters`, so that names that come and go cannot
    /// push out the members of a key; among equals whoever has been away longest.
    pub(crate) fn left(
        &mut self,
        id: SpiffeId,
        identity: IdentityKey,
        last: UnixMillis,
        matters: impl Fn(&SpiffeId) -> bool,
    ) {
        self.0.insert(id, Departed { identity, last });
        if self.0.len() <= limits::MAX_REPORTED {
            return;
        }
        let forgotten = self
            .0
            .iter()
            .min_by_key(|(id, departed)| (matters(id), departed.last))
            .map(|(id, _)| id.clone());
        if let Some(id) = forgotten {
            self.0.remove(&id);
        }
    }

    /// When a roster's member was last connected; none where it never was since the start, or where
    /// whoever was there under its name spoke with another key.
    pub(crate) fn last(&self, entry: &RosterEntry) -> Option<UnixMillis> {
        self.0
            .get(&entry.tls_name)
            .filter(|departed| departed.identity == entry.identity)
            .map(|departed| departed.last)
    }

    /// Everybody, the last to go first.
    pub(crate) fn latest_first(&self) -> Vec<(&SpiffeId, UnixMillis)> {
        let mut all: Vec<_> = self
            .0
            .iter()
            .map(|(id, departed)| (id, departed.last))
            .collect();
        all.sort_by_key(|(_, last)| std::cmp::Reverse(*last));
        all
    }
}

#[cfg(test)]
mod tests {
    use firn_protocol::{
        documents::RosterEntry,
        ids::{Identifier, UnixMillis},
        keys::IdentityKey,
        limits::MAX_REPORTED,
        names::SpiffeId,
    };

    use super::Seen;

    const KEY: IdentityKey = IdentityKey::from_bytes([1; 32]);

    fn name(number: u64) -> SpiffeId {
        format!("spiffe://td/participant/m-{number}")
            .parse()
            .unwrap()
    }

    fn entry(number: u64) -> RosterEntry {
        RosterEntry {
            name: format!("m-{number}").parse().unwrap(),
            identifier: Identifier::new(1).unwrap(),
            identity: KEY,
            tls_name: name(number),
        }
    }

    #[test]
    fn who_has_gone_is_remembered_with_its_key() {
        let mut seen = Seen::default();
        assert_eq!(seen.last(&entry(1)), None);
        for at in [5, 7] {
            seen.left(name(1), KEY, UnixMillis::new(at), |_| false);
        }
        assert_eq!(seen.last(&entry(1)), Some(UnixMillis::new(7)));
        let another = IdentityKey::from_bytes([2; 32]);
        seen.left(name(1), another, UnixMillis::new(9), |_| false);
        assert_eq!(seen.last(&entry(1)), None, "that was not the member");
    }

    #[test]
    fn strangers_cannot_push_out_the_members_of_a_key() {
        let mut seen = Seen::default();
        let room = u64::try_from(MAX_REPORTED).unwrap();
        let is_member = |id: &SpiffeId| *id == name(0);
        for number in 0..room + 2 {
            seen.left(name(number), KEY, UnixMillis::new(number), is_member);
        }
        assert_eq!(seen.latest_first().len(), MAX_REPORTED);
        assert_eq!(seen.last(&entry(0)), Some(UnixMillis::new(0)));
        assert_eq!(
            seen.last(&entry(1)),
            None,
            "away longest of those who do not matter"
        );
        assert_eq!(seen.last(&entry(2)), None);
        let latest = seen.latest_first()[0].1;
        assert_eq!(latest, UnixMillis::new(room + 1));
    }
}

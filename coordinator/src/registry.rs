//! Who is connected. It decides which connection of a member counts (the latest) and who has been
//! unreliable lately; it never decides who is a member of a key, which is the roster's to say.

use std::collections::BTreeMap;

use firn_protocol::{
    codec::Text,
    documents::RosterEntry,
    ids::{Identifier, UnixMillis},
    keys::IdentityKey,
    limits,
    names::SpiffeId,
};

use crate::session::request::Candidate;

/// How long a failure is held against a member when others could be asked instead.
const SUSPICION_MS: u64 = 60_000;

/// A connected member.
#[derive(Debug, Clone)]
pub struct Connected<C> {
    /// How to reach it.
    pub connection: C,
    /// The key that it said hello with. It counts for a key only where the roster names it too.
    pub identity: IdentityKey,
    /// Its software, as it calls itself.
    pub software: Text<{ limits::MAX_NAME }>,
    /// Since when.
    pub since: UnixMillis,
}

/// All connected members by name.
#[derive(Debug)]
pub struct Registry<C> {
    members: BTreeMap<SpiffeId, Connected<C>>,
    suspects: BTreeMap<SpiffeId, UnixMillis>,
}

impl<C> Default for Registry<C> {
    fn default() -> Self {
        Self {
            members: BTreeMap::new(),
            suspects: BTreeMap::new(),
        }
    }
}

impl<C: Clone> Registry<C> {
    /// Registers a member; the connection that it replaces is returned, for closing.
    pub fn join(&mut self, id: SpiffeId, connected: Connected<C>) -> Option<C> {
        self.members
            .insert(id, connected)
            .map(|replaced| replaced.connection)
    }

    /// Forgets a member, if `is_it` says that the connection that ended is still the one that
    /// counts. Whether it was is returned.
    pub fn leave(&mut self, id: &SpiffeId, is_it: impl FnOnce(&C) -> bool) -> bool {
        let counts = self
            .members
            .get(id)
            .is_some_and(|member| is_it(&member.connection));
        if counts {
            self.members.remove(id);
        }
        counts
    }

    /// All members, ascending by name.
    pub fn members(&self) -> impl Iterator<Item = (&SpiffeId, &Connected<C>)> {
        self.members.iter()
    }

    /// The connection of a roster's member; none where it is not there, or where whoever is there
    /// under its name speaks with another key than the roster's.
    #[must_use]
    pub fn reach(&self, entry: &RosterEntry) -> Option<C> {
        self.members
            .get(&entry.tls_name)
            .filter(|member| member.identity == entry.identity)
            .map(|member| member.connection.clone())
    }

    /// The members of a roster that can be asked now.
    #[must_use]
    pub fn candidates(&self, roster: &[RosterEntry], now: UnixMillis) -> Vec<Candidate> {
        roster
            .iter()
            .filter(|entry| self.reach(entry).is_some())
            .map(|entry| Candidate {
                member: entry.identifier,
                suspect: self
                    .suspects
                    .get(&entry.tls_name)
                    .is_some_and(|since| now.value() < since.plus(SUSPICION_MS).value()),
            })
            .collect()
    }

    /// Holds a failure against a member of a roster for a while.
    pub fn suspect(&mut self, roster: &[RosterEntry], member: Identifier, now: UnixMillis) {
        self.suspects
            .retain(|_, since| now.value() < since.plus(SUSPICION_MS).value());
        let entry = roster.iter().find(|entry| entry.identifier == member);
        // Only names that are connected are kept, so the list has the bound of the connections.
        if let Some(entry) = entry.filter(|entry| self.members.contains_key(&entry.tls_name)) {
            self.suspects.insert(entry.tls_name.clone(), now);
        }
    }
}

#[cfg(test)]
mod tests {
    use firn_protocol::{
        codec::Text,
        documents::RosterEntry,
        ids::{Identifier, UnixMillis},
        keys::IdentityKey,
    };

    use super::{Connected, Registry, SUSPICION_MS};

    fn entry(number: u16) -> RosterEntry {
        RosterEntry {
            name: format!("m-{number}").parse().unwrap(),
            identifier: Identifier::new(number).unwrap(),
            identity: IdentityKey::from_bytes([u8::try_from(number).unwrap(); 32]),
            tls_name: format!("spiffe://td/participant/m-{number}")
                .parse()
                .unwrap(),
        }
    }

    fn connected(connection: u32, identity: IdentityKey) -> Connected<u32> {
        let software = Text::new("test").unwrap();
        Connected {
            connection,
            identity,
            software,
            since: UnixMillis::new(0),
        }
    }

    #[test]
    fn the_latest_connection_counts_and_its_forerunner_cannot_end_it() {
        let mut registry = Registry::default();
        let member = entry(1);
        assert_eq!(
            registry.join(member.tls_name.clone(), connected(7, member.identity)),
            None
        );
        let replaced = registry.join(member.tls_name.clone(), connected(8, member.identity));
        assert_eq!(replaced, Some(7));
        assert!(!registry.leave(&member.tls_name, |connection| *connection == 7));
        assert_eq!(registry.reach(&member), Some(8));
        assert!(registry.leave(&member.tls_name, |connection| *connection == 8));
        assert_eq!(registry.reach(&member), None);
    }

    #[test]
    fn a_name_with_another_key_than_the_rosters_is_not_the_member() {
        let mut registry = Registry::default();
        registry.join(entry(1).tls_name, connected(1, entry(2).identity));
        assert_eq!(registry.reach(&entry(1)), None);
        assert!(
            registry
                .candidates(&[entry(1)], UnixMillis::new(0))
                .is_empty()
        );
    }

    #[test]
    fn suspicion_passes() {
        let mut registry = Registry::default();
        let roster = [entry(1), entry(2)];
        for member in &roster {
            registry.join(member.tls_name.clone(), connected(1, member.identity));
        }
        registry.suspect(&roster, roster[1].identifier, UnixMillis::new(5));
        let suspects = |at| -> Vec<_> {
            let candidates = registry.candidates(&roster, UnixMillis::new(at));
            candidates
                .iter()
                .map(|candidate| candidate.suspect)
                .collect()
        };
        assert_eq!(suspects(5), [false, true]);
        assert_eq!(suspects(5 + SUSPICION_MS), [false, false]);
    }
}

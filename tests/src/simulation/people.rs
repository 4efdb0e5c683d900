//! Who lives in the simulated world, each with a key that follows from a name, and the words that
//! operators and the control plane say.

use firn_protocol::{
    codec::{List, Maybe, Text},
    documents::{Authorities, KeyHolder, NamedKey, Quorum},
    envelope::{Document, Endorsed, Envelope},
    ids::AuthoritiesVersion,
    keys::{IdentityKey, IdentitySecret},
    names::SpiffeId,
    tagged::tagged_hash,
};
use zeroize::Zeroizing;

/// Somebody who signs.
#[derive(Debug, Clone, Copy)]
pub struct Person(&'static str);

/// The key's members.
pub const MEMBERS: [Person; 3] = [Person("m1"), Person("m2"), Person("m3")];
/// Those who carry.
pub const COORDINATORS: [Person; 2] = [Person("c1"), Person("c2")];
/// Those who ask: the first owns the key's first epoch.
pub const REQUESTERS: [Person; 2] = [Person("desk"), Person("desk-b")];
/// Signs grants.
pub(super) const GRANTS: Person = Person("grants");
/// Signs policies.
pub(super) const POLICIES: Person = Person("policies");
/// Two of these sign what operators sign.
pub(super) const OPERATORS: [Person; 3] = [Person("ada"), Person("bea"), Person("cyd")];

impl Person {
    /// The secret key.
    #[must_use]
    pub fn secret(self) -> IdentitySecret {
        let seed = tagged_hash("firn/simulated-person", &[self.0.as_bytes()]);
        IdentitySecret::from_seed(&Zeroizing::new(seed))
    }

    /// The public key.
    #[must_use]
    pub fn key(self) -> IdentityKey {
        self.secret().identity()
    }

    /// What people call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0
    }

    /// Its name in a role.
    #[must_use]
    pub fn id(self, role: &str) -> SpiffeId {
        format!("spiffe://td/{role}/{}", self.0).parse().unwrap()
    }

    /// Signs a document.
    #[must_use]
    pub fn sign<T: Document>(self, document: &T) -> Envelope<T> {
        Envelope::sign(document, &self.secret()).unwrap()
    }

    fn named(self) -> NamedKey {
        NamedKey {
            name: Text::new(self.0).unwrap(),
            key: self.key(),
        }
    }

    fn holder(self, role: &str) -> KeyHolder {
        KeyHolder {
            id: self.id(role),
            key: self.key(),
        }
    }
}

/// Signed by as many operators as it takes.
#[must_use]
pub(super) fn endorse<T: Document>(document: &T) -> Endorsed {
    let [first, second, _] = OPERATORS;
    Endorsed::unsigned(document)
        .unwrap()
        .endorse::<T>(&first.secret())
        .unwrap()
        .endorse::<T>(&second.secret())
        .unwrap()
}

/// The keys that count.
#[must_use]
pub(super) fn authorities() -> Authorities {
    let holders =
        |people: &[Person], role| List::new(people.iter().map(|p| p.holder(role)).collect());
    Authorities {
        version: AuthoritiesVersion::new(1),
        previous: Maybe(None),
        trust_domain: "td".parse().unwrap(),
        grant_authority: GRANTS.key(),
        policy_authority: POLICIES.key(),
        operators: Quorum {
            needed: 2,
            keys: List::new(OPERATORS.iter().map(|p| p.named()).collect()).unwrap(),
        },
        approvers: List::empty(),
        requesters: holders(&REQUESTERS, "requester").unwrap(),
        coordinators: holders(&COORDINATORS, "coordinator").unwrap(),
    }
}

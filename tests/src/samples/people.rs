//! Who lives in the samples' world, each with a key that follows from a name.

use firn_protocol::{
    codec::{List, Maybe, Text},
    documents::{ApproverGroup, Authorities, KeyHolder, NamedKey, Quorum},
    envelope::{Document, Endorsed, Envelope},
    ids::{AuthoritiesVersion, Identifier},
    keys::{IdentityKey, IdentitySecret},
    names::SpiffeId,
    tagged::tagged_hash,
};
use zeroize::Zeroizing;

/// Somebody who signs.
#[derive(Debug)]
pub struct Person {
    /// What people call it.
    pub name: &'static str,
    secret: IdentitySecret,
}

impl Person {
    fn new(name: &'static str) -> Self {
        let seed = tagged_hash("firn/sample-person", &[name.as_bytes()]);
        let secret = IdentitySecret::from_seed(&Zeroizing::new(seed));
        Self { name, secret }
    }

    /// The public key.
    #[must_use]
    pub fn key(&self) -> IdentityKey {
        self.secret.identity()
    }

    /// The secret key, for signing what no type of the protocol would.
    #[must_use]
    pub const fn secret(&self) -> &IdentitySecret {
        &self.secret
    }

    /// Signs a document.
    #[must_use]
    pub fn sign<T: Document>(&self, document: &T) -> Envelope<T> {
        Envelope::sign(document, &self.secret).unwrap()
    }

    fn named(&self) -> NamedKey {
        NamedKey {
            name: Text::new(self.name).unwrap(),
            key: self.key(),
        }
    }

    fn holder(&self, role: &str) -> KeyHolder {
        KeyHolder {
            id: id(role, self.name),
            key: self.key(),
        }
    }
}

/// A name in the samples' trust domain.
#[must_use]
pub fn id(role: &str, name: &str) -> SpiffeId {
    format!("spiffe://td/{role}/{name}").parse().unwrap()
}

/// A member's identifier.
#[must_use]
pub fn member(number: u16) -> Identifier {
    Identifier::new(number).unwrap()
}

/// Everybody.
#[derive(Debug)]
pub struct People {
    /// Two of these three sign what operators sign.
    pub operators: [Person; 3],
    /// Signs grants.
    pub grant_authority: Person,
    /// Signs policies.
    pub policy_authority: Person,
    /// Signs approvals.
    pub approver: Person,
    /// Owns the key's epoch.
    pub requester: Person,
    /// May ask too, but owns nothing.
    pub other_requester: Person,
    /// Carries.
    pub coordinator: Person,
    /// Members 1 to 3.
    pub members: [Person; 3],
    /// Nobody that the Authorities name.
    pub stranger: Person,
}

impl People {
    pub(super) fn new() -> Self {
        Self {
            operators: ["ada", "bea", "cyd"].map(Person::new),
            grant_authority: Person::new("grants"),
            policy_authority: Person::new("policies"),
            approver: Person::new("eve"),
            requester: Person::new("desk"),
            other_requester: Person::new("desk-b"),
            coordinator: Person::new("c1"),
            members: ["m1", "m2", "m3"].map(Person::new),
            stranger: Person::new("stranger"),
        }
    }

    /// The person behind an identifier.
    #[must_use]
    pub fn member(&self, identifier: Identifier) -> &Person {
        &self.members[usize::from(identifier.value()) - 1]
    }

    /// The requester's name.
    #[must_use]
    pub fn requester_id(&self) -> SpiffeId {
        id("requester", self.requester.name)
    }

    /// The coordinator's name.
    #[must_use]
    pub fn coordinator_id(&self) -> SpiffeId {
        id("coordinator", self.coordinator.name)
    }

    /// Signed by the first two operators: exactly as many as it takes.
    #[must_use]
    pub fn endorse<T: Document>(&self, document: &T) -> Endorsed {
        let [first, second, _] = &self.operators;
        Endorsed::unsigned(document)
            .unwrap()
            .endorse::<T>(first.secret())
            .unwrap()
            .endorse::<T>(second.secret())
            .unwrap()
    }

    pub(super) fn authorities(&self) -> Authorities {
        let named = |people: &[&Person]| List::new(people.iter().map(|p| p.named()).collect());
        let [first, second, third] = &self.operators;
        Authorities {
            version: AuthoritiesVersion::new(1),
            previous: Maybe(None),
            trust_domain: "td".parse().unwrap(),
            grant_authority: self.grant_authority.key(),
            policy_authority: self.policy_authority.key(),
            operators: Quorum {
                needed: 2,
                keys: named(&[first, second, third]).unwrap(),
            },
            approvers: List::new(vec![ApproverGroup {
                name: Text::new("treasury").unwrap(),
                quorum: Quorum {
                    needed: 1,
                    keys: named(&[&self.approver]).unwrap(),
                },
            }])
            .unwrap(),
            requesters: List::new(vec![
                self.requester.holder("requester"),
                self.other_requester.holder("requester"),
            ])
            .unwrap(),
            coordinators: List::new(vec![self.coordinator.holder("coordinator")]).unwrap(),
        }
    }
}

//! Who lives in the world, each with a key that follows from a name.

use firn_protocol::{
    codec::{List, Maybe, Text},
    documents::{Authorities, KeyHolder, NamedKey, Quorum},
    envelope::{Document, Endorsed, Envelope},
    ids::{AuthoritiesVersion, Identifier},
    keys::{IdentityKey, IdentitySecret},
    names::SpiffeId,
    tagged::tagged_hash,
};
use zeroize::Zeroizing;

/// Somebody who signs.
pub struct Person(&'static str);

pub const ADA: Person = Person("ada");
pub const BEA: Person = Person("bea");
pub const GRANTS: Person = Person("grants");
pub const POLICIES: Person = Person("policies");
pub const DESK: Person = Person("desk");
pub const OTHER_DESK: Person = Person("other-desk");
pub const CARRIER: Person = Person("c1");
pub const OTHER_CARRIER: Person = Person("c2");
pub const STRANGER: Person = Person("stranger");
pub const MEMBERS: [Person; 3] = [Person("m1"), Person("m2"), Person("m3")];

impl Person {
    pub fn secret(&self) -> IdentitySecret {
        let seed = tagged_hash("firn/hostile-person", &[self.0.as_bytes()]);
        IdentitySecret::from_seed(&Zeroizing::new(seed))
    }

    pub fn key(&self) -> IdentityKey {
        self.secret().identity()
    }

    pub fn sign<T: Document>(&self, document: &T) -> Envelope<T> {
        Envelope::sign(document, &self.secret()).unwrap()
    }

    pub fn name(&self) -> &'static str {
        self.0
    }

    pub fn id(&self, role: &str) -> SpiffeId {
        format!("spiffe://td/{role}/{}", self.0).parse().unwrap()
    }

    fn holder(&self, role: &str) -> KeyHolder {
        KeyHolder {
            id: self.id(role),
            key: self.key(),
        }
    }

    fn named(&self) -> NamedKey {
        NamedKey {
            name: Text::new(self.0).unwrap(),
            key: self.key(),
        }
    }
}

/// The person behind a member's number.
pub fn person(member: Identifier) -> &'static Person {
    &MEMBERS[usize::from(member.value()) - 1]
}

pub fn number(member: u16) -> Identifier {
    Identifier::new(member).unwrap()
}

/// Signed by both operators.
pub fn endorse<T: Document>(document: &T) -> Endorsed {
    Endorsed::unsigned(document)
        .unwrap()
        .endorse::<T>(&ADA.secret())
        .unwrap()
        .endorse::<T>(&BEA.secret())
        .unwrap()
}

pub fn authorities() -> Authorities {
    let requesters = vec![DESK.holder("requester"), OTHER_DESK.holder("requester")];
    let coordinators = vec![
        CARRIER.holder("coordinator"),
        OTHER_CARRIER.holder("coordinator"),
    ];
    Authorities {
        version: AuthoritiesVersion::new(1),
        previous: Maybe(None),
        trust_domain: "td".parse().unwrap(),
        grant_authority: GRANTS.key(),
        policy_authority: POLICIES.key(),
        operators: Quorum {
            needed: 2,
            keys: List::new(vec![ADA.named(), BEA.named()]).unwrap(),
        },
        approvers: List::empty(),
        requesters: List::new(requesters).unwrap(),
        coordinators: List::new(coordinators).unwrap(),
    }
}

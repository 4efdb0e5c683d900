//! The public keys that count. A key outside the Authorities that a plan names counts for nothing.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use crate::{
    codec::{List, Maybe, Text},
    envelope::Document,
    ids::{AuthoritiesDigest, AuthoritiesVersion},
    keys::IdentityKey,
    limits,
    names::{SpiffeId, TrustDomain},
};

/// A person or machine by the name that people use, and its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct NamedKey {
    /// Name shown to people.
    pub name: Text<{ limits::MAX_NAME }>,
    /// Its key.
    pub key: IdentityKey,
}

/// A process by its TLS name, and the key with which it signs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct KeyHolder {
    /// The SPIFFE id in its certificate.
    pub id: SpiffeId,
    /// Its key.
    pub key: IdentityKey,
}

/// k of these people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Quorum {
    /// How many of them it takes; at least 1, at most all.
    pub needed: u16,
    /// Who they are.
    pub keys: List<NamedKey, { limits::MAX_ENDORSEMENTS }>,
}

impl Quorum {
    /// The keys alone.
    #[must_use]
    pub fn identities(&self) -> Vec<IdentityKey> {
        self.keys.iter().map(|named| named.key).collect()
    }

    /// Whether it can be met, and by no person twice.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let needed = usize::from(self.needed);
        needed >= 1 && needed <= self.keys.len() && all_distinct(&self.identities())
    }
}

/// A group of approvers: `quorum.needed` of them make the group's approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct ApproverGroup {
    /// What policies call the group.
    pub name: Text<{ limits::MAX_NAME }>,
    /// Its members.
    pub quorum: Quorum,
}

/// Which keys count, for one trust domain. Endorsed by `operators`; a later version by the
/// operators of the version before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Authorities {
    /// 1 for the first.
    pub version: AuthoritiesVersion,
    /// The version before this one.
    pub previous: Maybe<AuthoritiesDigest>,
    /// The trust domain that they rule.
    pub trust_domain: TrustDomain,
    /// Signs grants and fences.
    pub grant_authority: IdentityKey,
    /// Signs policies.
    pub policy_authority: IdentityKey,
    /// Sign plans, activations, and the Authorities themselves.
    pub operators: Quorum,
    /// Sign approvals.
    pub approvers: List<ApproverGroup, { limits::MAX_GROUPS }>,
    /// May ask for signatures.
    pub requesters: List<KeyHolder, { limits::MAX_AUTHORITY_KEYS }>,
    /// May carry messages.
    pub coordinators: List<KeyHolder, { limits::MAX_AUTHORITY_KEYS }>,
}

impl Document for Authorities {
    const KIND: &'static str = "authorities";
    const LIMIT: usize = limits::ROSTER_DOCUMENT;
}

impl Authorities {
    /// The key of the requester with this name.
    #[must_use]
    pub fn requester(&self, id: &SpiffeId) -> Option<&IdentityKey> {
        self.requesters
            .iter()
            .find(|holder| holder.id == *id)
            .map(|holder| &holder.key)
    }

    /// The key of the coordinator with this name.
    #[must_use]
    pub fn coordinator(&self, id: &SpiffeId) -> Option<&IdentityKey> {
        self.coordinators
            .iter()
            .find(|holder| holder.id == *id)
            .map(|holder| &holder.key)
    }

    /// Whether every quorum can be met and no name or key stands for two.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let ids: Vec<_> = self
            .requesters
            .iter()
            .chain(&self.coordinators)
            .map(|holder| &holder.id)
            .collect();
        let keys: Vec<_> = self
            .requesters
            .iter()
            .chain(&self.coordinators)
            .map(|holder| &holder.key)
            .collect();
        self.operators.is_sound()
            && self.approvers.iter().all(|group| group.quorum.is_sound())
            && all_distinct(&ids)
            && all_distinct(&keys)
            && (self.version.value() == 1) == self.previous.0.is_none()
    }
}

fn all_distinct<T: Ord>(items: &[T]) -> bool {
    let set: std::collections::BTreeSet<_> = items.iter().collect();
    set.len() == items.len()
}

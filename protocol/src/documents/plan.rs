//! What a ceremony is to do, before anybody does it. Endorsed by the operators, and accepted on
//! each member's own machine by its fingerprint.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use crate::{
    bitcoin::Network,
    codec::{List, Text},
    envelope::Document,
    ids::{
        AuthoritiesDigest, CeremonyId, CertificateSetDigest, Epoch, Identifier, KeyId, PlanDigest,
        RulesDigest, ShareVersion, Threshold, UnixMillis,
    },
    keys::IdentityKey,
    limits,
    names::{Name, SpiffeId},
    sum,
};

/// One member of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct RosterEntry {
    /// Name shown to people, unique in the roster.
    pub name: Name,
    /// FROST identifier, unique in the roster.
    pub identifier: Identifier,
    /// Who speaks.
    pub identity: IdentityKey,
    /// Who carries: the SPIFFE id in the member's certificate.
    pub tls_name: SpiffeId,
}

/// The members, ascending by identifier.
pub type Roster = List<RosterEntry, { limits::MAX_MEMBERS }>;

/// A new key. There is nothing to add to what every plan holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct DkgTerms {
    /// The epoch that the key starts at.
    pub first_epoch: Epoch,
}

/// A key handed to new members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct ReshareTerms {
    /// The key.
    pub key_id: KeyId,
    /// The certificates of the sharing that is replaced.
    pub old_certificates: CertificateSetDigest,
    /// Its version.
    pub old_share_version: ShareVersion,
    /// The version that is made.
    pub new_share_version: ShareVersion,
    /// The epoch at which the new members start, higher than any before.
    pub epoch: Epoch,
}

/// A sharing whose members destroy their shares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct RetireTerms {
    /// The key.
    pub key_id: KeyId,
    /// The certificates of the sharing that ends.
    pub certificates: CertificateSetDigest,
    /// Its version.
    pub share_version: ShareVersion,
}

sum!(
    /// The kind of a ceremony and what only that kind needs.
    pub enum Ceremony {
        /// Make a key.
        1 => Dkg(DkgTerms),
        /// Hand a key to new members.
        2 => Reshare(ReshareTerms),
        /// End a sharing.
        3 => Retire(RetireTerms),
    }
);

/// What a ceremony is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Plan {
    /// Random; names this ceremony among people.
    pub ceremony_id: CeremonyId,
    /// What is done.
    pub ceremony: Ceremony,
    /// The Bitcoin network.
    pub network: Network,
    /// What the key is for, in the operators' words.
    pub purpose: Text<{ limits::MAX_PURPOSE }>,
    /// How many members sign.
    pub threshold: Threshold,
    /// Who they are, ascending by identifier.
    pub roster: Roster,
    /// The keys that count.
    pub authorities: AuthoritiesDigest,
    /// The rules of the first policy. The policy document itself names the key, whose id is this
    /// plan's digest, so the plan can only bind the rules.
    pub rules: RulesDigest,
    /// After this time nobody starts or goes on with it.
    pub expires: UnixMillis,
}

impl Document for Plan {
    const KIND: &'static str = "plan";
    const LIMIT: usize = limits::ROSTER_DOCUMENT;
}

impl Plan {
    /// Whether quorums meet and the roster is in order, with no identifier, name or key twice.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let ascending = self
            .roster
            .array_windows()
            .all(|[left, right]| left.identifier < right.identifier);
        let names: std::collections::BTreeSet<_> = self.roster.iter().map(|m| &m.name).collect();
        let keys: std::collections::BTreeSet<_> = self.roster.iter().map(|m| &m.identity).collect();
        let tls: std::collections::BTreeSet<_> = self.roster.iter().map(|m| &m.tls_name).collect();
        let members = self.roster.len();
        ascending
            && names.len() == members
            && keys.len() == members
            && tls.len() == members
            && Threshold::new(self.threshold.value(), members).is_some()
    }

    /// The member with this identity key.
    #[must_use]
    pub fn member(&self, identity: &IdentityKey) -> Option<&RosterEntry> {
        self.roster
            .iter()
            .find(|member| member.identity == *identity)
    }

    /// The member with this identifier.
    #[must_use]
    pub fn member_at(&self, identifier: Identifier) -> Option<&RosterEntry> {
        self.roster
            .iter()
            .find(|member| member.identifier == identifier)
    }

    /// The key that the ceremony is about: for a DKG the one that it makes.
    #[must_use]
    pub fn key_id(&self, digest: PlanDigest) -> KeyId {
        match &self.ceremony {
            Ceremony::Dkg(_) => KeyId::from_bytes(*digest.as_bytes()),
            Ceremony::Reshare(terms) => terms.key_id,
            Ceremony::Retire(terms) => terms.key_id,
        }
    }

    /// The version of the sharing that the ceremony makes or ends.
    #[must_use]
    pub fn share_version(&self) -> ShareVersion {
        match &self.ceremony {
            Ceremony::Dkg(_) => ShareVersion::new(1),
            Ceremony::Reshare(terms) => terms.new_share_version,
            Ceremony::Retire(terms) => terms.share_version,
        }
    }
}

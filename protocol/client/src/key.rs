//! A key as its documents prove it: who holds it, what it is under, where its money comes in. It decides
//! that plan, certificates, policy and activation bind each other under the pinned Authorities.

use firn_protocol::{
    bitcoin::{
        Child, ChildRange, DerivedKey, ExtendedKey, KeyError, Network, OwnScripts, descriptor,
    },
    codec,
    documents::RosterEntry,
    envelope::{Endorsed, Envelope},
    ids::{GroupKey, Identifier, KeyId},
    limits,
    messages::KeyDocuments,
    reject::Reject,
    sharing::ActiveSharing,
    signable::{MAX_BRANCH, MAX_INDEX},
};

use crate::{authorities::PinnedAuthorities, error::Error};

const WHAT: &str = "the key's documents";

/// The most bytes of everything that says what a key is.
pub const KEY_DOCUMENTS_LIMIT: usize = limits::MAX_MEMBERS
    * (Envelope::<firn_protocol::documents::Certificate>::LIMIT + 4)
    + 2 * Endorsed::LIMIT
    + limits::ROSTER_DOCUMENT
    + (4 << 10);

/// A key that may be used.
#[derive(Debug, Clone)]
pub struct Key {
    sharing: ActiveSharing,
    own: OwnScripts,
}

impl Key {
    /// The key that these documents are about, if they prove it.
    ///
    /// # Errors
    /// The first thing that is wrong, from the plan to the activation.
    pub fn verify(
        documents: &KeyDocuments,
        authorities: &PinnedAuthorities,
    ) -> Result<Self, Reject> {
        let sharing = ActiveSharing::verify(documents, authorities, authorities.digest())?;
        Self::of(sharing).map_err(|_| Reject::Internal)
    }

    /// The same from the bytes of a file.
    ///
    /// # Errors
    /// [`Error::Unfit`].
    pub fn from_bytes(bytes: &[u8], authorities: &PinnedAuthorities) -> Result<Self, Error> {
        let documents = codec::decode::<KeyDocuments>(bytes, KEY_DOCUMENTS_LIMIT)
            .map_err(|malformed| Error::unfit(WHAT)(malformed.into()))?;
        Self::verify(&documents, authorities).map_err(Error::unfit(WHAT))
    }

    /// A key whose documents have been verified.
    ///
    /// # Errors
    /// With negligible probability, for a key that has no children.
    pub fn of(sharing: ActiveSharing) -> Result<Self, KeyError> {
        let key = ExtendedKey::of_group(sharing.certified().public().group_key())?;
        let range = ChildRange::new(MAX_BRANCH, MAX_INDEX).ok_or(KeyError::NoKeyHere)?;
        Ok(Self {
            own: OwnScripts::new(key, range)?,
            sharing,
        })
    }

    /// Everything that was verified.
    #[must_use]
    pub const fn sharing(&self) -> &ActiveSharing {
        &self.sharing
    }

    /// The key's id.
    #[must_use]
    pub fn key_id(&self) -> KeyId {
        self.sharing.certified().key_id()
    }

    /// The network that it is for.
    #[must_use]
    pub fn network(&self) -> Network {
        self.sharing.certified().plan().network
    }

    /// The key itself.
    #[must_use]
    pub const fn group_key(&self) -> &GroupKey {
        self.sharing.certified().public().group_key()
    }

    /// The scripts of its children.
    #[must_use]
    pub const fn own_scripts(&self) -> &OwnScripts {
        &self.own
    }

    /// Its descriptor, for wallets that watch it (BIP-380, BIP-386).
    ///
    /// # Errors
    /// With negligible probability, for a key that has no children.
    pub fn descriptor(&self) -> Result<String, KeyError> {
        descriptor(self.group_key(), self.network())
    }

    /// The address of a child, for people to pay to.
    ///
    /// # Errors
    /// [`Error::Key`] for a child that the descriptor does not have.
    pub fn address(&self, child: Child) -> Result<String, Error> {
        let derived: DerivedKey = self.own.derive(child)?;
        let script = derived.script();
        self.network().address(&script).ok_or_else(|| Error::Usage {
            what: "the script has no address".to_owned(),
        })
    }

    /// The members that hold it, ascending by identifier.
    #[must_use]
    pub fn members(&self) -> &[RosterEntry] {
        &self.sharing.certified().plan().roster
    }

    /// A member's name, for people.
    #[must_use]
    pub fn name_of(&self, member: Identifier) -> String {
        let entry = self.sharing.certified().member(member);
        entry.map_or_else(|| member.to_string(), |entry| entry.name.to_string())
    }

    /// How many members sign.
    #[must_use]
    pub fn threshold(&self) -> usize {
        usize::from(self.sharing.certified().plan().threshold.value())
    }

    /// How many members may lie, have been rolled back or been cloned, before what the members say about
    /// the key as a whole can be wrong: 2t - n - 1.
    #[must_use]
    pub fn tolerated_liars(&self) -> usize {
        let plan = self.sharing.certified().plan();
        plan.threshold.tolerated_liars(plan.roster.len())
    }
}

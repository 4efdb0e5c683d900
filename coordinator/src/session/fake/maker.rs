//! One member of a ceremony, and the one thing that it does wrong.

use std::collections::BTreeMap;

use firn_protocol::{
    ids::{Identifier, MessageDigest, SealingKey},
    keys::IdentitySecret,
    messages::{Delivery, SealingSecret},
    reject::Reject,
};
use frost_secp256k1_tr::keys::dkg;

use super::FakeMember;

/// The one thing that a member of a ceremony does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum DkgHabit {
    #[default]
    Honest,
    Refuses(Reject),
    /// Refuses, and says that the first member is to blame.
    Accuses(Reject),
    SilentInRound2,
    ShortCommitment,
    AnotherPlan,
    TooFewSealingKeys,
    RootOfOtherPackages,
    AnotherRound1,
    PackageForItself,
    AnotherTranscript,
    AnotherGroupKey,
    Complains,
    ComplainsWithAnotherKey,
    SealsAnotherShare,
    SealsGarbage,
    ComplainsOfWhatWasNotSent,
    AcknowledgesAnotherSet,
    BadProofShare,
}

pub(super) struct Maker {
    pub(super) secret: IdentitySecret,
    pub(super) identifier: Identifier,
    pub(super) habit: DkgHabit,
    pub(super) round1: Option<dkg::round1::SecretPackage>,
    pub(super) round2: Option<dkg::round2::SecretPackage>,
    pub(super) seen: Vec<MessageDigest>,
    pub(super) delivery: Option<Delivery>,
    pub(super) signer: Option<FakeMember>,
    pub(super) announced: BTreeMap<Identifier, SealingKey>,
    pub(super) opening: BTreeMap<Identifier, SealingSecret>,
}

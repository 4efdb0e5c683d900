//! Making a key: FROST's three parts under an accepted plan. One type for each state; an error ends
//! the attempt, and its secrets go with it. An attempt that a crash interrupts is never resumed: its
//! id stays on record and another attempt begins.

mod certify;
mod deal;
mod open;

pub use certify::{AwaitCertificates, DeliveryError, NewShare, OwnSoftware, certify_command};
pub use deal::{AwaitDelivery, Dealt};
pub use open::{AwaitRound1Set, Opened};

use std::collections::BTreeMap;

use firn_protocol::{
    documents::Plan,
    envelope::Approved,
    ids::{Identifier, MessageDigest, PlanDigest, SealingKey, SessionId},
    messages::SealingSecret,
};

/// What all states of an attempt know.
#[derive(Debug)]
pub struct Attempt {
    /// The plan, endorsed and accepted.
    pub plan: Approved<Plan>,
    /// The attempt.
    pub id: SessionId,
    /// This participant's place.
    pub member: Identifier,
    /// The coordinator that carries.
    pub coordinator: firn_protocol::names::SpiffeId,
}

impl Attempt {
    /// The plan's digest.
    #[must_use]
    pub fn plan_digest(&self) -> PlanDigest {
        PlanDigest::from_bytes(self.plan.digest())
    }

    /// Everybody, ascending.
    fn members(&self) -> Vec<Identifier> {
        self.plan
            .roster
            .iter()
            .map(|entry| entry.identifier)
            .collect()
    }

    /// Everybody else, ascending.
    fn others(&self) -> Vec<Identifier> {
        self.members()
            .into_iter()
            .filter(|member| *member != self.member)
            .collect()
    }
}

/// The private sealing keys of one attempt, by sender. Dropped with the attempt's last state.
type SealingSecrets = BTreeMap<Identifier, SealingSecret>;

/// What is known of a dealer from its round one.
#[derive(Debug)]
struct Dealer {
    digest: MessageDigest,
    sealing_key_for_us: Option<SealingKey>,
}

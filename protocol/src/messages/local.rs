//! Between a participant's daemon and the operator of its own machine, over a socket that only they can
//! open. What is said here is said by whoever holds the machine, so nothing in it is signed again.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use super::MemberStatus;
use crate::{
    codec::{List, Maybe, Text},
    envelope::{Endorsed, Envelope},
    ids::{Nonce, PlanDigest, UnixMillis},
    limits,
    names::{Name, SpiffeId},
    sum,
};

/// Bytes of a message on the socket.
pub const MAX_LOCAL_MESSAGE: usize = 2 * limits::ROSTER_DOCUMENT;

/// Accepts a plan on this machine, after its fingerprint was compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct AcceptPlan {
    /// The [`crate::documents::Plan`].
    pub plan: Endorsed,
    /// The digest that the operator compared: another plan is refused.
    pub fingerprint: PlanDigest,
}

/// The plan is accepted, durably.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct PlanAccepted {
    /// Which.
    pub plan: PlanDigest,
    /// As which member of its roster.
    pub member: Name,
}

/// One connection of the daemon to a coordinator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct LinkStatus {
    /// The coordinator.
    pub coordinator: SpiffeId,
    /// Since when it is up; none where it is not.
    pub since: Maybe<UnixMillis>,
    /// The code of the last failure, where it is not up.
    pub code: Maybe<Text<{ limits::MAX_NAME }>>,
}

/// How the daemon is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct LocalStatus {
    /// What it tells operators elsewhere.
    pub status: Envelope<MemberStatus>,
    /// Its coordinators, in the order of its configuration.
    pub links: List<LinkStatus, { limits::MAX_AUTHORITY_KEYS }>,
}

/// Why something was not done, in the words of the participant's own log: codes of the protocol, and
/// those that never travel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct LocalFailure {
    /// The stable code.
    pub code: Text<{ limits::MAX_NAME }>,
    /// What happened.
    pub message: Text<{ limits::MAX_REASON }>,
    /// What to do next.
    pub advice: Text<{ limits::MAX_REASON }>,
}

sum!(
    /// What a machine's operator may ask its daemon.
    pub enum ToDaemon {
        /// Accept a plan.
        1 => AcceptPlan(AcceptPlan),
        /// How are you?
        2 => Status(Nonce),
    }
);

sum!(
    /// What the daemon may answer.
    pub enum FromDaemon {
        /// The plan is accepted.
        1 => Accepted(PlanAccepted),
        /// How it is.
        2 => Status(LocalStatus),
        /// No.
        3 => Failed(LocalFailure),
    }
);

//! Between member 1's daemon and the operator of its machine.

use firn_protocol::{
    ids::PlanDigest,
    messages::{AcceptPlan, FromDaemon, MAX_LOCAL_MESSAGE, ToDaemon},
    reject::Reject,
    sharing::verify_plan,
};

use super::{Verdict, decode, ensure, status};
use crate::samples::{NOW, World};

/// What the daemon does. Any nonce is as good as another.
pub(in crate::samples) fn to_daemon(world: &World, bytes: &[u8]) -> Verdict {
    match decode(bytes, MAX_LOCAL_MESSAGE)? {
        ToDaemon::AcceptPlan(accept) => accept_plan(world, accept),
        ToDaemon::Status(_) => Ok(()),
    }
}

fn accept_plan(world: &World, accept: AcceptPlan) -> Verdict {
    let plan = verify_plan(accept.plan, &world.authorities, world.authorities_digest)?;
    // The digest that was compared by people, not the one that came with the plan.
    let digest = PlanDigest::from_bytes(plan.digest());
    ensure(digest == accept.fingerprint, Reject::PlanNotAccepted)?;
    ensure(NOW < plan.expires, Reject::PlanExpired)
}

/// What the tool does. Its links and its failures are the daemon's word.
pub(in crate::samples) fn from_daemon(world: &World, bytes: &[u8]) -> Verdict {
    match decode(bytes, MAX_LOCAL_MESSAGE)? {
        FromDaemon::Accepted(accepted) => {
            let meant = accepted.plan == PlanDigest::from_bytes(world.plan.digest())
                && accepted.member == world.plan.roster[0].name;
            ensure(meant, Reject::UnexpectedMessage)
        }
        FromDaemon::Status(said) => status::status(world, &said.status),
        FromDaemon::Failed(_) => Ok(()),
    }
}

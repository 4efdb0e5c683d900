//! The proofs of life of a fresh sharing. It decides which groups of members have to prove themselves,
//! and whether each did with the shares that were certified; a signature alone would not tell.

use std::collections::BTreeSet;

use firn_client::evidence::{Round, header_of};
use firn_protocol::{
    ids::{Flow, Identifier},
    keys::IdentityKey,
    messages::ProofRecord,
    reject::Reject,
    sharing::CertifiedSharing,
    signable::Item,
};

use super::ceremony::check_header;

/// Up to this many groups of t members, every one of them proves; beyond, each member at least once.
pub(super) const EVERY_GROUP_UP_TO: usize = 10;

/// Checks all proofs; they ascend by their members, so that they have one order.
///
/// # Errors
/// The first rule that is broken; [`Reject::SessionMembers`] where a group or a member is missing, or a
/// group proves twice.
pub(super) fn check_proofs(
    proofs: &[ProofRecord],
    sharing: &CertifiedSharing,
    coordinators: &[IdentityKey],
) -> Result<Vec<Vec<Identifier>>, Reject> {
    let groups = proofs
        .iter()
        .map(|proof| check_proof(proof, sharing, coordinators))
        .collect::<Result<Vec<_>, Reject>>()?;
    let members = sharing.plan().roster.len();
    let proved: BTreeSet<_> = groups.iter().flatten().collect();
    let all = groups_of(members, usize::from(sharing.plan().threshold.value()));
    // Each group has exactly t members of the roster and they ascend strictly, so that as many groups
    // as there are is every group.
    let every = all.is_none_or(|all| groups.len() == all);
    let ascend = groups.array_windows().all(|[left, right]| left < right);
    if every && ascend && proved.len() == members {
        Ok(groups)
    } else {
        Err(Reject::SessionMembers)
    }
}

/// How many groups there are of `chosen` among `members`; none where that is more than all of them are
/// asked to prove.
pub(super) fn groups_of(members: usize, chosen: usize) -> Option<usize> {
    let smaller = chosen.min(members.checked_sub(chosen)?);
    // After each step this is a binomial coefficient, and they grow up to here: it can stop early.
    (0..smaller).try_fold(1_usize, |count, step| {
        let grown = count.checked_mul(members.checked_sub(step)?)?;
        let count = grown.checked_div(step.checked_add(1)?)?;
        (count <= EVERY_GROUP_UP_TO).then_some(count)
    })
}

fn check_proof(
    proof: &ProofRecord,
    sharing: &CertifiedSharing,
    coordinators: &[IdentityKey],
) -> Result<Vec<Identifier>, Reject> {
    let header = header_of(&proof.header, coordinators)?;
    check_header(&header, sharing.plan(), Flow::ProofOfLife)?;
    let challenge = Item::proof_of_life(
        sharing.plan_digest(),
        sharing.share_version(),
        &header.members,
        &header.nonce,
    )?;
    let round = Round {
        header: &proof.header,
        commitments: &proof.commitments,
        package: &proof.package,
        shares: &proof.shares,
    };
    round.check(
        sharing.plan(),
        sharing.public(),
        coordinators,
        &[challenge],
        &[proof.signature],
    )?;
    Ok(header.members.to_vec())
}

#[cfg(test)]
mod tests {
    use super::groups_of;

    #[test]
    fn every_group_proves_while_there_are_at_most_ten() {
        for (chosen, members, groups) in [
            (2, 3, Some(3)),
            (3, 5, Some(10)),
            (2, 2, Some(1)),
            (4, 5, Some(5)),
            (9, 10, Some(10)),
            (10, 11, None),
            (4, 6, None),
            (5, 7, None),
            (17, 32, None),
            (32, 32, Some(1)),
            (3, 2, None),
        ] {
            assert_eq!(groups_of(members, chosen), groups, "{chosen} of {members}");
        }
    }
}

//! The record of the ceremony, step by step in words. It decides nothing that `check_ceremony` would
//! decide otherwise, and adds that every coordinator spoke in its own name.

use firn_client::evidence::header_of;
use firn_protocol::{
    documents::{Authorities, Plan},
    envelope::{Approved, Envelope},
    keys::IdentityKey,
    messages::CeremonyRecord,
    reject::Reject,
    session::SessionHeader,
    sharing::CertifiedSharing,
};

use super::{
    super::{
        ceremony::{CeremonyStep, check_steps},
        checks::Checks,
        proofs::{EVERY_GROUP_UP_TO, groups_of},
    },
    names_of,
};

pub(super) fn check(
    record: &CeremonyRecord,
    plan: Approved<Plan>,
    authorities: &Authorities,
    file: &mut Checks<'_>,
) -> Option<CertifiedSharing> {
    let headers = std::iter::once(&record.header).chain(record.proofs.iter().map(|p| &p.header));
    let named = headers
        .map(|header| in_own_name(header, authorities))
        .collect::<Result<Vec<String>, Reject>>();
    file.found(
        "every session was opened by a coordinator in its own name",
        named,
        |names| {
            let mut names = names.clone();
            names.dedup();
            names.join(", ")
        },
    )?;
    let mut outcomes = Vec::new();
    let checked = check_steps(record, plan, &keys_of(authorities), |step, outcome| {
        outcomes.push((step, outcome));
    });
    for (step, outcome) in outcomes {
        match (step, &checked) {
            (CeremonyStep::Proofs, Ok(checked)) => {
                file.found(step.claim(), outcome, |()| {
                    let groups: Vec<String> = checked
                        .proofs
                        .iter()
                        .map(|group| format!("({})", names_of(&checked.sharing, group)))
                        .collect();
                    covered(&checked.sharing, &groups)
                });
            }
            _ => {
                file.take(step.claim(), outcome);
            }
        }
    }
    checked.ok().map(|checked| checked.sharing)
}

/// The coordinator's name, if the key that signed is the one that the Authorities have for it.
pub(super) fn in_own_name(
    header: &Envelope<SessionHeader>,
    authorities: &Authorities,
) -> Result<String, Reject> {
    let header = header_of(header, &keys_of(authorities))?;
    if authorities.coordinator(&header.coordinator) == Some(header.signer()) {
        Ok(header.coordinator.name().to_string())
    } else {
        Err(Reject::UnknownCoordinator)
    }
}

pub(super) fn keys_of(authorities: &Authorities) -> Vec<IdentityKey> {
    let holders = authorities.coordinators.iter();
    holders.map(|holder| holder.key).collect()
}

fn covered(sharing: &CertifiedSharing, groups: &[String]) -> String {
    let n = sharing.plan().roster.len();
    let t = usize::from(sharing.plan().threshold.value());
    let listed = groups.join(", ");
    match groups_of(n, t) {
        Some(all) => format!("every group of {t}, {all} of {all}: {listed}"),
        None => format!(
            "more than {EVERY_GROUP_UP_TO} groups of {t} exist; these cover every member: {listed}"
        ),
    }
}

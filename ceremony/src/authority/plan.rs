//! The plan of a DKG. It decides that quorums meet and the roster is in order; people decide the rest.

use std::path::Path;

use firn_protocol::{
    bitcoin::Network,
    codec::{List, Text},
    documents::{Ceremony, DkgTerms, Plan, Policy, RosterEntry, Rules},
    envelope::Endorsed,
    ids::{AuthoritiesDigest, CeremonyId, Epoch, PlanDigest, Threshold, UnixMillis},
    limits,
    reject::Reject,
};

use crate::{clock::random, domain::files::read_document, error::Error};

/// What people decide about a new key.
#[derive(Debug, Clone)]
pub struct PlanTerms<'a> {
    /// The Bitcoin network.
    pub network: Network,
    /// What the key is for.
    pub purpose: &'a str,
    /// How many members sign.
    pub threshold: u16,
    /// Who they are, ascending by identifier.
    pub roster: Vec<RosterEntry>,
    /// The keys that count.
    pub authorities: AuthoritiesDigest,
    /// The rules that the key starts with.
    pub rules: &'a Rules,
    /// After this time nobody starts or goes on with it.
    pub expires: UnixMillis,
}

/// The plan of a DKG with a fresh ceremony id; the key starts at epoch 1.
///
/// # Errors
/// [`Error::Usage`] where quorums need not meet, or names are too long or stand twice.
pub fn plan(terms: PlanTerms<'_>) -> Result<Plan, Error> {
    let members = terms.roster.len();
    let threshold = Threshold::new(terms.threshold, members).ok_or_else(|| Error::Usage {
        what: format!(
            "{} of {members} cannot be: at least 2 must sign, any two quorums must share a \
             member (more than half), and there are at most {} members",
            terms.threshold,
            limits::MAX_MEMBERS
        ),
    })?;
    let plan = Plan {
        ceremony_id: CeremonyId::from_bytes(*random::<16>()?),
        ceremony: Ceremony::Dkg(DkgTerms {
            first_epoch: Epoch::new(1),
        }),
        network: terms.network,
        purpose: Text::new(terms.purpose).ok_or_else(|| Error::Usage {
            what: format!("a purpose has at most {} bytes", limits::MAX_PURPOSE),
        })?,
        threshold,
        roster: List::new(terms.roster).ok_or_else(unsound)?,
        authorities: terms.authorities,
        rules: Policy::rules_digest(terms.rules)?,
        expires: terms.expires,
    };
    if plan.is_sound() {
        Ok(plan)
    } else {
        Err(unsound())
    }
}

/// Reads a plan, whoever has signed it so far, with its digest.
///
/// # Errors
/// [`Error::File`]; [`Error::BadFile`]; [`Error::Unfit`] where it contradicts itself.
pub fn read_plan(path: &Path) -> Result<(Endorsed, Plan, PlanDigest), Error> {
    let endorsed: Endorsed = read_document(path, Endorsed::LIMIT, "a plan")?;
    let (plan, digest) = endorsed.read::<Plan>().map_err(|_| Error::BadFile {
        path: path.to_owned(),
        what: "a plan",
    })?;
    if !plan.is_sound() {
        return Err(Error::Unfit {
            path: path.to_owned(),
            what: Reject::UnsoundDocument.meaning().to_owned(),
        });
    }
    Ok((endorsed, plan, PlanDigest::from_bytes(digest)))
}

fn unsound() -> Error {
    Error::Usage {
        what: "the roster is out of order or names somebody twice".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use firn_protocol::{
        bitcoin::Network,
        codec::List,
        documents::RosterEntry,
        ids::{AuthoritiesDigest, Identifier, UnixMillis},
        keys::IdentityKey,
    };

    use super::{PlanTerms, plan};

    fn roster(members: u8) -> Vec<RosterEntry> {
        (1..=members)
            .map(|number| RosterEntry {
                name: format!("member-{number}").parse().unwrap(),
                identifier: Identifier::new(number.into()).unwrap(),
                identity: IdentityKey::from_bytes([number; 32]),
                tls_name: format!("spiffe://d/participant/member-{number}")
                    .parse()
                    .unwrap(),
            })
            .collect()
    }

    fn is_refused(threshold: u16, roster: Vec<RosterEntry>) -> bool {
        let terms = PlanTerms {
            network: Network::Regtest,
            purpose: "test",
            threshold,
            roster,
            authorities: AuthoritiesDigest::from_bytes([0; 32]),
            rules: &List::empty(),
            expires: UnixMillis::new(1),
        };
        plan(terms).is_err()
    }

    #[test]
    fn refuses_quorums_that_need_not_meet_and_members_that_stand_twice() {
        assert!(!is_refused(2, roster(3)));
        for (threshold, members) in [(1, 1), (1, 2), (2, 4), (4, 3), (17, 33), (0, 0)] {
            assert!(
                is_refused(threshold, roster(members)),
                "{threshold} of {members}"
            );
        }
        let mut twice = roster(3);
        twice[2].identity = twice[0].identity;
        assert!(is_refused(2, twice));
        let mut unordered = roster(3);
        unordered.swap(0, 1);
        assert!(is_refused(2, unordered));
    }
}

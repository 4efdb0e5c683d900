//! A whole folder, checked offline from its bytes and the Authorities. It decides whether everything in it
//! holds, names every check that it makes, and believes nothing that it can work out again.

mod acknowledgements;
mod documents;
mod record;
mod request;

use firn_protocol::{
    codec,
    documents::Authorities,
    envelope::{Approved, Endorsed},
    ids::AuthoritiesDigest,
    reject::Reject,
    sharing::{ActiveSharing, CertifiedSharing},
};

pub use acknowledgements::{InForce, merge_acknowledgements};

use self::documents::Documents;
use super::{
    checks::{Because, Check, Checks},
    folder::{ACKNOWLEDGEMENTS, ACTIVATION, CEREMONY, Folder, Kept, PLAN, POLICY, read_plain},
};
use crate::error::Error;

/// The name under which the Authorities stand among the checked files.
pub const AUTHORITIES: &str = "authorities";
const WHOLE_FOLDER: &str = ".";

/// What a folder proves, and what it does not.
#[derive(Debug, Clone)]
pub struct Verification {
    /// Every check that was made, in order.
    pub checks: Vec<Check>,
    /// The digest of the Authorities that everything was checked with, whether or not they hold.
    pub authorities: Option<AuthoritiesDigest>,
    /// The key, where its documents hold together.
    pub sharing: Option<ActiveSharing>,
    /// How many members have stored the activation, where that could be counted.
    pub in_force: Option<InForce>,
}

impl Verification {
    /// Whether everything holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|check| check.holds)
    }

    /// The checks that do not hold.
    pub fn failed(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !check.holds)
    }
}

/// Checks everything in the folder with these Authorities; `meant` is their digest as it was compared.
///
/// # Errors
/// [`Error::File`] where the folder cannot be read at all; whatever is wrong with it is a check.
pub fn verify(
    folder: &Folder,
    authorities: Endorsed,
    meant: Option<AuthoritiesDigest>,
) -> Result<Verification, Error> {
    let mut checks = Vec::new();
    let (requests, findings) = folder.look()?;
    let mut whole = Checks::of(&mut checks, WHOLE_FOLDER);
    if findings.is_empty() {
        whole.is("holds exactly the files of a ceremony", true, "");
    }
    for finding in findings {
        let mut file = Checks::of(&mut checks, finding.name);
        file.is("belongs to a ceremony, and is there", false, finding.what);
    }
    let digest = authorities.read::<Authorities>().ok();
    let digest = digest.map(|(_, digest)| AuthoritiesDigest::from_bytes(digest));
    let believed = check_authorities(&mut checks, authorities, meant);
    let parts = believed.map(|authorities| check_parts(folder, &authorities, &mut checks));
    let (active, in_force) = match &parts {
        None => {
            for name in [PLAN, POLICY, CEREMONY, ACTIVATION, ACKNOWLEDGEMENTS] {
                Checks::of(&mut checks, name).unchecked("the Authorities do not hold");
            }
            (None, None)
        }
        Some(parts) => (parts.active.as_ref(), parts.in_force.clone()),
    };
    let mut seen = request::Seen::default();
    for id in requests {
        let name = format!("requests/{id}.cbor");
        match (active, &parts) {
            (Some(active), Some(parts)) => {
                let mut file = Checks::of(&mut checks, name.clone());
                let read = read(folder, &name, &mut file);
                let _ = read.and_then(|evidence| {
                    let terms = request::Terms {
                        id,
                        active,
                        authorities: &parts.authorities,
                    };
                    request::check(&evidence, terms, &mut seen, &mut file)
                });
            }
            (None, _) | (_, None) => {
                let because = "the key's own documents do not hold";
                Checks::of(&mut checks, name).unchecked(because);
            }
        }
    }
    let sharing = parts.and_then(|parts| parts.active);
    Ok(Verification {
        checks,
        authorities: digest,
        sharing,
        in_force,
    })
}

/// What the files beside the requests come to.
struct Parts {
    authorities: Approved<Authorities>,
    active: Option<ActiveSharing>,
    in_force: Option<InForce>,
}

fn check_authorities(
    checks: &mut Vec<Check>,
    endorsed: Endorsed,
    meant: Option<AuthoritiesDigest>,
) -> Option<Approved<Authorities>> {
    let mut file = Checks::of(checks, AUTHORITIES);
    let outcome = own_quorum(endorsed);
    let approved = file.found(
        "are signed by a quorum of their own operators, and contradict themselves nowhere",
        outcome,
        |approved| documents::signed_by(approved, approved),
    )?;
    if let Some(meant) = meant {
        file.is(
            "have the fingerprint that was given",
            AuthoritiesDigest::from_bytes(approved.digest()) == meant,
            "their fingerprint is another",
        );
    }
    Some(approved)
}

fn own_quorum(endorsed: Endorsed) -> Result<Approved<Authorities>, Reject> {
    let (claimed, _) = endorsed.read::<Authorities>()?;
    if !claimed.is_sound() {
        return Err(Reject::UnsoundDocument);
    }
    let operators = &claimed.operators;
    Ok(endorsed.verify(&operators.identities(), usize::from(operators.needed))?)
}

fn check_parts(
    folder: &Folder,
    authorities: &Approved<Authorities>,
    checks: &mut Vec<Check>,
) -> Parts {
    let documents = Documents { authorities };
    let mut parts = Parts {
        authorities: authorities.clone(),
        active: None,
        in_force: None,
    };
    let mut file = Checks::of(checks, PLAN);
    let plan = read(folder, PLAN, &mut file).and_then(|plan| documents.plan(plan, &mut file));
    let Some(plan) = plan else {
        for name in [POLICY, CEREMONY, ACTIVATION, ACKNOWLEDGEMENTS] {
            Checks::of(checks, name).unchecked("the plan does not hold");
        }
        return parts;
    };
    let mut file = Checks::of(checks, POLICY);
    let policy = read(folder, POLICY, &mut file)
        .and_then(|policy| documents.policy(policy, &plan, &mut file));
    let mut file = Checks::of(checks, CEREMONY);
    let certified = read(folder, CEREMONY, &mut file)
        .and_then(|ceremony| record::check(&ceremony, plan, authorities, &mut file));
    let mut file = Checks::of(checks, ACTIVATION);
    let (Some(policy), Some(certified)) = (policy, certified) else {
        file.unchecked("the policy or the ceremony does not hold");
        Checks::of(checks, ACKNOWLEDGEMENTS).unchecked("the activation was not checked");
        return parts;
    };
    let Some(active) = read(folder, ACTIVATION, &mut file)
        .and_then(|activation| documents.activation(activation, &policy, &certified, &mut file))
    else {
        Checks::of(checks, ACKNOWLEDGEMENTS).unchecked("the activation does not hold");
        return parts;
    };
    let mut file = Checks::of(checks, ACKNOWLEDGEMENTS);
    parts.in_force = read(folder, ACKNOWLEDGEMENTS, &mut file)
        .and_then(|words| acknowledgements::check(&words, &active, &mut file));
    parts.active = Some(active);
    parts
}

/// A file in its one encoding.
fn read<T: Kept>(folder: &Folder, name: &str, file: &mut Checks<'_>) -> Option<T> {
    let outcome = read_plain(&folder.file(name), T::LIMIT)
        .map_err(|error| Because::new(format!("it cannot be read: {error}")))
        .and_then(|bytes| codec::decode::<T>(&bytes, T::LIMIT).map_err(Because::from));
    file.take("decodes, in its one encoding", outcome)
}

/// The names of members.
fn names_of(sharing: &CertifiedSharing, members: &[firn_protocol::ids::Identifier]) -> String {
    let names: Vec<String> = members
        .iter()
        .map(|member| {
            let entry = sharing.member(*member);
            entry.map_or_else(|| member.to_string(), |entry| entry.name.to_string())
        })
        .collect();
    names.join(", ")
}

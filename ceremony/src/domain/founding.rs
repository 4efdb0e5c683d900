//! The founding of a trust domain: who is named in its first Authorities, and whose keys are made on the
//! way. It decides that nobody is named whose keys and name do not belong together; what people bring of
//! their own takes the place of what would be made.

use std::path::{Path, PathBuf};

use firn_client::Coordinator;
use firn_protocol::{
    codec::{List, Maybe, Text},
    documents::{Authorities, KeyHolder, NamedKey, Quorum},
    envelope::Endorsed,
    ids::{AuthoritiesDigest, AuthoritiesVersion, UnixMillis},
    keys::IdentityKey,
    limits,
    names::{Name, Role, SpiffeId, TrustDomain},
};

use super::{
    ca::DevelopmentCa,
    description::Draft,
    enrolling::{Enrolled, EnrolledFolder},
    files::{claim_empty_folder, make_folder, write_document, write_identity},
    people::Party,
};
use crate::{authority, clock::fresh_identity, error::Error};

/// Where the key that signs grants is made.
pub const GRANT_KEY: &str = "grant-authority/identity.key";
/// Where the key that signs policies is made.
pub const POLICY_KEY: &str = "policy-authority/identity.key";
/// Where the development CA is made.
pub const CA: &str = "ca";
/// The Authorities by themselves.
pub const AUTHORITIES: &str = "authorities.cbor";
/// What every machine needs.
pub const DESCRIPTION: &str = "domain.toml";

/// Somebody who is to be named.
#[derive(Debug)]
pub enum Seat {
    /// Keys are made.
    Made(Name),
    /// Keys were made elsewhere.
    Brought(Name, Box<Enrolled>),
}

impl Seat {
    const fn name(&self) -> &Name {
        match self {
            Self::Made(name) | Self::Brought(name, _) => name,
        }
    }
}

/// Who is to be in a new domain, and what they bring.
#[derive(Debug)]
pub struct Founding {
    /// Its trust domain.
    pub trust_domain: TrustDomain,
    /// Who run ceremonies.
    pub operators: Vec<Seat>,
    /// How many of them it takes.
    pub operators_needed: u16,
    /// Who may ask for signatures.
    pub requesters: Vec<Seat>,
    /// Who may carry.
    pub coordinators: Vec<Seat>,
    /// The key that signs grants, where it was made elsewhere.
    pub grant_authority: Option<IdentityKey>,
    /// The key that signs policies, where it was made elsewhere.
    pub policy_authority: Option<IdentityKey>,
    /// The roots of the operators' own CA, PEM; without them a development CA is made.
    pub roots_pem: Option<String>,
}

/// A domain that has been founded.
#[derive(Debug)]
pub struct Founded {
    path: PathBuf,
    trust_domain: TrustDomain,
    ca: Option<DevelopmentCa>,
    roots_pem: String,
    endorsed: Endorsed,
    made: Vec<EnrolledFolder>,
}

impl Founding {
    /// Makes, in an empty or new folder, whatever is not brought; as many of the operators whose keys
    /// are made here as it takes sign the Authorities.
    ///
    /// # Errors
    /// [`Error::Usage`] before anything is made, where somebody stands twice, brings another's name, or
    /// the quorum cannot be met; [`Error::FolderNotEmpty`]; whatever keeps files from being written.
    pub fn carry_out(self, path: &Path, now: UnixMillis) -> Result<Founded, Error> {
        self.check()?;
        claim_empty_folder(path)?;
        let path = path.canonicalize().map_err(Error::file("finding", path))?;
        let ca = match &self.roots_pem {
            Some(_) => None,
            None => Some(DevelopmentCa::new(self.trust_domain.clone(), now)?),
        };
        if let Some(ca) = &ca {
            ca.save(&path.join(CA))?;
        }
        let mut made = Vec::new();
        let mut seats = |role, seats: &[Seat]| -> Result<Vec<KeyHolder>, Error> {
            seats
                .iter()
                .map(|seat| self.seat(&path, role, seat, now, &mut made))
                .collect()
        };
        let operators = seats(Role::Operator, &self.operators)?;
        let requesters = seats(Role::Requester, &self.requesters)?;
        let coordinators = seats(Role::Coordinator, &self.coordinators)?;
        let grant_authority = authority_key(&path.join(GRANT_KEY), self.grant_authority)?;
        let policy_authority = authority_key(&path.join(POLICY_KEY), self.policy_authority)?;
        let named = operators.iter().map(named).collect::<Option<_>>();
        let authorities = Authorities {
            version: AuthoritiesVersion::new(1),
            previous: Maybe(None),
            trust_domain: self.trust_domain.clone(),
            grant_authority,
            policy_authority,
            operators: Quorum {
                needed: self.operators_needed,
                keys: named.and_then(List::new).ok_or_else(too_many)?,
            },
            approvers: List::empty(),
            requesters: List::new(requesters).ok_or_else(too_many)?,
            coordinators: List::new(coordinators).ok_or_else(too_many)?,
        };
        if !authorities.is_sound() {
            return Err(Error::Usage {
                what: "the same key stands for two people".to_owned(),
            });
        }
        let mut endorsed = Endorsed::unsigned(&authorities)?;
        let needed = usize::from(self.operators_needed);
        let own = made
            .iter()
            .filter(|folder| folder.enrolled().enrollment().name.role() == Role::Operator);
        for operator in own.take(needed) {
            let secret = super::files::read_identity(&operator.folder().identity())?;
            endorsed = endorsed.endorse::<Authorities>(&secret)?;
        }
        write_document(&path.join(AUTHORITIES), &endorsed)?;
        let roots_pem = match (&ca, self.roots_pem) {
            (Some(ca), _) => ca.certificate_pem().to_owned(),
            (None, roots) => roots.unwrap_or_default(),
        };
        Ok(Founded {
            path,
            trust_domain: self.trust_domain,
            ca,
            roots_pem,
            endorsed,
            made,
        })
    }

    /// One holder of a key, whose folder is made where nobody brings it.
    fn seat(
        &self,
        path: &Path,
        role: Role,
        seat: &Seat,
        now: UnixMillis,
        made: &mut Vec<EnrolledFolder>,
    ) -> Result<KeyHolder, Error> {
        let id = SpiffeId::new(self.trust_domain.clone(), role, seat.name().clone());
        match seat {
            Seat::Made(_) => {
                let folder = begin(path, &id, now)?;
                let key = folder.enrolled().enrollment().identity;
                made.push(folder);
                Ok(KeyHolder { id, key })
            }
            Seat::Brought(_, enrolled) => Ok(KeyHolder {
                id,
                key: enrolled.enrollment().identity,
            }),
        }
    }

    fn check(&self) -> Result<(), Error> {
        let usage = |what: String| Err(Error::Usage { what });
        for (role, seats) in [
            (Role::Operator, &self.operators),
            (Role::Requester, &self.requesters),
            (Role::Coordinator, &self.coordinators),
        ] {
            let mut names = std::collections::BTreeSet::new();
            for seat in seats {
                if !names.insert(seat.name()) {
                    return usage(format!("the {role} {} stands twice", seat.name()));
                }
                let Seat::Brought(name, enrolled) = seat else {
                    continue;
                };
                let id = SpiffeId::new(self.trust_domain.clone(), role, name.clone());
                let found = &enrolled.enrollment().name;
                if *found != id {
                    return usage(format!("the enrollment is that of {found}, not of {id}"));
                }
            }
        }
        let operators = self.operators.len();
        let needed = usize::from(self.operators_needed);
        if operators > limits::MAX_ENDORSEMENTS {
            return Err(too_many());
        }
        if needed == 0 || needed > operators {
            return usage(format!("{needed} of {operators} operators is no quorum"));
        }
        Ok(())
    }
}

impl Founded {
    /// The domain's folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The Authorities as they are signed so far.
    #[must_use]
    pub const fn endorsed(&self) -> &Endorsed {
        &self.endorsed
    }

    /// The folders of those whose keys were made here: operators, requesters, coordinators.
    #[must_use]
    pub fn made(&self) -> &[EnrolledFolder] {
        &self.made
    }

    /// The roots that vouch for names of the domain, PEM.
    #[must_use]
    pub fn roots_pem(&self) -> &str {
        &self.roots_pem
    }

    /// Whether certificates are issued here.
    #[must_use]
    pub const fn has_ca(&self) -> bool {
        self.ca.is_some()
    }

    /// What every machine needs, with a coordinator's line for each of `coordinators`.
    ///
    /// # Errors
    /// [`Error::Usage`] for coordinators that are not in the Authorities, or roots that are none.
    pub fn describe(&self, coordinators: Vec<Coordinator>) -> Result<Draft, Error> {
        Draft::new(self.endorsed.clone(), self.roots_pem.clone(), coordinators)
            .map_err(|what| Error::Usage { what })
    }

    /// Makes the folder of a member: on the machine of a demonstration, where there is only one.
    pub(super) fn member(&self, name: &str, now: UnixMillis) -> Result<EnrolledFolder, Error> {
        let id = SpiffeId::new(self.trust_domain.clone(), Role::Participant, name.parse()?);
        begin(&self.path, &id, now)
    }

    /// Has the development CA, where there is one, vouch for somebody whose keys were made here.
    ///
    /// # Errors
    /// [`Error::Issue`]; as [`EnrolledFolder::install`].
    pub fn certify(&self, folder: &EnrolledFolder, now: UnixMillis) -> Result<(), Error> {
        let Some(ca) = &self.ca else {
            return Ok(());
        };
        let enrolled = folder.enrolled();
        let pem = ca.issue(&enrolled.enrollment().name, enrolled.key(), now)?;
        folder.install_pem(pem.as_bytes(), &folder.folder().certificate())
    }

    pub(super) fn party(&self, folder: &EnrolledFolder) -> Party {
        let enrollment = folder.enrolled().enrollment();
        Party {
            id: enrollment.name.clone(),
            identity: enrollment.identity,
            folder: folder.folder().clone(),
        }
    }

    /// The digest of the Authorities.
    ///
    /// # Errors
    /// Never for what was founded.
    pub fn digest(&self) -> Result<AuthoritiesDigest, Error> {
        let (_, digest) = self.endorsed.read::<Authorities>()?;
        Ok(AuthoritiesDigest::from_bytes(digest))
    }
}

/// A folder of its own for each role, and in it one for each name.
fn begin(path: &Path, id: &SpiffeId, now: UnixMillis) -> Result<EnrolledFolder, Error> {
    let role = path.join(format!("{}s", id.role()));
    if !role.exists() {
        make_folder(&role)?;
    }
    EnrolledFolder::begin(&role.join(id.name().as_str()), id, now)
}

fn authority_key(path: &Path, brought: Option<IdentityKey>) -> Result<IdentityKey, Error> {
    if let Some(key) = brought {
        return Ok(key);
    }
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    write_identity(path, &fresh_identity()?)
}

fn named(holder: &KeyHolder) -> Option<NamedKey> {
    Some(NamedKey {
        name: Text::new(holder.id.name().as_str())?,
        key: holder.key,
    })
}

pub(super) fn too_many() -> Error {
    Error::Usage {
        what: format!(
            "at most {} operators and {} of every other kind",
            limits::MAX_ENDORSEMENTS,
            limits::MAX_AUTHORITY_KEYS
        ),
    }
}

/// Authorities as they were read, for whoever has founded them.
pub(super) fn approved(
    endorsed: &Endorsed,
) -> Result<firn_protocol::envelope::Approved<Authorities>, Error> {
    authority::verify_authorities(endorsed.clone())
}

//! Keys and certificates while a domain is made. It decides which file each of them goes into.

use std::path::{Path, PathBuf};

use firn_protocol::{
    codec::{List, Maybe, Text},
    documents::{Authorities, KeyHolder, NamedKey, Quorum},
    envelope::{Approved, Endorsed},
    ids::{AuthoritiesVersion, UnixMillis},
    limits,
    names::{Role, SpiffeId, TrustDomain},
};

use super::{
    ca::DevelopmentCa,
    files::{make_folder, write_identity, write_private, write_public},
    folders::ProcessFolder,
    people::{DomainTerms, Party},
};
use crate::{authority, clock::fresh_identity, error::Error};

pub(super) const GRANT_KEY: &str = "authorities/grant.key";
pub(super) const POLICY_KEY: &str = "authorities/policy.key";

/// Makes keys and certificates while a domain is made.
pub(super) struct Maker<'a> {
    path: &'a Path,
    trust_domain: TrustDomain,
    ca: DevelopmentCa,
    now: UnixMillis,
}

impl<'a> Maker<'a> {
    pub(super) fn new(
        path: &'a Path,
        trust_domain: TrustDomain,
        now: UnixMillis,
    ) -> Result<Self, Error> {
        let ca = DevelopmentCa::new(trust_domain.clone(), now)?;
        for folder in ["ca", "authorities"] {
            make_folder(&path.join(folder))?;
        }
        for role in Role::ALL {
            make_folder(&role_folder(path, role))?;
        }
        write_public(
            &path.join("ca/certificate.pem"),
            ca.certificate_pem().as_bytes(),
        )?;
        write_private(&path.join("ca/key.pem"), ca.key_pem().as_bytes())?;
        Ok(Self {
            path,
            trust_domain,
            ca,
            now,
        })
    }

    pub(super) fn all(&self, role: Role, names: &[&str]) -> Result<Vec<Party>, Error> {
        names.iter().map(|name| self.one(role, name)).collect()
    }

    pub(super) fn one(&self, role: Role, name: &str) -> Result<Party, Error> {
        let id = SpiffeId::new(self.trust_domain.clone(), role, name.parse()?);
        let folder = ProcessFolder::make(&role_folder(self.path, role), &id)?;
        folder.install_tls(&self.ca.issue(&id, self.now)?, self.ca.certificate_pem())?;
        let identity = write_identity(&folder.identity(), &fresh_identity()?)?;
        Ok(Party {
            id,
            identity,
            folder,
        })
    }

    pub(super) fn authorities(
        &self,
        terms: &DomainTerms<'_>,
        operators: &[Party],
        requester: &Party,
        coordinator: &Party,
    ) -> Result<Approved<Authorities>, Error> {
        let grant_authority = write_identity(&self.path.join(GRANT_KEY), &fresh_identity()?)?;
        let policy_authority = write_identity(&self.path.join(POLICY_KEY), &fresh_identity()?)?;
        let authorities = Authorities {
            version: AuthoritiesVersion::new(1),
            previous: Maybe(None),
            trust_domain: self.trust_domain.clone(),
            grant_authority,
            policy_authority,
            operators: Quorum {
                needed: terms.operators_needed,
                keys: List::new(operators.iter().filter_map(named).collect())
                    .ok_or_else(too_many)?,
            },
            approvers: List::empty(),
            requesters: List::new(vec![holder(requester)]).ok_or_else(too_many)?,
            coordinators: List::new(vec![holder(coordinator)]).ok_or_else(too_many)?,
        };
        if !authorities.is_sound() {
            return Err(Error::Usage {
                what: format!(
                    "{} of {} operators is no quorum",
                    terms.operators_needed,
                    operators.len()
                ),
            });
        }
        let mut endorsed = Endorsed::unsigned(&authorities)?;
        let needed = usize::from(terms.operators_needed);
        for operator in operators.iter().take(needed) {
            endorsed = endorsed.endorse::<Authorities>(&operator.secret()?)?;
        }
        authority::verify_authorities(endorsed)
    }
}

fn role_folder(path: &Path, role: Role) -> PathBuf {
    path.join(format!("{role}s"))
}

fn named(party: &Party) -> Option<NamedKey> {
    Some(NamedKey {
        name: Text::new(party.name())?,
        key: party.identity,
    })
}

fn holder(party: &Party) -> KeyHolder {
    KeyHolder {
        id: party.id.clone(),
        key: party.identity,
    }
}

pub(super) fn too_many() -> Error {
    Error::Usage {
        what: format!("at most {} of each kind", limits::MAX_ENDORSEMENTS),
    }
}

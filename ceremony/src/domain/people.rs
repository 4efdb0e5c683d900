//! Everybody in a domain on one machine, members too: what a demonstration and the tests stand on. It
//! founds the domain as `firn init` does and enrolls the members as `firn enroll` does, and keeps no
//! private key in memory: whoever signs reads its own file.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use firn_client::{Address, Coordinator};
use firn_protocol::{
    documents::{Authorities, RosterEntry},
    envelope::Approved,
    ids::{AuthoritiesDigest, Identifier, UnixMillis},
    keys::{IdentityKey, IdentitySecret},
    names::{Role, SpiffeId, TrustDomain},
};

use super::{
    config::{Listening, configuration, coordinator},
    files::{read_identity, write_document, write_public},
    folders::ProcessFolder,
    founding::{AUTHORITIES, Founding, GRANT_KEY, POLICY_KEY, Seat, approved, too_many},
};
use crate::error::Error;

/// Who is to be in a new domain.
#[derive(Debug, Clone)]
pub struct DomainTerms<'a> {
    /// Its trust domain.
    pub trust_domain: TrustDomain,
    /// The operators' names.
    pub operators: &'a [&'a str],
    /// How many of them it takes.
    pub operators_needed: u16,
    /// The requester's name.
    pub requester: &'a str,
    /// The coordinator's name.
    pub coordinator: &'a str,
    /// How many members there are.
    pub members: u16,
}

/// Somebody with a name, a certificate, a key and a folder.
#[derive(Debug, Clone)]
pub struct Party {
    /// The name in the certificate.
    pub id: SpiffeId,
    /// The key that it speaks with.
    pub identity: IdentityKey,
    /// Where its files are.
    pub folder: ProcessFolder,
}

impl Party {
    /// Reads the party's private key.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::BadFile`].
    pub fn secret(&self) -> Result<IdentitySecret, Error> {
        read_identity(&self.folder.identity())
    }

    /// The name that people use.
    #[must_use]
    pub fn name(&self) -> &str {
        self.id.name().as_str()
    }
}

/// A new domain.
#[derive(Debug)]
pub struct Domain {
    path: PathBuf,
    authorities: Approved<Authorities>,
    operators: Vec<Party>,
    requester: Party,
    coordinator: Party,
    members: Vec<Party>,
}

impl Domain {
    /// Makes everybody, in an empty or new folder.
    ///
    /// # Errors
    /// [`Error::FolderNotEmpty`]; names that are none; whatever keeps files from being written.
    pub fn create(path: &Path, terms: &DomainTerms<'_>, now: UnixMillis) -> Result<Self, Error> {
        let seat = |name: &str| Ok(Seat::Made(name.parse()?));
        let founding = Founding {
            trust_domain: terms.trust_domain.clone(),
            operators: terms
                .operators
                .iter()
                .copied()
                .map(seat)
                .collect::<Result<_, Error>>()?,
            operators_needed: terms.operators_needed,
            requesters: vec![seat(terms.requester)?],
            coordinators: vec![seat(terms.coordinator)?],
            grant_authority: None,
            policy_authority: None,
            roots_pem: None,
        };
        let founded = founding.carry_out(path, now)?;
        let mut members = Vec::new();
        for number in 1..=terms.members {
            members.push(founded.member(&format!("member-{number}"), now)?);
        }
        let authorities = approved(founded.endorsed())?;
        for folder in founded.made().iter().chain(&members) {
            let files = folder.folder();
            write_public(&files.roots(), founded.roots_pem().as_bytes())?;
            write_document(&files.authorities(), founded.endorsed())?;
            founded.certify(folder, now)?;
        }
        let parties = |role| {
            let made = founded.made().iter().map(|folder| founded.party(folder));
            made.filter(|party| party.id.role() == role)
                .collect::<Vec<_>>()
        };
        let one = |role| {
            let nobody = || Error::Usage {
                what: format!("there is no {role}"),
            };
            parties(role).into_iter().next().ok_or_else(nobody)
        };
        Ok(Self {
            path: founded.path().to_owned(),
            authorities,
            operators: parties(Role::Operator),
            requester: one(Role::Requester)?,
            coordinator: one(Role::Coordinator)?,
            members: members.iter().map(|folder| founded.party(folder)).collect(),
        })
    }

    /// The domain's folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The keys that count.
    #[must_use]
    pub const fn authorities(&self) -> &Approved<Authorities> {
        &self.authorities
    }

    /// Their digest.
    #[must_use]
    pub const fn authorities_digest(&self) -> AuthoritiesDigest {
        AuthoritiesDigest::from_bytes(self.authorities.digest())
    }

    /// The file that anybody verifies evidence with.
    #[must_use]
    pub fn authorities_file(&self) -> PathBuf {
        self.path.join(AUTHORITIES)
    }

    /// Who run ceremonies.
    #[must_use]
    pub fn operators(&self) -> &[Party] {
        &self.operators
    }

    /// As many operators as it takes.
    #[must_use]
    pub fn operator_quorum(&self) -> Vec<&Party> {
        let needed = usize::from(self.authorities.operators.needed);
        self.operators.iter().take(needed).collect()
    }

    /// Who asks for signatures.
    #[must_use]
    pub const fn requester(&self) -> &Party {
        &self.requester
    }

    /// Who carries.
    #[must_use]
    pub const fn coordinator(&self) -> &Party {
        &self.coordinator
    }

    /// Who hold shares, by identifier from 1 on.
    #[must_use]
    pub fn members(&self) -> &[Party] {
        &self.members
    }

    /// The members as a plan lists them.
    ///
    /// # Errors
    /// [`Error::Usage`] for more members than a roster holds.
    pub fn roster(&self) -> Result<Vec<RosterEntry>, Error> {
        (1_u16..)
            .zip(&self.members)
            .map(|(number, member)| {
                Ok(RosterEntry {
                    name: member.id.name().clone(),
                    identifier: Identifier::new(number).ok_or_else(too_many)?,
                    identity: member.identity,
                    tls_name: member.id.clone(),
                })
            })
            .collect()
    }

    /// Reads the key that grants are signed with.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::BadFile`].
    pub fn grant_authority(&self) -> Result<IdentitySecret, Error> {
        read_identity(&self.path.join(GRANT_KEY))
    }

    /// Reads the key that policies are signed with.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::BadFile`].
    pub fn policy_authority(&self) -> Result<IdentitySecret, Error> {
        read_identity(&self.path.join(POLICY_KEY))
    }

    /// Writes the coordinator's configuration: any free port of this machine.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn configure_coordinator(&self) -> Result<(), Error> {
        let text = coordinator(self.authorities_digest(), &Listening::Anywhere)?;
        write_public(&self.coordinator.folder.config(), text.as_bytes())
    }

    /// Writes everybody else's configuration, once the coordinator's address is known.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn configure_members(&self, coordinator: SocketAddr) -> Result<(), Error> {
        let coordinators = [Coordinator {
            name: self.coordinator.id.clone(),
            address: Address::from(coordinator),
        }];
        let people = self.operators.iter().chain([&self.requester]);
        for party in self.members.iter().chain(people) {
            let text = configuration(&party.id, self.authorities_digest(), &coordinators)?;
            write_public(&party.folder.config(), text.as_bytes())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use firn_transport::{TlsIdentity, Trust};

    use super::*;
    use crate::{authority, clock::now};

    fn terms(members: u16) -> DomainTerms<'static> {
        DomainTerms {
            trust_domain: "test.firn".parse().unwrap(),
            operators: &["ada", "ben", "cleo"],
            operators_needed: 2,
            requester: "treasury",
            coordinator: "relay",
            members,
        }
    }

    #[test]
    fn everybody_gets_a_folder_whose_files_transport_accepts() {
        let folder = tempfile::tempdir().unwrap();
        let domain = Domain::create(folder.path(), &terms(3), now()).unwrap();
        let rest = [domain.requester(), domain.coordinator()];
        let everybody = domain.members().iter().chain(domain.operators());
        for party in everybody.chain(rest) {
            let files = &party.folder;
            let identity = TlsIdentity::load(&files.certificate(), &files.tls_key()).unwrap();
            assert_eq!(*identity.spiffe_id(), party.id);
            Trust::load("test.firn".parse().unwrap(), &files.roots()).unwrap();
            assert_eq!(party.secret().unwrap().identity(), party.identity);
            for private in [files.tls_key(), files.identity()] {
                let mode = fs::metadata(&private).unwrap().permissions().mode();
                assert_eq!(mode & 0o077, 0, "{}", private.display());
            }
        }
    }

    #[test]
    fn the_authorities_are_endorsed_and_the_same_everywhere() {
        let folder = tempfile::tempdir().unwrap();
        let domain = Domain::create(folder.path(), &terms(2), now()).unwrap();
        let bytes = fs::read(domain.authorities_file()).unwrap();
        for party in domain.members() {
            assert_eq!(fs::read(party.folder.authorities()).unwrap(), bytes);
        }
        let read = authority::read_authorities(&domain.authorities_file()).unwrap();
        assert_eq!(read.digest(), domain.authorities().digest());
        let secret = domain.grant_authority().unwrap();
        assert_eq!(secret.identity(), read.grant_authority);
        assert_eq!(domain.operator_quorum().len(), 2);
    }

    #[test]
    fn refuses_a_quorum_that_cannot_be_met_and_a_folder_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let more = DomainTerms {
            operators_needed: 4,
            ..terms(2)
        };
        let path = folder.path().join("a");
        assert!(matches!(
            Domain::create(&path, &more, now()),
            Err(Error::Usage { .. })
        ));
        assert!(!path.exists(), "nothing is made before all is judged");
        Domain::create(&path, &terms(2), now()).unwrap();
        assert!(matches!(
            Domain::create(&path, &terms(2), now()),
            Err(Error::FolderNotEmpty { .. })
        ));
    }
}

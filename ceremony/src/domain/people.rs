//! Everybody in a domain, made at once: keys, certificates, Authorities, folders. It decides who may
//! sign what, and keeps no private key in memory: whoever signs reads its own file.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use firn_protocol::{
    documents::{Authorities, RosterEntry},
    envelope::Approved,
    ids::{AuthoritiesDigest, Identifier, UnixMillis},
    keys::{IdentityKey, IdentitySecret},
    names::{Role, SpiffeId, TrustDomain},
};

use super::{
    config::{coordinator_config, participant_config},
    files::{
        claim_empty_folder, make_folder, read_identity, write_document, write_private, write_public,
    },
    folders::ProcessFolder,
    maker::{GRANT_KEY, Maker, POLICY_KEY, too_many},
};
use crate::{clock::random, error::Error};

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
        claim_empty_folder(path)?;
        let path = path.canonicalize().map_err(Error::file("finding", path))?;
        let maker = Maker::new(&path, terms.trust_domain.clone(), now)?;
        let operators = maker.all(Role::Operator, terms.operators)?;
        let requester = maker.one(Role::Requester, terms.requester)?;
        let coordinator = maker.one(Role::Coordinator, terms.coordinator)?;
        let names: Vec<String> = (1..=terms.members).map(|n| format!("member-{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let members = maker.all(Role::Participant, &names)?;
        let authorities = maker.authorities(terms, &operators, &requester, &coordinator)?;
        let domain = Self {
            path,
            authorities,
            operators,
            requester,
            coordinator,
            members,
        };
        domain.install_authorities()?;
        Ok(domain)
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
        self.path.join("authorities.cbor")
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

    /// Writes the coordinator's configuration.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn configure_coordinator(&self) -> Result<(), Error> {
        let text = coordinator_config(self)?;
        write_public(&self.coordinator.folder.config(), text.as_bytes())
    }

    /// Writes every member's configuration, once the coordinator's address is known.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn configure_members(&self, coordinator: SocketAddr) -> Result<(), Error> {
        for member in &self.members {
            let text = participant_config(self, member, coordinator)?;
            write_public(&member.folder.config(), text.as_bytes())?;
            write_private(&member.folder.vault_key(), &*random::<32>()?)?;
            make_folder(&member.folder.data())?;
            make_folder(&member.folder.anchor())?;
        }
        Ok(())
    }

    fn install_authorities(&self) -> Result<(), Error> {
        let endorsed = self.authorities.endorsed();
        write_document(&self.authorities_file(), endorsed)?;
        let own = [&self.requester, &self.coordinator];
        for party in own.into_iter().chain(&self.operators).chain(&self.members) {
            write_document(&party.folder.authorities(), endorsed)?;
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
        assert!(matches!(
            Domain::create(&path, &terms(2), now()),
            Err(Error::FolderNotEmpty { .. })
        ));
    }
}

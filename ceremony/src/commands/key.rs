//! `--key`: which key a command is about. It decides that whatever names a key also proves it, under the
//! Authorities of the profile.

use std::path::Path;

use firn_client::{Key, PinnedAuthorities, Profile, Settings};
use firn_protocol::{ids::KeyId, names::Role};

use crate::{
    client::OperatorLine,
    domain::files::read_document,
    error::{Error, Exit},
    evidence::Folder,
};

/// The key in a ceremony's folder or a key.cbor, or the one with this id, which the profile's coordinators
/// are asked about.
///
/// # Errors
/// A place that holds no key; documents that do not prove one; what a coordinator answers.
pub(crate) async fn resolve(place: &str, profile: &Profile) -> Result<Key, Error> {
    let authorities = profile.authorities()?;
    let path = Path::new(place);
    if path.is_dir() {
        return verified(&Folder::at(path).key_documents()?, &authorities);
    }
    if path.exists() {
        let what = "everything that says what a key is";
        let documents = read_document(path, firn_client::KEY_DOCUMENTS_LIMIT, what)?;
        return verified(&documents, &authorities);
    }
    let key_id = KeyId::from_hex(place).ok_or_else(|| Error::Usage {
        what: format!(
            "--key {place}: there is no such folder or file, and it is no key id (64 hexadecimal digits)"
        ),
    })?;
    match profile.name.role() {
        Role::Operator => {
            let line = OperatorLine::to_any(profile).await?;
            verified(&line.key_documents(key_id).await?, &authorities)
        }
        Role::Requester | Role::Participant | Role::Coordinator => {
            Ok(profile.client(Settings::default())?.key(key_id).await?)
        }
    }
}

pub(crate) fn verified(
    documents: &firn_protocol::messages::KeyDocuments,
    authorities: &PinnedAuthorities,
) -> Result<Key, Error> {
    Key::verify(documents, authorities).map_err(Error::unverified("the key's documents"))
}

/// How a command ends whose key could be used, or could not yet.
pub(crate) const fn usable(is_usable: bool) -> Exit {
    if is_usable {
        Exit::Done
    } else {
        Exit::TryAgain
    }
}

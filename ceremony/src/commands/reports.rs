//! What several commands say in the same words. It decides how a thing is told to a person and to a
//! script, and nothing about the thing.

use std::path::Path;

use firn_protocol::documents::Quorum;
use firn_protocol::keys::IdentityKey;
use serde::Serialize;

use crate::{error::Error, fingerprint, output::Output, words::counted};

/// A digest, for people and for scripts.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Fingerprint {
    pub(crate) words: String,
    pub(crate) hex: String,
}

impl Fingerprint {
    pub(crate) fn of(digest: &[u8; 32]) -> Self {
        Self {
            words: fingerprint::words(digest).join(" "),
            hex: hex::encode(digest),
        }
    }
}

/// Who has signed and how many have not.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Signatures {
    /// Names, in the order of the Authorities.
    pub(crate) signed_by: Vec<String>,
    pub(crate) needed: u16,
    pub(crate) missing: usize,
}

impl Signatures {
    pub(crate) fn of(operators: &Quorum, signed: &[IdentityKey]) -> Self {
        let named = operators
            .keys
            .iter()
            .filter(|named| signed.contains(&named.key));
        Self {
            signed_by: named.map(|named| named.name.to_string()).collect(),
            needed: operators.needed,
            missing: usize::from(operators.needed).saturating_sub(signed.len()),
        }
    }

    /// Says it to a person.
    pub(crate) fn say(&self, output: Output) {
        let names = if self.signed_by.is_empty() {
            "nobody yet".to_owned()
        } else {
            self.signed_by.join(", ")
        };
        output.fact("signed by", names);
        if self.missing > 0 {
            let missing = counted(self.missing, "signature");
            output.fact(
                "",
                format_args!("{missing} missing ({} needed)", self.needed),
            );
        }
    }
}

/// A file that is to be written must not be there: found out before anybody is asked anything.
///
/// # Errors
/// [`Error::FileExists`].
pub(crate) fn must_not_exist(path: &Path) -> Result<(), Error> {
    if path.symlink_metadata().is_ok() {
        Err(Error::FileExists {
            path: path.to_owned(),
        })
    } else {
        Ok(())
    }
}

/// The two parts of an argument of the form `NAME=REST`; without `=` the name alone.
pub(crate) fn split(argument: &str) -> (&str, Option<&str>) {
    match argument.split_once('=') {
        Some((name, rest)) => (name, Some(rest)),
        None => (argument, None),
    }
}

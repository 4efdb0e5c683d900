//! The file as it is written, and the rules that TOML and the types alone do not hold.

use std::{
    collections::BTreeSet,
    ops::Range,
    path::{Path, PathBuf},
};

use firn_protocol::{
    ids::AuthoritiesDigest,
    limits,
    names::{Role, SpiffeId},
};
use serde::{Deserialize, Deserializer, Serialize, de};
use toml::Spanned;

use super::{Coordinator, Profile, TlsFiles};

/// Something that TOML and the types allow and that is wrong all the same.
pub(super) struct Wrong {
    pub(super) span: Range<usize>,
    pub(super) what: String,
}

fn wrong<T>(at: &Spanned<T>, what: impl Into<String>) -> Wrong {
    Wrong {
        span: at.span(),
        what: what.into(),
    }
}

/// The file as it is read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    name: Spanned<SpiffeId>,
    identity_key: PathBuf,
    authorities: PathBuf,
    authorities_digest: PinnedDigest,
    tls: TlsFiles,
    coordinators: Spanned<Vec<Spanned<Coordinator>>>,
}

/// The same as it is written.
#[derive(Serialize)]
struct Written<'a> {
    name: &'a SpiffeId,
    identity_key: &'a Path,
    authorities: &'a Path,
    authorities_digest: String,
    tls: &'a TlsFiles,
    coordinators: &'a [Coordinator],
}

struct PinnedDigest(AuthoritiesDigest);

impl<'de> Deserialize<'de> for PinnedDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        AuthoritiesDigest::from_hex(&text)
            .map(Self)
            .ok_or_else(|| de::Error::custom("a digest is 64 hexadecimal digits"))
    }
}

impl File {
    /// The profile that it stands for, with paths taken from `folder`.
    pub(super) fn check(self, folder: &Path) -> Result<Profile, Wrong> {
        match self.name.get_ref().role() {
            Role::Requester | Role::Operator => {}
            Role::Participant | Role::Coordinator => {
                let what = "the name's role is neither requester nor operator";
                return Err(wrong(&self.name, what));
            }
        }
        Ok(Profile {
            coordinators: check_coordinators(self.coordinators, self.name.get_ref())?,
            name: self.name.into_inner(),
            identity_key: folder.join(self.identity_key),
            authorities: folder.join(self.authorities),
            authorities_digest: self.authorities_digest.0,
            tls: TlsFiles {
                certificate: folder.join(self.tls.certificate),
                key: folder.join(self.tls.key),
                roots: folder.join(self.tls.roots),
            },
        })
    }
}

pub(super) fn write(profile: &Profile) -> Result<String, toml::ser::Error> {
    toml::to_string(&Written {
        name: &profile.name,
        identity_key: &profile.identity_key,
        authorities: &profile.authorities,
        authorities_digest: profile.authorities_digest.to_string(),
        tls: &profile.tls,
        coordinators: &profile.coordinators,
    })
}

fn check_coordinators(
    table: Spanned<Vec<Spanned<Coordinator>>>,
    own: &SpiffeId,
) -> Result<Vec<Coordinator>, Wrong> {
    let count = table.get_ref().len();
    if count == 0 || count > limits::MAX_AUTHORITY_KEYS {
        return Err(wrong(&table, "there must be 1 to 64 coordinators"));
    }
    let mut names = BTreeSet::new();
    let mut coordinators = Vec::with_capacity(count);
    for entry in table.into_inner() {
        let name = &entry.get_ref().name;
        if name.role() != Role::Coordinator {
            return Err(wrong(&entry, "the name's role is not coordinator"));
        }
        if name.trust_domain() != own.trust_domain() {
            return Err(wrong(&entry, "the coordinator is of another trust domain"));
        }
        if !names.insert(name.clone()) {
            return Err(wrong(&entry, "the coordinator stands twice"));
        }
        coordinators.push(entry.into_inner());
    }
    Ok(coordinators)
}

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
use serde::{Deserialize, Deserializer, de};
use toml::Spanned;

use super::{Address, Config, CoordinatorConfig, LimitsConfig, LogFormat, TlsConfig, VaultConfig};

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

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    name: Spanned<SpiffeId>,
    data_dir: PathBuf,
    anchor_dir: Option<PathBuf>,
    control_socket: Option<PathBuf>,
    tls: Tls,
    identity_key: PathBuf,
    authorities: PathBuf,
    authorities_digest: PinnedDigest,
    vault: Spanned<VaultTable>,
    coordinators: Spanned<Vec<Spanned<Coordinator>>>,
    #[serde(default)]
    limits: Limits,
    #[serde(default)]
    log: LogFormat,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    roots: PathBuf,
    look_every_ms: Option<Spanned<u64>>,
    warn_before_hours: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VaultTable {
    unlock: UnlockBy,
    file: Option<PathBuf>,
    credential: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum UnlockBy {
    KeyFile,
    Passphrase,
    Credential,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Coordinator {
    name: SpiffeId,
    address: Address,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    max_clock_skew_ms: Option<Spanned<u64>>,
    max_epoch_jump: Option<Spanned<u64>>,
    max_grant_life_ms: Option<Spanned<u64>>,
    step_timeout_ms: Option<Spanned<u64>>,
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

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl File {
    /// The configuration that it stands for, with paths taken from `folder`.
    pub(super) fn check(self, folder: &Path) -> Result<Config, Wrong> {
        if self.name.get_ref().role() != Role::Participant {
            return Err(wrong(&self.name, "the name's role is not participant"));
        }
        let vault = check_vault(self.vault, folder)?;
        let coordinators = check_coordinators(self.coordinators)?;
        let data_dir = folder.join(self.data_dir);
        let inside = |given: Option<PathBuf>, name: &str| {
            given.map_or_else(|| data_dir.join(name), |path| folder.join(path))
        };
        let anchor_dir = inside(self.anchor_dir, "anchor");
        let control_socket = inside(self.control_socket, "control.sock");
        Ok(Config {
            name: self.name.into_inner(),
            data_dir,
            anchor_dir,
            control_socket,
            tls: TlsConfig {
                certificate: folder.join(self.tls.certificate),
                key: folder.join(self.tls.key),
                roots: folder.join(self.tls.roots),
                look_every_ms: bounded(self.tls.look_every_ms, 30_000, 100, 3_600_000)?,
                warn_before_hours: self
                    .tls
                    .warn_before_hours
                    .map(|hours| bounded(Some(hours), 0, 1, 87_600))
                    .transpose()?,
            },
            identity_key: folder.join(self.identity_key),
            authorities: folder.join(self.authorities),
            authorities_digest: self.authorities_digest.0,
            vault,
            coordinators,
            limits: LimitsConfig {
                max_clock_skew_ms: bounded(self.limits.max_clock_skew_ms, 2_000, 100, 60_000)?,
                max_epoch_jump: bounded(self.limits.max_epoch_jump, 1_000, 1, 1_000_000_000)?,
                max_grant_life_ms: bounded(
                    self.limits.max_grant_life_ms,
                    86_400_000,
                    60_000,
                    2_592_000_000,
                )?,
                step_timeout_ms: bounded(self.limits.step_timeout_ms, 10_000, 100, 600_000)?,
            },
            log: self.log,
        })
    }
}

fn check_vault(table: Spanned<VaultTable>, folder: &Path) -> Result<VaultConfig, Wrong> {
    let VaultTable {
        unlock,
        file,
        credential,
    } = table.get_ref();
    match (unlock, file, credential) {
        (UnlockBy::KeyFile, Some(file), None) => Ok(VaultConfig::KeyFile(folder.join(file))),
        (UnlockBy::Credential, None, Some(name)) => Ok(VaultConfig::Credential(name.clone())),
        (UnlockBy::Passphrase, None, None) => Ok(VaultConfig::Passphrase),
        (UnlockBy::KeyFile, ..) => Err(wrong(&table, "\"key-file\" needs `file` and nothing else")),
        (UnlockBy::Credential, ..) => Err(wrong(
            &table,
            "\"credential\" needs `credential` and nothing else",
        )),
        (UnlockBy::Passphrase, ..) => Err(wrong(&table, "\"passphrase\" needs nothing else")),
    }
}

fn check_coordinators(
    table: Spanned<Vec<Spanned<Coordinator>>>,
) -> Result<Vec<CoordinatorConfig>, Wrong> {
    let count = table.get_ref().len();
    if count == 0 || count > limits::MAX_AUTHORITY_KEYS {
        return Err(wrong(&table, "there must be 1 to 64 coordinators"));
    }
    let mut names = BTreeSet::new();
    let mut coordinators = Vec::with_capacity(count);
    for entry in table.into_inner() {
        if entry.get_ref().name.role() != Role::Coordinator {
            return Err(wrong(&entry, "the name's role is not coordinator"));
        }
        if !names.insert(entry.get_ref().name.clone()) {
            return Err(wrong(&entry, "the coordinator stands twice"));
        }
        let Coordinator { name, address } = entry.into_inner();
        coordinators.push(CoordinatorConfig { name, address });
    }
    Ok(coordinators)
}

fn bounded(given: Option<Spanned<u64>>, default: u64, least: u64, most: u64) -> Result<u64, Wrong> {
    let Some(given) = given else {
        return Ok(default);
    };
    if (least..=most).contains(given.get_ref()) {
        Ok(given.into_inner())
    } else {
        Err(wrong(&given, format!("it must be {least} to {most}")))
    }
}

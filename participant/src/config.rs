//! The participant's configuration: one TOML file. It decides whether the file says what is needed and
//! nothing that is not known, and never looks at the files that it names.
//!
//! Paths that are relative are taken from the folder of the configuration file. [`EXAMPLE`] shows every
//! field.

use std::{
    collections::BTreeSet,
    fmt,
    ops::Range,
    path::{Path, PathBuf},
    str::FromStr,
};

use firn_protocol::{
    ids::AuthoritiesDigest,
    limits,
    names::{Role, SpiffeId},
};
use serde::{Deserialize, Deserializer, de};
use toml::Spanned;

use crate::{
    private_files::{FileError, read_public},
    vault::{Asking, Credential, Passphrase, Unlock, VaultError},
};

const FILE_LIMIT: usize = 64 << 10;

/// A configuration with every field.
pub const EXAMPLE: &str = r#"# A participant of Firn. Relative paths are taken from this file's folder.

# The SPIFFE id in this participant's TLS certificate.
name = "spiffe://custody.example/participant/a"

# Ledger, vault and documents: a folder for this user alone (0700).
data_dir = "data"

# The ledger's anchor: put it on another disk, so that an old copy of the data folder is found out.
# Without this line it is data_dir/anchor, which goes back in time together with the ledger.
anchor_dir = "/mnt/anchor/firn-a"

# The Ed25519 seed that signs for this participant: 64 hexadecimal digits, for this user alone (0600).
identity_key = "identity.key"

# The keys that count, as the operators signed them, and the digest that this machine's operator has
# compared with them.
authorities = "authorities.cbor"
authorities_digest = "0000000000000000000000000000000000000000000000000000000000000000"

# Lines for people ("human"), for programs ("json"), or by whether a terminal is there ("auto").
log = "auto"

[tls]
# This participant's certificate chain and private key (for this user alone), and the roots that vouch
# for coordinators, in PEM.
certificate = "tls.pem"
key = "tls.key"
roots = "roots.pem"

[vault]
# How the signing shares are unlocked at the start:
#   "key-file"    32 random bytes in `file` (0600)
#   "credential"  32 random bytes that systemd gives under the name `credential`
#   "passphrase"  asked at the terminal, or read from the file that FIRN_PASSPHRASE_FILE names
#                 (0600, or a descriptor such as /dev/fd/3)
unlock = "key-file"
file = "vault.key"

# The coordinators that this participant dials: at least one.
[[coordinators]]
name = "spiffe://custody.example/coordinator/main"
address = "coordinator.custody.example:7600"

[limits]
# By how much this clock and a peer's may differ, in milliseconds: 100 to 60000.
max_clock_skew_ms = 2000
# How far above the highest epoch that was seen a grant's epoch may be: 1 to 1000000000.
max_epoch_jump = 1000
# How long a session waits for its next message, in milliseconds: 100 to 600000.
step_timeout_ms = 10000
"#;

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file does not say what it must.
    #[error("{}:{line}: {what}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        what: String,
    },
}

impl ConfigError {
    /// The stable code of the reason.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::File(error) => error.code(),
            Self::Invalid { .. } => "config_invalid",
        }
    }

    /// What an operator can do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::File(error) => error.advice(),
            Self::Invalid { .. } => {
                "Correct the line and start again: nothing was started, and no other file was read."
            }
        }
    }
}

/// The configuration, with all paths resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The SPIFFE id in this participant's TLS certificate.
    pub name: SpiffeId,
    /// The folder of ledger, vault and documents.
    pub data_dir: PathBuf,
    /// The folder of the ledger's anchor. By default `data_dir/anchor`, which finds damage out, but not
    /// an old copy of the whole data folder: name a folder on another disk.
    pub anchor_dir: PathBuf,
    /// Certificate, key and roots.
    pub tls: TlsConfig,
    /// The file of the Ed25519 seed in hexadecimal; mode 0600.
    pub identity_key: PathBuf,
    /// The file of the endorsed Authorities.
    pub authorities: PathBuf,
    /// The digest of the Authorities that the operator of this machine accepted.
    pub authorities_digest: AuthoritiesDigest,
    /// How the vault is unlocked.
    pub vault: VaultConfig,
    /// The coordinators to dial: at least one, each name once.
    pub coordinators: Vec<CoordinatorConfig>,
    /// Bounds of time and epochs.
    pub limits: LimitsConfig,
    /// The form of the log.
    pub log: LogFormat,
}

/// The files of TLS, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsConfig {
    /// This participant's certificate chain.
    pub certificate: PathBuf,
    /// The certificate's private key.
    pub key: PathBuf,
    /// The roots that vouch for coordinators.
    pub roots: PathBuf,
}

/// How the vault is unlocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VaultConfig {
    /// By a file of 32 random bytes; mode 0600.
    KeyFile(PathBuf),
    /// By a passphrase from a terminal, a file or a descriptor.
    Passphrase,
    /// By the credential of this name that systemd gives.
    Credential(String),
}

/// A coordinator to dial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoordinatorConfig {
    /// The SPIFFE id that its certificate must have.
    pub name: SpiffeId,
    /// Where it listens.
    pub address: Address,
}

/// Bounds of time and epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitsConfig {
    /// By how much this clock and a peer's may differ; 100 to 60,000, by default 2,000.
    pub max_clock_skew_ms: u64,
    /// How far above the highest epoch seen an epoch may be; 1 to 1,000,000,000, by default 1,000.
    pub max_epoch_jump: u64,
    /// How long a session waits for its next message; 100 to 600,000, by default 10,000.
    pub step_timeout_ms: u64,
}

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// Lines for people.
    Human,
    /// One JSON object a line.
    Json,
    /// For people where there is a terminal, JSON elsewhere.
    #[default]
    Auto,
}

/// Host and port: `name:port`, `192.0.2.1:port` or `[2001:db8::1]:port`; the port is not 0.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    host: String,
    port: u16,
}

impl Address {
    /// The name or IP address, without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The UDP port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "an address is host:port, with brackets around an IPv6 address";
        let (host, port) = text.rsplit_once(':').ok_or(wrong)?;
        let bracketed = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let good = match bracketed {
            Some(host) => host.parse::<std::net::Ipv6Addr>().is_ok(),
            None => {
                let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
                (1..=253).contains(&host.len()) && host.bytes().all(allowed)
            }
        };
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().map_err(|_| wrong)?;
        if !good || !digits || port == 0 {
            return Err(wrong);
        }
        let host = bracketed.unwrap_or(host).to_owned();
        Ok(Self { host, port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl VaultConfig {
    /// Gets ready to unlock the vault, which may mean asking for a passphrase: twice for a new vault.
    ///
    /// # Errors
    /// [`VaultError`] where there is no passphrase or credential.
    pub fn unlock(&self, asking: Asking) -> Result<Unlock, VaultError> {
        match self {
            Self::KeyFile(path) => Ok(Unlock::KeyFile(path.clone())),
            Self::Passphrase => Passphrase::obtain(asking).map(Unlock::Passphrase),
            Self::Credential(name) => Credential::from_environment(name).map(Unlock::Credential),
        }
    }
}

impl Config {
    /// Reads a configuration.
    ///
    /// # Errors
    /// [`ConfigError::File`], or [`ConfigError::Invalid`] with the line of the first thing wrong.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let bytes = read_public(path, FILE_LIMIT)?;
        let invalid = |line, what: &str| ConfigError::Invalid {
            path: path.to_owned(),
            line,
            what: what.to_owned(),
        };
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            invalid(line_after(before), "not UTF-8")
        })?;
        let at = |offset: usize| {
            let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
            line_after(before)
        };
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| at(span.start));
            invalid(line, error.message())
        })?;
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        file.check(folder)
            .map_err(|wrong| invalid(at(wrong.span.start), &wrong.what))
    }
}

/// Something that TOML and the types allow and that is wrong all the same.
struct Wrong {
    span: Range<usize>,
    what: String,
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
struct File {
    name: Spanned<SpiffeId>,
    data_dir: PathBuf,
    anchor_dir: Option<PathBuf>,
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
    fn check(self, folder: &Path) -> Result<Config, Wrong> {
        if self.name.get_ref().role() != Role::Participant {
            return Err(wrong(&self.name, "the name's role is not participant"));
        }
        let vault = check_vault(self.vault, folder)?;
        let coordinators = check_coordinators(self.coordinators)?;
        let data_dir = folder.join(self.data_dir);
        let anchor_dir = self
            .anchor_dir
            .map_or_else(|| data_dir.join("anchor"), |path| folder.join(path));
        Ok(Config {
            name: self.name.into_inner(),
            data_dir,
            anchor_dir,
            tls: TlsConfig {
                certificate: folder.join(self.tls.certificate),
                key: folder.join(self.tls.key),
                roots: folder.join(self.tls.roots),
            },
            identity_key: folder.join(self.identity_key),
            authorities: folder.join(self.authorities),
            authorities_digest: self.authorities_digest.0,
            vault,
            coordinators,
            limits: LimitsConfig {
                max_clock_skew_ms: bounded(self.limits.max_clock_skew_ms, 2_000, 100, 60_000)?,
                max_epoch_jump: bounded(self.limits.max_epoch_jump, 1_000, 1, 1_000_000_000)?,
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

/// The number of the line that begins or goes on after these bytes.
fn line_after(before: &[u8]) -> usize {
    before
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        .saturating_add(1)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn load(text: &[u8]) -> Result<Config, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("participant.toml");
        fs::write(&path, text).unwrap();
        Config::load(&path)
    }

    /// The refusal of the example with one text replaced, and the line that holds `marker` there.
    fn refusal(from: &str, to: &str) -> (usize, String) {
        assert!(EXAMPLE.contains(from), "{from:?}");
        match load(EXAMPLE.replace(from, to).as_bytes()).unwrap_err() {
            ConfigError::Invalid { line, what, .. } => (line, what),
            error @ ConfigError::File(_) => panic!("{error}"),
        }
    }

    fn line_of(marker: &str) -> usize {
        let at = EXAMPLE.lines().position(|line| line.starts_with(marker));
        at.unwrap().saturating_add(1)
    }

    #[test]
    fn reads_the_example_and_resolves_its_paths() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("participant.toml");
        fs::write(&path, EXAMPLE).unwrap();
        let config = Config::load(&path).unwrap();
        assert_eq!(config.data_dir, folder.path().join("data"));
        assert_eq!(config.anchor_dir, Path::new("/mnt/anchor/firn-a"));
        assert_eq!(config.tls.key, folder.path().join("tls.key"));
        assert_eq!(
            config.vault,
            VaultConfig::KeyFile(folder.path().join("vault.key"))
        );
        assert_eq!(config.coordinators[0].address.port(), 7600);
        assert_eq!(config.log, LogFormat::Auto);
    }

    #[test]
    fn has_the_documented_defaults() {
        let mut text: String = EXAMPLE
            .lines()
            .filter(|line| !line.starts_with("anchor_dir") && !line.starts_with("log"))
            .take_while(|line| *line != "[limits]")
            .fold(String::new(), |text, line| text + line + "\n");
        let config = load(text.as_bytes()).unwrap();
        assert_eq!(config.anchor_dir, config.data_dir.join("anchor"));
        assert_eq!(config.log, LogFormat::Auto);
        let limits = LimitsConfig {
            max_clock_skew_ms: 2_000,
            max_epoch_jump: 1_000,
            step_timeout_ms: 10_000,
        };
        assert_eq!(config.limits, limits);
        text.push_str("[limits]\n");
        assert_eq!(load(text.as_bytes()).unwrap().limits, limits);
    }

    #[test]
    fn refuses_an_unknown_field_in_every_table_and_names_its_line() {
        for (table, field) in [
            ("log = \"auto\"", "log = \"auto\"\ncolour = 1"),
            ("roots = ", "cipher = \"x\"\nroots = "),
            ("file = ", "iterations = 1\nfile = "),
            ("address = ", "weight = 1\naddress = "),
            ("max_epoch_jump = ", "max_epoch = 1\nmax_epoch_jump = "),
        ] {
            let (line, what) = refusal(table, field);
            assert!(what.contains("unknown field"), "{what}");
            let start = table.split(' ').next().unwrap();
            let added = usize::from(table.starts_with("log"));
            assert_eq!(line, line_of(start) + added, "{table}");
        }
    }

    #[test]
    fn refuses_what_the_types_allow_but_the_rules_do_not() {
        for (from, to, marker) in [
            ("/participant/a", "/requester/a", "name"),
            ("/participant/a", "/participant/A", "name"),
            ("log = \"auto\"", "log = \"loud\"", "log"),
            ("00\"", "0\"", "authorities_digest"),
            ("00\"", "0g\"", "authorities_digest"),
            ("\"key-file\"\nfile", "\"passphrase\"\nfile", "[vault]"),
            ("\"key-file\"\nfile", "\"credential\"\nfile", "[vault]"),
            ("file = \"vault.key\"", "", "[vault]"),
            ("unlock = \"key-file\"", "unlock = \"none\"", "unlock"),
            ("/coordinator/main", "/participant/main", "[[coordinators]]"),
            (":7600", "", "address"),
            (":7600", ":0", "address"),
            (":7600", ":+76", "address"),
            (":7600", ":65536", "address"),
            ("= 2000", "= 99", "max_clock_skew_ms"),
            ("= 2000", "= 60001", "max_clock_skew_ms"),
            ("= 2000", "= -1", "max_clock_skew_ms"),
            ("= 1000\n", "= 0\n", "max_epoch_jump"),
            ("= 10000", "= 0", "step_timeout_ms"),
            ("= 10000", "= \"soon\"", "step_timeout_ms"),
        ] {
            let (line, what) = refusal(from, to);
            assert_eq!(line, line_of(marker), "{to}: {what}");
        }
    }

    #[test]
    fn refuses_a_coordinator_twice_and_none() {
        let twice = format!(
            "{}\n[[coordinators]]\nname = \"spiffe://custody.example/coordinator/main\"\n\
             address = \"[2001:db8::1]:7600\"\n",
            EXAMPLE
        );
        let error = load(twice.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("stands twice"), "{error}");
        let none: String = EXAMPLE
            .lines()
            .filter(|line| {
                !line.starts_with("[[coordinators]]")
                    && !line.starts_with("address")
                    && !line.contains("/coordinator/main")
            })
            .fold("coordinators = []\n".to_owned(), |text, line| {
                text + line + "\n"
            });
        let error = load(none.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("1 to 64"), "{error}");
        assert_eq!(error.code(), "config_invalid");
    }

    #[test]
    fn needs_every_field_that_has_no_default() {
        for field in [
            "name =",
            "data_dir",
            "identity_key",
            "authorities =",
            "authorities_digest",
            "certificate",
            "key =",
            "roots",
            "unlock",
            "address",
        ] {
            let mut missing = false;
            let text = EXAMPLE.lines().fold(String::new(), |text, line| {
                if !missing && line.starts_with(field) {
                    missing = true;
                    text
                } else {
                    text + line + "\n"
                }
            });
            let error = load(text.as_bytes()).unwrap_err();
            assert!(
                missing && error.to_string().contains("missing field"),
                "{field}: {error}"
            );
        }
    }

    #[test]
    fn says_the_line_of_broken_toml_and_of_broken_utf8() {
        for (text, line) in [
            (&b"name = \"a\"\nx = ["[..], 2),
            (b"\n\nname", 3),
            (b"name = \"a\"\n\n\xff", 3),
        ] {
            let error = load(text).unwrap_err();
            assert!(
                error
                    .to_string()
                    .contains(&format!("participant.toml:{line}: ")),
                "{error}"
            );
        }
        assert_eq!(
            load(&vec![b'#'; FILE_LIMIT + 1]).unwrap_err().code(),
            "file_too_large"
        );
        let error = Config::load(Path::new("/nowhere/participant.toml")).unwrap_err();
        assert_eq!(error.code(), "file_missing");
    }

    #[test]
    fn reads_an_address_in_its_three_forms() {
        for (text, host) in [
            ("localhost:1", "localhost"),
            ("192.0.2.1:65535", "192.0.2.1"),
            ("[2001:db8::1]:7600", "2001:db8::1"),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.host(), host);
            assert_eq!(address.to_string(), text);
        }
        for text in [
            "",
            ":1",
            "a",
            "a:",
            "2001:db8::1:7600",
            "[a]:1",
            "a b:1",
            "[::1]",
            "a/b:1",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text:?}");
        }
    }
}

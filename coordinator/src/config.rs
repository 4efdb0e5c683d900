//! What a coordinator is told on its machine: where to listen, who it is, which Authorities count.
//! It decides whether the files fit together, and never starts with a part of them.

use std::{
    fs,
    io::Read,
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use firn_protocol::{
    codec,
    documents::Authorities,
    envelope::{Approved, Endorsed},
    ids::AuthoritiesDigest,
    keys::IdentitySecret,
    reject::Reject,
};
use firn_transport::CredentialFiles;
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::{carry::Patience, error::CoordinatorError};

/// Bytes of a configuration file; far more than one needs.
const MAX_CONFIG: u64 = 64 << 10;
/// Hexadecimal digits of a seed, and a line end.
const MAX_KEY_FILE: u64 = 72;

/// The configuration file. Paths are relative to its own folder.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where to listen; port 0 takes any free one.
    #[serde(default = "default_listen")]
    pub listen: SocketAddr,
    /// A file to write the bound address to, once it is known.
    pub address_file: Option<PathBuf>,
    /// The seed of the Ed25519 identity key, 64 hexadecimal digits, mode 600.
    pub identity_key: PathBuf,
    /// The endorsed Authorities.
    pub authorities: PathBuf,
    /// The digest of the Authorities that the operator compared.
    pub authorities_digest: String,
    /// Certificate, key and roots.
    pub tls: TlsFiles,
    /// Bounds.
    #[serde(default)]
    pub limits: Bounds,
}

/// Where the TLS identity is, all of it PEM, and how it is kept up to date.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The chain, end entity first.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The roots of the trust domain.
    pub roots: PathBuf,
    /// How often the files are looked at.
    #[serde(default = "default_look")]
    pub look_every_ms: u32,
    /// How long before a certificate's end it is warned of; by default 14 days, or a third of the
    /// certificate's life if that is shorter.
    #[serde(default)]
    pub warn_before_hours: Option<u32>,
}

impl TlsFiles {
    /// The three files.
    #[must_use]
    pub fn files(&self) -> CredentialFiles {
        CredentialFiles {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            roots: self.roots.clone(),
        }
    }

    /// [`TlsFiles::look_every_ms`] as a duration.
    #[must_use]
    pub fn look_every(&self) -> Duration {
        Duration::from_millis(u64::from(self.look_every_ms))
    }

    /// [`TlsFiles::warn_before_hours`] as a duration.
    #[must_use]
    pub fn warn_before(&self) -> Option<Duration> {
        self.warn_before_hours
            .map(|hours| Duration::from_hours(u64::from(hours)))
    }

    fn is_sound(&self) -> bool {
        (100..=3_600_000).contains(&self.look_every_ms)
            && self
                .warn_before_hours
                .is_none_or(|hours| (1..=87_600).contains(&hours))
    }
}

const fn default_look() -> u32 {
    30_000
}

/// How much and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bounds {
    /// Requests at once; more are told that the coordinator is busy.
    pub requests: u16,
    /// How long members may take to answer the opening of a signing session before others are asked.
    pub open_ms: u32,
    /// How long members may take for any other step.
    pub step_ms: u32,
    /// How long what is in flight may go on after a signal to stop.
    pub drain_ms: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            requests: 64,
            open_ms: 2_000,
            step_ms: 10_000,
            drain_ms: 5_000,
        }
    }
}

impl Bounds {
    /// [`Bounds::step_ms`] as a duration.
    #[must_use]
    pub fn step(self) -> Duration {
        Duration::from_millis(u64::from(self.step_ms))
    }

    /// For a signing session.
    pub(crate) fn patience(self) -> Patience {
        let first = Duration::from_millis(u64::from(self.open_ms));
        Patience {
            first,
            step: self.step(),
        }
    }

    /// How long one request waits for another that is the same: three steps, one more attempt.
    pub(crate) fn turn(self) -> Duration {
        self.step().saturating_mul(3)
    }

    /// [`Bounds::drain_ms`] as a duration.
    #[must_use]
    pub fn drain(self) -> Duration {
        Duration::from_millis(u64::from(self.drain_ms))
    }

    fn are_sound(self) -> bool {
        (1..=1_024).contains(&self.requests)
            && (100..=600_000).contains(&self.open_ms)
            && (100..=600_000).contains(&self.step_ms)
            && self.drain_ms <= 600_000
    }
}

const fn default_listen() -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0)
}

impl Config {
    /// Reads the file and puts its paths in relation to its folder.
    ///
    /// # Errors
    /// A file that cannot be read, or is not a configuration.
    pub fn load(path: &Path) -> Result<Self, CoordinatorError> {
        let invalid = |reason: String| CoordinatorError::Config {
            path: path.to_owned(),
            reason,
        };
        let bytes = read_bounded(path, MAX_CONFIG)?;
        let text = String::from_utf8(bytes).map_err(|_| invalid("not UTF-8".to_owned()))?;
        let mut config: Self =
            toml::from_str(&text).map_err(|error| invalid(error.message().to_owned()))?;
        if !config.limits.are_sound() {
            let bounds =
                "requests must be 1 to 1024, step_ms 100 to 600000, drain_ms at most 600000";
            return Err(invalid(bounds.to_owned()));
        }
        if !config.tls.is_sound() {
            let bounds = "look_every_ms must be 100 to 3600000, warn_before_hours 1 to 87600";
            return Err(invalid(bounds.to_owned()));
        }
        if AuthoritiesDigest::from_hex(&config.authorities_digest).is_none() {
            return Err(invalid(
                "authorities_digest is not 64 hexadecimal digits".to_owned(),
            ));
        }
        let folder = path.parent().unwrap_or(Path::new("."));
        for file in [
            &mut config.identity_key,
            &mut config.authorities,
            &mut config.tls.certificate,
            &mut config.tls.key,
            &mut config.tls.roots,
        ]
        .into_iter()
        .chain(&mut config.address_file)
        {
            *file = folder.join(&*file);
        }
        Ok(config)
    }

    /// The identity key.
    ///
    /// # Errors
    /// A file that others can read, or that does not hold a seed.
    pub fn load_identity(&self) -> Result<IdentitySecret, CoordinatorError> {
        let path = &self.identity_key;
        let metadata = fs::metadata(path).map_err(|source| CoordinatorError::Read {
            path: path.clone(),
            source,
        })?;
        let mode = metadata.permissions().mode() & 0o777;
        if mode != 0o600 {
            return Err(CoordinatorError::KeyMode {
                path: path.clone(),
                mode,
            });
        }
        let text = Zeroizing::new(read_bounded(path, MAX_KEY_FILE)?);
        let mut seed = Zeroizing::new([0; 32]);
        hex::decode_to_slice(text.trim_ascii(), &mut *seed)
            .map_err(|_| CoordinatorError::KeyFormat { path: path.clone() })?;
        Ok(IdentitySecret::from_seed(&seed))
    }

    /// The Authorities, signed by their own operators and with the digest that was compared.
    ///
    /// # Errors
    /// Other Authorities than the pinned ones, or unsound ones.
    pub fn load_authorities(&self) -> Result<Approved<Authorities>, CoordinatorError> {
        let path = &self.authorities;
        let limit = u64::try_from(Endorsed::LIMIT).unwrap_or(u64::MAX);
        let bytes = read_bounded(path, limit)?;
        let refused = |code: Reject| CoordinatorError::Authorities {
            path: path.clone(),
            code,
        };
        let endorsed: Endorsed =
            codec::decode(&bytes, Endorsed::LIMIT).map_err(|error| refused(error.into()))?;
        let (read, digest) = endorsed
            .read::<Authorities>()
            .map_err(|error| refused(error.into()))?;
        let found = AuthoritiesDigest::from_bytes(digest);
        if AuthoritiesDigest::from_hex(&self.authorities_digest) != Some(found) {
            let found = found.to_string();
            return Err(CoordinatorError::AuthoritiesPin {
                path: path.clone(),
                found,
            });
        }
        if !read.is_sound() {
            return Err(refused(Reject::UnsoundDocument));
        }
        endorsed
            .verify(
                &read.operators.identities(),
                usize::from(read.operators.needed),
            )
            .map_err(|error| refused(error.into()))
    }
}

/// A file of at most `limit` bytes.
fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, CoordinatorError> {
    let failed = |source| CoordinatorError::Read {
        path: path.to_owned(),
        source,
    };
    let file = fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limit {
        return Err(failed(std::io::Error::other(
            "larger than such a file can be",
        )));
    }
    Ok(bytes)
}

/// Writes a file so that whoever sees it sees all of it.
///
/// # Errors
/// When the folder or the file cannot be written.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), CoordinatorError> {
    let failed = |source| CoordinatorError::Write {
        path: path.to_owned(),
        source,
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    fs::write(&temporary, bytes).map_err(failed)?;
    fs::rename(&temporary, path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, path::Path};

    use super::{Bounds, Config, default_look, write_atomically};

    const DIGEST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

    fn written(folder: &Path, more: &str, after: &str) -> Result<Config, &'static str> {
        let path = folder.join("coordinator.toml");
        let text = format!(
            "identity_key = \"k\"\nauthorities = \"a\"\nauthorities_digest = \"{DIGEST}\"\n{more}\n\
             [tls]\ncertificate = \"c\"\nkey = \"t\"\nroots = \"/r\"\n{after}\n"
        );
        fs::write(&path, text).unwrap();
        Config::load(&path).map_err(|error| error.code())
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let config = written(folder.path(), "address_file = \"addr\"", "").unwrap();
        assert_eq!(config.identity_key, folder.path().join("k"));
        assert_eq!(config.address_file, Some(folder.path().join("addr")));
        assert_eq!(config.tls.roots, Path::new("/r"));
        assert_eq!(config.listen.port(), 0);
        assert_eq!(config.limits.requests, 64);
    }

    #[test]
    fn the_example_says_what_is_so_without_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("coordinator.toml");
        fs::write(&path, include_str!("../../deploy/coordinator.toml")).unwrap();
        let config = Config::load(&path).unwrap();
        assert_eq!(config.limits, Bounds::default());
        assert_eq!(config.tls.look_every_ms, default_look());
        assert_eq!(config.tls.warn_before(), None);
    }

    #[test]
    fn refuses_what_it_does_not_know_and_bounds_that_bound_nothing() {
        let folder = tempfile::tempdir().unwrap();
        for (more, after) in [
            ("surprise = 1", ""),
            ("", "surprise = 1"),
            ("", "look_every_ms = 99"),
            ("", "warn_before_hours = 0"),
            ("", "[limits]\nrequests = 0"),
            ("", "[limits]\nstep_ms = 1"),
            ("listen = \"nowhere\"", ""),
        ] {
            let refused = written(folder.path(), more, after).map(|_| ());
            assert_eq!(refused, Err("config_invalid"), "{more} {after}");
        }
        assert_eq!(
            Config::load(&folder.path().join("none"))
                .map(|_| ())
                .map_err(|e| e.code()),
            Err("file_unreadable")
        );
    }

    #[test]
    fn an_identity_key_is_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let config = written(folder.path(), "", "").unwrap();
        for (text, mode, wanted) in [
            (format!("{}\n", "11".repeat(32)), 0o600, Ok(())),
            ("11".repeat(32), 0o640, Err("key_file_mode")),
            ("11".repeat(31), 0o600, Err("key_file_format")),
            ("zz".repeat(32), 0o600, Err("key_file_format")),
            ("11".repeat(99), 0o600, Err("file_unreadable")),
        ] {
            fs::write(&config.identity_key, &text).unwrap();
            fs::set_permissions(&config.identity_key, fs::Permissions::from_mode(mode)).unwrap();
            let loaded = config
                .load_identity()
                .map(|_| ())
                .map_err(|error| error.code());
            assert_eq!(loaded, wanted, "{mode:o} {}", text.len());
        }
    }

    #[test]
    fn a_file_appears_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("address");
        write_atomically(&path, b"127.0.0.1:1\n").unwrap();
        write_atomically(&path, b"127.0.0.1:2\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"127.0.0.1:2\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

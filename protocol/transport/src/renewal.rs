//! A process's own certificate and its roots, over their life: read at the start, looked at again, and
//! warned of before they end. It decides whether what the files say now may take the place of what is
//! in use; what does not fit never does, and connections are left alone.

use std::{
    fmt,
    fs::Metadata,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use firn_protocol::names::{SpiffeId, TrustDomain};
use rustls::{pki_types::UnixTime, time_provider::TimeProvider};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::{
    Dialer, Listener, TlsIdentity, TransportError, Trust,
    identity::{read, read_if},
    validity::{Standing, Validity},
};

/// A warning that is not heeded is said again after this long.
const AGAIN: Duration = Duration::from_hours(24);
/// The group may read a private key, as some CAs' agents need it, and nobody else may.
const FORBIDDEN_KEY_MODE: u32 = 0o027;

const OWN: &str = "our own certificate";
const ROOTS: &str = "every root certificate";

/// Where a process's certificate chain, private key and roots are; all of it PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialFiles {
    /// The chain, end entity first.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The roots of the trust domain.
    pub roots: PathBuf,
}

/// What the files say.
struct Found {
    identity: TlsIdentity,
    trust: Trust,
}

/// Something whose certificate can be replaced while it runs.
pub trait Renewable {
    /// Shows another certificate and believes by other roots, from the next connection on.
    ///
    /// # Errors
    /// A role or trust domain that does not fit; the old identity stays then.
    fn replace_identity(
        &self,
        identity: &TlsIdentity,
        trust: Arc<Trust>,
    ) -> Result<(), TransportError>;
}

impl Renewable for Listener {
    fn replace_identity(
        &self,
        identity: &TlsIdentity,
        trust: Arc<Trust>,
    ) -> Result<(), TransportError> {
        Self::replace_identity(self, identity, trust)
    }
}

impl Renewable for Dialer {
    fn replace_identity(
        &self,
        identity: &TlsIdentity,
        trust: Arc<Trust>,
    ) -> Result<(), TransportError> {
        Self::replace_identity(self, identity, trust)
    }
}

/// A certificate in use whose end is near or over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    what: &'static str,
    validity: Validity,
    expired: bool,
}

impl Ending {
    /// The stable code of the warning.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        if self.expired {
            "certificate_expired"
        } else {
            "certificate_expires_soon"
        }
    }

    /// The period that ends.
    #[must_use]
    pub const fn validity(&self) -> Validity {
        self.validity
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.expired { "expired" } else { "expires" };
        write!(f, "{} {verb} at {}", self.what, self.validity.not_after())
    }
}

/// Keeps a process's certificate and roots up to date with their files.
pub struct Renewal {
    files: CredentialFiles,
    name: SpiffeId,
    trust_domain: TrustDomain,
    warn_before: Option<Duration>,
    clock: Arc<dyn TimeProvider>,
    in_use: [u8; 32],
    validity: Validity,
    roots: Vec<Validity>,
    /// What was refused last, so that the same refusal is not said at every look.
    refused: Option<(Option<[u8; 32]>, &'static str)>,
    warned: Option<UnixTime>,
}

impl Renewal {
    /// Reads the files at the start. The end of a certificate is near within `warn_before`, or within
    /// what [`Validity::usual_warning`] says.
    ///
    /// # Errors
    /// Files that are not an identity and roots; a certificate that has expired or is not yet valid,
    /// and roots of which none is good now.
    pub fn begin(
        files: CredentialFiles,
        trust_domain: TrustDomain,
        warn_before: Option<Duration>,
        clock: Arc<dyn TimeProvider>,
    ) -> Result<(Self, TlsIdentity, Trust), TransportError> {
        let bytes = Bytes::read(&files)?;
        let Found { identity, trust } = bytes.parse(&trust_domain, &clock)?;
        let renewal = Self {
            files,
            name: identity.spiffe_id().clone(),
            trust_domain,
            warn_before,
            clock,
            in_use: bytes.digest(),
            validity: identity.validity(),
            roots: trust.root_validities().collect(),
            refused: None,
            warned: None,
        };
        Ok((renewal, identity, trust))
    }

    /// The period of the certificate in use.
    #[must_use]
    pub const fn validity(&self) -> Validity {
        self.validity
    }

    /// Looks at the files because somebody asked for it, and says what came of it in the log.
    ///
    /// # Errors
    /// What is wrong with them; what was in use stays.
    pub fn reload(&mut self, endpoint: &impl Renewable) -> Result<(), TransportError> {
        self.refused = None;
        let replaced = self.replace(endpoint);
        match &replaced {
            Ok(true) => self.say_replaced(),
            Ok(false) => tracing::info!("certificate and roots are the same as before"),
            Err(error) => say_refused(error),
        }
        replaced.map(|_| ())
    }

    /// Looks at the files as a matter of routine: says only what is new. Whether there is another
    /// certificate or other roots from now on.
    ///
    /// # Errors
    /// What is wrong with the files; what was in use stays.
    pub fn look(&mut self, endpoint: &impl Renewable) -> Result<bool, TransportError> {
        let before = self.refused;
        let replaced = self.replace(endpoint);
        match &replaced {
            Ok(true) => self.say_replaced(),
            Ok(false) => {}
            Err(error) if self.refused != before => say_refused(error),
            Err(_) => {}
        }
        replaced
    }

    /// What there is to warn of, at most once a day; it is in the log, too.
    pub fn warn(&mut self) -> Vec<Ending> {
        let now = now(&self.clock);
        let silent =
            |warned: UnixTime| now.as_secs() < warned.as_secs().saturating_add(AGAIN.as_secs());
        if self.warned.is_some_and(silent) {
            return Vec::new();
        }
        let own = std::iter::once((OWN, self.validity));
        let roots = self.roots.iter().map(|root| ("a root certificate", *root));
        let endings: Vec<Ending> = own
            .chain(roots)
            .filter_map(|(what, validity)| {
                let expired = match validity.standing(now, self.warn_before) {
                    Standing::Ending => false,
                    Standing::Expired => true,
                    Standing::Valid | Standing::NotYetValid => return None,
                };
                Some(Ending {
                    what,
                    validity,
                    expired,
                })
            })
            .collect();
        for ending in &endings {
            let advice =
                "issue the next one and put it in the place of the old one; no restart is needed";
            let until = ending.validity.not_after();
            if ending.expired {
                tracing::error!(code = ending.code(), %until, advice, "{ending}");
            } else {
                tracing::warn!(code = ending.code(), %until, advice, "{ending}");
            }
        }
        if !endings.is_empty() {
            self.warned = Some(now);
        }
        endings
    }

    fn say_replaced(&self) {
        let until = self.validity.not_after();
        tracing::info!(%until, "new certificate and roots, for new connections");
    }

    /// Takes over what the files say, if it is something else and fits.
    fn replace(&mut self, endpoint: &impl Renewable) -> Result<bool, TransportError> {
        let bytes = Bytes::read(&self.files).inspect_err(|error| {
            self.refused = Some((None, error.code()));
        })?;
        let digest = bytes.digest();
        if digest == self.in_use {
            self.refused = None;
            return Ok(false);
        }
        let found = bytes
            .parse(&self.trust_domain, &self.clock)
            .and_then(|found| self.take_over(endpoint, found))
            .inspect_err(|error| self.refused = Some((Some(digest), error.code())));
        let (validity, roots) = found?;
        self.in_use = digest;
        self.validity = validity;
        self.roots = roots;
        self.refused = None;
        self.warned = None;
        Ok(true)
    }

    fn take_over(
        &self,
        endpoint: &impl Renewable,
        found: Found,
    ) -> Result<(Validity, Vec<Validity>), TransportError> {
        let Found { identity, trust } = found;
        if *identity.spiffe_id() != self.name {
            return Err(TransportError::OtherName {
                found: identity.spiffe_id().clone(),
                expected: self.name.clone(),
            });
        }
        let roots = trust.root_validities().collect();
        endpoint.replace_identity(&identity, Arc::new(trust))?;
        Ok((identity.validity(), roots))
    }
}

impl fmt::Debug for Renewal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renewal")
            .field("files", &self.files)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

fn say_refused(error: &TransportError) {
    tracing::error!(
        code = error.code(),
        advice = error.advice(),
        "the new certificate is refused, and the old one stays in use: {error}"
    );
}

/// What is in the files.
struct Bytes {
    certificate: Vec<u8>,
    key: Zeroizing<Vec<u8>>,
    roots: Vec<u8>,
}

impl Bytes {
    fn read(files: &CredentialFiles) -> Result<Self, TransportError> {
        Ok(Self {
            certificate: read(&files.certificate)?,
            key: read_key(&files.key)?,
            roots: read(&files.roots)?,
        })
    }

    fn digest(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        for part in [&self.certificate, &*self.key, &self.roots] {
            digest.update(Sha256::digest(part));
        }
        digest.finalize().into()
    }

    fn parse(
        &self,
        trust_domain: &TrustDomain,
        clock: &Arc<dyn TimeProvider>,
    ) -> Result<Found, TransportError> {
        let identity = TlsIdentity::from_pem(&self.certificate, &self.key)?;
        let trust =
            Trust::from_pem(trust_domain.clone(), &self.roots)?.with_clock(Arc::clone(clock));
        let now = now(clock);
        require_valid(OWN, identity.validity(), now)?;
        // While a root is being replaced one of them may have ended, or not have begun.
        let judged: Vec<_> = trust
            .root_validities()
            .map(|root| require_valid(ROOTS, root, now))
            .collect();
        if !judged.iter().any(Result::is_ok) {
            judged.into_iter().next_back().transpose()?;
        }
        Ok(Found { identity, trust })
    }
}

fn require_valid(
    what: &'static str,
    validity: Validity,
    now: UnixTime,
) -> Result<(), TransportError> {
    match validity.standing(now, Some(Duration::ZERO)) {
        Standing::Valid | Standing::Ending => Ok(()),
        Standing::NotYetValid => Err(TransportError::NotYetValid {
            what,
            not_before: validity.not_before(),
        }),
        Standing::Expired => Err(TransportError::Expired {
            what,
            not_after: validity.not_after(),
        }),
    }
}

/// The private key's bytes, if its mode keeps others from reading or replacing them.
fn read_key(path: &Path) -> Result<Zeroizing<Vec<u8>>, TransportError> {
    let private = |found: &Metadata| {
        let mode = found.permissions().mode() & 0o7777;
        if mode & FORBIDDEN_KEY_MODE == 0 {
            return Ok(());
        }
        Err(TransportError::KeyMode {
            path: path.to_owned(),
            mode,
        })
    };
    read_if(path, private).map(Zeroizing::new)
}

/// A clock that cannot be read must not make a certificate good.
fn now(clock: &Arc<dyn TimeProvider>) -> UnixTime {
    clock
        .current_time()
        .unwrap_or(UnixTime::since_unix_epoch(Duration::from_secs(u64::MAX)))
}

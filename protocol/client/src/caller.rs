//! Who asks: a certificate for carrying, a key for speaking. It decides that the two are one person's,
//! and never shows either's private part.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};

use firn_protocol::{
    codec::{Malformed, Text},
    envelope::{Document, Envelope},
    keys::{IdentityKey, IdentitySecret},
    limits,
    names::{Role, SpiffeId},
};
use firn_transport::{Dialer, Limits, TlsIdentity, TransportError, Trust};

use crate::error::Error;

const SOFTWARE: &str = concat!("firn-client ", env!("CARGO_PKG_VERSION"));

/// A requester or an operator: its certificate, the roots that it believes, the key that it signs with.
pub struct Caller {
    id: SpiffeId,
    secret: IdentitySecret,
    software: String,
    tls: Mutex<Tls>,
}

struct Tls {
    identity: Arc<TlsIdentity>,
    trust: Arc<Trust>,
    // One socket for each family of addresses, made when it is needed first.
    v4: Option<Arc<Dialer>>,
    v6: Option<Arc<Dialer>>,
}

impl Caller {
    /// The person that `tls` names, who signs with `secret` and believes the coordinators that `trust`
    /// vouches for.
    ///
    /// # Errors
    /// A certificate that is neither a requester's nor an operator's, or of another trust domain than
    /// `trust`.
    pub fn new(secret: IdentitySecret, tls: TlsIdentity, trust: Trust) -> Result<Self, Error> {
        let id = tls.spiffe_id().clone();
        match id.role() {
            Role::Requester | Role::Operator => {}
            Role::Participant | Role::Coordinator => {
                return Err(Error::Unfit {
                    what: "the certificate is neither a requester's nor an operator's",
                    code: firn_protocol::reject::Reject::WrongRole,
                });
            }
        }
        if id.trust_domain() != trust.trust_domain() {
            return Err(Error::Transport {
                doing: "reading the certificate",
                source: TransportError::OwnCertificate(
                    firn_transport::CertificateRefusal::WrongTrustDomain,
                ),
            });
        }
        Ok(Self {
            id,
            secret,
            software: SOFTWARE.to_owned(),
            tls: Mutex::new(Tls {
                identity: Arc::new(tls),
                trust: Arc::new(trust),
                v4: None,
                v6: None,
            }),
        })
    }

    /// How this software calls itself towards coordinators; at most 64 bytes.
    #[must_use]
    pub fn with_software(mut self, name: &str) -> Self {
        name.clone_into(&mut self.software);
        self
    }

    /// The name in the certificate.
    #[must_use]
    pub const fn id(&self) -> &SpiffeId {
        &self.id
    }

    /// The key that it signs with.
    #[must_use]
    pub fn identity(&self) -> IdentityKey {
        self.secret.identity()
    }

    /// Signs a document.
    ///
    /// # Errors
    /// A document over its limit.
    pub fn sign<T: Document>(&self, document: &T) -> Result<Envelope<T>, Malformed> {
        Envelope::sign(document, &self.secret)
    }

    /// Shows another certificate and believes by other roots from the next connection on. The name must
    /// stay the same.
    ///
    /// # Errors
    /// A certificate with another name; what keeps it from being used. The old one stays then.
    pub fn replace_tls(&self, tls: TlsIdentity, trust: Trust) -> Result<(), Error> {
        const DOING: &str = "taking another certificate";
        if *tls.spiffe_id() != self.id {
            return Err(Error::Usage {
                what: format!(
                    "the new certificate is for {}, not for {}",
                    tls.spiffe_id(),
                    self.id
                ),
            });
        }
        let (identity, trust) = (Arc::new(tls), Arc::new(trust));
        let mut held = self.tls.lock().unwrap_or_else(PoisonError::into_inner);
        for dialer in [&held.v4, &held.v6].into_iter().flatten() {
            dialer
                .replace_identity(&identity, Arc::clone(&trust))
                .map_err(Error::transport(DOING))?;
        }
        held.identity = identity;
        held.trust = trust;
        Ok(())
    }

    pub(crate) fn software(&self) -> Result<Text<{ limits::MAX_NAME }>, Error> {
        Text::new(&self.software).ok_or(Error::Document(Malformed::TooLarge))
    }

    /// What dials addresses of this family. Must be called within the runtime that is to drive it.
    pub(crate) fn dialer(&self, address: SocketAddr) -> Result<Arc<Dialer>, TransportError> {
        let mut held = self.tls.lock().unwrap_or_else(PoisonError::into_inner);
        let (made, local) = match address {
            SocketAddr::V4(_) => (&held.v4, IpAddr::from(Ipv4Addr::UNSPECIFIED)),
            SocketAddr::V6(_) => (&held.v6, IpAddr::from(Ipv6Addr::UNSPECIFIED)),
        };
        if let Some(dialer) = made {
            return Ok(Arc::clone(dialer));
        }
        let trust = Arc::clone(&held.trust);
        let local = SocketAddr::new(local, 0);
        let dialer = Dialer::bind(local, &held.identity, trust, Limits::for_intents())?;
        let dialer = Arc::new(dialer);
        let place = match address {
            SocketAddr::V4(_) => &mut held.v4,
            SocketAddr::V6(_) => &mut held.v6,
        };
        *place = Some(Arc::clone(&dialer));
        Ok(dialer)
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

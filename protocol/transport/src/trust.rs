//! Whose certificates this process believes: roots, trust domain, revoked certificates and the
//! clock. It decides whether a chain proves a SPIFFE id, and never what that id may do.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use firn_protocol::names::{Role, SpiffeId, TrustDomain};
use rustls::{
    pki_types::{CertificateDer, TrustAnchor, UnixTime},
    time_provider::{DefaultTimeProvider, TimeProvider},
};

use crate::{
    TransportError,
    identity::{Fingerprint, MAX_CHAIN, TlsIdentity, certificates, read, spiffe_id},
    validity::Validity,
    verify::{CertificateRefusal, provider},
};

/// Which end of a connection a certificate is used at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Usage {
    /// The accepting side's.
    Server,
    /// The dialling side's.
    Client,
}

/// A CA's certificate that was given to us, rather than proved.
#[derive(Debug, Clone)]
struct Root {
    anchor: TrustAnchor<'static>,
    validity: Validity,
}

/// Roots of one trust domain, with what has been revoked under them.
#[derive(Debug, Clone)]
pub struct Trust {
    trust_domain: TrustDomain,
    roots: Vec<Root>,
    revoked: BTreeSet<Fingerprint>,
    clock: Arc<dyn TimeProvider>,
}

impl Trust {
    /// The trust domain whose CA certificates are in the PEM text; nothing revoked, the system's
    /// clock.
    ///
    /// # Errors
    ///
    /// Text without certificates, and certificates that cannot be a root.
    pub fn from_pem(trust_domain: TrustDomain, roots_pem: &[u8]) -> Result<Self, TransportError> {
        const ROOTS: &str = "root certificate";
        let unusable = || TransportError::BadPem { what: ROOTS };
        let roots = certificates(roots_pem, ROOTS)?
            .iter()
            .map(|root| {
                let anchor = webpki::anchor_from_trusted_cert(root).map_err(|_| unusable())?;
                let validity = Validity::of(root).map_err(|_| unusable())?;
                Ok(Root {
                    anchor: anchor.to_owned(),
                    validity,
                })
            })
            .collect::<Result<_, TransportError>>()?;
        let clock = Arc::new(DefaultTimeProvider);
        Ok(Self {
            trust_domain,
            roots,
            revoked: BTreeSet::new(),
            clock,
        })
    }

    /// The same from a file.
    ///
    /// # Errors
    ///
    /// As [`Self::from_pem`], and a file that cannot be read.
    pub fn load(trust_domain: TrustDomain, roots: &Path) -> Result<Self, TransportError> {
        Self::from_pem(trust_domain, &read(roots)?)
    }

    /// Refuses these certificates from now on, as end entity or anywhere in a chain.
    #[must_use]
    pub fn with_revoked(mut self, revoked: impl IntoIterator<Item = Fingerprint>) -> Self {
        self.revoked.extend(revoked);
        self
    }

    /// Takes the time for validity from this clock.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn TimeProvider>) -> Self {
        self.clock = clock;
        self
    }

    /// The period of each root.
    pub fn root_validities(&self) -> impl Iterator<Item = Validity> {
        self.roots.iter().map(|root| root.validity)
    }

    /// The trust domain that peers must belong to.
    #[must_use]
    pub const fn trust_domain(&self) -> &TrustDomain {
        &self.trust_domain
    }

    /// Whom an identity of our own proves us to be before peers that believe the same as this process:
    /// what would be refused later is found out before anybody is dialled.
    ///
    /// # Errors
    ///
    /// What a peer would refuse it for.
    pub fn verify_own(&self, identity: &TlsIdentity) -> Result<SpiffeId, CertificateRefusal> {
        let usage = match identity.spiffe_id().role() {
            Role::Coordinator => Usage::Server,
            Role::Participant | Role::Requester | Role::Operator => Usage::Client,
        };
        let now = self.clock.current_time();
        let chain = identity.certified_key().cert.split_first();
        let (now, (end_entity, intermediates)) =
            now.zip(chain).ok_or(CertificateRefusal::Malformed)?;
        self.authenticate(end_entity, intermediates, now, usage)
    }

    pub(crate) const fn clock(&self) -> &Arc<dyn TimeProvider> {
        &self.clock
    }

    /// Whom a chain, end entity first, proves its holder to be at `now`.
    pub(crate) fn authenticate(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
        usage: Usage,
    ) -> Result<SpiffeId, CertificateRefusal> {
        if intermediates.len() >= MAX_CHAIN {
            return Err(CertificateRefusal::Malformed);
        }
        let mut chain = std::iter::once(end_entity).chain(intermediates);
        if chain.any(|certificate| self.revoked.contains(&Fingerprint::of(certificate))) {
            return Err(CertificateRefusal::Revoked);
        }
        let purpose = match usage {
            Usage::Server => webpki::KeyUsage::server_auth(),
            Usage::Client => webpki::KeyUsage::client_auth(),
        };
        // webpki takes anchors as they are: that a root has ended is for us to see.
        let roots: Vec<_> = self
            .roots
            .iter()
            .filter(|root| root.validity.covers(now))
            .map(|root| root.anchor.clone())
            .collect();
        webpki::EndEntityCert::try_from(end_entity)?.verify_for_usage(
            provider().signature_verification_algorithms.all,
            &roots,
            intermediates,
            now,
            purpose,
            None,
            None,
        )?;
        let id = spiffe_id(end_entity)?;
        if *id.trust_domain() != self.trust_domain {
            return Err(CertificateRefusal::WrongTrustDomain);
        }
        Ok(id)
    }
}

//! What a key is, verified from its documents alone: plan, certificates, policy and activation that
//! bind each other. Everybody who needs to know uses this, so nobody believes a summary.

use crate::{
    documents::{
        Activation, Authorities, Certificate, Plan, Policy, RosterEntry, certificate_set_digest,
    },
    envelope::{Approved, Envelope, Verified},
    ids::{
        ActivationDigest, AuthoritiesDigest, CertificateSetDigest, Identifier, KeyId, PlanDigest,
        PolicyDigest, SessionId, ShareVersion,
    },
    messages::{CertificateSet, KeyDocuments},
    reject::Reject,
    threshold::PublicShares,
};

/// A plan and the certificates of all its members: a sharing that is whole, and not usable yet.
#[derive(Debug, Clone)]
pub struct CertifiedSharing {
    plan: Approved<Plan>,
    certificates: Vec<Verified<Certificate>>,
    set_digest: CertificateSetDigest,
    public: PublicShares,
}

/// Checks that the operators have signed the plan, that it stands on these Authorities, and that
/// it does not contradict itself. Whether it has expired is the caller's to judge.
///
/// # Errors
/// The first thing that is wrong.
pub fn verify_plan(
    plan: crate::envelope::Endorsed,
    authorities: &Authorities,
    authorities_digest: AuthoritiesDigest,
) -> Result<Approved<Plan>, Reject> {
    let operators = &authorities.operators;
    let plan = plan.verify::<Plan>(&operators.identities(), usize::from(operators.needed))?;
    if plan.authorities != authorities_digest {
        return Err(Reject::AuthoritiesMismatch);
    }
    if !plan.is_sound() {
        return Err(Reject::UnsoundDocument);
    }
    Ok(plan)
}

impl CertifiedSharing {
    /// Checks one certificate of each member of the plan, in order, all for the same key made from
    /// the same messages.
    ///
    /// # Errors
    /// [`Reject::CertificateMismatch`] where they disagree; otherwise what is wrong with an envelope.
    pub fn verify(
        plan: Approved<Plan>,
        certificates: &[Envelope<Certificate>],
    ) -> Result<Self, Reject> {
        if certificates.len() != plan.roster.len() {
            return Err(Reject::CertificateMismatch);
        }
        let certificates = plan
            .roster
            .iter()
            .zip(certificates)
            .map(|(member, envelope)| {
                let certificate = envelope.clone().verify(&member.identity)?;
                if certificate.member != member.identifier {
                    return Err(Reject::CertificateMismatch);
                }
                Ok(certificate)
            })
            .collect::<Result<Vec<_>, Reject>>()?;
        let first = certificates.first().ok_or(Reject::CertificateMismatch)?;
        let agreed = certificates
            .iter()
            .all(|certificate| certificate.agrees_with(first))
            && first.plan == PlanDigest::from_bytes(plan.digest())
            && first.share_version == plan.share_version();
        if !agreed {
            return Err(Reject::CertificateMismatch);
        }
        let public = PublicShares::of(&plan, first).map_err(|_| Reject::CertificateMismatch)?;
        let set_digest = certificate_set_digest(&certificates);
        Ok(Self {
            plan,
            certificates,
            set_digest,
            public,
        })
    }

    /// The plan.
    #[must_use]
    pub const fn plan(&self) -> &Approved<Plan> {
        &self.plan
    }

    /// The plan's digest.
    #[must_use]
    pub fn plan_digest(&self) -> PlanDigest {
        PlanDigest::from_bytes(self.plan.digest())
    }

    /// The key.
    #[must_use]
    pub fn key_id(&self) -> KeyId {
        self.plan.key_id(self.plan_digest())
    }

    /// The version of the sharing.
    #[must_use]
    pub fn share_version(&self) -> ShareVersion {
        self.plan.share_version()
    }

    /// The attempt of the ceremony that made it.
    ///
    /// # Errors
    /// Never: a roster has members.
    pub fn attempt(&self) -> Result<SessionId, Reject> {
        let first = self
            .certificates
            .first()
            .ok_or(Reject::CertificateMismatch)?;
        Ok(first.attempt)
    }

    /// The members' certificates, ascending.
    #[must_use]
    pub fn certificates(&self) -> &[Verified<Certificate>] {
        &self.certificates
    }

    /// The set that the activation names.
    #[must_use]
    pub const fn set_digest(&self) -> CertificateSetDigest {
        self.set_digest
    }

    /// Group key, verifying shares, threshold.
    #[must_use]
    pub const fn public(&self) -> &PublicShares {
        &self.public
    }

    /// The member with this identifier.
    #[must_use]
    pub fn member(&self, identifier: Identifier) -> Option<&RosterEntry> {
        self.plan.member_at(identifier)
    }

    /// The certificates as they travel.
    ///
    /// # Errors
    /// Never: a roster fits the list.
    pub fn certificate_set(&self) -> Result<CertificateSet, Reject> {
        let envelopes = self
            .certificates
            .iter()
            .map(|c| c.envelope().clone())
            .collect();
        let certificates = crate::codec::List::new(envelopes).ok_or(Reject::TooLarge)?;
        Ok(CertificateSet { certificates })
    }
}

/// A sharing that its operators have made usable.
#[derive(Debug, Clone)]
pub struct ActiveSharing {
    certified: CertifiedSharing,
    policy: Verified<Policy>,
    activation: Approved<Activation>,
}

impl ActiveSharing {
    /// Checks everything from the Authorities on.
    ///
    /// # Errors
    /// The first thing that is wrong, from the plan to the activation.
    pub fn verify(
        documents: &KeyDocuments,
        authorities: &Authorities,
        authorities_digest: AuthoritiesDigest,
    ) -> Result<Self, Reject> {
        let plan = verify_plan(documents.plan.clone(), authorities, authorities_digest)?;
        let certified = CertifiedSharing::verify(plan, &documents.certificates)?;
        let policy = documents
            .policy
            .clone()
            .verify(&authorities.policy_authority)?;
        let operators = &authorities.operators;
        let activation = documents
            .activation
            .clone()
            .verify::<Activation>(&operators.identities(), usize::from(operators.needed))?;
        let rules = Policy::rules_digest(&policy.rules)?;
        let bound = activation.key_id == certified.key_id()
            && activation.share_version == certified.share_version()
            && activation.certificates == certified.set_digest()
            && activation.policy == PolicyDigest::from_bytes(policy.digest())
            && activation.policy_version == policy.version
            && activation.authorities == authorities_digest
            && policy.key_id == certified.key_id()
            // The plan bound the first policy's rules before the key had an id.
            && (policy.version.value() != 1 || rules == certified.plan().rules);
        if !bound {
            return Err(Reject::ActivationMismatch);
        }
        if !policy.is_sound() {
            return Err(Reject::UnsoundDocument);
        }
        Ok(Self {
            certified,
            policy,
            activation,
        })
    }

    /// The sharing.
    #[must_use]
    pub const fn certified(&self) -> &CertifiedSharing {
        &self.certified
    }

    /// The policy.
    #[must_use]
    pub const fn policy(&self) -> &Verified<Policy> {
        &self.policy
    }

    /// The policy's digest.
    #[must_use]
    pub const fn policy_digest(&self) -> PolicyDigest {
        PolicyDigest::from_bytes(self.policy.digest())
    }

    /// The activation.
    #[must_use]
    pub const fn activation(&self) -> &Approved<Activation> {
        &self.activation
    }

    /// The activation's digest.
    #[must_use]
    pub const fn activation_digest(&self) -> ActivationDigest {
        ActivationDigest::from_bytes(self.activation.digest())
    }
}

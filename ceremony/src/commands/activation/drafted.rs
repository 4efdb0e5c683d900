//! An activation that may lack signatures. It decides that plan, ceremony and policy of its folder hold, and
//! that the activation is exactly the one that follows from them.

use firn_protocol::{
    documents::{Activation, Authorities, Policy},
    envelope::{Approved, Endorsed, Verified},
    ids::AuthoritiesDigest,
    messages::KeyDocuments,
    reject::Reject,
    sharing::{ActiveSharing, CertifiedSharing, verify_plan},
};

use crate::{
    authority::{activation, signed_so_far},
    commands::reports::Signatures,
    error::Error,
    evidence::{ACTIVATION, Folder, POLICY, check_ceremony},
};

const READING: &str = "reading the activation";

/// What a folder holds up to its activation.
pub(crate) struct Drafted {
    pub(crate) folder: Folder,
    pub(crate) endorsed: Endorsed,
    pub(crate) activation: Activation,
    pub(crate) digest: [u8; 32],
    pub(crate) certified: CertifiedSharing,
    pub(crate) signatures: Signatures,
    policy: Verified<Policy>,
}

impl Drafted {
    /// Reads the folder, and checks everything but whether enough operators have signed the activation.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::BadFile`]; [`Error::Unverified`]; [`Error::Unfit`] for an activation
    /// that does not follow from the rest; [`Error::Refused`] for a stranger's signature.
    pub(crate) fn read(folder: Folder, authorities: &Approved<Authorities>) -> Result<Self, Error> {
        let digest = AuthoritiesDigest::from_bytes(authorities.digest());
        let record = folder.ceremony()?;
        let documents = folder.key_documents()?;
        let plan = verify_plan(documents.plan, authorities, digest)
            .map_err(Error::unverified("the plan"))?;
        let rules = plan.rules;
        let coordinators = authorities.coordinators.iter();
        let coordinators: Vec<_> = coordinators.map(|holder| holder.key).collect();
        let certified = check_ceremony(&record, plan, &coordinators)
            .map_err(Error::unverified("the ceremony's record"))?
            .sharing;
        let unfit = |file: &str, what: &str| Error::Unfit {
            path: folder.file(file),
            what: what.to_owned(),
        };
        let policy = documents
            .policy
            .verify(&authorities.policy_authority)
            .map_err(|error| unfit(POLICY, Reject::from(error).meaning()))?;
        if policy.key_id != certified.key_id()
            || policy.version.value() != 1
            || Policy::rules_digest(&policy.rules)? != rules
            || !policy.is_sound()
        {
            return Err(unfit(POLICY, "it is not the first policy of this key"));
        }
        let endorsed = documents.activation;
        let (claimed, found) = endorsed.read::<Activation>()?;
        if claimed != activation(&certified, &policy, digest) {
            return Err(unfit(
                ACTIVATION,
                "it is not the activation that follows from this plan, ceremony and policy",
            ));
        }
        let operators = &authorities.operators;
        let by = signed_so_far::<Activation>(&endorsed, &operators.identities(), READING)?;
        Ok(Self {
            signatures: Signatures::of(operators, &by),
            activation: claimed,
            digest: found,
            folder,
            endorsed,
            certified,
            policy,
        })
    }

    /// The key that may be used, with what says so.
    ///
    /// # Errors
    /// [`Error::Refused`] while signatures are missing.
    pub(crate) fn active(
        &self,
        authorities: &Approved<Authorities>,
        doing: &'static str,
    ) -> Result<(KeyDocuments, ActiveSharing), Error> {
        let certificates = self
            .certified
            .certificate_set()
            .map_err(Error::unverified("the certificates"))?
            .certificates;
        let documents = KeyDocuments {
            plan: self.certified.plan().endorsed().clone(),
            certificates,
            policy: self.policy.envelope().clone(),
            activation: self.endorsed.clone(),
        };
        let digest = AuthoritiesDigest::from_bytes(authorities.digest());
        let active = ActiveSharing::verify(&documents, authorities, digest).map_err(|code| {
            let signed = self.signatures.signed_by.join(", ");
            Error::Refused {
                doing,
                code,
                detail: format!(
                    "the activation is signed by {signed}; {} more must: firn activation sign",
                    self.signatures.missing
                ),
            }
        })?;
        Ok((documents, active))
    }
}

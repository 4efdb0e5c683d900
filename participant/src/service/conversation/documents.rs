//! Documents that come in and go out: activation, and what a key is.

use std::sync::Arc;

use firn_ledger::rules::{Command, ShareActivated};
use firn_protocol::{
    envelope::Envelope,
    ids::MessageDigest,
    messages::{Deliver, KeyQuery},
    reject::Reject,
    sharing::ActiveSharing,
};

use super::{Conversation, Ended};
use crate::{
    service::{Host, Stream, keys::LoadError},
    session::dkg::certify_command,
};

impl<H: Host, S: Stream> Conversation<H, S> {
    /// Makes a sharing usable: all certificates, the policy, and the operators' activation, each
    /// verified. Doing it again changes nothing.
    pub(super) async fn activate(&mut self, deliver: Deliver) -> Result<(), Ended> {
        let service = Arc::clone(&self.service);
        let documents = deliver.documents;
        let sharing =
            ActiveSharing::verify(&documents, &service.authorities, service.authorities_digest)?;
        let certified = sharing.certified();
        // Nothing is kept of a key that this participant is no member of.
        certified
            .plan()
            .member(&service.speaker.identity())
            .ok_or(Reject::NotAMember)?;
        let attempt = certified.attempt()?;
        // Certificates that a crash kept away come with the activation.
        service
            .documents
            .put_plan(&documents.plan)
            .map_err(LoadError::from)?;
        let set = certified.certificate_set()?;
        service
            .documents
            .put_certificate_set(&set)
            .map_err(LoadError::from)?;
        service.commit(certify_command(certified)?).await?;
        service
            .documents
            .put_key_documents(&documents)
            .map_err(LoadError::from)?;
        let activated = ShareActivated {
            key_id: certified.key_id(),
            share_version: certified.share_version(),
            activation: sharing.activation_digest(),
            certificates: certified.set_digest(),
            policy: sharing.policy_digest(),
            policy_version: sharing.policy().version,
            authorities: service.authorities_digest,
            network: certified.plan().network,
            first_epoch: sharing.activation().first_epoch,
        };
        let committed = service.commit(Command::Activate(activated)).await?;
        // The record says that the share is active. A disk that does not follow is not to be tried
        // again by this process: a second sync may claim what the first one lost.
        if let Err(error) =
            service
                .vault
                .promote(certified.key_id(), certified.share_version(), attempt)
        {
            service.host.vault_failed(&error);
            return Err(Ended::Fatal);
        }
        let what: MessageDigest = service.use_key(&documents)?;
        self.acknowledge(certified, what, &committed.durable).await
    }

    /// Says what a key is, to a coordinator that the Authorities name.
    pub(super) async fn answer_key_query(
        &mut self,
        query: Envelope<KeyQuery>,
    ) -> Result<(), Ended> {
        let service = Arc::clone(&self.service);
        let keys = service
            .authorities
            .coordinators
            .iter()
            .map(|holder| &holder.key);
        let query = query.verify_any(keys)?;
        let key = service.key(query.key_id)?;
        let documents = key.documents.clone().ok_or(Reject::ShareNotActive)?;
        self.send(documents).await
    }
}

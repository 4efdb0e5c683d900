//! Making a key, as a conversation. Each message's digest is on disk before the message leaves.

use std::sync::Arc;

use firn_ledger::rules::{CeremonyStep, Command, PlanAccepted};
use firn_protocol::{
    ids::{MessageDigest, PlanDigest},
    limits,
    messages::{Acknowledgement, DkgOpen, ToMember, message_digest},
    reject::Reject,
    sharing::CertifiedSharing,
};

use super::{Conversation, Ended};
use crate::{
    service::{Host, Stream, keys::LoadError},
    session::dkg::{AwaitCertificates, AwaitDelivery, DeliveryError, NewShare, Opened},
    store::Durable,
    vault::ShareLabel,
};

impl<H: Host, S: Stream> Conversation<H, S> {
    pub(super) async fn make_key(&mut self, open: DkgOpen) -> Result<(), Ended> {
        let delivery = self.deal(&open).await?;
        let next = self.certify(delivery).await?;
        let ToMember::CertificateSet(set) = self.receive(limits::MAX_CEREMONY_MESSAGE).await?
        else {
            return Err(Reject::UnexpectedMessage.into());
        };
        let (sharing, command) = next.finish(&set)?;
        // Documents first: the record says that they are there.
        let service = Arc::clone(&self.service);
        service
            .documents
            .put_plan(&open.plan)
            .map_err(LoadError::from)?;
        service
            .documents
            .put_certificate_set(&set)
            .map_err(LoadError::from)?;
        let committed = service.commit(command).await?;
        let what = MessageDigest::from_bytes(*sharing.set_digest().as_bytes());
        service.hold_certified(sharing.clone())?;
        self.acknowledge(&sharing, what, &committed.durable).await
    }

    /// Opening, round one, round two.
    async fn deal(&mut self, open: &DkgOpen) -> Result<AwaitDelivery, Ended> {
        let service = Arc::clone(&self.service);
        service.check_not_frozen()?;
        let (_, digest) = open.plan.read::<firn_protocol::documents::Plan>()?;
        let digest = PlanDigest::from_bytes(digest);
        let accepted = service
            .documents
            .accepted_plan(digest)
            .map_err(LoadError::from)?;
        let opened = Opened::judge(
            open,
            accepted.as_ref(),
            &service.authorities,
            service.authorities_digest,
            &service.speaker.identity(),
            service.now(),
        )?;
        self.session = Some(opened.attempt().id);
        service
            .commit(Command::AcceptPlan(PlanAccepted { plan: digest }))
            .await?;
        let committed = service.commit(opened.command()).await?;
        let peers = service.peers_in(&opened.attempt().plan.roster);
        let session = opened.round1(
            &committed.durable,
            &service.speaker,
            &peers,
            service.now(),
            &mut service.random(),
        )?;
        let message = session.message().clone();
        self.record_sent(CeremonyStep::Round1, message_digest(message.as_bytes()))
            .await?;
        self.send(message).await?;

        let ToMember::DkgRound1Set(set) = self.receive(limits::MAX_CEREMONY_MESSAGE * 2).await?
        else {
            return Err(Reject::UnexpectedMessage.into());
        };
        let dealt = session.deal(&set, &service.speaker, &mut service.random())?;
        let recorded = self
            .record_sent(CeremonyStep::Round2, dealt.digest())
            .await?;
        let (message, session) = dealt.sent(&recorded);
        self.send(message).await?;
        Ok(session)
    }

    /// Delivery in, certificate out; or a complaint.
    async fn certify(&mut self, session: AwaitDelivery) -> Result<AwaitCertificates, Ended> {
        let service = Arc::clone(&self.service);
        let ToMember::Delivery(delivery) = self.receive(limits::MAX_CEREMONY_MESSAGE).await? else {
            return Err(Reject::UnexpectedMessage.into());
        };
        let new = match session.finish(&delivery, &service.speaker, &service.own) {
            Ok(new) => new,
            Err(DeliveryError::Refused(refusing)) => return Err(Ended::Refused(refusing)),
            Err(DeliveryError::BadShare(complaint)) => {
                tracing::warn!(
                    code = Reject::DkgShare.name(),
                    "a dealt share is bad; complaining"
                );
                return self.send(complaint).await.and(Err(Ended::Finished));
            }
        };
        self.seal(&new)?;
        service.commit(new.command()).await?;
        let recorded = self
            .record_sent(CeremonyStep::Certificate, new.digest())
            .await?;
        let (certificate, next) = new.sent(&recorded);
        self.send(certificate).await?;
        Ok(next)
    }

    fn seal(&self, new: &NewShare) -> Result<(), Ended> {
        let attempt = new.attempt();
        let label = ShareLabel {
            key_id: attempt.plan.key_id(attempt.plan_digest()),
            share_version: attempt.plan.share_version(),
            member: attempt.member,
            attempt: attempt.id,
        };
        let bytes = new.share().to_bytes().map_err(|_| Reject::Internal)?;
        Ok(self
            .service
            .vault
            .store_pending(label, &bytes)
            .map_err(LoadError::from)?)
    }

    async fn record_sent(
        &self,
        step: CeremonyStep,
        digest: MessageDigest,
    ) -> Result<Durable, Ended> {
        let attempt = self.session.ok_or(Reject::Internal)?;
        let committed = self
            .service
            .commit(Command::Send {
                attempt,
                step,
                digest,
            })
            .await?;
        Ok(committed.durable)
    }

    pub(super) async fn acknowledge(
        &mut self,
        certified: &CertifiedSharing,
        what: MessageDigest,
        durable: &Durable,
    ) -> Result<(), Ended> {
        let service = Arc::clone(&self.service);
        let roster = &certified.plan().roster;
        let member = certified.plan().member(&service.speaker.identity());
        let member = member.ok_or(Reject::NotAMember)?.identifier;
        let peers = service.peers_in(roster);
        let standing = service.speaker.standing(durable, &peers, service.now())?;
        let acknowledgement = Acknowledgement {
            member,
            what,
            standing,
        };
        self.send(service.speaker.sign(&acknowledgement)?).await
    }
}

impl From<LoadError> for Ended {
    fn from(error: LoadError) -> Self {
        Self::Refused(error.to_peer().into())
    }
}

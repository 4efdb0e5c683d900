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
    daemon::{keys::LoadError, shared::Shared},
    session::dkg::{AwaitCertificates, AwaitDelivery, DeliveryError, NewShare, Opened},
    store::Durable,
    vault::ShareLabel,
};

impl Conversation {
    pub(super) async fn make_key(&mut self, open: DkgOpen) -> Result<(), Ended> {
        let delivery = self.deal(&open).await?;
        let next = self.certify(delivery).await?;
        let ToMember::CertificateSet(set) = self.receive(limits::MAX_CEREMONY_MESSAGE).await?
        else {
            return Err(Reject::UnexpectedMessage.into());
        };
        let (sharing, command) = next.finish(&set)?;
        // Documents first: the record says that they are there.
        let shared = Arc::clone(&self.shared);
        shared
            .documents
            .put_plan(&open.plan)
            .map_err(LoadError::from)?;
        shared
            .documents
            .put_certificate_set(&set)
            .map_err(LoadError::from)?;
        let committed = shared.commit(command).await?;
        let what = MessageDigest::from_bytes(*sharing.set_digest().as_bytes());
        shared.hold_certified(sharing.clone())?;
        self.acknowledge(&sharing, what, &committed.durable).await
    }

    /// Opening, round one, round two.
    async fn deal(&mut self, open: &DkgOpen) -> Result<AwaitDelivery, Ended> {
        let shared = Arc::clone(&self.shared);
        shared.check_not_frozen()?;
        let (_, digest) = open.plan.read::<firn_protocol::documents::Plan>()?;
        let digest = PlanDigest::from_bytes(digest);
        let accepted = shared
            .documents
            .accepted_plan(digest)
            .map_err(LoadError::from)?;
        let opened = Opened::judge(
            open,
            accepted.as_ref(),
            &shared.authorities,
            shared.authorities_digest,
            &shared.speaker.identity(),
            shared.now(),
        )?;
        self.session = Some(opened.attempt().id);
        shared
            .commit(Command::AcceptPlan(PlanAccepted { plan: digest }))
            .await?;
        let committed = shared.commit(opened.command()).await?;
        let peers = shared.peers_in(&opened.attempt().plan.roster);
        let session = opened.round1(
            &committed.durable,
            &shared.speaker,
            &peers,
            shared.now(),
            &mut Shared::random(),
        )?;
        let message = session.message().clone();
        self.record_sent(CeremonyStep::Round1, message_digest(message.as_bytes()))
            .await?;
        self.send(message).await?;

        let ToMember::DkgRound1Set(set) = self.receive(limits::MAX_CEREMONY_MESSAGE * 2).await?
        else {
            return Err(Reject::UnexpectedMessage.into());
        };
        let dealt = session.deal(&set, &shared.speaker, &mut Shared::random())?;
        let recorded = self
            .record_sent(CeremonyStep::Round2, dealt.digest())
            .await?;
        let (message, session) = dealt.sent(&recorded);
        self.send(message).await?;
        Ok(session)
    }

    /// Delivery in, certificate out; or a complaint.
    async fn certify(&mut self, session: AwaitDelivery) -> Result<AwaitCertificates, Ended> {
        let shared = Arc::clone(&self.shared);
        let ToMember::Delivery(delivery) = self.receive(limits::MAX_CEREMONY_MESSAGE).await? else {
            return Err(Reject::UnexpectedMessage.into());
        };
        let new = match session.finish(&delivery, &shared.speaker, &shared.own) {
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
        shared.commit(new.command()).await?;
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
            .shared
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
            .shared
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
        let shared = Arc::clone(&self.shared);
        let roster = &certified.plan().roster;
        let member = certified.plan().member(&shared.speaker.identity());
        let member = member.ok_or(Reject::NotAMember)?.identifier;
        let peers = shared.peers_in(roster);
        let standing = shared.speaker.standing(durable, &peers, shared.now())?;
        let acknowledgement = Acknowledgement {
            member,
            what,
            standing,
        };
        self.send(shared.speaker.sign(&acknowledgement)?).await
    }
}

impl From<LoadError> for Ended {
    fn from(error: LoadError) -> Self {
        Self::Refused(error.to_peer().into())
    }
}

//! Signing and proving life, as conversations.

use std::sync::Arc;

use firn_ledger::rules::{Answer, Command, Completed, ProofCompleted};
use firn_protocol::{
    limits,
    merkle::MerkleRoot,
    messages::{Acknowledgement, ProofOpen, SignOpen, ToMember, message_digest},
    reject::Reject,
    sharing::CertifiedSharing,
};

use super::{Conversation, Ended};
use crate::{
    service::{Host, Stream, keys::LoadedKey},
    session::{
        AwaitFinal, AwaitPackage, Finished, Judged, JudgedProof, RefusedOpening, Releasing,
        judge_proof, judge_request,
    },
    store::Durable,
};

impl<H: Host, S: Stream> Conversation<H, S> {
    pub(super) async fn sign(&mut self, open: SignOpen) -> Result<(), Ended> {
        let service = Arc::clone(&self.service);
        let judged = judge_request(
            &open,
            |key_id| service.key_in_use(key_id),
            &service.authorities,
            service.grant_time(),
        );
        let judged = match service.check_not_frozen() {
            Ok(()) => judged,
            // Who signs nothing learns all the same who owns the key from now on.
            Err(code) => Err(judged.map_or_else(
                |refused| refused.because(code),
                |(_, request)| request.withheld(code),
            )),
        };
        let (key, request) = match judged {
            Ok((key, request)) => (key.0, request),
            Err(refused) => return Err(self.keep_epoch(&refused).await.into()),
        };
        self.session = Some(request.judged.session);
        self.request_id = Some(request.terms.grant.request_id);
        let committed = service.commit(request.command).await?;
        match committed.answer {
            Answer::Written => self.open = true,
            Answer::AlreadyCompleted(receipt) => return self.send(receipt).await,
            Answer::Denied(code) => return Err(code.into()),
        }
        let releasing = self
            .commit_to_nonces(request.judged, &committed.durable, &key)
            .await?;
        request.terms.still_granted(service.grant_time())?;
        let finished = self.release(releasing, &key).await?;
        let receipt = finished.receipt(&request.terms, &service.speaker, service.now())?;
        let session = self.session.ok_or(Reject::Internal)?;
        let completed = Completed {
            session,
            receipt: receipt.clone(),
        };
        let committed = service.commit(Command::Complete(completed)).await?;
        match committed.answer {
            Answer::Written => {
                self.open = false;
                self.send(receipt).await
            }
            // Another attempt of the same request was first: the request has one receipt.
            Answer::AlreadyCompleted(first) => self.send(first).await,
            Answer::Denied(code) => Err(code.into()),
        }
    }

    /// Puts on disk what a valid grant shows, and gives the code that its refused opening is answered
    /// with.
    async fn keep_epoch(&self, refused: &RefusedOpening) -> Reject {
        let raised = match refused.shown() {
            Some(shown) => self.service.commit(shown.command()).await.map(|_| ()),
            None => Ok(()),
        };
        if let Err(code) = raised {
            tracing::info!(code = code.name(), "the epoch of a grant is not taken");
        }
        refused.code(raised)
    }

    pub(super) async fn prove_life(&mut self, open: ProofOpen) -> Result<(), Ended> {
        let service = Arc::clone(&self.service);
        service.check_not_frozen()?;
        let key = service.key(key_of(&open)?)?;
        let JudgedProof { judged, command } = judge_proof(
            &open,
            &key.certified,
            key.member,
            &service.authorities,
            service.now(),
        )?;
        self.session = Some(judged.session);
        let committed = service.commit(command).await?;
        self.open = true;
        let releasing = self
            .commit_to_nonces(judged, &committed.durable, &key)
            .await?;
        let finished = self.release(releasing, &key).await?;
        let signed = finished.signatures.first().ok_or(Reject::Internal)?;
        let session = self.session.ok_or(Reject::Internal)?;
        let completed = ProofCompleted {
            session,
            signature: signed.signature,
        };
        let committed = service.commit(Command::CompleteProof(completed)).await?;
        self.open = false;
        let standing = service.speaker.standing(
            &committed.durable,
            &service.peers_in(&key.certified.plan().roster),
            service.now(),
        )?;
        let what = message_digest(signed.signature.as_bytes());
        let acknowledgement = Acknowledgement {
            member: key.member,
            what,
            standing,
        };
        self.send(service.speaker.sign(&acknowledgement)?).await
    }

    /// Commitments out, package in.
    async fn commit_to_nonces(
        &mut self,
        judged: Judged,
        durable: &Durable,
        key: &LoadedKey,
    ) -> Result<Releasing, Ended> {
        let service = Arc::clone(&self.service);
        let (session, commitments) = AwaitPackage::start(
            judged,
            durable,
            &key.share,
            &service.speaker,
            &service.peers_in(&key.certified.plan().roster),
            service.now(),
            &mut service.random(),
        )?;
        self.send(commitments).await?;
        let ToMember::Package(package) = self.receive(limits::MAX_PACKAGE).await? else {
            return Err(Reject::UnexpectedMessage.into());
        };
        Ok(session.package(&package, &key.certified, &service.speaker.identity())?)
    }

    /// The gates once more, shares out, signatures in.
    async fn release(&mut self, releasing: Releasing, key: &LoadedKey) -> Result<Finished, Ended> {
        let service = Arc::clone(&self.service);
        let releasing = self.compare_own_heads(releasing).await?;
        self.compare_clocks(&releasing)?;
        service.check_not_frozen()?;
        let witnessed = releasing.witnessed();
        let command = Command::Release {
            session: releasing.session(),
            package: releasing.package(),
            witnessed: witnessed.clone(),
        };
        let committed = service.commit(command).await?;
        service.remember(witnessed);
        let (session, shares) = releasing.released(
            &committed.durable,
            &key.share,
            &service.speaker,
            service.now(),
        )?;
        self.send(shares).await?;
        self.finish(session, &key.certified).await
    }

    async fn finish(
        &mut self,
        session: AwaitFinal,
        certified: &CertifiedSharing,
    ) -> Result<Finished, Ended> {
        let ToMember::Final(message) = self.receive(limits::MAX_SHARES * 2).await? else {
            return Err(Reject::UnexpectedMessage.into());
        };
        Ok(session.finish(&message, certified)?)
    }

    /// The other members' clocks against this one. The session is refused; nothing else follows from it.
    fn compare_clocks(&self, releasing: &Releasing) -> Result<(), Reject> {
        let limits = &self.service.limits;
        let compared = releasing.compare_clocks(
            self.service.now(),
            limits.step_timeout_ms,
            limits.max_clock_skew_ms,
        );
        compared.map_err(|(member, skew)| {
            let code = Reject::ClockSkew;
            tracing::warn!(code = code.name(), advice = code.advice(), %member, "{skew}");
            code
        })
    }

    /// What peers have witnessed of this participant, against its own ledger at those sizes.
    async fn compare_own_heads(&self, releasing: Releasing) -> Result<Releasing, Ended> {
        let service = &self.service;
        let compared = service
            .query(move |view| {
                let root_at = |size| -> Option<MerkleRoot> { view.tree().root_at(size).ok() };
                let outcome = releasing.check_own_heads(root_at);
                (releasing, outcome)
            })
            .await?;
        match compared {
            (releasing, Ok(())) => Ok(releasing),
            (_, Err(conflict)) => {
                service.freeze(&conflict).await;
                Err(Reject::from(conflict).into())
            }
        }
    }
}

/// The key that an opening names, before anything in it is believed: it only says where to look.
fn key_of(open: &ProofOpen) -> Result<firn_protocol::ids::KeyId, Reject> {
    let signer = open.header.claimed_signer()?;
    Ok(open.header.clone().verify(&signer)?.key_id)
}

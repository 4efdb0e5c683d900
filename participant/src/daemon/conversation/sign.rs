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
    daemon::{keys::LoadedKey, shared::Shared},
    session::{
        AwaitFinal, AwaitPackage, Finished, Judged, JudgedProof, Releasing, judge_proof,
        judge_request,
    },
    store::Durable,
};

impl Conversation {
    pub(super) async fn sign(&mut self, open: SignOpen) -> Result<(), Ended> {
        let shared = Arc::clone(&self.shared);
        shared.check_not_frozen()?;
        let (key, request) = judge_request(
            &open,
            |key_id| shared.key_in_use(key_id),
            &shared.authorities,
            shared.now(),
            shared.limits.max_clock_skew_ms,
        )?;
        let key = key.0;
        self.session = Some(request.judged.session);
        self.request_id = Some(request.terms.grant.request_id);
        let committed = shared.commit(request.command).await?;
        match committed.answer {
            Answer::Written => self.open = true,
            Answer::AlreadyCompleted(receipt) => return self.send(receipt).await,
            Answer::Denied(code) => return Err(code.into()),
        }
        let releasing = self
            .commit_to_nonces(request.judged, &committed.durable, &key)
            .await?;
        request
            .terms
            .still_granted(shared.now(), shared.limits.max_clock_skew_ms)?;
        let finished = self.release(releasing, &key).await?;
        let receipt = finished.receipt(&request.terms, &shared.speaker, shared.now())?;
        let session = self.session.ok_or(Reject::Internal)?;
        let completed = Completed {
            session,
            receipt: receipt.clone(),
        };
        let committed = shared.commit(Command::Complete(completed)).await?;
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

    pub(super) async fn prove_life(&mut self, open: ProofOpen) -> Result<(), Ended> {
        let shared = Arc::clone(&self.shared);
        shared.check_not_frozen()?;
        let key = shared.key(key_of(&open)?)?;
        let JudgedProof { judged, command } = judge_proof(
            &open,
            &key.certified,
            key.member,
            &shared.authorities,
            shared.now(),
        )?;
        self.session = Some(judged.session);
        let committed = shared.commit(command).await?;
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
        let committed = shared.commit(Command::CompleteProof(completed)).await?;
        self.open = false;
        let standing = shared.speaker.standing(
            &committed.durable,
            &shared.peers_in(&key.certified.plan().roster),
            shared.now(),
        )?;
        let what = message_digest(signed.signature.as_bytes());
        let acknowledgement = Acknowledgement {
            member: key.member,
            what,
            standing,
        };
        self.send(shared.speaker.sign(&acknowledgement)?).await
    }

    /// Commitments out, package in.
    async fn commit_to_nonces(
        &mut self,
        judged: Judged,
        durable: &Durable,
        key: &LoadedKey,
    ) -> Result<Releasing, Ended> {
        let shared = Arc::clone(&self.shared);
        let (session, commitments) = AwaitPackage::start(
            judged,
            durable,
            &key.share,
            &shared.speaker,
            &shared.peers_in(&key.certified.plan().roster),
            shared.now(),
            &mut Shared::random(),
        )?;
        self.send(commitments).await?;
        let ToMember::Package(package) = self.receive(limits::MAX_PACKAGE).await? else {
            return Err(Reject::UnexpectedMessage.into());
        };
        Ok(session.package(&package, &key.certified, &shared.speaker.identity())?)
    }

    /// The gates once more, shares out, signatures in.
    async fn release(&mut self, releasing: Releasing, key: &LoadedKey) -> Result<Finished, Ended> {
        let shared = Arc::clone(&self.shared);
        let releasing = self.compare_own_heads(releasing).await?;
        shared.check_not_frozen()?;
        let witnessed = releasing.witnessed();
        let command = Command::Release {
            session: releasing.session(),
            package: releasing.package(),
            witnessed: witnessed.clone(),
        };
        let committed = shared.commit(command).await?;
        shared.remember(witnessed);
        let (session, shares) = releasing.released(
            &committed.durable,
            &key.share,
            &shared.speaker,
            shared.now(),
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

    /// What peers have witnessed of this participant, against its own ledger at those sizes.
    async fn compare_own_heads(&self, releasing: Releasing) -> Result<Releasing, Ended> {
        let shared = &self.shared;
        let compared = shared
            .ledger
            .query(move |view| {
                let root_at = |size| -> Option<MerkleRoot> { view.tree().root_at(size).ok() };
                let outcome = releasing.check_own_heads(root_at);
                (releasing, outcome)
            })
            .await;
        match compared {
            Ok((releasing, Ok(()))) => Ok(releasing),
            Ok((_, Err(code))) => {
                shared.freeze();
                Err(code.into())
            }
            Err(_) => Err(Reject::LedgerUnavailable.into()),
        }
    }
}

/// The key that an opening names, before anything in it is believed: it only says where to look.
fn key_of(open: &ProofOpen) -> Result<firn_protocol::ids::KeyId, Reject> {
    let signer = open.header.claimed_signer()?;
    Ok(open.header.clone().verify(&signer)?.key_id)
}

//! The answer to a request. It decides whether the signatures are the key's own over what was asked,
//! and whose receipts say so.

use firn_protocol::{
    bitcoin::verify_bip340,
    documents::{InputSignature, Intent, Outcome, Receipt},
    ids::{Epoch, Flow, Identifier, RequestId, SessionId},
    keys::IdentityKey,
    messages::RequestSigned,
    reject::Reject,
    session::Subject,
    sharing::ActiveSharing,
    signable::{Item, Signable},
};

use super::Round;

/// What was asked.
#[derive(Debug, Clone)]
pub struct SigningTerms<'a> {
    /// The key.
    pub sharing: &'a ActiveSharing,
    /// The coordinators whose headers count.
    pub coordinators: &'a [IdentityKey],
    /// The intent.
    pub intent: &'a Intent,
    /// The request.
    pub request_id: RequestId,
    /// The owner's epoch.
    pub epoch: Epoch,
}

/// An answer that proves itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedSigning {
    /// The session that made the signatures.
    pub session: SessionId,
    /// The members whose shares are in them, where the evidence came along.
    pub signers: Vec<Identifier>,
    /// The members that vouch for the answer with a receipt.
    pub receipts: Vec<Identifier>,
    /// Whether the answer was made before and came out of the members' ledgers.
    pub is_stored: bool,
}

/// Checks an answer to a request: every signature, every receipt, and the evidence if there is any.
///
/// # Errors
/// The first rule that is broken.
pub fn check_signed(
    answer: &RequestSigned,
    terms: &SigningTerms<'_>,
) -> Result<CheckedSigning, Reject> {
    let signable = terms.signable()?;
    check_signatures(answer, &signable, terms)?;
    let receipts = check_receipts(answer, &signable, terms)?;
    let signers = check_session(answer, &signable, terms)?;
    Ok(CheckedSigning {
        session: answer.session,
        is_stored: answer.evidence.0.is_none(),
        signers,
        receipts,
    })
}

impl SigningTerms<'_> {
    /// What was asked, understood.
    ///
    /// # Errors
    /// What is wrong with the intent.
    pub fn signable(&self) -> Result<Signable, Reject> {
        let certified = self.sharing.certified();
        Signable::of_intent(
            self.intent,
            certified.key_id(),
            certified.plan().network,
            certified.public().group_key(),
        )
    }
}

/// One signature for each own input, each valid for the key of the address that is spent.
///
/// # Errors
/// [`Reject::InputCount`]; [`Reject::FinalSignature`].
pub fn check_signatures(
    answer: &RequestSigned,
    signable: &Signable,
    terms: &SigningTerms<'_>,
) -> Result<(), Reject> {
    check_each(&answer.signatures, signable.items(), terms.sharing)
}

/// The members that vouch for the answer, each with a receipt of its own; at least one, ascending.
///
/// # Errors
/// The first rule that is broken.
pub fn check_receipts(
    answer: &RequestSigned,
    signable: &Signable,
    terms: &SigningTerms<'_>,
) -> Result<Vec<Identifier>, Reject> {
    let plan = terms.sharing.certified().plan();
    let mut receipts = Vec::new();
    for (member, receipt) in &answer.receipts {
        let entry = plan.member_at(*member).ok_or(Reject::NotAMember)?;
        let receipt = receipt.clone().verify(&entry.identity)?;
        check_receipt(&receipt, answer, signable, terms)?;
        receipt.checkpoint.clone().verify(&entry.identity)?;
        receipts.push(*member);
    }
    if receipts.is_empty() || !receipts.array_windows().all(|[left, right]| left < right) {
        return Err(Reject::PackageMembers);
    }
    Ok(receipts)
}

/// The members whose shares are in the signatures; nobody where the answer came without the session's
/// record.
///
/// # Errors
/// The first rule that is broken.
pub fn check_session(
    answer: &RequestSigned,
    signable: &Signable,
    terms: &SigningTerms<'_>,
) -> Result<Vec<Identifier>, Reject> {
    let Some(record) = &answer.evidence.0 else {
        return Ok(Vec::new());
    };
    let certified = terms.sharing.certified();
    let round = Round {
        header: &record.header,
        commitments: &record.commitments,
        package: &record.package,
        shares: &record.shares,
    };
    let header = round.check(
        certified.plan(),
        certified.public(),
        terms.coordinators,
        signable.items(),
        &answer.signatures,
    )?;
    let Subject::Request(subject) = &header.subject else {
        return Err(Reject::SessionMismatch);
    };
    let is_this = header.flow == Flow::Sign
        && header.session_id() == answer.session
        && header.key_id == certified.key_id()
        && header.share_version == certified.share_version()
        && header.epoch == terms.epoch
        && subject.activation == terms.sharing.activation_digest()
        && subject.request_id == terms.request_id
        && subject.intent == signable.intent_digest()
        && subject.policy == terms.sharing.policy_digest();
    if is_this {
        Ok(header.members.to_vec())
    } else {
        Err(Reject::SessionMismatch)
    }
}

/// One signature for each item, each valid for the key of its address.
pub(super) fn check_each(
    signatures: &[InputSignature],
    items: &[Item],
    sharing: &ActiveSharing,
) -> Result<(), Reject> {
    if signatures.len() != items.len() {
        return Err(Reject::InputCount);
    }
    for (item, made) in items.iter().zip(signatures) {
        let key = item.key(sharing.certified().public())?;
        let is_valid = item.input == made.input
            && verify_bip340(key.output_key(), &item.message, made.signature.as_bytes());
        if !is_valid {
            return Err(Reject::FinalSignature);
        }
    }
    Ok(())
}

fn check_receipt(
    receipt: &Receipt,
    answer: &RequestSigned,
    signable: &Signable,
    terms: &SigningTerms<'_>,
) -> Result<(), Reject> {
    let Outcome::Completed(completed) = &receipt.outcome else {
        return Err(Reject::FinalSignature);
    };
    if receipt.key_id != terms.sharing.certified().key_id() {
        return Err(Reject::GrantKeyMismatch);
    }
    if receipt.request_id != terms.request_id {
        return Err(Reject::GrantRequestMismatch);
    }
    if receipt.intent != signable.intent_digest() {
        return Err(Reject::GrantIntentMismatch);
    }
    // A stored answer is as old as it is: the policy may have changed since, and the epoch have risen.
    let is_stored = answer.evidence.0.is_none();
    if !is_stored && receipt.policy != terms.sharing.policy_digest() {
        return Err(Reject::GrantPolicyMismatch);
    }
    let epoch_fits = receipt.epoch == terms.epoch || is_stored && receipt.epoch < terms.epoch;
    if receipt.session != answer.session || !epoch_fits {
        return Err(Reject::SessionMismatch);
    }
    if completed.signatures != answer.signatures {
        return Err(Reject::FinalSignature);
    }
    Ok(())
}

//! Receipts: of signatures that this attempt made, and of those that members have had in store. It
//! decides whether a receipt is about this request and its signatures verify, and whose signatures are
//! the answer where attempts have raced; a bad receipt is noted and never undoes a good one.

use std::collections::BTreeMap;

use firn_protocol::{
    bitcoin::verify_bip340,
    documents::{Outcome, Receipt},
    envelope::{Envelope, Verified},
    ids::Identifier,
    messages::FromMember,
    reject::Reject,
};

use super::{AttemptOutcome, AwaitReceipts, Context, SignAttempt, SignedRequest, State, Stored};
use crate::session::{Fault, Turn, word_of};

impl Context {
    /// A receipt that this request was signed, with signatures that verify.
    pub(super) fn stored_receipt(
        &self,
        from: Identifier,
        envelope: Envelope<Receipt>,
    ) -> Result<Verified<Receipt>, Fault> {
        let receipt = word_of(&self.members, from, envelope)?;
        let request = &self.request;
        let about_it = receipt.key_id == request.key_id
            && receipt.request_id == request.subject.request_id
            && receipt.intent == request.subject.intent;
        if !about_it {
            return Err(Fault::misbehaved(from, Reject::RequestConflict));
        }
        match &receipt.outcome {
            Outcome::Refused(refused) => Err(Fault::misbehaved(from, refused.code)),
            Outcome::Completed(completed) => {
                let fits = completed.signatures.len() == request.items.len()
                    && request
                        .items
                        .iter()
                        .zip(&completed.signatures)
                        .all(|(item, made)| {
                            made.input == item.input
                                && verify_bip340(
                                    item.key.output_key(),
                                    &item.message,
                                    made.signature.as_bytes(),
                                )
                        });
                if fits {
                    Ok(receipt)
                } else {
                    Err(Fault::misbehaved(from, Reject::FinalSignature))
                }
            }
        }
    }

    pub(super) fn hear_out(
        self,
        from: Identifier,
        receipt: Verified<Receipt>,
        answered: &[Identifier],
    ) -> Turn<SignAttempt> {
        let waiting = self
            .members
            .iter()
            .map(|member| member.identifier)
            .filter(|member| !answered.contains(member))
            .collect();
        let stored = Stored {
            first: from,
            receipts: BTreeMap::from([(from, receipt)]),
            waiting,
        };
        self.on_stored(stored, from)
    }

    /// `heard` has answered, in whatever way.
    pub(super) fn on_stored(self, mut stored: Stored, heard: Identifier) -> Turn<SignAttempt> {
        stored.waiting.retain(|member| *member != heard);
        if stored.waiting.is_empty() {
            self.end_stored(stored)
        } else {
            self.goes(State::Stored(stored), Vec::new())
        }
    }

    pub(super) fn end_stored(self, mut stored: Stored) -> Turn<SignAttempt> {
        let Some(first) = stored.receipts.get(&stored.first) else {
            return Self::failed(Reject::Internal);
        };
        let session = first.session;
        let signatures = match &first.outcome {
            Outcome::Completed(completed) => completed.signatures.to_vec(),
            Outcome::Refused(_) => Vec::new(),
        };
        // Two concurrent attempts may both have been completed; one answer is about one of them.
        stored
            .receipts
            .retain(|_, receipt| receipt.session == session);
        Turn::Ended(AttemptOutcome::Signed(Box::new(SignedRequest {
            session,
            signatures,
            receipts: stored.receipts,
            evidence: None,
            faults: Vec::new(),
        })))
    }

    /// One good receipt is enough: a bad one is noted, no more.
    pub(super) fn on_receipt(
        self,
        mut state: AwaitReceipts,
        from: Identifier,
        answer: Result<Verified<Receipt>, Fault>,
    ) -> Turn<SignAttempt> {
        state.waiting.retain(|member| *member != from);
        match answer {
            Ok(receipt) if receipt.session == self.session => {
                state.receipts.insert(from, receipt);
            }
            // Completed in another attempt of the request, with other signatures.
            Ok(receipt) => {
                state
                    .faults
                    .push(Fault::silent(from, Reject::SessionMismatch));
                state.others.insert(from, receipt);
            }
            Err(fault) => state.faults.push(fault),
        }
        if state.waiting.is_empty() {
            self.end_signed(state)
        } else {
            self.goes(State::Receipts(state), Vec::new())
        }
    }

    /// The answer: what this attempt has signed, if a member vouches for it. Where all members have
    /// completed the request in another attempt they will never vouch for this one; then the answer is
    /// that attempt's. Signatures that nobody vouches for are no answer: what members have on record is.
    pub(super) fn end_signed(self, state: AwaitReceipts) -> Turn<SignAttempt> {
        if state.receipts.is_empty() {
            return match state.others.keys().next() {
                Some(first) => self.end_stored(Stored {
                    first: *first,
                    receipts: state.others,
                    waiting: Vec::new(),
                }),
                None => Self::failed(state.faults),
            };
        }
        match state.signed.record() {
            Ok(record) => Turn::Ended(AttemptOutcome::Signed(Box::new(SignedRequest {
                session: self.session,
                signatures: state.signed.signatures,
                receipts: state.receipts,
                evidence: Some(record),
                faults: state.faults,
            }))),
            Err(code) => Self::failed(code),
        }
    }

    /// A receipt where commitments or shares were due: the request has been signed before.
    pub(super) fn on_early_receipt(
        self,
        from: Identifier,
        envelope: Envelope<Receipt>,
        answered: &[Identifier],
    ) -> Turn<SignAttempt> {
        match self.stored_receipt(from, envelope) {
            Ok(receipt) => self.hear_out(from, receipt, answered),
            Err(fault) => Self::failed(fault),
        }
    }

    /// Whatever a member answers now, it is not waited for any more.
    pub(super) fn on_heard(
        self,
        mut stored: Stored,
        from: Identifier,
        message: FromMember,
    ) -> Turn<SignAttempt> {
        if let FromMember::Receipt(envelope) = message
            && let Ok(receipt) = self.stored_receipt(from, envelope)
        {
            stored.receipts.insert(from, receipt);
        }
        self.on_stored(stored, from)
    }
}

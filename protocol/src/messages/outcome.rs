//! What became of a request. The question needs no grant and changes nothing, so an answer that was
//! lost can always be had again by the key's current owner.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use super::{MissingMember, Refusal, RequestProgress};
use crate::{
    codec::{List, Maybe},
    documents::{Receipt, SignedCheckpoint},
    envelope::{Document, Envelope},
    ids::{Epoch, Identifier, IntentDigest, KeyId, Nonce, PolicyDigest, RequestId, UnixMillis},
    limits,
};

/// Asks what became of a request. Signed by the requester that owns the key's highest epoch; whoever
/// carries it cannot ask in its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct OutcomeQuery {
    /// The key.
    pub key_id: KeyId,
    /// The request.
    pub request_id: RequestId,
    /// Random, so that an old answer is of no use.
    pub nonce: Nonce,
    /// The requester's clock.
    pub time: UnixMillis,
}

impl Document for OutcomeQuery {
    const KIND: &'static str = "outcome-query";
    const LIMIT: usize = limits::SMALL_DOCUMENT;
}

/// What one member's ledger holds of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct KnownRequest {
    /// What the request id stands for.
    pub intent: IntentDigest,
    /// The policy that it was last judged by.
    pub policy: PolicyDigest,
    /// The owner's epoch at the last attempt.
    pub epoch: Epoch,
    /// How far it has come. Of all that is known only [`RequestProgress::Open`] says that no share has
    /// left; [`RequestProgress::Released`] counts as signed.
    pub progress: RequestProgress,
    /// Attempts that may still end in a signature: their nonces live in the running process.
    pub open_attempts: u32,
    /// The stored receipt, where the request has come that far.
    pub receipt: Maybe<Envelope<Receipt>>,
}

/// One member's word on a request. Signed by the member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct OutcomeStatement {
    /// The key.
    pub key_id: KeyId,
    /// The request.
    pub request_id: RequestId,
    /// The nonce of the query.
    pub nonce: Nonce,
    /// Who.
    pub member: Identifier,
    /// What its ledger holds; none where the request never reached it.
    pub known: Maybe<KnownRequest>,
    /// Its head, which covers what it says.
    pub checkpoint: SignedCheckpoint,
    /// The member's clock.
    pub time: UnixMillis,
}

impl Document for OutcomeStatement {
    const KIND: &'static str = "outcome";
    const LIMIT: usize = Envelope::<Receipt>::LIMIT + limits::SMALL_DOCUMENT;
}

/// The members' words on a request, as a coordinator collected them. It proves nothing by itself: the
/// requester verifies each statement and draws its own conclusion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct OutcomeReport {
    /// Statements, ascending by member.
    pub statements: List<Envelope<OutcomeStatement>, { limits::MAX_MEMBERS }>,
    /// Members that refused to say.
    pub refusals: List<(Identifier, Envelope<Refusal>), { limits::MAX_MEMBERS }>,
    /// Members that could not be asked.
    pub missing: List<MissingMember, { limits::MAX_MEMBERS }>,
}

// A report with every member's receipt, and every member's refusal, fits a frame.
const _: () = assert!(
    limits::MAX_FRAME
        > limits::MAX_MEMBERS * (OutcomeStatement::LIMIT + limits::ENVELOPE_OVERHEAD + 8192)
);

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;
    use crate::{
        documents::{Checkpoint, Completed, InputSignature, Outcome},
        ids::{SessionId, Signature},
        keys::IdentitySecret,
        merkle::{MerkleRoot, TreeSize},
    };

    #[test]
    fn the_receipt_of_the_largest_request_fits_a_statement() {
        let secret = IdentitySecret::from_seed(&Zeroizing::new([1; 32]));
        let time = UnixMillis::new(u64::MAX);
        let head = Checkpoint {
            size: TreeSize::new(u64::MAX),
            root: MerkleRoot::from_bytes([2; 32]),
            time,
        };
        let checkpoint = Envelope::sign(&head, &secret).unwrap();
        let signature = InputSignature {
            input: u32::MAX,
            signature: Signature::from_bytes([3; 64]),
        };
        let (key_id, request_id) = (KeyId::from_bytes([4; 32]), RequestId::from_bytes([5; 32]));
        let (intent, policy) = (
            IntentDigest::from_bytes([6; 32]),
            PolicyDigest::from_bytes([7; 32]),
        );
        let epoch = Epoch::new(u64::MAX);
        let receipt = Receipt {
            key_id,
            request_id,
            intent,
            policy,
            epoch,
            session: SessionId::from_bytes([8; 32]),
            outcome: Outcome::Completed(Completed {
                signatures: List::new(vec![signature; limits::MAX_SESSION_INPUTS]).unwrap(),
            }),
            position: u64::MAX,
            checkpoint: checkpoint.clone(),
            time,
        };
        let statement = OutcomeStatement {
            key_id,
            request_id,
            nonce: Nonce::from_bytes([9; 32]),
            member: Identifier::new(u16::MAX).unwrap(),
            known: Maybe(Some(KnownRequest {
                intent,
                policy,
                epoch,
                progress: RequestProgress::Completed,
                open_attempts: u32::MAX,
                receipt: Maybe(Some(Envelope::sign(&receipt, &secret).unwrap())),
            })),
            checkpoint,
            time,
        };
        let envelope = Envelope::sign(&statement, &secret).unwrap();
        assert_eq!(*envelope.verify(&secret.identity()).unwrap(), statement);
    }
}

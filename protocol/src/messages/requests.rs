//! Between a requester and a coordinator.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use super::{
    Commitments, KeyDocuments, KeyQuery, OutcomeQuery, OutcomeReport, PackageBody, Refusal,
    ShareList,
};
use crate::{
    codec::{Blob, List, Maybe, Text},
    documents::{Grant, InputSignature, Intent, Receipt},
    envelope::Envelope,
    ids::{Identifier, SessionId, UnixMillis},
    limits,
    names::Name,
    reject::Reject,
    session::SessionHeader,
    sum,
};

/// Asks for an intent to be signed. Asking again with the same grant or a fresh one for the same
/// request is always safe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct SignRequest {
    /// What, by the requester's word.
    pub intent: Envelope<Intent>,
    /// The control plane's permission.
    pub grant: Envelope<Grant>,
    /// Signed approvals.
    pub approvals: List<Blob<{ limits::SMALL_DOCUMENT }>, { limits::MAX_APPROVALS }>,
}

sum!(
    /// What a requester may ask a coordinator.
    pub enum ToRequests {
        /// Sign.
        1 => Sign(SignRequest),
        /// What became of a request?
        2 => Outcome(Envelope<OutcomeQuery>),
        /// What is a key? Signed by the requester.
        3 => Key(Envelope<KeyQuery>),
    }
);

/// The request is signed. The requester verifies signatures and receipts itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct RequestSigned {
    /// The session that signed it.
    pub session: SessionId,
    /// One signature for each own input, ascending by input.
    pub signatures: List<InputSignature, { limits::MAX_SESSION_INPUTS }>,
    /// The members' receipts, ascending by member.
    pub receipts: List<(Identifier, Envelope<Receipt>), { limits::MAX_MEMBERS }>,
    /// What the signature was made of; none when a stored answer came back.
    pub evidence: Maybe<SigningRecord>,
}

/// The evidence of one signing session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct SigningRecord {
    /// The session.
    pub header: Envelope<SessionHeader>,
    /// The members' commitments.
    pub commitments: List<Envelope<Commitments>, { limits::MAX_THRESHOLD }>,
    /// The coordinator's word on their lists.
    pub package: Envelope<PackageBody>,
    /// The members' shares.
    pub shares: List<Envelope<ShareList>, { limits::MAX_THRESHOLD }>,
}

/// A member that could not be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct MissingMember {
    /// Which.
    pub name: Name,
    /// Since when; none where it was never seen.
    pub since: Maybe<UnixMillis>,
}

/// The request is not signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct RequestFailed {
    /// Why, in the coordinator's reading of the answers.
    pub code: Reject,
    /// The members' own words.
    pub refusals: List<(Identifier, Envelope<Refusal>), { limits::MAX_MEMBERS }>,
    /// Members that could not be asked.
    pub missing: List<MissingMember, { limits::MAX_MEMBERS }>,
    /// In their own words, for a person.
    pub detail: Text<{ limits::MAX_PURPOSE }>,
}

sum!(
    /// What a coordinator may answer a requester.
    pub enum FromRequests {
        /// Signed.
        1 => Signed(RequestSigned),
        /// Not signed.
        2 => Failed(RequestFailed),
        /// What the members say of a request.
        3 => Outcome(OutcomeReport),
        /// What a key is.
        4 => Key(KeyDocuments),
    }
);

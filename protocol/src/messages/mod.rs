//! The messages: what travels on a stream, one module for each conversation. Everything that
//! matters in a message is an envelope of its own, so whoever carries it can only lose it.

mod ceremony;
mod connection;
mod dkg;
mod news;
mod requests;
mod signing;
mod standing;

pub use ceremony::{
    ActivationResult, CeremonyFailed, CeremonyRecord, Deliver, FromCeremony, MemberPresence,
    Presence, PresenceQuery, Progress, ProofRecord, RunCeremony, ToCeremony,
};
pub use connection::{Hello, Welcome};
pub use dkg::{
    CertificateSet, Complaint, Delivery, DkgManifest, DkgOpen, DkgRound1, DkgRound1Set, DkgRound2,
    InclusionPath, ProofOpen, ProvenPackage, SealedPackage, SealingSecret, package_leaf,
    package_tree, transcript_digest,
};
pub use news::{
    ChargeEntry, EpochEntry, News, NewsEntry, Outpoint, PolicyEntry, Progress as RequestProgress,
    ReservationEntry, SignedEntry, SpentEntry,
};
pub use requests::{
    FromRequests, MissingMember, RequestFailed, RequestSigned, SignRequest, SigningRecord,
    ToRequests,
};
pub use signing::{
    Commitment, Commitments, Final, FromMember, KeyDocuments, KeyQuery, Package, PackageBody,
    Refusal, ShareList, SignOpen, ToMember, input_digest, message_digest,
};
pub use standing::{Acknowledgement, Standing};

//! The messages: what travels on a stream, one module for each conversation. Everything that
//! matters in a message is an envelope of its own, so whoever carries it can only lose it.

mod ceremony;
mod connection;
mod dkg;
mod local;
mod news;
mod outcome;
mod requests;
mod signing;
mod standing;
mod status;

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
pub use local::{
    AcceptPlan, FromDaemon, LinkStatus, LocalFailure, LocalStatus, MAX_LOCAL_MESSAGE, PlanAccepted,
    ToDaemon,
};
pub use news::{
    ChargeEntry, EpochEntry, News, NewsEntry, Outpoint, PolicyEntry, Progress as RequestProgress,
    ReservationEntry, SignedEntry, SpentEntry,
};
pub use outcome::{KnownRequest, OutcomeQuery, OutcomeReport, OutcomeStatement};
pub use requests::{
    FromRequests, MissingMember, RequestFailed, RequestSigned, SignRequest, SigningRecord,
    ToRequests,
};
pub use signing::{
    Commitment, Commitments, Final, FromMember, KeyDocuments, KeyQuery, Package, PackageBody,
    Refusal, ShareList, SignOpen, ToMember, input_digest, message_digest,
};
pub use standing::{Acknowledgement, Standing};
pub use status::{
    KeyStatus, MAX_ACCEPTED, MemberReport, MemberStatus, ShareStage, StatusQuery, StatusReport,
};

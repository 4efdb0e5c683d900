//! How each member is, by its own signed word: what an operator looks at before and after everything.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use crate::{
    choice,
    codec::{List, Maybe, Text},
    documents::SignedCheckpoint,
    envelope::{Document, Envelope},
    ids::{
        ActivationDigest, AuthoritiesDigest, BuildDigest, Epoch, KeyId, Nonce, PlanDigest,
        PolicyVersion, ShareVersion, UnixMillis,
    },
    limits,
    names::SpiffeId,
    reject::Reject,
};

/// Plans that one member announces as accepted.
pub const MAX_ACCEPTED: usize = 64;

choice!(
    /// How far a share has come.
    pub enum ShareStage {
        /// Sealed; other members' certificates are missing.
        1 "pending" => Pending,
        /// All certificates agree; proofs of life may be made.
        2 "certified" => Certified,
        /// Usable.
        3 "active" => Active,
    }
);

/// Asks every member how it is. Signed by an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct StatusQuery {
    /// Random, so that an old answer is of no use.
    pub nonce: Nonce,
    /// The operator's clock.
    pub time: UnixMillis,
}

impl Document for StatusQuery {
    const KIND: &'static str = "status-query";
    const LIMIT: usize = limits::SMALL_DOCUMENT;
}

/// One key, as one member has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct KeyStatus {
    /// The key.
    pub key_id: KeyId,
    /// The version of the member's share.
    pub share_version: ShareVersion,
    /// How far the share has come.
    pub stage: ShareStage,
    /// What made it usable.
    pub activation: Maybe<ActivationDigest>,
    /// The policy in force.
    pub policy_version: Maybe<PolicyVersion>,
    /// The highest epoch.
    pub epoch: Maybe<Epoch>,
    /// Who holds it; none before anybody has shown a grant.
    pub owner: Maybe<SpiffeId>,
}

/// One member's word on how it is. Signed by the member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct MemberStatus {
    /// The nonce of the query.
    pub nonce: Nonce,
    /// Who.
    pub name: SpiffeId,
    /// The software, as it calls itself.
    pub software: Text<{ limits::MAX_NAME }>,
    /// SHA-256 of the binary.
    pub build: BuildDigest,
    /// The Authorities that count for it.
    pub authorities: AuthoritiesDigest,
    /// Its head.
    pub checkpoint: SignedCheckpoint,
    /// Why it would sign nothing now; none where it would.
    pub stopped: Maybe<Reject>,
    /// When its TLS certificate ends.
    pub certificate_expires: UnixMillis,
    /// Plans that its operator has accepted and that have not made a key yet, ascending.
    pub accepted: List<PlanDigest, MAX_ACCEPTED>,
    /// Its keys, ascending by key id.
    pub keys: List<KeyStatus, { limits::MAX_KEYS }>,
    /// The member's clock.
    pub time: UnixMillis,
}

impl Document for MemberStatus {
    const KIND: &'static str = "status";
    const LIMIT: usize = limits::ROSTER_DOCUMENT;
}

/// What a coordinator knows of one member, and the member's own word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct MemberReport {
    /// Who, by the name in its certificate.
    pub id: SpiffeId,
    /// Since when it has been connected; none where it is not.
    pub connected: Maybe<UnixMillis>,
    /// When it was last connected, where it is not.
    pub last_seen: Maybe<UnixMillis>,
    /// Its own word; none where it gave none in time.
    pub status: Maybe<Envelope<MemberStatus>>,
}

/// Everybody that a coordinator has seen since it started, ascending by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct StatusReport {
    /// The coordinator.
    pub coordinator: SpiffeId,
    /// Its software, as it calls itself.
    pub software: Text<{ limits::MAX_NAME }>,
    /// Since when it has been running.
    pub since: UnixMillis,
    /// The members.
    pub members: List<MemberReport, { limits::MAX_REPORTED }>,
}

// A member with every key and plan that it may announce fits its document.
const _: () = assert!(
    MemberStatus::LIMIT > limits::MAX_KEYS * 600 + MAX_ACCEPTED * 34 + limits::SMALL_DOCUMENT
);
// A report with every member fits a frame, if their words are of ordinary length; a coordinator leaves
// out words that do not fit.
const _: () = assert!(
    limits::MAX_FRAME > limits::MAX_REPORTED * (limits::SMALL_DOCUMENT + limits::ENVELOPE_OVERHEAD)
);

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;
    use crate::{
        documents::Checkpoint,
        keys::IdentitySecret,
        merkle::{MerkleRoot, TreeSize},
        messages::{LinkStatus, LocalStatus, MAX_LOCAL_MESSAGE},
        names::MAX_TRUST_DOMAIN,
    };

    fn longest_name(role: &str) -> SpiffeId {
        let domain = "d".repeat(MAX_TRUST_DOMAIN);
        let name = "n".repeat(limits::MAX_NAME - 1);
        format!("spiffe://{domain}/{role}/{name}").parse().unwrap()
    }

    fn largest() -> (MemberStatus, IdentitySecret) {
        let secret = IdentitySecret::from_seed(&Zeroizing::new([1; 32]));
        let time = UnixMillis::new(u64::MAX);
        let head = Checkpoint {
            size: TreeSize::new(u64::MAX),
            root: MerkleRoot::from_bytes([2; 32]),
            time,
        };
        let key = |number: u8| KeyStatus {
            key_id: KeyId::from_bytes([number; 32]),
            share_version: ShareVersion::new(u32::MAX),
            stage: ShareStage::Active,
            activation: Maybe(Some(ActivationDigest::from_bytes([3; 32]))),
            policy_version: Maybe(Some(PolicyVersion::new(u32::MAX))),
            epoch: Maybe(Some(Epoch::new(u64::MAX))),
            owner: Maybe(Some(longest_name("requester"))),
        };
        let keys = (0..limits::MAX_KEYS).map(|number| key(u8::try_from(number).unwrap()));
        let status = MemberStatus {
            nonce: Nonce::from_bytes([4; 32]),
            name: longest_name("participant"),
            software: Text::new(&"s".repeat(limits::MAX_NAME)).unwrap(),
            build: BuildDigest::from_bytes([5; 32]),
            authorities: AuthoritiesDigest::from_bytes([6; 32]),
            checkpoint: Envelope::sign(&head, &secret).unwrap(),
            stopped: Maybe(Some(Reject::ClockSkew)),
            certificate_expires: time,
            accepted: List::new(vec![PlanDigest::from_bytes([7; 32]); MAX_ACCEPTED]).unwrap(),
            keys: List::new(keys.collect()).unwrap(),
            time,
        };
        (status, secret)
    }

    #[test]
    fn a_member_with_every_key_and_plan_that_it_may_have_can_say_so() {
        let (status, secret) = largest();
        let envelope = Envelope::sign(&status, &secret).unwrap();
        assert_eq!(*envelope.verify(&secret.identity()).unwrap(), status);
    }

    #[test]
    fn the_same_fits_the_socket_of_its_daemon_with_every_link() {
        let (status, secret) = largest();
        let link = LinkStatus {
            coordinator: longest_name("coordinator"),
            since: Maybe(Some(UnixMillis::new(u64::MAX))),
            code: Maybe(Some(Text::new(&"c".repeat(limits::MAX_NAME)).unwrap())),
        };
        let local = LocalStatus {
            status: Envelope::sign(&status, &secret).unwrap(),
            links: List::new(vec![link; limits::MAX_AUTHORITY_KEYS]).unwrap(),
        };
        let length = crate::codec::encode(&local).unwrap().len();
        assert!(length + 8 < MAX_LOCAL_MESSAGE, "{length}");
    }
}

//! The names and quantities that documents and messages bind: digests, identifiers, versions and
//! times, each a type of its own so that no two can be confused.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::{byte_string, choice, limits};

byte_string!(
    /// Identifies a ceremony; chosen at random by the operators who plan it.
    CeremonyId, 16
);
byte_string!(
    /// Digest of a [`crate::documents::Plan`].
    PlanDigest, 32
);
byte_string!(
    /// Identifies a key for its whole life: the digest of the plan of the DKG that made it, so a
    /// rehearsal's key and a real one never share a grant.
    KeyId, 32
);
byte_string!(
    /// Digest of an [`crate::documents::Authorities`].
    AuthoritiesDigest, 32
);
byte_string!(
    /// Digest of a [`crate::documents::Policy`].
    PolicyDigest, 32
);
byte_string!(
    /// Digest of a policy's rules alone, which a plan can bind before the key has an id.
    RulesDigest, 32
);
byte_string!(
    /// Digest of an [`crate::documents::Activation`].
    ActivationDigest, 32
);
byte_string!(
    /// Digest of the ordered certificates of all members.
    CertificateSetDigest, 32
);
byte_string!(
    /// Digest of everything that was said in one attempt of a ceremony.
    TranscriptDigest, 32
);
byte_string!(
    /// What everybody means by "the intent": computed from the parsed content, never received.
    IntentDigest, 32
);
byte_string!(
    /// Names a request; chosen by the requester, once for each effect that it wants.
    RequestId, 32
);
byte_string!(
    /// Identifies one attempt of one session: a digest over everything that the session binds.
    SessionId, 32
);
byte_string!(
    /// Digest of the ordered commitment lists of a session, which each share is bound to.
    PackageDigest, 32
);
byte_string!(
    /// Digest of any other signed document or message.
    MessageDigest, 32
);
byte_string!(
    /// Random bytes that make a session or a challenge unique.
    Nonce, 32
);
byte_string!(
    /// A group key with its true parity: a compressed secp256k1 point.
    GroupKey, 33
);
byte_string!(
    /// A member's verifying share: a compressed secp256k1 point.
    VerifyingShare, 33
);
byte_string!(
    /// A nonce commitment or a coefficient commitment: a compressed secp256k1 point.
    Point, 33
);
byte_string!(
    /// A signature share: a scalar, big endian.
    SignatureShare, 32
);
byte_string!(
    /// A BIP-340 signature.
    Signature, 64
);
byte_string!(
    /// An X25519 public key that one recipient made for one attempt and one sender.
    SealingKey, 32
);
byte_string!(
    /// SHA-256 of the binary that is running.
    BuildDigest, 32
);

/// A whole number with a name, so that it can be mistaken for no other.
macro_rules! quantity {
    ($(#[$meta:meta])* $name:ident($inner:ty)) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name($inner);

        impl $name {
            /// Wraps the number.
            #[must_use]
            pub const fn new(number: $inner) -> Self {
                Self(number)
            }

            /// The number.
            #[must_use]
            pub const fn value(self) -> $inner {
                self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

quantity!(
    /// Which owner may sign with a key: participants never sign below the highest they have seen.
    Epoch(u64)
);
quantity!(
    /// Which sharing of a key: 1 after its DKG, one more after each reshare.
    ShareVersion(u32)
);
quantity!(
    /// Version of a policy of one key.
    PolicyVersion(u32)
);
quantity!(
    /// Version of the Authorities.
    AuthoritiesVersion(u32)
);
quantity!(
    /// Version of the list of revocations.
    RevocationVersion(u32)
);
quantity!(
    /// Milliseconds since 1970-01-01T00:00:00Z.
    UnixMillis(u64)
);

impl UnixMillis {
    /// This time and `duration_ms` more; the end of time where that overflows.
    #[must_use]
    pub const fn plus(self, duration_ms: u64) -> Self {
        Self(self.0.saturating_add(duration_ms))
    }
}

/// A FROST identifier: 1 to 65535, as `Identifier::try_from(u16)` maps it to a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identifier(u16);

impl Identifier {
    /// The identifier, unless it is zero (which is the secret's own place).
    #[must_use]
    pub const fn new(number: u16) -> Option<Self> {
        if number == 0 {
            None
        } else {
            Some(Self(number))
        }
    }

    /// The number.
    #[must_use]
    pub const fn value(self) -> u16 {
        self.0
    }
}

impl std::fmt::Display for Identifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Serialize for Identifier {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u16(self.0)
    }
}

impl<'de> Deserialize<'de> for Identifier {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(u16::deserialize(deserializer)?)
            .ok_or_else(|| D::Error::custom("identifier zero"))
    }
}

/// How many members must sign: at least 2, at most [`limits::MAX_THRESHOLD`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Threshold(u16);

impl Threshold {
    /// The threshold `t` for `members` members. Any two quorums must share a member, so `2t > n`.
    #[must_use]
    pub fn new(threshold: u16, members: usize) -> Option<Self> {
        let wanted = usize::from(threshold);
        let meet = wanted.saturating_mul(2) > members;
        (wanted >= 2 && wanted <= members && members <= limits::MAX_MEMBERS && meet)
            .then_some(Self(threshold))
    }

    /// The number.
    #[must_use]
    pub const fn value(self) -> u16 {
        self.0
    }

    /// How many members may lie before promises about the key as a whole fail: `2t - n - 1`.
    #[must_use]
    pub fn tolerated_liars(self, members: usize) -> usize {
        usize::from(self.0)
            .saturating_mul(2)
            .saturating_sub(members)
            .saturating_sub(1)
    }
}

impl Serialize for Threshold {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u16(self.0)
    }
}

impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u16::deserialize(deserializer)?;
        if (2..=limits::MAX_THRESHOLD).contains(&usize::from(number)) {
            Ok(Self(number))
        } else {
            Err(D::Error::custom("threshold out of bounds"))
        }
    }
}

choice!(
    /// What a session is for.
    pub enum Flow {
        /// Signing a requester's intent.
        1 "sign" => Sign,
        /// Making a key.
        2 "dkg" => Dkg,
        /// Proving that a fresh sharing signs.
        3 "proof-of-life" => ProofOfLife,
        /// Handing a key to new members.
        4 "reshare" => Reshare,
        /// Handing out signed commitments ahead of time.
        5 "preprocess" => Preprocess,
    }
);

#[cfg(test)]
mod tests {
    use super::Threshold;

    #[test]
    fn refuses_thresholds_whose_quorums_need_not_meet() {
        for (threshold, members, good) in [
            (2, 3, true),
            (3, 5, true),
            (5, 7, true),
            (2, 2, true),
            (2, 4, false),
            (1, 1, false),
            (3, 6, false),
            (4, 3, false),
            (33, 33, false),
            (0, 0, false),
        ] {
            assert_eq!(
                Threshold::new(threshold, members).is_some(),
                good,
                "{threshold}-of-{members}"
            );
        }
    }

    #[test]
    fn counts_the_liars_that_promises_about_the_key_survive() {
        for (threshold, members, liars) in [(2, 3, 0), (3, 5, 0), (5, 7, 2), (2, 2, 1)] {
            let threshold = Threshold::new(threshold, members).unwrap();
            assert_eq!(threshold.tolerated_liars(members), liars);
        }
    }
}

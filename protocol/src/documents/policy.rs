//! What a key may sign. This is the document; the engine that judges by it is another crate.
//!
//! A policy is a list of rules, each at most once, ascending by number. What no rule allows is
//! refused: the network, the destinations, the outflow, the fee and the signature types must each
//! be ruled on, and a missing rule of these refuses everything.

use serde_tuple::{Deserialize_tuple, Serialize_tuple};

use crate::{
    bitcoin::{Network, Sats},
    codec::{self, Blob, List, Malformed},
    envelope::Document,
    ids::{KeyId, PolicyVersion, RulesDigest},
    limits, sum,
    tagged::tagged_hash,
};

/// An output script, compared byte for byte; an address is only how people see it.
pub type Script = Blob<{ limits::MAX_SCRIPT }>;

/// The one network whose transactions may be signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct NetworkRule {
    /// The network.
    pub network: Network,
}

/// Where money may go, beside the key's own addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct DestinationRule {
    /// The scripts that foreign outputs may have. An empty list allows no foreign output.
    pub allow: List<Script, { limits::MAX_SCRIPTS }>,
}

/// How much may leave. Outflow is own inputs less own re-derived outputs, so it includes the fee.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct OutflowRule {
    /// The most that one transaction may cost the key, inclusive.
    pub per_transaction: Sats,
    /// The most that one foreign output may have, inclusive.
    pub per_output: Sats,
}

/// How much miners may get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct FeeRule {
    /// The highest fee of one transaction, inclusive.
    pub absolute: Sats,
    /// The highest fee for a thousand virtual bytes, inclusive.
    pub per_kvb: Sats,
}

/// Which signature types may be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct SighashRule {
    /// Whether SIGHASH_ALL may be signed; SIGHASH_DEFAULT always may, any other never.
    pub allow_all: bool,
}

sum!(
    /// One rule. The list is closed; later versions of the protocol add numbers.
    pub enum Rule {
        /// The network.
        1 => Network(NetworkRule),
        /// Destinations.
        2 => Destination(DestinationRule),
        /// Outflow.
        3 => Outflow(OutflowRule),
        /// Fee.
        4 => Fee(FeeRule),
        /// Signature types.
        5 => Sighash(SighashRule),
    }
);

/// The rules, ascending by number, none twice.
pub type Rules = List<Rule, { limits::MAX_RULES }>;

/// What a key may sign, signed by the policy authority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize_tuple, Deserialize_tuple)]
pub struct Policy {
    /// The key.
    pub key_id: KeyId,
    /// 1 for the first, one more for each edit.
    pub version: PolicyVersion,
    /// The rules.
    pub rules: Rules,
}

impl Document for Policy {
    const KIND: &'static str = "policy";
    const LIMIT: usize = limits::ROSTER_DOCUMENT;
}

impl Policy {
    /// The digest of the rules alone.
    ///
    /// # Errors
    /// Never for rules that were decoded.
    pub fn rules_digest(rules: &Rules) -> Result<RulesDigest, Malformed> {
        let bytes = codec::encode(rules)?;
        Ok(RulesDigest::from_bytes(tagged_hash(
            "firn/rules",
            &[&bytes],
        )))
    }

    /// Whether the rules are in order and none stands twice.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.rules
            .array_windows()
            .all(|[left, right]| left.number() < right.number())
    }
}

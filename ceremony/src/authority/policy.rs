//! The smallest policy that is real. It decides that all five rules are there, since a missing rule
//! refuses everything.

use firn_protocol::{
    bitcoin::{Network, Sats, transaction::ScriptPubKey},
    codec::List,
    documents::{
        DestinationRule, FeeRule, NetworkRule, OutflowRule, Policy, Rule, Rules, Script,
        SighashRule,
    },
    envelope::Envelope,
    ids::{KeyId, PolicyVersion},
    keys::IdentitySecret,
};

use crate::error::Error;

/// What people decide about what a key may sign.
#[derive(Debug, Clone)]
pub struct RuleTerms {
    /// The one network.
    pub network: Network,
    /// Where money may go, beside the key's own addresses.
    pub destinations: Vec<ScriptPubKey>,
    /// The most that one transaction may cost the key, fee included.
    pub outflow: Sats,
    /// The most that one foreign output may have.
    pub output: Sats,
    /// The highest fee.
    pub fee: Sats,
    /// The highest fee for a thousand virtual bytes.
    pub fee_per_kvb: Sats,
    /// Whether SIGHASH_ALL may be signed beside SIGHASH_DEFAULT.
    pub allow_all: bool,
}

/// The rules.
///
/// # Errors
/// [`Error::Usage`] for more destinations or longer scripts than a rule holds.
pub fn rules(terms: &RuleTerms) -> Result<Rules, Error> {
    let too_much = || Error::Usage {
        what: "too many destinations for one rule, or a script that is too long".to_owned(),
    };
    let allow: Option<Vec<Script>> = terms
        .destinations
        .iter()
        .map(|script| Script::new(script.as_bytes().to_vec()))
        .collect();
    let allow = allow.and_then(List::new).ok_or_else(too_much)?;
    let rules = vec![
        Rule::Network(NetworkRule {
            network: terms.network,
        }),
        Rule::Destination(DestinationRule { allow }),
        Rule::Outflow(OutflowRule {
            per_transaction: terms.outflow,
            per_output: terms.output,
        }),
        Rule::Fee(FeeRule {
            absolute: terms.fee,
            per_kvb: terms.fee_per_kvb,
        }),
        Rule::Sighash(SighashRule {
            allow_all: terms.allow_all,
        }),
    ];
    List::new(rules).ok_or_else(too_much)
}

/// A key's first policy, signed.
///
/// # Errors
/// [`Error::Document`].
pub fn first_policy(
    key_id: KeyId,
    rules: Rules,
    authority: &IdentitySecret,
) -> Result<Envelope<Policy>, Error> {
    let policy = Policy {
        key_id,
        version: PolicyVersion::new(1),
        rules,
    };
    Ok(Envelope::sign(&policy, authority)?)
}

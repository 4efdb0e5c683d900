//! The policy engine. It decides whether a summarised transaction keeps to signed rules, and says
//! every rule that it breaks; it never parses, derives or believes anything itself. Pure, so that the
//! operator's tool tests a policy with the very code that a member runs.
//!
//! Default is deny: network, destinations, outflow, fee and signature types must each be ruled on.

use firn_protocol::{
    bitcoin::{Network, SighashType, Summary},
    documents::{DestinationRule, FeeRule, NetworkRule, OutflowRule, Rule, Rules, SighashRule},
    reject::Reject,
};

/// One rule broken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The stable code.
    pub code: Reject,
    /// The rule's name in a policy.
    pub rule: &'static str,
    /// What broke it, for the local log and the tool.
    pub detail: String,
}

impl Violation {
    fn new(code: Reject, rule: &'static str, detail: impl Into<String>) -> Self {
        Self {
            code,
            rule,
            detail: detail.into(),
        }
    }
}

/// The rules of a policy, sorted out.
#[derive(Debug, Clone, Copy, Default)]
struct Sorted<'a> {
    network: Option<&'a NetworkRule>,
    destination: Option<&'a DestinationRule>,
    outflow: Option<&'a OutflowRule>,
    fee: Option<&'a FeeRule>,
    sighash: Option<&'a SighashRule>,
}

impl<'a> Sorted<'a> {
    fn of(rules: &'a Rules) -> Self {
        let mut sorted = Self::default();
        for rule in rules {
            match rule {
                Rule::Network(rule) => sorted.network = Some(rule),
                Rule::Destination(rule) => sorted.destination = Some(rule),
                Rule::Outflow(rule) => sorted.outflow = Some(rule),
                Rule::Fee(rule) => sorted.fee = Some(rule),
                Rule::Sighash(rule) => sorted.sighash = Some(rule),
            }
        }
        sorted
    }
}

/// Every rule that signing `summary` would break; empty means allowed.
#[must_use]
pub fn evaluate(rules: &Rules, summary: &Summary) -> Vec<Violation> {
    let sorted = Sorted::of(rules);
    let mut found = Vec::new();
    let mut rule_on = |present: bool, name: &'static str| {
        if !present {
            let detail = "the policy has no such rule, and without it nothing is allowed";
            found.push(Violation::new(Reject::PolicyMissingRule, name, detail));
        }
    };
    rule_on(sorted.network.is_some(), "network");
    rule_on(sorted.destination.is_some(), "destination");
    rule_on(sorted.outflow.is_some(), "outflow");
    rule_on(sorted.fee.is_some(), "fee");
    rule_on(sorted.sighash.is_some(), "sighash");
    if let Some(rule) = sorted.network {
        check_network(rule, summary.network(), &mut found);
    }
    if let Some(rule) = sorted.destination {
        check_destinations(rule, summary, &mut found);
    }
    if let Some(rule) = sorted.outflow {
        check_outflow(rule, summary, &mut found);
    }
    if let Some(rule) = sorted.fee {
        check_fee(rule, summary, &mut found);
    }
    if let Some(rule) = sorted.sighash {
        check_sighash(
            *rule == SighashRule { allow_all: true },
            summary,
            &mut found,
        );
    }
    check_foreign_inputs(summary, &mut found);
    found
}

/// A proof of life moves nothing: only the network is ruled on.
#[must_use]
pub fn evaluate_proof_of_life(rules: &Rules, network: Network) -> Vec<Violation> {
    let mut found = Vec::new();
    match Sorted::of(rules).network {
        Some(rule) => check_network(rule, network, &mut found),
        None => found.push(Violation::new(
            Reject::PolicyMissingRule,
            "network",
            "the policy has no such rule, and without it nothing is allowed",
        )),
    }
    found
}

fn check_network(rule: &NetworkRule, network: Network, found: &mut Vec<Violation>) {
    if rule.network != network {
        let detail = format!("{network} is not {}", rule.network);
        found.push(Violation::new(Reject::PolicyNetwork, "network", detail));
    }
}

fn check_destinations(rule: &DestinationRule, summary: &Summary, found: &mut Vec<Violation>) {
    for (index, output) in summary.outputs().iter().enumerate() {
        let script = output.output.script.as_bytes();
        let allowed = rule
            .allow
            .iter()
            .any(|allowed| allowed.as_bytes() == script);
        if output.own.is_none() && !allowed {
            let detail = format!("output {index} pays to a script that is not on the list");
            found.push(Violation::new(
                Reject::PolicyDestination,
                "destination",
                detail,
            ));
        }
    }
}

fn check_outflow(rule: &OutflowRule, summary: &Summary, found: &mut Vec<Violation>) {
    if summary.outflow() > rule.per_transaction {
        let detail = format!("{} leave, {} may", summary.outflow(), rule.per_transaction);
        found.push(Violation::new(Reject::PolicyOutflow, "outflow", detail));
    }
    for (index, output) in summary.outputs().iter().enumerate() {
        if output.own.is_none() && output.output.value > rule.per_output {
            let detail = format!(
                "output {index} pays {}, {} may",
                output.output.value, rule.per_output
            );
            found.push(Violation::new(Reject::PolicyOutput, "outflow", detail));
        }
    }
}

fn check_fee(rule: &FeeRule, summary: &Summary, found: &mut Vec<Violation>) {
    let fee = summary.fee();
    if fee > rule.absolute {
        let detail = format!("the fee is {fee}, {} may", rule.absolute);
        found.push(Violation::new(Reject::PolicyFee, "fee", detail));
    }
    // fee / vbytes > rate / 1000, without a division that could round the wrong way.
    let vbytes = signed_vbytes(summary);
    let paid = u128::from(fee.value()).checked_mul(1000);
    let allowed = u128::from(rule.per_kvb.value()).checked_mul(u128::from(vbytes));
    match (paid, allowed) {
        (Some(paid), Some(allowed)) if paid <= allowed => {}
        _ => {
            let detail = format!(
                "the fee is {fee} for {vbytes} vbytes, {} for a thousand may",
                rule.per_kvb
            );
            found.push(Violation::new(Reject::PolicyFeeRate, "fee", detail));
        }
    }
}

/// The least virtual size that the signed transaction will have (BIP-141): 65 bytes of witness for
/// each own input and an empty one for each foreign input. A foreign witness can only make the
/// transaction larger, and its fee rate lower.
#[must_use]
pub fn signed_vbytes(summary: &Summary) -> u64 {
    let length = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
    let base = length(summary.transaction().to_bytes().len());
    let own = length(summary.own_inputs().count());
    let inputs = length(summary.inputs().len());
    // Per input one byte for the number of items; an own one has a length byte and 64 bytes more.
    let witness = own
        .saturating_mul(65)
        .saturating_add(inputs)
        .saturating_add(2);
    base.saturating_mul(4).saturating_add(witness).div_ceil(4)
}

fn check_sighash(allow_all: bool, summary: &Summary, found: &mut Vec<Violation>) {
    for own in summary.own_inputs() {
        let allowed = match own.sighash_type {
            SighashType::Default => true,
            SighashType::All => allow_all,
            SighashType::None
            | SighashType::Single
            | SighashType::AllAnyoneCanPay
            | SighashType::NoneAnyoneCanPay
            | SighashType::SingleAnyoneCanPay => false,
        };
        if !allowed {
            let detail = format!("input {} asks for another signature type", own.index);
            found.push(Violation::new(Reject::PolicySighash, "sighash", detail));
        }
    }
}

fn check_foreign_inputs(summary: &Summary, found: &mut Vec<Violation>) {
    for (index, input) in summary.inputs().iter().enumerate() {
        if input.own.is_none() {
            let detail = format!("input {index} spends what is not the key's");
            found.push(Violation::new(Reject::PolicyForeignInput, "inputs", detail));
        }
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "small numbers of a test")]
mod tests;

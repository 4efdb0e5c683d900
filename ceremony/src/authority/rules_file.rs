//! Rules as people write them: a TOML file. It decides that all rules are there and that every address
//! is one of the network; what may be signed under them is the policy engine's to say.

use std::{collections::BTreeSet, ops::Range, path::Path};

use firn_protocol::{
    bitcoin::{Network, Sats, ScriptPubKey},
    documents::{Policy, Rule, Rules},
    ids::RulesDigest,
};
use serde::{Deserialize, Deserializer, de};
use toml::Spanned;

use super::policy::{RuleTerms, rules};
use crate::{
    domain::{line_of, read_toml_text},
    error::Error,
};

/// A file with every rule.
pub(crate) const EXAMPLE: &str = include_str!("rules.toml");

const LIMIT: usize = 256 << 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    network: Option<NetworkTable>,
    destination: Option<DestinationTable>,
    outflow: Option<OutflowTable>,
    fee: Option<FeeTable>,
    sighash: Option<SighashTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkTable {
    only: NetworkName,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DestinationTable {
    allow: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutflowTable {
    per_transaction_sats: Sats,
    per_output_sats: Sats,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FeeTable {
    absolute_sats: Sats,
    per_kvb_sats: Sats,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SighashTable {
    allow_all: bool,
}

#[derive(Clone, Copy)]
struct NetworkName(Network);

impl<'de> Deserialize<'de> for NetworkName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Network::from_name(&name)
            .map(Self)
            .ok_or_else(|| de::Error::custom("a network is mainnet, testnet, signet or regtest"))
    }
}

/// Reads rules.
///
/// # Errors
/// [`Error::File`]; [`Error::Invalid`] with the line; [`Error::RuleMissing`].
pub fn read_rules(path: &Path) -> Result<Rules, Error> {
    let text = read_toml_text(path, LIMIT, "rules")?;
    let invalid = |span: Range<usize>, what: String| Error::Invalid {
        path: path.to_owned(),
        line: line_of(&text, span.start),
        what,
    };
    let file: File = toml::from_str(&text)
        .map_err(|error| invalid(error.span().unwrap_or_default(), error.message().to_owned()))?;
    let missing = |rule| Error::RuleMissing {
        path: path.to_owned(),
        rule,
    };
    let network = file.network.ok_or_else(|| missing("network"))?.only.0;
    let destination = file.destination.ok_or_else(|| missing("destination"))?;
    let outflow = file.outflow.ok_or_else(|| missing("outflow"))?;
    let fee = file.fee.ok_or_else(|| missing("fee"))?;
    let sighash = file.sighash.ok_or_else(|| missing("sighash"))?;
    let mut seen = BTreeSet::new();
    let destinations = destination
        .allow
        .iter()
        .map(|address| {
            let text = address.get_ref();
            let script = network.script(text).ok_or_else(|| {
                let what = format!("{text:?} is no address of {network}");
                invalid(address.span(), what)
            })?;
            if seen.insert(script.as_bytes().to_vec()) {
                Ok(script)
            } else {
                Err(invalid(address.span(), format!("{text} stands twice")))
            }
        })
        .collect::<Result<Vec<ScriptPubKey>, Error>>()?;
    rules(&RuleTerms {
        network,
        destinations,
        outflow: outflow.per_transaction_sats,
        output: outflow.per_output_sats,
        fee: fee.absolute_sats,
        fee_per_kvb: fee.per_kvb_sats,
        allow_all: sighash.allow_all,
    })
}

/// The digest that a plan binds rules by.
///
/// # Errors
/// Never for rules that were read.
pub fn rules_digest(rules: &Rules) -> Result<RulesDigest, Error> {
    Ok(Policy::rules_digest(rules)?)
}

/// The network that rules allow.
#[must_use]
pub fn network_of(rules: &Rules) -> Option<Network> {
    rules.iter().find_map(|rule| match rule {
        Rule::Network(rule) => Some(rule.network),
        Rule::Destination(_) | Rule::Outflow(_) | Rule::Fee(_) | Rule::Sighash(_) => None,
    })
}

/// Rules in words, a line for each statement: what it is about, and what it says.
#[must_use]
pub fn described(rules: &Rules) -> Vec<(&'static str, String)> {
    let network = network_of(rules);
    let mut lines = Vec::new();
    for rule in rules {
        match rule {
            Rule::Network(rule) => lines.push(("network", format!("only {}", rule.network))),
            Rule::Destination(rule) if rule.allow.is_empty() => {
                lines.push(("pays", "nobody but the key itself".to_owned()));
            }
            Rule::Destination(rule) => {
                for script in &rule.allow {
                    let script = ScriptPubKey::new(script.as_bytes().to_vec());
                    let address = network.and_then(|network| network.address(&script));
                    let raw = || format!("script {}", hex::encode(script.as_bytes()));
                    lines.push(("pays only", address.unwrap_or_else(raw)));
                }
            }
            Rule::Outflow(rule) => {
                let (whole, one) = (rule.per_transaction, rule.per_output);
                lines.push((
                    "outflow",
                    format!("at most {whole} in one transaction, fee included"),
                ));
                lines.push(("", format!("at most {one} to one output")));
            }
            Rule::Fee(rule) => {
                let (fee, rate) = (rule.absolute, rule.per_kvb);
                lines.push((
                    "fee",
                    format!("at most {fee}, and at most {rate} for 1000 vbytes"),
                ));
            }
            Rule::Sighash(rule) => {
                let kinds = if rule.allow_all {
                    "SIGHASH_DEFAULT and SIGHASH_ALL"
                } else {
                    "SIGHASH_DEFAULT only"
                };
                lines.push(("sighash", kinds.to_owned()));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::fs;

    use firn_protocol::{bitcoin::Network, documents::Rules};

    use super::{EXAMPLE, described, network_of, read_rules};
    use crate::error::Error;

    fn read(text: &str) -> Result<Rules, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules.toml");
        fs::write(&path, text).unwrap();
        read_rules(&path)
    }

    #[test]
    fn the_example_has_every_rule() {
        let rules = read(EXAMPLE).unwrap();
        assert_eq!(rules.len(), 5);
        assert_eq!(network_of(&rules), Some(Network::Regtest));
        let lines = described(&rules);
        for wanted in [
            "only regtest",
            "bcrt1",
            "SIGHASH_DEFAULT only",
            "fee included",
        ] {
            assert!(
                lines.iter().any(|(_, line)| line.contains(wanted)),
                "{wanted}: {lines:?}"
            );
        }
    }

    #[test]
    fn demands_every_rule_by_name() {
        for rule in ["network", "destination", "outflow", "fee", "sighash"] {
            let head = format!("[{rule}]");
            let (before, after) = EXAMPLE.split_once(&head).unwrap();
            let rest = after.find("\n[").map_or("", |at| &after[at..]);
            match read(&format!("{before}{rest}")) {
                Err(error @ Error::RuleMissing { .. }) => {
                    assert_eq!(error.code(), "policy_missing_rule");
                    assert!(error.to_string().contains(&head), "{error}");
                }
                other => panic!("{rule}: {other:?}"),
            }
        }
    }

    #[test]
    fn refuses_with_the_line_what_it_does_not_know() {
        let mainnet = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4";
        let first = EXAMPLE
            .split('"')
            .find(|text| text.starts_with("bcrt1"))
            .unwrap();
        let line = |needle: &str| {
            let at = EXAMPLE.find(needle).unwrap();
            EXAMPLE[..at].matches('\n').count() + 1
        };
        let twice = format!("\"{first}\", \"{first}\"");
        for (from, to, wanted) in [
            (first, mainnet, line(first)),
            (first, "bcrt1qnonsense", line(first)),
            (&format!("\"{first}\"")[..], &twice, line(first)),
            ("per_output_sats", "per_output_sat", line("per_output_sats")),
            ("only = \"regtest\"", "only = \"main\"", line("only = ")),
            (
                "absolute_sats = ",
                "absolute_sats = -",
                line("absolute_sats"),
            ),
            (
                "absolute_sats = ",
                "absolute_sats = 99999999999",
                line("absolute_sats"),
            ),
            (
                "[sighash]",
                "[sighash]\nsurprise = 1",
                line("[sighash]") + 1,
            ),
        ] {
            assert!(EXAMPLE.contains(from), "{from}");
            match read(&EXAMPLE.replacen(from, to, 1)) {
                Err(Error::Invalid { line, what, .. }) => {
                    assert_eq!(line, wanted, "{to}: {what}");
                }
                other => panic!("{to}: {other:?}"),
            }
        }
    }
}

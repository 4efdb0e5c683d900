//! `firn plan new`: writes the plan of a new key. It decides that every member's enrollment holds and is
//! of the trust domain; who is to be a member is what the operators decide.

use std::path::{Path, PathBuf};

use clap::Args;
use firn_protocol::{
    bitcoin::Network,
    documents::RosterEntry,
    envelope::Endorsed,
    ids::{AuthoritiesDigest, Identifier},
    names::{Role, TrustDomain},
};

use super::described::Described;
use crate::{
    authority::{PlanTerms, network_of, plan, read_rules},
    clock::now,
    commands::{
        profile::ProfileOption,
        reports::{must_not_exist, split},
    },
    domain::{Enrolled, files::write_document},
    error::{Error, Exit},
    output::Output,
    words::Span,
};

/// Options of `firn plan new`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  firn plan new --out plan.cbor --threshold 2 \\\n    \
                  --member p1=p1/enrollment.cbor --member p2=p2/enrollment.cbor \\\n    \
                  --member p3=p3/enrollment.cbor \\\n    \
                  --network regtest --purpose \"rehearsal\" --rules rules.toml --valid 4h"
)]
pub(crate) struct Arguments {
    /// Where the plan goes.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// How many members sign; any two quorums must meet, so more than half.
    #[arg(long, value_name = "T")]
    pub(crate) threshold: u16,
    /// A member, in the order of their identifiers: the name and the enrollment.
    #[arg(long = "member", value_name = "NAME=ENROLLMENT", required = true)]
    pub(crate) members: Vec<String>,
    /// mainnet, testnet, signet or regtest.
    #[arg(long, value_parser = network)]
    pub(crate) network: Network,
    /// What the key is for, in your words.
    #[arg(long, value_name = "TEXT")]
    pub(crate) purpose: String,
    /// What the key may sign; `firn policy example` prints such a file.
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: PathBuf,
    /// How long the ceremony may take from now on, such as 4h.
    #[arg(long, value_name = "DURATION")]
    pub(crate) valid: Span,
    #[command(flatten)]
    pub(crate) profile: ProfileOption,
}

fn network(name: &str) -> Result<Network, String> {
    Network::from_name(name)
        .ok_or_else(|| "a network is mainnet, testnet, signet or regtest".to_owned())
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<Exit, Error> {
    let now = now();
    let described = perform(arguments)?;
    if !output.is_json() {
        described.say(now, output);
        output.say("");
        let file = arguments.out.display();
        output.say(format_args!("Next, every operator: firn plan sign {file}"));
    }
    output.object(&described.report)?;
    Ok(Exit::Done)
}

pub(crate) fn perform(arguments: &Arguments) -> Result<Described, Error> {
    must_not_exist(&arguments.out)?;
    let authorities = arguments.profile.load()?.authorities()?;
    let rules = read_rules(&arguments.rules)?;
    if network_of(&rules) != Some(arguments.network) {
        return Err(Error::Unfit {
            path: arguments.rules.clone(),
            what: format!("its network is not {}, the plan's", arguments.network),
        });
    }
    let now = now();
    let plan = plan(PlanTerms {
        network: arguments.network,
        purpose: &arguments.purpose,
        threshold: arguments.threshold,
        roster: roster(&arguments.members, &authorities.trust_domain)?,
        authorities: AuthoritiesDigest::from_bytes(authorities.approved().digest()),
        rules: &rules,
        expires: now.plus(arguments.valid.millis()),
    })?;
    write_document(&arguments.out, &Endorsed::unsigned(&plan)?)?;
    let rules = Some((arguments.rules.as_path(), &rules));
    Described::read(&arguments.out, Some(authorities.approved()), rules, now)
}

fn roster(members: &[String], domain: &TrustDomain) -> Result<Vec<RosterEntry>, Error> {
    (1_u16..)
        .zip(members)
        .map(|(number, argument)| {
            let (name, path) = split(argument);
            let path = path.map(Path::new).ok_or_else(|| Error::Usage {
                what: format!("--member {argument}: the enrollment is missing: NAME=ENROLLMENT"),
            })?;
            let unfit = |what: String| Error::Unfit {
                path: path.to_owned(),
                what,
            };
            let enrolled = Enrolled::read(path)?;
            let enrollment = enrolled.enrollment();
            let id = &enrollment.name;
            if id.role() != Role::Participant || id.trust_domain() != domain {
                return Err(unfit(format!(
                    "{id} is no participant of the trust domain {domain}"
                )));
            }
            if id.name().as_str() != name {
                return Err(unfit(format!(
                    "it is the enrollment of {}, not of {name}",
                    id.name()
                )));
            }
            let identifier = Identifier::new(number).ok_or_else(|| Error::Usage {
                what: "too many members".to_owned(),
            })?;
            Ok(RosterEntry {
                name: id.name().clone(),
                identifier,
                identity: enrollment.identity,
                tls_name: id.clone(),
            })
        })
        .collect()
}

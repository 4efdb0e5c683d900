//! `firn plan sign`: adds an operator's signature to a plan. It decides that the plan stands on the
//! operator's own Authorities and is in time, and that its fingerprint was compared.

use std::path::PathBuf;

use clap::Args;
use firn_protocol::{codec, documents::Plan};

use super::described::Described;
use crate::{
    authority::{countersign, read_rules},
    clock::now,
    commands::profile::ProfileOption,
    confirm,
    domain::files::replace_public,
    error::{Error, Exit},
    output::Output,
};

const SIGNING: &str = "signing the plan";

/// Options of `firn plan sign`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  firn plan sign plan.cbor --profile domain/operators/ben/firn.toml --rules rules.toml"
)]
pub(crate) struct Arguments {
    /// The plan, to which the signature is added.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// The rules that the plan must bind; they are shown, too.
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,
    /// The fingerprint that the others have read out, in words or hexadecimal; else you are asked.
    #[arg(long, value_name = "WORDS|HEX")]
    pub(crate) fingerprint: Option<String>,
    #[command(flatten)]
    pub(crate) profile: ProfileOption,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<Exit, Error> {
    let described = perform(arguments, output)?;
    if let Some(signatures) = described.report.signatures() {
        signatures.say(output);
        if signatures.missing == 0 {
            output.say(format_args!(
                "Next, on every member's machine: firn accept {} --socket PATH",
                arguments.plan.display()
            ));
        }
    }
    output.object(&described.report)?;
    Ok(Exit::Done)
}

pub(crate) fn perform(arguments: &Arguments, output: Output) -> Result<Described, Error> {
    let given = arguments.fingerprint.as_deref();
    confirm::can_be_answered("the plan", given, confirm::OPTION)?;
    let profile = arguments.profile.load()?;
    let authorities = profile.authorities()?;
    let rules = arguments.rules.as_deref().map(read_rules).transpose()?;
    let rules = arguments.rules.as_deref().zip(rules.as_ref());
    let now = now();
    let read = || Described::read(&arguments.plan, Some(authorities.approved()), rules, now);
    let described = read()?;
    described.must_be_in_time(now, SIGNING)?;
    if given.is_none() {
        described.say(now, output);
    }
    let secret = profile.secret().map_err(firn_client::Error::Profile)?;
    confirm::given_or_asked("the plan", described.digest.as_bytes(), given)?;
    let signed = countersign::<Plan>(described.endorsed, &authorities.operators, &secret, SIGNING)?;
    replace_public(&arguments.plan, &codec::encode(&signed)?)?;
    read()
}

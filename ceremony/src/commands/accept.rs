//! `firn accept`: a plan is accepted on a member's machine. It decides that a person has read the plan and
//! compared its fingerprint; whether the plan counts here, the daemon judges for itself.

use std::path::PathBuf;

use clap::Args;
use firn_protocol::names::Name;
use serde::Serialize;

use super::{
    plan::{AuthoritiesOption, described::Described},
    reports::Fingerprint,
    runtime,
};
use crate::{
    authority::read_rules,
    clock::now,
    confirm,
    error::{Error, Exit},
    local::LocalLine,
    output::Output,
};

const ACCEPTING: &str = "accepting the plan";

/// Options of `firn accept`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  firn accept plan.cbor --socket p1/data/control.sock --rules rules.toml\n\n\
                  A script gives what was compared elsewhere:\n  \
                  firn accept plan.cbor --socket /run/firn/control.sock --fingerprint 3f9c…"
)]
pub(crate) struct Arguments {
    /// The plan, signed by the operators.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// The control socket of this machine's daemon.
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: PathBuf,
    /// The rules that the plan must bind; they are shown, too.
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,
    /// The fingerprint that the operators have read out, in words or hexadecimal; else you are asked.
    #[arg(long, value_name = "WORDS|HEX")]
    pub(crate) fingerprint: Option<String>,
    #[command(flatten)]
    pub(crate) whose: AuthoritiesOption,
}

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    fingerprint: Fingerprint,
    member: Name,
    socket: PathBuf,
}

/// Runs `firn accept`.
pub(crate) fn run(arguments: &Arguments, output: &Output) -> Result<Exit, Error> {
    let report = runtime()?.block_on(perform(arguments, *output))?;
    output.say(format_args!(
        "Accepted, durably, as member {}. The ceremony can be run.",
        report.member
    ));
    output.object(&report)?;
    Ok(Exit::Done)
}

pub(crate) async fn perform(arguments: &Arguments, output: Output) -> Result<Report, Error> {
    let given = arguments.fingerprint.as_deref();
    confirm::can_be_answered("the plan", given, confirm::OPTION)?;
    let now = now();
    let rules = arguments.rules.as_deref().map(read_rules).transpose()?;
    let rules = arguments.rules.as_deref().zip(rules.as_ref());
    let authorities = arguments.whose.find()?;
    let described = Described::read(&arguments.plan, authorities.as_ref(), rules, now)?;
    described.must_be_in_time(now, ACCEPTING)?;
    // Nobody should compare words for a daemon that is not there.
    LocalLine::connect(&arguments.socket).await?;
    if given.is_none() {
        described.say(now, output);
    }
    confirm::given_or_asked("the plan", described.digest.as_bytes(), given)?;
    // A line of its own: comparing may have taken longer than a daemon waits.
    let mut line = LocalLine::connect(&arguments.socket).await?;
    let accepted = line.accept(&described.endorsed, described.digest).await?;
    Ok(Report {
        fingerprint: Fingerprint::of(described.digest.as_bytes()),
        member: accepted.member,
        socket: arguments.socket.clone(),
    })
}

//! `firn authorities`: shows the keys that count, and adds an operator's signature to them. It decides
//! whose signature may be added; whether they are the right ones is for people to compare.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use firn_protocol::{
    codec,
    documents::{Authorities, KeyHolder},
    envelope::Endorsed,
};
use serde::Serialize;

use super::{
    profile::ProfileOption,
    reports::{Fingerprint, Signatures},
};
use crate::{
    authority::{countersign, read_draft, signed_so_far},
    confirm,
    domain::{
        Draft,
        files::{read_identity, replace_public},
        is_description, read_endorsed_authorities, twin,
    },
    error::{Error, Exit},
    fingerprint,
    output::Output,
};

const SIGNING: &str = "signing the Authorities";
const SHOWING: &str = "reading the Authorities";

/// How `firn authorities` is used.
pub(crate) const EXAMPLE: &str = "Example:\n  firn authorities show domain/domain.toml";

/// What can be done with Authorities.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say which keys count and who has signed that, with the fingerprint to compare.
    #[command(after_help = "Example:\n  firn authorities show domain/domain.toml")]
    Show {
        /// A domain.toml or an authorities.cbor.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Add your signature as an operator, after comparing the fingerprint.
    Sign(Sign),
}

/// Options of `firn authorities sign`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  firn authorities sign domain/domain.toml --identity-key ada/identity.key"
)]
pub(crate) struct Sign {
    /// A domain.toml or an authorities.cbor; where both lie in one folder, both get the signature.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Your key, where there is no profile yet.
    #[arg(long, value_name = "FILE", conflicts_with = "profile")]
    pub(crate) identity_key: Option<PathBuf>,
    /// The fingerprint that the others have read out, in words or hexadecimal; else you are asked.
    #[arg(long, value_name = "WORDS|HEX")]
    pub(crate) fingerprint: Option<String>,
    #[command(flatten)]
    pub(crate) profile: ProfileOption,
}

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    file: PathBuf,
    trust_domain: String,
    version: u32,
    fingerprint: Fingerprint,
    operators: Vec<Named>,
    #[serde(flatten)]
    pub(crate) signatures: Signatures,
    grant_authority: String,
    policy_authority: String,
    requesters: Vec<Named>,
    coordinators: Vec<Named>,
    /// The other form of the same Authorities, which got the signature, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    also: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Named {
    name: String,
    identity: String,
}

/// Runs `firn authorities`.
pub(crate) fn run(command: &Command, output: &Output) -> Result<Exit, Error> {
    match command {
        Command::Show { file } => {
            let (report, digest) = report(file, &read_endorsed_authorities(file)?)?;
            if !output.is_json() {
                show(&report, &digest, *output);
            }
            output.object(&report)?;
        }
        Command::Sign(arguments) => {
            let report = sign(arguments, *output)?;
            report.signatures.say(*output);
            if let Some(also) = &report.also {
                output.fact("signed, too", also.display());
            }
            output.object(&report)?;
        }
    }
    Ok(Exit::Done)
}

pub(crate) fn sign(arguments: &Sign, output: Output) -> Result<Report, Error> {
    let given = arguments.fingerprint.as_deref();
    confirm::can_be_answered("the Authorities", given, confirm::OPTION)?;
    let file = &arguments.file;
    let endorsed = read_endorsed_authorities(file)?;
    let (before, digest) = report(file, &endorsed)?;
    if given.is_none() {
        show(&before, &digest, output);
    }
    let secret = match &arguments.identity_key {
        Some(path) => read_identity(path)?,
        None => arguments
            .profile
            .load()?
            .secret()
            .map_err(firn_client::Error::Profile)?,
    };
    confirm::given_or_asked("the Authorities", &digest, given)?;
    let (authorities, _) = endorsed.read::<Authorities>()?;
    let signed = countersign::<Authorities>(endorsed, &authorities.operators, &secret, SIGNING)?;
    put(file, &signed)?;
    let (mut report, _) = report(file, &signed)?;
    let other = twin(file);
    if other.exists()
        && read_endorsed_authorities(&other).is_ok_and(|there| is_same(&there, &signed))
    {
        put(&other, &signed)?;
        report.also = Some(other);
    }
    Ok(report)
}

/// Whether two files hold the same Authorities, whoever has signed them.
fn is_same(left: &Endorsed, right: &Endorsed) -> bool {
    let digest = |endorsed: &Endorsed| endorsed.read::<Authorities>().ok().map(|read| read.1);
    digest(left) == digest(right)
}

fn put(file: &Path, signed: &Endorsed) -> Result<(), Error> {
    if is_description(file) {
        Draft::read(file)?.replace(file, signed.clone())?;
        return Ok(());
    }
    replace_public(file, &codec::encode(signed)?)
}

fn report(file: &Path, endorsed: &Endorsed) -> Result<(Report, [u8; 32]), Error> {
    let (authorities, digest) = read_draft(endorsed).map_err(|what| Error::Unfit {
        path: file.to_owned(),
        what,
    })?;
    let operators = &authorities.operators;
    let signed = signed_so_far::<Authorities>(endorsed, &operators.identities(), SHOWING)?;
    let holders = |holders: &[KeyHolder]| -> Vec<Named> {
        holders
            .iter()
            .map(|holder| Named {
                name: holder.id.name().to_string(),
                identity: holder.key.to_string(),
            })
            .collect()
    };
    let report = Report {
        file: file.to_owned(),
        trust_domain: authorities.trust_domain.to_string(),
        version: authorities.version.value(),
        fingerprint: Fingerprint::of(&digest),
        operators: operators
            .keys
            .iter()
            .map(|named| Named {
                name: named.name.to_string(),
                identity: named.key.to_string(),
            })
            .collect(),
        signatures: Signatures::of(operators, &signed),
        grant_authority: authorities.grant_authority.to_string(),
        policy_authority: authorities.policy_authority.to_string(),
        requesters: holders(&authorities.requesters),
        coordinators: holders(&authorities.coordinators),
        also: None,
    };
    Ok((report, digest))
}

fn show(report: &Report, digest: &[u8; 32], output: Output) {
    output.fact("trust domain", &report.trust_domain);
    output.fact("version", report.version);
    let needed = report.signatures.needed;
    let all = report.operators.len();
    output.fact("operators", format_args!("{needed} of these {all} decide"));
    for (kind, people) in [
        ("", &report.operators),
        ("requesters", &report.requesters),
        ("coordinators", &report.coordinators),
    ] {
        for (index, person) in people.iter().enumerate() {
            let kind = if index == 0 { kind } else { "" };
            output.fact(
                kind,
                format_args!("{:<12} {}", person.name, person.identity),
            );
        }
    }
    output.fact("grants", &report.grant_authority);
    output.fact("policies", &report.policy_authority);
    report.signatures.say(output);
    output.say("");
    confirm::show("the Authorities", digest, output);
    output.say(format_args!(
        "Short form, only for finding it again: {}",
        fingerprint::short(digest)
    ));
}

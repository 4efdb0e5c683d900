//! `firn activation`: the operators' word that a made key may be used. It decides that everything the word
//! stands on holds, before it is shown as such or signed.

mod drafted;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use firn_protocol::documents::Activation;
use serde::Serialize;

pub(crate) use self::drafted::Drafted;
use super::{
    plan::AuthoritiesOption,
    profile::ProfileOption,
    reports::{Fingerprint, Signatures},
};
use crate::{
    authority::countersign,
    confirm,
    error::{Error, Exit},
    evidence::Folder,
    output::Output,
};

const SIGNING: &str = "signing the activation";

/// How `firn activation` is used.
pub(crate) const EXAMPLE: &str = "Example:\n  firn activation show evidence";

/// What can be done with an activation.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say what is activated and who has signed it, with the fingerprint to compare.
    Show(Show),
    /// Add your signature as an operator, after checking the ceremony and comparing the fingerprint.
    Sign(Sign),
}

/// Options of `firn activation show`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  firn activation show evidence --authorities domain/authorities.cbor"
)]
pub(crate) struct Show {
    /// The folder of a ceremony, or the activation in it.
    #[arg(value_name = "DIR|FILE")]
    pub(crate) place: PathBuf,
    #[command(flatten)]
    pub(crate) whose: AuthoritiesOption,
}

/// Options of `firn activation sign`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  firn activation sign evidence --profile domain/operators/ben/firn.toml"
)]
pub(crate) struct Sign {
    /// The folder of a ceremony, or the activation in it, to which the signature is added.
    #[arg(value_name = "DIR|FILE")]
    pub(crate) place: PathBuf,
    /// The activation's fingerprint that the others have read out; else you are asked.
    #[arg(long, value_name = "WORDS|HEX")]
    pub(crate) fingerprint: Option<String>,
    #[command(flatten)]
    pub(crate) profile: ProfileOption,
}

#[derive(Debug, Serialize)]
struct Report {
    folder: PathBuf,
    key_id: String,
    group_key: String,
    share_version: u32,
    threshold: u16,
    members: usize,
    certificates: String,
    policy: String,
    policy_version: u32,
    first_epoch: u64,
    fingerprint: Fingerprint,
    #[serde(flatten)]
    signatures: Signatures,
}

/// Runs `firn activation`.
pub(crate) fn run(command: &Command, output: &Output) -> Result<Exit, Error> {
    match command {
        Command::Show(arguments) => {
            let authorities = arguments.whose.need()?;
            let folder = folder_of(&arguments.place);
            let drafted = Drafted::read(folder, &authorities)?;
            let report = report(&drafted);
            if !output.is_json() {
                report.say(*output);
                confirm::show("the activation", &drafted.digest, *output);
            }
            output.object(&report)?;
        }
        Command::Sign(arguments) => sign(arguments, *output)?,
    }
    Ok(Exit::Done)
}

fn sign(arguments: &Sign, output: Output) -> Result<(), Error> {
    let profile = arguments.profile.load()?;
    let authorities = profile.authorities()?;
    let folder = folder_of(&arguments.place);
    let drafted = Drafted::read(folder.clone(), authorities.approved())?;
    let before = report(&drafted);
    let secret = profile.secret().map_err(firn_client::Error::Profile)?;
    // What cannot be signed is said before anybody compares words.
    let operators = &authorities.operators;
    let signed = countersign::<Activation>(drafted.endorsed.clone(), operators, &secret, SIGNING)?;
    if arguments.fingerprint.is_none() {
        before.say(output);
    }
    confirm::compared(
        "the activation",
        &drafted.digest,
        arguments.fingerprint.as_deref(),
        confirm::OPTION,
        output,
    )?;
    folder.put_activation(&signed)?;
    let report = report(&Drafted::read(folder, authorities.approved())?);
    report.signatures.say(output);
    if report.signatures.missing == 0 {
        let place = report.folder.display();
        output.fact("next", format_args!("firn activate {place}"));
    }
    output.object(&report)
}

/// An activation says nothing that could be checked without the ceremony that it stands on: a file stands
/// for the folder that it lies in.
fn folder_of(place: &Path) -> Folder {
    if place.is_dir() {
        return Folder::at(place);
    }
    match place.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => Folder::at(parent),
        Some(_) | None => Folder::at("."),
    }
}

fn report(drafted: &Drafted) -> Report {
    let certified = &drafted.certified;
    let activation = &drafted.activation;
    Report {
        folder: drafted.folder.path().to_owned(),
        key_id: activation.key_id.to_string(),
        group_key: certified.public().group_key().to_string(),
        share_version: activation.share_version.value(),
        threshold: certified.plan().threshold.value(),
        members: certified.plan().roster.len(),
        certificates: activation.certificates.to_string(),
        policy: activation.policy.to_string(),
        policy_version: activation.policy_version.value(),
        first_epoch: activation.first_epoch.value(),
        fingerprint: Fingerprint::of(&drafted.digest),
        signatures: drafted.signatures.clone(),
    }
}

impl Report {
    fn say(&self, output: Output) {
        output.fact("folder", self.folder.display());
        output.fact("key id", &self.key_id);
        output.fact("group key", &self.group_key);
        output.fact(
            "key",
            format_args!(
                "{} of {} members sign, share version {}",
                self.threshold, self.members, self.share_version
            ),
        );
        output.fact("certificates", &self.certificates);
        output.fact(
            "policy",
            format_args!("version {}, {}", self.policy_version, self.policy),
        );
        output.fact("first epoch", self.first_epoch);
        output.fact(
            "checked",
            "plan, ceremony and policy hold, and this is what follows from them",
        );
        self.signatures.say(output);
        output.say("");
    }
}

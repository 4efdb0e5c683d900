//! `firn verify`: checks a ceremony's folder offline, and says every check. It decides nothing: whatever
//! does not hold is shown, and the command ends with 1.

use std::path::PathBuf;

use clap::Args;
use firn_protocol::ids::AuthoritiesDigest;
use serde::Serialize;

use super::reports::Fingerprint;
use crate::{
    confirm,
    domain::read_endorsed_authorities,
    error::{Error, Exit},
    evidence::{self, Check, Folder, InForce, Verification},
    fingerprint,
    output::Output,
};

/// Options of `firn verify`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  firn verify evidence --authorities domain/authorities.cbor\n\n\
                  Nobody is asked and nothing is changed. Exit codes: 0 everything holds, 1 something \
                  does not.\nThe folder proves what is in it; that nothing else was signed is for the \
                  members' ledgers to show."
)]
pub(crate) struct Arguments {
    /// The folder of a ceremony.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The Authorities that everything is checked with: an authorities.cbor or a domain.toml.
    #[arg(long, value_name = "FILE")]
    pub(crate) authorities: PathBuf,
    /// Their fingerprint as you know it, in words or hexadecimal; without it, compare what is shown.
    #[arg(long, value_name = "WORDS|HEX")]
    pub(crate) fingerprint: Option<String>,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    folder: PathBuf,
    authorities: Option<Fingerprint>,
    /// Whether the fingerprint was given, rather than left for a person to compare.
    authorities_compared: bool,
    key_id: Option<String>,
    group_key: Option<String>,
    threshold: Option<u16>,
    members: Option<usize>,
    acknowledged: Option<usize>,
    would_have_to_lie: Option<usize>,
    checks: &'a [Check],
    holds: bool,
}

/// Runs `firn verify`.
pub(crate) fn run(arguments: &Arguments, output: &Output) -> Result<Exit, Error> {
    let meant = arguments.fingerprint.as_deref().map(digest).transpose()?;
    let authorities = read_endorsed_authorities(&arguments.authorities)?;
    let folder = Folder::at(&arguments.dir);
    let verification = evidence::verify(&folder, authorities, meant)?;
    if !output.is_json() {
        show(&verification, meant.is_some(), *output);
    }
    output.object(&report(&folder, &verification, meant.is_some()))?;
    let failed: Vec<String> = verification
        .failed()
        .map(|check| format!("{}: {}: {}", check.file, check.check, check.detail))
        .collect();
    if failed.is_empty() {
        Ok(Exit::Done)
    } else {
        Err(Error::NotHeld { failed })
    }
}

fn digest(text: &str) -> Result<AuthoritiesDigest, Error> {
    fingerprint::parse(text)
        .map(AuthoritiesDigest::from_bytes)
        .map_err(|error| Error::Usage {
            what: format!("{text:?} is no fingerprint: {error}"),
        })
}

fn report<'a>(folder: &Folder, verification: &'a Verification, compared: bool) -> Report<'a> {
    let authorities = verification.authorities.as_ref();
    let certified = verification.sharing.as_ref().map(|key| key.certified());
    let in_force = verification.in_force.as_ref();
    Report {
        folder: folder.path().to_owned(),
        authorities: authorities.map(|digest| Fingerprint::of(digest.as_bytes())),
        authorities_compared: compared,
        key_id: certified.map(|key| key.key_id().to_string()),
        group_key: certified.map(|key| key.public().group_key().to_string()),
        threshold: certified.map(|key| key.plan().threshold.value()),
        members: certified.map(|key| key.plan().roster.len()),
        acknowledged: in_force.map(|counted| counted.stored.len()),
        would_have_to_lie: in_force.map(InForce::would_have_to_lie),
        checks: &verification.checks,
        holds: verification.holds(),
    }
}

fn show(verification: &Verification, compared: bool, output: Output) {
    let mut file = "";
    for check in &verification.checks {
        if check.file != file {
            file = &check.file;
            output.say(if file == "." { "the folder" } else { file });
        }
        let word = if check.holds {
            "holds"
        } else {
            "DOES NOT HOLD"
        };
        let colon = if check.detail.is_empty() { "" } else { ": " };
        output.say(format_args!(
            "  {word:<14} {}{colon}{}",
            check.check, check.detail
        ));
    }
    output.say("");
    if let Some(key) = &verification.sharing {
        output.fact("key id", key.certified().key_id());
        output.fact("group key", key.certified().public().group_key());
    }
    let checks = verification.checks.len();
    let failed = verification.failed().count();
    if failed == 0 {
        output.say(format_args!("All {checks} checks hold."));
    } else {
        output.say(format_args!(
            "{failed} of {checks} checks do not hold: do not rely on this folder, and keep it as it is."
        ));
    }
    if let (Some(digest), false) = (&verification.authorities, compared) {
        output.say(
            "All of it stands on these Authorities. Compare their fingerprint with the one you know:",
        );
        confirm::show("the Authorities", digest.as_bytes(), output);
    }
}

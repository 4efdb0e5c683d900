//! `firn ledger check`: reads a ledger at rest from its first record to its last, and changes nothing.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Serialize;
use time::OffsetDateTime;

use crate::{
    error::{Error, Exit},
    ledger::{self, Checked},
    output::Output,
};

/// How `firn ledger` is used.
pub(crate) const EXAMPLE: &str = "Example:\n  firn ledger check ./demo/participants/member-1";

/// What can be done with a ledger at rest.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check every record from the first to the last. Changes nothing; the participant may run.
    #[command(
        after_help = "Example:\n  firn ledger check /var/lib/firn/member-1 --json\n\n\
                      Exit codes: 0 sound, 1 damaged, with the position."
    )]
    Check {
        /// A participant's folder, its data folder, or the ledger's folder itself.
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
}

#[derive(Serialize)]
struct Report {
    folder: String,
    size: u64,
    root: String,
    last_time_ms: Option<u64>,
    is_sound: bool,
    findings: Vec<String>,
}

/// Runs `firn ledger`.
pub(crate) fn run(command: &Command, output: &Output) -> Result<Exit, Error> {
    match command {
        Command::Check { dir } => check(dir, output),
    }
}

fn check(folder: &Path, output: &Output) -> Result<Exit, Error> {
    let Checked { folder, report } = ledger::check(folder)?;
    let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    let is_sound = report.is_sound();
    let report = Report {
        folder: folder.display().to_string(),
        size: report.head.size.leaves(),
        root: hex::encode(report.head.root.as_bytes()),
        last_time_ms: report.last_time.map(firn_protocol::ids::UnixMillis::value),
        is_sound,
        findings,
    };
    if !output.is_json() {
        show(&report, *output);
    }
    output.object(&report)?;
    Ok(if is_sound { Exit::Done } else { Exit::Refused })
}

fn show(report: &Report, output: Output) {
    let time = report.last_time_ms.map_or_else(|| "none".to_owned(), date);
    output.say(format_args!("Ledger     {}", report.folder));
    output.say(format_args!("Records    {}", report.size));
    output.say(format_args!("Root       {}", report.root));
    output.say(format_args!("Last time  {time}"));
    for finding in &report.findings {
        output.say(format_args!("Found      {finding}"));
    }
    if report.is_sound {
        output.say("Sound: every record follows from the one before it.");
    } else {
        output
            .say("Damaged: nothing from there on is believed, and a participant refuses to start.");
        output.say("Keep the folder as it is; restore nothing over it before you know why.");
    }
}

/// Date and time in UTC, to the millisecond.
fn date(time_ms: u64) -> String {
    let nanoseconds = i128::from(time_ms).saturating_mul(1_000_000);
    OffsetDateTime::from_unix_timestamp_nanos(nanoseconds).map_or_else(
        |_| format!("{time_ms} ms after 1970 began"),
        |time| time.to_string(),
    )
}

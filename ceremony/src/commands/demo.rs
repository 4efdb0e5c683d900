//! `firn demo`: shows the report of a run, whether or not everything held.

use std::path::PathBuf;

use clap::Args;

use crate::{
    demo,
    error::{Error, Exit},
    output::Output,
};

/// Options of `firn demo`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  firn demo --participants 5 --threshold 3 --dir ./demo\n\n\
                  Everything that was said and signed stays in the folder."
)]
pub(crate) struct Arguments {
    /// How many members hold a share of the key (2 to 32).
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) participants: u16,
    /// How many of them sign; any two quorums must meet, so more than half.
    #[arg(long, value_name = "T", default_value_t = 2)]
    pub(crate) threshold: u16,
    /// Keep everything in this folder, which must be empty or new; a temporary one otherwise.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Use the binaries that lie beside this one as they are.
    #[arg(long)]
    pub(crate) no_build: bool,
}

/// Runs the demo.
pub(crate) fn run(arguments: &Arguments, output: &Output) -> Result<Exit, Error> {
    let report = demo::run(arguments, *output)?;
    output.object(&report)?;
    let failed: Vec<String> = report
        .verdicts
        .iter()
        .filter(|verdict| !verdict.holds)
        .map(|verdict| verdict.name.clone())
        .collect();
    if failed.is_empty() {
        Ok(Exit::Done)
    } else {
        Err(Error::NotHeld { failed })
    }
}

//! The operator's tool: firn. It writes what authorities sign, asks coordinators, verifies whatever
//! comes back, and never holds a share.

pub mod authority;
mod cli;
pub mod client;
mod clock;
mod commands;
mod confirm;
mod demo;
pub mod domain;
mod error;
pub mod evidence;
pub mod fingerprint;
pub mod ledger;
pub mod local;
mod output;
pub mod payment;
mod psbt_file;
pub mod verdict;
mod words;

use std::{env, process::ExitCode};

use clap::Parser;

pub use cli::Arguments;
pub use clock::now;
pub use demo::{DemoReport, ReportedPrevout, ReportedTransaction, ReportedVerdict};
pub use error::{Error, Exit};
pub use output::Output;

/// Runs the command that the process was started with, and says how it ended.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return not_understood(&error),
    };
    let output = Output::new(arguments.json);
    match commands::run(arguments.command, &output) {
        Ok(exit) => exit.into(),
        Err(error) => {
            output.failed(&error);
            error.exit().into()
        }
    }
}

/// Help, or what is wrong with the command line; a script is told so as it is told everything.
fn not_understood(error: &clap::Error) -> ExitCode {
    let is_json = env::args_os().any(|argument| argument == "--json");
    if !is_json || !error.use_stderr() {
        error.exit()
    }
    let error = Error::Usage {
        what: error.to_string().trim_end().to_owned(),
    };
    Output::new(is_json).failed(&error);
    error.exit().into()
}

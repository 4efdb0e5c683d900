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

use std::process::ExitCode;

use clap::Parser;

pub use cli::Arguments;
pub use clock::now;
pub use demo::{DemoReport, ReportedPrevout, ReportedTransaction, ReportedVerdict};
pub use error::{Error, Exit};
pub use output::Output;

/// Runs the command that the process was started with, and says how it ended.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let output = Output::new(arguments.json);
    match commands::run(arguments.command, &output) {
        Ok(exit) => exit.into(),
        Err(error) => {
            output.failed(&error);
            error.exit().into()
        }
    }
}

//! `firn plan`: what a ceremony is to do, in writing. It decides that a plan is sound and says what it
//! means, before anybody signs it or accepts it.

pub(crate) mod described;
pub(crate) mod new;
pub(crate) mod show;
pub(crate) mod sign;

use clap::Subcommand;

pub(crate) use show::AuthoritiesOption;

use crate::{
    error::{Error, Exit},
    output::Output,
};

/// How `firn plan` is used.
pub(crate) const EXAMPLE: &str = "Example:\n  firn plan show plan.cbor";

/// What can be done with plans.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write the plan of a new key.
    New(new::Arguments),
    /// Say in words what a plan means, with the fingerprint to compare.
    Show(show::Arguments),
    /// Add your signature as an operator, after comparing the fingerprint.
    Sign(sign::Arguments),
}

/// Runs `firn plan`.
pub(crate) fn run(command: &Command, output: &Output) -> Result<Exit, Error> {
    match command {
        Command::New(arguments) => new::run(arguments, *output),
        Command::Show(arguments) => show::run(arguments, *output),
        Command::Sign(arguments) => sign::run(arguments, *output),
    }
}

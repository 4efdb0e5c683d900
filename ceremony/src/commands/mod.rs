//! The commands, one module for each: its arguments, what it shows, and how it ends. A new one has a
//! line in `cli::Command` and one in [`run`].

pub(crate) mod demo;
pub(crate) mod ledger;

use crate::{
    cli::Command,
    error::{Error, Exit},
    output::Output,
};

/// Runs one command.
pub(crate) fn run(command: Command, output: &Output) -> Result<Exit, Error> {
    match command {
        Command::Demo(arguments) => demo::run(&arguments, output),
        Command::Ledger(command) => ledger::run(&command, output),
    }
}

//! The commands, one module for each. They decide what is shown and how a command ends.

mod demo;
mod ledger;

use crate::{
    cli::{Command, Ledger},
    error::{Error, Exit},
    output::Output,
};

/// Runs one command.
pub(crate) fn run(command: Command, output: &Output) -> Result<Exit, Error> {
    match command {
        Command::Demo(arguments) => demo::run(&arguments, output),
        Command::Ledger(Ledger::Check { dir }) => ledger::check(&dir, output),
    }
}

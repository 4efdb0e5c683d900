//! The commands, one module for each: its arguments, what it shows, and how it ends. A new one has a
//! line in `cli::Command` and one in [`run`].

pub(crate) mod accept;
pub(crate) mod activate;
pub(crate) mod activation;
pub(crate) mod address;
pub(crate) mod admit;
pub(crate) mod authorities;
pub(crate) mod demo;
pub(crate) mod descriptor;
pub(crate) mod enroll;
pub(crate) mod grant;
pub(crate) mod init;
pub(crate) mod key;
pub(crate) mod ledger;
pub(crate) mod plan;
pub(crate) mod policy;
pub(crate) mod profile;
pub(crate) mod psbt;
pub(crate) mod reports;
pub(crate) mod request;
pub(crate) mod run;
pub(crate) mod sign;
pub(crate) mod status;
#[cfg(test)]
mod tests;
pub(crate) mod verify;

use crate::{
    cli::Command,
    error::{Error, Exit},
    output::Output,
};

/// Runs one command.
pub(crate) fn run(command: Command, output: &Output) -> Result<Exit, Error> {
    match command {
        Command::Init(arguments) => init::run(&arguments, output),
        Command::Authorities(command) => authorities::run(&command, output),
        Command::Enroll(arguments) => enroll::run(&arguments, output),
        Command::Admit(arguments) => admit::run(&arguments, output),
        Command::Plan(command) => plan::run(&command, output),
        Command::Policy(command) => policy::run(&command, output),
        Command::Accept(arguments) => accept::run(&arguments, output),
        Command::Run(arguments) => run::run(&arguments, output),
        Command::Activation(command) => activation::run(&command, output),
        Command::Activate(arguments) => activate::run(&arguments, output),
        Command::Status(arguments) => status::run(&arguments, output),
        Command::Address(arguments) => address::run(&arguments, output),
        Command::Descriptor(arguments) => descriptor::run(&arguments, output),
        Command::Psbt(command) => psbt::run(&command, output),
        Command::Grant(arguments) => grant::run(&arguments, output),
        Command::Sign(arguments) => sign::run(&arguments, output),
        Command::Request(command) => request::run(&command, output),
        Command::Verify(arguments) => verify::run(&arguments, output),
        Command::Demo(arguments) => demo::run(&arguments, output),
        Command::Ledger(command) => ledger::run(&command, output),
    }
}

/// What carries the conversations of one command.
///
/// # Errors
/// [`Error::Process`] where the system gives none.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::Process {
            name: "firn".to_owned(),
            reason: error.to_string(),
        })
}

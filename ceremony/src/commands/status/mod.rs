//! `firn status`: how things are. It decides whom to ask; what members say of themselves is their own
//! signed word.

pub(crate) mod local;
pub(crate) mod member;

use std::path::PathBuf;

use clap::Args;

use super::runtime;
use crate::{
    error::{Error, Exit},
    output::Output,
};

/// Options of `firn status`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  firn status --socket p1/data/control.sock\n\n\
                  Exit codes: 0 it would sign, 1 it would not, with the reason."
)]
pub(crate) struct Arguments {
    /// Ask the daemon of this machine, by its control socket.
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
}

/// Runs `firn status`.
pub(crate) fn run(arguments: &Arguments, output: &Output) -> Result<Exit, Error> {
    let Some(socket) = &arguments.socket else {
        return Err(Error::Usage {
            what: "whom to ask? give --socket PATH".to_owned(),
        });
    };
    let report = runtime()?.block_on(local::perform(socket))?;
    if !output.is_json() {
        report.say(crate::clock::now(), *output);
    }
    output.object(&report)?;
    Ok(report.exit())
}

//! `firn descriptor`: what a wallet watches a key with. It decides nothing: the descriptor follows from the
//! group key.

use clap::Args;
use serde::Serialize;

use super::{key::resolve, profile::ProfileOption, runtime};
use crate::{
    error::{Error, Exit},
    output::Output,
};

/// Options of `firn descriptor`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  firn descriptor --key evidence")]
pub(crate) struct Arguments {
    /// The key: a ceremony's folder, a key.cbor, or a key id.
    #[arg(long, value_name = "WHERE")]
    pub(crate) key: String,
    #[command(flatten)]
    pub(crate) profile: ProfileOption,
}

#[derive(Debug, Serialize)]
struct Report {
    key_id: String,
    network: String,
    group_key: String,
    descriptor: String,
}

/// Runs `firn descriptor`.
pub(crate) fn run(arguments: &Arguments, output: &Output) -> Result<Exit, Error> {
    let profile = arguments.profile.load()?;
    let key = runtime()?.block_on(resolve(&arguments.key, &profile))?;
    let report = Report {
        key_id: key.key_id().to_string(),
        network: key.network().to_string(),
        group_key: key.group_key().to_string(),
        descriptor: key.descriptor()?,
    };
    if !output.is_json() {
        output.say(&report.descriptor);
    }
    output.object(&report)?;
    Ok(Exit::Done)
}

//! `firn address`: where money for a key comes in. It decides which children are shown; their scripts are
//! derived here from a key that its documents prove.

use clap::Args;
use firn_client::Key;
use firn_protocol::bitcoin::Child;
use serde::Serialize;

use super::{key::resolve, profile::ProfileOption, runtime};
use crate::{
    error::{Error, Exit},
    output::Output,
};

/// The most addresses that one command shows.
const MOST: u32 = 10_000;

/// Options of `firn address`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  firn address --key evidence --index 7\n  \
                        firn address --key evidence --count 20 --change")]
pub(crate) struct Arguments {
    /// The key: a ceremony's folder, a key.cbor, or a key id.
    #[arg(long, value_name = "WHERE")]
    pub(crate) key: String,
    /// The first address's index.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) index: u32,
    /// How many.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) count: u32,
    /// On the branch for change.
    #[arg(long)]
    pub(crate) change: bool,
    #[command(flatten)]
    pub(crate) profile: ProfileOption,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Report {
    key_id: String,
    network: String,
    addresses: Vec<Line>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Line {
    path: String,
    address: String,
}

/// Runs `firn address`.
pub(crate) fn run(arguments: &Arguments, output: &Output) -> Result<Exit, Error> {
    let profile = arguments.profile.load()?;
    let key = runtime()?.block_on(resolve(&arguments.key, &profile))?;
    let report = report(&key, arguments)?;
    if !output.is_json() {
        for line in &report.addresses {
            output.fact(&line.path, &line.address);
        }
    }
    output.object(&report)?;
    Ok(Exit::Done)
}

fn report(key: &Key, arguments: &Arguments) -> Result<Report, Error> {
    if !(1..=MOST).contains(&arguments.count) {
        return Err(Error::Usage {
            what: format!("--count {}: it must be 1 to {MOST}", arguments.count),
        });
    }
    let branch = u32::from(arguments.change);
    let addresses = (0..arguments.count)
        .map(|number| {
            // An index that runs over is as wrong as one that is over the bound.
            let child = Child::new(branch, arguments.index.saturating_add(number))?;
            Ok(Line {
                path: child.to_string(),
                address: key.address(child)?,
            })
        })
        .collect::<Result<_, Error>>()?;
    Ok(Report {
        key_id: key.key_id().to_string(),
        network: key.network().to_string(),
        addresses,
    })
}

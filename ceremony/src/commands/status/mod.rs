//! `firn status`: how things are. It decides whom to ask; what members say of themselves is their own
//! signed word.

pub(crate) mod fleet;
pub(crate) mod local;
pub(crate) mod member;

use std::path::PathBuf;

use clap::Args;
use firn_client::Profile;
use firn_protocol::{ids::KeyId, messages::StatusReport};

use self::fleet::OtherKey;
use super::{
    key::{resolve, usable, verified},
    profile::ProfileOption,
    runtime,
};
use crate::{
    client::OperatorLine,
    clock::now,
    error::{Error, Exit},
    output::Output,
};

/// Options of `firn status`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  firn status --profile domain/operators/ada/firn.toml\n  \
                  firn status --key evidence\n  firn status --socket p1/data/control.sock\n\n\
                  Exit codes: 0 every key that is shown can sign now, 3 one cannot, with what is \
                  missing. With --socket: 0 the daemon would sign, 1 it would not, with the reason."
)]
pub(crate) struct Arguments {
    /// Only this key: a ceremony's folder, a key.cbor, or a key id. Without it every key that members
    /// name.
    #[arg(long, value_name = "WHERE", conflicts_with = "socket")]
    pub(crate) key: Option<String>,
    /// Ask the daemon of this machine, by its control socket.
    #[arg(long, value_name = "PATH", conflicts_with = "profile")]
    pub(crate) socket: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) profile: ProfileOption,
}

/// Runs `firn status`.
pub(crate) fn run(arguments: &Arguments, output: &Output) -> Result<Exit, Error> {
    if let Some(socket) = &arguments.socket {
        let report = runtime()?.block_on(local::perform(socket))?;
        if !output.is_json() {
            report.say(now(), *output);
        }
        output.object(&report)?;
        return Ok(report.exit());
    }
    let profile = arguments.profile.load()?;
    let key = arguments.key.as_deref();
    let report = runtime()?.block_on(perform(&profile, key))?;
    if !output.is_json() {
        report.say(now(), *output);
    }
    output.object(&report)?;
    Ok(usable(report.can_sign()))
}

async fn perform(profile: &Profile, key: Option<&str>) -> Result<fleet::Report, Error> {
    let line = OperatorLine::to_any(profile).await?;
    let mut others = Vec::new();
    let mut keys = Vec::new();
    // The keys first, so that the members' clocks are read right after they were asked.
    if let Some(place) = key {
        keys.push(resolve(place, profile).await?);
    } else {
        let authorities = profile.authorities()?;
        let (named, _) = line.status().await?;
        for key_id in fleet::named_keys(&named) {
            let documents = line.key_documents(key_id).await;
            match documents.and_then(|documents| verified(&documents, &authorities)) {
                Ok(key) => keys.push(key),
                Err(error) => others.push(other(key_id, &named, &error)),
            }
        }
    }
    let (report, nonce) = line.status().await?;
    Ok(fleet::Report::of(&report, &nonce, &keys, others, now()))
}

fn other(key_id: KeyId, report: &StatusReport, error: &Error) -> OtherKey {
    OtherKey {
        key_id: key_id.to_string(),
        members: fleet::stages_of(report, key_id),
        why: format!("nobody can use it so far: {error} [{}]", error.code()),
    }
}

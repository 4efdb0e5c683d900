//! `firn activate`: hands the activation to every member and keeps their signed words. It decides nothing;
//! asking again reaches whoever was missing.

use std::path::PathBuf;

use clap::Args;
use firn_protocol::{ids::Identifier, reject::Reject};
use serde::Serialize;

use super::{activation::Drafted, profile::ProfileOption, runtime};
use crate::{
    client::OperatorLine,
    error::{Error, Exit},
    evidence::{Folder, merge_acknowledgements},
    output::Output,
};

const ACTIVATING: &str = "activating the key";

/// Options of `firn activate`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  firn activate evidence\n\n\
                  It can be repeated until every member has it. Exit codes: 0 in force, 1 refused, 3 too \
                  few members have it so far: repeat it.")]
pub(crate) struct Arguments {
    /// The folder of a ceremony whose activation enough operators have signed.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    #[command(flatten)]
    pub(crate) profile: ProfileOption,
}

#[derive(Debug, Serialize)]
struct Report {
    folder: PathBuf,
    key_id: String,
    activation: String,
    /// Members that have signed that they stored it, now or before.
    acknowledged: Vec<String>,
    missing: Vec<Missing>,
    threshold: usize,
    is_in_force: bool,
    would_have_to_lie: usize,
    in_words: String,
}

#[derive(Debug, Serialize)]
struct Missing {
    member: String,
    code: Option<&'static str>,
    reason: Option<&'static str>,
}

/// Runs `firn activate`.
pub(crate) fn run(arguments: &Arguments, output: &Output) -> Result<Exit, Error> {
    let output = *output;
    let profile = arguments.profile.load()?;
    let authorities = profile.authorities()?;
    let folder = Folder::at(&arguments.dir);
    let drafted = Drafted::read(folder.clone(), authorities.approved())?;
    let (documents, active) = drafted.active(authorities.approved(), ACTIVATING)?;
    let kept = folder.acknowledgements()?;
    let delivered = runtime()?.block_on(async {
        let line = OperatorLine::to_any(&profile).await?;
        line.deliver(documents, &active).await
    })?;
    let (words, in_force) = merge_acknowledgements(&kept, &delivered.words, &active)
        .map_err(Error::unverified("an acknowledgement"))?;
    folder.put_acknowledgements(&words)?;
    let name = |member: &Identifier| {
        let entry = active.certified().member(*member);
        entry.map_or_else(|| member.to_string(), |entry| entry.name.to_string())
    };
    let reason = |member: &Identifier| {
        let found = delivered.missing.iter().find(|(other, _)| other == member);
        found.map(|(_, code)| *code)
    };
    let report = Report {
        folder: folder.path().to_owned(),
        key_id: active.certified().key_id().to_string(),
        activation: active.activation_digest().to_string(),
        acknowledged: in_force.stored.iter().map(name).collect(),
        missing: in_force
            .missing
            .iter()
            .map(|member| Missing {
                member: name(member),
                code: reason(member).map(Reject::name),
                reason: reason(member).map(Reject::meaning),
            })
            .collect(),
        threshold: in_force.threshold,
        is_in_force: in_force.is_in_force(),
        would_have_to_lie: in_force.would_have_to_lie(),
        in_words: in_force.in_words(),
    };
    if !output.is_json() {
        report.say(output);
    }
    output.object(&report)?;
    Ok(if report.is_in_force {
        Exit::Done
    } else {
        Exit::TryAgain
    })
}

impl Report {
    fn say(&self, output: Output) {
        output.fact("key id", &self.key_id);
        output.fact("stored by", self.acknowledged.join(", "));
        for missing in &self.missing {
            let reason = missing.reason.unwrap_or("it gave no word");
            output.fact("missing", format_args!("{}: {reason}", missing.member));
        }
        output.fact("", &self.in_words);
        let folder = self.folder.display();
        if !self.missing.is_empty() {
            output.fact(
                "next",
                format_args!("when the missing are back: firn activate {folder}"),
            );
        }
        if self.is_in_force {
            output.fact("usable", format_args!("firn status --key {folder}"));
        }
    }
}

//! `firn plan show`: says in words what a plan means. It decides nothing; a plan that stands on other
//! Authorities, or binds other rules than those that are given, is refused.

use std::path::{Path, PathBuf};

use clap::Args;
use firn_protocol::{documents::Authorities, envelope::Approved};

use super::described::Described;
use crate::{
    authority::{read_authorities, read_rules},
    clock::now,
    commands::profile::ProfileOption,
    error::{Error, Exit},
    output::Output,
};

/// Options of `firn plan show`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  firn plan show plan.cbor --rules rules.toml\n  \
                  firn plan show plan.cbor --authorities p1/authorities.cbor"
)]
pub(crate) struct Arguments {
    /// The plan.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// The rules that the plan must bind; they are shown, too.
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) whose: AuthoritiesOption,
}

/// Against whose Authorities something is checked.
#[derive(Debug, Default, Args)]
pub(crate) struct AuthoritiesOption {
    /// The Authorities (authorities.cbor or domain.toml); without them the profile's.
    #[arg(long, value_name = "FILE")]
    pub(crate) authorities: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) profile: ProfileOption,
}

impl AuthoritiesOption {
    /// The Authorities of the file, or of the profile; none where there is neither.
    ///
    /// # Errors
    /// Authorities that do not verify.
    pub(crate) fn find(&self) -> Result<Option<Approved<Authorities>>, Error> {
        if let Some(file) = &self.authorities {
            return read_authorities(file).map(Some);
        }
        if !self.profile.is_there() {
            return Ok(None);
        }
        let authorities = self.profile.load()?.authorities()?;
        Ok(Some(authorities.approved().clone()))
    }

    /// The same where there must be some.
    ///
    /// # Errors
    /// [`Error::Usage`] where there are none.
    pub(crate) fn need(&self) -> Result<Approved<Authorities>, Error> {
        self.find()?.ok_or_else(|| Error::Usage {
            what: "against whose Authorities? give --authorities FILE or --profile FILE".to_owned(),
        })
    }
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<Exit, Error> {
    let described = perform(arguments)?;
    if !output.is_json() {
        described.say(now(), output);
    }
    output.object(&described.report)?;
    Ok(Exit::Done)
}

pub(crate) fn perform(arguments: &Arguments) -> Result<Described, Error> {
    let authorities = arguments.whose.find()?;
    let rules = arguments.rules.as_deref().map(read_rules).transpose()?;
    let named = arguments.rules.as_deref().zip(rules.as_ref());
    Described::read(
        &arguments.plan,
        authorities.as_ref(),
        named.map(|(path, rules): (&Path, _)| (path, rules)),
        now(),
    )
}

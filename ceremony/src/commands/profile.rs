//! `--profile`: as whom a command speaks. It decides where the profile is looked for, and never what is
//! in it.

use std::{env, path::PathBuf};

use clap::Args;
use firn_client::{Profile, profile::FILE_NAME};

use crate::error::Error;

/// Names the profile where the option does not.
const VARIABLE: &str = "FIRN_PROFILE";

/// Who speaks.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ProfileOption {
    /// Your profile; without it the one that FIRN_PROFILE names, or ./firn.toml.
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
}

impl ProfileOption {
    /// Where the profile is.
    pub(crate) fn path(&self) -> PathBuf {
        self.profile
            .clone()
            .or_else(|| env::var_os(VARIABLE).map(PathBuf::from))
            .unwrap_or_else(|| PathBuf::from(FILE_NAME))
    }

    /// Whether there is one.
    pub(crate) fn is_there(&self) -> bool {
        self.profile.is_some() || env::var_os(VARIABLE).is_some() || self.path().exists()
    }

    /// Reads the profile.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn load(&self) -> Result<Profile, Error> {
        Profile::load(&self.path()).map_err(|error| firn_client::Error::Profile(error).into())
    }
}

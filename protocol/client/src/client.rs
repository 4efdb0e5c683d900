//! stub

use crate::{authorities::PinnedAuthorities, caller::Caller, error::Error, profile::Coordinator};

/// Settings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {}

/// Client.
#[derive(Debug)]
pub struct Client {}

impl Client {
    /// New.
    ///
    /// # Errors
    /// None yet.
    pub fn new(
        _caller: Caller,
        _authorities: PinnedAuthorities,
        _coordinators: &[Coordinator],
        _settings: Settings,
    ) -> Result<Self, Error> {
        Ok(Self {})
    }
}

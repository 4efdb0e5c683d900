//! A requester's conversation over one connection. It decides nothing: the requester's library judges
//! the answers.

use std::time::Duration;

use firn_client::{Answer, Asked, Line, Peer};
use firn_protocol::messages::SignRequest;

use super::caller;
use crate::{domain::Party, error::Error};

/// Longer than a coordinator tries all its quorums.
const PATIENCE: Duration = Duration::from_mins(2);

/// A requester's connection.
#[derive(Debug)]
pub struct RequesterLine(Line);

impl RequesterLine {
    /// Dials as this requester.
    ///
    /// # Errors
    /// As [`Line::connect`].
    pub async fn connect(party: &Party, peer: &Peer) -> Result<Self, Error> {
        Ok(Self(Line::connect(&caller(party)?, peer).await?))
    }

    /// Asks for signatures. Asking again is always safe.
    ///
    /// # Errors
    /// As [`Line::sign`].
    pub async fn sign(&self, request: SignRequest, asked: &Asked<'_>) -> Result<Answer, Error> {
        Ok(self.0.sign(&request, asked, PATIENCE).await?)
    }
}

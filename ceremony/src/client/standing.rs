//! How the members of a roster stand, by their own words. It decides whose word counts: one that the
//! member of the roster signed for this very question; what a coordinator says of a member is shown as
//! that.

use firn_protocol::{
    documents::RosterEntry,
    envelope::Verified,
    ids::{Nonce, UnixMillis},
    messages::{MemberReport, MemberStatus, StatusReport},
    reject::Reject,
};

/// Why there is no word of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoWord {
    /// It is not connected to this coordinator.
    NotConnected,
    /// It is connected, and has not answered in time.
    Silent,
    /// Its word does not verify.
    Unverified(Reject),
}

/// One member of a roster.
#[derive(Debug, Clone)]
pub struct Standing<'a> {
    /// Who.
    pub entry: &'a RosterEntry,
    /// Since when it has been connected, by the coordinator's word.
    pub connected: Option<UnixMillis>,
    /// When it was last connected, where it is not.
    pub last_seen: Option<UnixMillis>,
    /// Its own word.
    pub word: Result<Verified<MemberStatus>, NoWord>,
}

/// How every member of the roster stands, in its order; `nonce` is that of the question.
#[must_use]
pub fn standings<'a>(
    roster: &'a [RosterEntry],
    report: &StatusReport,
    nonce: &Nonce,
) -> Vec<Standing<'a>> {
    roster
        .iter()
        .map(|entry| {
            let found = report
                .members
                .iter()
                .find(|member| member.id == entry.tls_name);
            Standing {
                entry,
                connected: found.and_then(|member| member.connected.0),
                last_seen: found.and_then(|member| member.last_seen.0),
                word: word(entry, found, nonce),
            }
        })
        .collect()
}

fn word(
    entry: &RosterEntry,
    found: Option<&MemberReport>,
    nonce: &Nonce,
) -> Result<Verified<MemberStatus>, NoWord> {
    let report = found.ok_or(NoWord::NotConnected)?;
    let Some(envelope) = &report.status.0 else {
        let is_connected = report.connected.0.is_some();
        return Err(if is_connected {
            NoWord::Silent
        } else {
            NoWord::NotConnected
        });
    };
    let unverified = |code: Reject| NoWord::Unverified(code);
    let word = envelope.clone().verify(&entry.identity);
    let word = word.map_err(|error| unverified(error.into()))?;
    let checkpoint = word.checkpoint.clone().verify(&entry.identity);
    checkpoint.map_err(|error| unverified(error.into()))?;
    if word.nonce == *nonce && word.name == entry.tls_name {
        Ok(word)
    } else {
        Err(unverified(Reject::UnexpectedMessage))
    }
}

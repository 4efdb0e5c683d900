//! `firn status --socket`: the word of this machine's own daemon. It decides nothing.

use std::path::Path;

use firn_protocol::{
    ids::{Nonce, UnixMillis},
    messages::LinkStatus,
    names::SpiffeId,
};
use serde::Serialize;

use super::member::MemberWord;
use crate::{
    clock::random,
    error::{Error, Exit},
    local::LocalLine,
    output::Output,
    words::from_now,
};

/// The daemon's word, and its links.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    member: MemberWord,
    links: Vec<Link>,
}

#[derive(Debug, Serialize)]
struct Link {
    coordinator: SpiffeId,
    since_ms: Option<u64>,
    code: Option<String>,
}

pub(crate) async fn perform(socket: &Path) -> Result<Report, Error> {
    let mut line = LocalLine::connect(socket).await?;
    let nonce = Nonce::from_bytes(*random::<32>()?);
    let (status, local) = line.status(nonce).await?;
    Ok(Report {
        member: MemberWord::of(&status, &local.status.claimed_signer()?)?,
        links: local.links.iter().map(Link::from).collect(),
    })
}

impl From<&LinkStatus> for Link {
    fn from(link: &LinkStatus) -> Self {
        Self {
            coordinator: link.coordinator.clone(),
            since_ms: link.since.0.map(UnixMillis::value),
            code: link.code.0.as_ref().map(ToString::to_string),
        }
    }
}

impl Report {
    pub(crate) const fn exit(&self) -> Exit {
        if self.member.is_ready() {
            Exit::Done
        } else {
            Exit::Refused
        }
    }

    pub(crate) fn say(&self, now: UnixMillis, output: Output) {
        self.member.say(now, output);
        for link in &self.links {
            let name = link.coordinator.name();
            match (link.since_ms, &link.code) {
                (Some(since), _) => {
                    let since = from_now(UnixMillis::new(since), now);
                    output.fact("link", format_args!("{name}: up, since {since}"));
                }
                (None, Some(code)) => output.fact("link", format_args!("{name}: DOWN [{code}]")),
                (None, None) => output.fact("link", format_args!("{name}: not up yet")),
            }
        }
    }
}

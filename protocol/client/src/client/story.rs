//! What became of one request over all coordinators, so far. It decides what may be said of it: that it
//! was refused only where nothing was sent that stayed without an answer.

use std::{collections::BTreeMap, time::Duration};

use firn_protocol::names::SpiffeId;

use crate::error::{Error, No, Tried, WhatNext};

/// What the coordinators did.
#[derive(Debug)]
pub(super) struct Story {
    doing: &'static str,
    /// Members that have to refuse for good before no quorum is left.
    blocking: usize,
    /// Everything that was sent and got no answer that proves itself, ever.
    silent: Vec<Tried>,
    /// The last that each coordinator did.
    latest: BTreeMap<usize, Said>,
}

/// What one coordinator did.
#[derive(Debug)]
enum Said {
    /// Nothing was sent.
    Unreachable(Tried),
    /// It was sent, and no answer came that proves itself.
    Silent,
    NotNow(Box<No>),
    ForGood(Box<No>),
}

impl Story {
    pub(super) const fn new(doing: &'static str, blocking: usize) -> Self {
        Self {
            doing,
            blocking,
            silent: Vec::new(),
            latest: BTreeMap::new(),
        }
    }

    /// Takes down how a coordinator failed; an error ends the story.
    pub(super) fn note(
        &mut self,
        place: usize,
        coordinator: &SpiffeId,
        error: Error,
    ) -> Result<(), Error> {
        let tried = Tried {
            coordinator: coordinator.clone(),
            code: error.code(),
            reason: error.to_string(),
        };
        let said = match error {
            Error::Transport { .. } if error.what_next() == WhatNext::Usage => {
                return Err(self.broken(error));
            }
            Error::Transport { .. } | Error::Unreachable { .. } => Said::Unreachable(tried),
            Error::OutcomeUnknown { tried, .. } => {
                self.silent.extend(tried);
                Said::Silent
            }
            Error::Unverified { .. } => {
                self.silent.push(tried);
                Said::Silent
            }
            Error::NotNow(no) => Said::NotNow(no),
            Error::Refused(no) | Error::Conflict(no) => {
                let against = no.members.iter().filter(|member| is_final(member.code));
                if against.count() >= self.blocking {
                    return Err(self.broken(Error::no(*no)));
                }
                Said::ForGood(no)
            }
            Error::Randomness
            | Error::Profile(_)
            | Error::Usage { .. }
            | Error::Unfit { .. }
            | Error::Document(_)
            | Error::Payment(_)
            | Error::Key(_) => return Err(self.broken(error)),
        };
        self.latest.insert(place, said);
        Ok(())
    }

    /// Whether everybody that answers has said no for good: asking again is useless.
    pub(super) fn is_over(&self) -> bool {
        let against = |said: &Said| matches!(said, Said::ForGood(_));
        let away = |said: &Said| matches!(said, Said::Unreachable(_));
        self.latest.values().any(against)
            && self.latest.values().all(|said| against(said) || away(said))
    }

    /// How long members ask to wait, if they do.
    pub(super) fn wish(&self) -> Option<Duration> {
        let noes = self.latest.values().filter_map(|said| match said {
            Said::NotNow(no) => no.retry_after_ms(),
            Said::Unreachable(_) | Said::Silent | Said::ForGood(_) => None,
        });
        Some(Duration::from_millis(noes.max()?.into()))
    }

    /// What is to be said at the end.
    pub(super) fn end(&self) -> Error {
        if !self.silent.is_empty() {
            return self.unknown();
        }
        self.no().unwrap_or_else(|| Error::Unreachable {
            doing: self.doing,
            tried: self.unreachable(),
        })
    }

    /// The same for a question that changes nothing: silence is no more than silence.
    pub(super) fn end_of_question(&self) -> Error {
        self.no().unwrap_or_else(|| Error::Unreachable {
            doing: self.doing,
            tried: [self.silent.clone(), self.unreachable()].concat(),
        })
    }

    /// Goes on with no coordinator, whatever was sent before.
    fn broken(&self, error: Error) -> Error {
        if self.silent.is_empty() {
            error
        } else {
            self.unknown()
        }
    }

    fn unknown(&self) -> Error {
        let mut tried = self.silent.clone();
        tried.dedup();
        Error::OutcomeUnknown {
            doing: self.doing,
            tried,
        }
    }

    /// One that may end well counts before one that cannot.
    fn no(&self) -> Option<Error> {
        let mut for_good = None;
        for said in self.latest.values() {
            match said {
                Said::NotNow(no) => return Some(Error::NotNow(no.clone())),
                Said::ForGood(no) => for_good = for_good.or(Some(no)),
                Said::Unreachable(_) | Said::Silent => {}
            }
        }
        Some(Error::no(No::clone(for_good?)))
    }

    fn unreachable(&self) -> Vec<Tried> {
        self.latest
            .values()
            .filter_map(|said| match said {
                Said::Unreachable(tried) => Some(tried.clone()),
                Said::Silent | Said::NotNow(_) | Said::ForGood(_) => None,
            })
            .collect()
    }
}

/// Whether a member that says this will say it again.
const fn is_final(code: firn_protocol::reject::Reject) -> bool {
    matches!(WhatNext::of(code), WhatNext::GiveUp | WhatNext::Conflict)
}

#[cfg(test)]
mod tests {
    use firn_protocol::{names::SpiffeId, reject::Reject};
    use firn_transport::TransportError;

    use super::Story;
    use crate::error::{Error, MemberNo, No, Tried, WhatNext};

    fn relay() -> SpiffeId {
        "spiffe://test.firn/coordinator/relay".parse().unwrap()
    }

    fn no(code: Reject, members: &[&str]) -> Error {
        let members = members.iter().map(|name| MemberNo {
            member: name.parse().unwrap(),
            code,
            retry_after_ms: None,
        });
        Error::no(No {
            doing: "asking",
            code,
            members: members.collect(),
            missing: Vec::new(),
            detail: String::new(),
        })
    }

    fn silence() -> Error {
        Error::OutcomeUnknown {
            doing: "asking",
            tried: vec![Tried {
                coordinator: relay(),
                code: "deadline",
                reason: "it took too long".to_owned(),
            }],
        }
    }

    fn away() -> Error {
        Error::Transport {
            doing: "asking",
            source: TransportError::HandshakeTimeout,
        }
    }

    #[test]
    fn what_is_said_at_the_end_follows_from_all_that_happened() {
        let lie = || Error::Unverified {
            what: "the signed answer",
            code: Reject::FinalSignature,
        };
        type Case = (Vec<Error>, WhatNext, &'static str, bool);
        let cases: Vec<Case> = vec![
            (
                vec![away(), away()],
                WhatNext::RetrySameRequest,
                "handshake_timeout",
                false,
            ),
            (
                vec![away(), silence()],
                WhatNext::AskOutcome,
                "outcome_unknown",
                false,
            ),
            (vec![lie()], WhatNext::AskOutcome, "outcome_unknown", false),
            (
                vec![no(Reject::Busy, &[]), away()],
                WhatNext::RetrySameRequest,
                "busy",
                false,
            ),
            (
                vec![no(Reject::PolicyFee, &[]), away()],
                WhatNext::GiveUp,
                "policy_fee",
                true,
            ),
            (
                vec![no(Reject::PolicyFee, &[]), no(Reject::Busy, &[])],
                WhatNext::RetrySameRequest,
                "busy",
                false,
            ),
            // A no after silence does not say what became of the first.
            (
                vec![silence(), no(Reject::GrantExpired, &[])],
                WhatNext::AskOutcome,
                "outcome_unknown",
                false,
            ),
            (
                vec![no(Reject::RequestConflict, &["a"])],
                WhatNext::Conflict,
                "request_conflict",
                true,
            ),
        ];
        for (happened, next, code, is_over) in cases {
            let mut story = Story::new("asking", 2);
            for (place, error) in happened.into_iter().enumerate() {
                story.note(place, &relay(), error).unwrap();
            }
            let end = story.end();
            assert_eq!(
                (end.what_next(), end.code(), story.is_over()),
                (next, code, is_over)
            );
        }
    }

    #[test]
    fn a_no_of_as_many_members_as_block_every_quorum_ends_it_at_once() {
        let mut story = Story::new("asking", 2);
        assert!(
            story
                .note(0, &relay(), no(Reject::PolicyFee, &["a"]))
                .is_ok()
        );
        let ended = story.note(1, &relay(), no(Reject::PolicyFee, &["a", "b"]));
        assert_eq!(ended.unwrap_err().what_next(), WhatNext::GiveUp);
    }

    #[test]
    fn silence_to_a_question_is_no_unknown_outcome() {
        let mut story = Story::new("asking", 2);
        story.note(0, &relay(), silence()).unwrap();
        assert_eq!(
            story.end_of_question().what_next(),
            WhatNext::RetrySameRequest
        );
    }
}

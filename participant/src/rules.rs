//! The ledger's rules as the store asks for them. It decides nothing itself: the pure crate does.

use firn_ledger::{
    journal::Record,
    rules::{Answer, Command, Limits, Refused, STATE_VERSION, StateError, Unlawful, View},
    table::{Table, TableError},
};
use firn_protocol::reject::Reject;

use crate::store::{Admitted, Moment, NotAdmitted, RuleViolation, Rules};

/// The rules of a participant's ledger.
#[derive(Debug, Clone, Copy, Default)]
pub struct ParticipantRules {
    /// The operator's bounds.
    pub limits: Limits,
}

impl Rules for ParticipantRules {
    type Command = Command;
    type Answer = Answer;
    type Refusal = Reject;

    const STATE_VERSION: u32 = STATE_VERSION;

    fn admit(
        &self,
        state: &dyn Table,
        command: Command,
        moment: Moment,
    ) -> Result<Admitted<Answer>, NotAdmitted<Reject>> {
        let view = View(state);
        let admitted =
            firn_ledger::rules::admit(&view, self.limits, command, moment.now, moment.last);
        let (bodies, answer) = admitted.map_err(|refused| match refused {
            Refused::Rule(code) => NotAdmitted::Refused(code),
            Refused::State(error) => NotAdmitted::Unreadable(unreadable(error)),
        })?;
        let records = bodies
            .iter()
            .map(|body| body.to_record())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| NotAdmitted::Refused(Reject::TooLarge))?;
        Ok(Admitted { records, answer })
    }

    fn apply(&self, state: &mut dyn Table, record: &Record) -> Result<(), RuleViolation> {
        firn_ledger::rules::apply(state, record).map_err(|unlawful| match unlawful {
            Unlawful::State(error) => RuleViolation::Table(unreadable(error)),
            Unlawful::Body { .. } | Unlawful::Order(_) => {
                RuleViolation::Unlawful(unlawful.to_string())
            }
        })
    }
}

fn unreadable(error: StateError) -> TableError {
    match error {
        StateError::Table(error) => error,
        StateError::Entry(malformed) => TableError::Storage(malformed.to_string()),
    }
}

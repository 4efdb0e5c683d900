//! What a receiver must refuse, each case named for its one defect: everything else in it is right,
//! and signed by whoever would have to.

mod ceremonies;
mod envelopes;
mod forms;
mod payments;
mod questions;
mod requests;
mod rounds;
mod values;

use firn_protocol::reject::Reject;

use crate::samples::{Sample, World};

/// One case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The sample whose receiver gets it.
    pub kind: String,
    /// What is wrong.
    pub name: String,
    /// What the receiver must say.
    pub code: Reject,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Cases of one sample's receiver.
struct Cases {
    kind: &'static str,
    cases: Vec<Case>,
}

impl Cases {
    const fn of(kind: &'static str) -> Self {
        Self {
            kind,
            cases: Vec::new(),
        }
    }

    fn add(&mut self, name: impl Into<String>, code: Reject, bytes: impl Into<Vec<u8>>) {
        self.cases.push(Case {
            kind: self.kind.to_owned(),
            name: name.into(),
            code,
            bytes: bytes.into(),
        });
    }
}

/// All cases.
#[must_use]
pub fn all(samples: &[Sample]) -> Vec<Case> {
    let world = World::fixed();
    let mut all = forms::cases(world, samples);
    all.extend(envelopes::cases(world));
    all.extend(values::cases(world));
    all.extend(ceremonies::cases(world));
    all.extend(requests::cases(world));
    all.extend(payments::cases(world));
    all.extend(rounds::cases(world));
    all.extend(questions::cases(world));
    all
}

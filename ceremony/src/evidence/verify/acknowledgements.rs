//! The members' words that they have stored the activation. It decides whose words count, and works out
//! how many members would have to lie for the activation to be undone.

use std::collections::BTreeMap;

use firn_protocol::{
    codec::List,
    envelope::{Envelope, Verified},
    ids::{Identifier, MessageDigest},
    messages::Acknowledgement,
    reject::Reject,
    sharing::ActiveSharing,
};

use super::{
    super::{
        checks::{Because, Checks},
        folder::Acknowledgements,
    },
    names_of,
};

/// How far an activation has come among the members of its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InForce {
    /// Members that have stored it, by their signed words, ascending.
    pub stored: Vec<Identifier>,
    /// The others, ascending.
    pub missing: Vec<Identifier>,
    /// How many it takes.
    pub threshold: usize,
}

impl InForce {
    /// Counts these members.
    #[must_use]
    pub fn of(stored: Vec<Identifier>, active: &ActiveSharing) -> Self {
        let plan = active.certified().plan();
        let everybody = plan.roster.iter().map(|entry| entry.identifier);
        Self {
            missing: everybody.filter(|id| !stored.contains(id)).collect(),
            threshold: usize::from(plan.threshold.value()),
            stored,
        }
    }

    /// Whether every quorum holds at least one member that has it.
    #[must_use]
    pub fn is_in_force(&self) -> bool {
        self.stored.len() >= self.threshold
    }

    /// How many of those who have it would have to lie, or have been copied, to undo it: a quorum needs t
    /// members, of which the missing ones are free.
    #[must_use]
    pub fn would_have_to_lie(&self) -> usize {
        self.threshold.saturating_sub(self.missing.len())
    }

    /// The arithmetic, in words.
    #[must_use]
    pub fn in_words(&self) -> String {
        let a = self.stored.len();
        let n = a.saturating_add(self.missing.len());
        let (t, lie) = (self.threshold, self.would_have_to_lie());
        if self.is_in_force() {
            format!(
                "in force: {a} of {n} have stored it, {t} are needed; t - (n - a) = {lie} of them would \
                 have to lie, or have been copied, to undo it"
            )
        } else {
            let more = t.saturating_sub(a);
            format!("not in force: {a} of {n} have stored it, {more} more are needed")
        }
    }
}

/// A member's word on this activation, if it is one.
fn check_word(
    word: &Envelope<Acknowledgement>,
    active: &ActiveSharing,
) -> Result<Verified<Acknowledgement>, Reject> {
    let plan = active.certified().plan();
    let signer = word.claimed_signer()?;
    let member = plan.member(&signer).ok_or(Reject::NotAMember)?;
    let word = word.clone().verify(&member.identity)?;
    let activation = active.activation_digest();
    let is_this = word.member == member.identifier
        && word.what == MessageDigest::from_bytes(*activation.as_bytes());
    if !is_this {
        return Err(Reject::ActivationMismatch);
    }
    word.standing.checkpoint.clone().verify(&member.identity)?;
    Ok(word)
}

/// The words that were kept and new ones, each of another member, ascending. Of two words of one member
/// the one that was kept first stays.
///
/// # Errors
/// The first word that is not a member's on this activation.
pub fn merge_acknowledgements(
    kept: &[Envelope<Acknowledgement>],
    new: &[Envelope<Acknowledgement>],
    active: &ActiveSharing,
) -> Result<(Acknowledgements, InForce), Reject> {
    let mut words = BTreeMap::new();
    for word in kept.iter().chain(new) {
        let word = check_word(word, active)?;
        words
            .entry(word.member)
            .or_insert_with(|| word.into_envelope());
    }
    let stored = words.keys().copied().collect();
    let words = List::new(words.into_values().collect()).ok_or(Reject::TooLarge)?;
    Ok((words, InForce::of(stored, active)))
}

pub(super) fn check(
    words: &Acknowledgements,
    active: &ActiveSharing,
    file: &mut Checks<'_>,
) -> Option<InForce> {
    let words = words
        .iter()
        .map(|word| Ok(check_word(word, active)?.member))
        .collect::<Result<Vec<_>, Reject>>();
    let stored = file.found(
        "each is a member's own signed word that it has stored this activation",
        words,
        |members| names_of(active.certified(), members),
    )?;
    let ascend = stored.array_windows().all(|[left, right]| left < right);
    if !file.is(
        "they ascend by member, none twice",
        ascend,
        "they are out of order, or a member stands twice",
    ) {
        return None;
    }
    let in_force = InForce::of(stored, active);
    let words = in_force.in_words();
    let outcome = if in_force.is_in_force() {
        Ok(words)
    } else {
        Err(Because::new(words))
    };
    file.found(
        "at least t members have stored the activation",
        outcome,
        Clone::clone,
    );
    Some(in_force)
}

//! Nothing that guards a signature or a key leaves before its record is synced.

use firn_ledger::rules::Body;

use super::{Invariant, Seen, Word};

pub(super) struct RecordFirst;

impl Invariant for RecordFirst {
    fn rule(&self) -> &'static str {
        "no share and no other word leaves before its record is synced"
    }

    fn see(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        let Seen::Sent { word, journal, .. } = seen else {
            return Ok(());
        };
        let recorded = match word {
            Word::Commitments(said) => journal.synced().iter().any(|body| {
                matches!(body, Body::RequestOpened(opened) if opened.session == said.session)
                    || matches!(body, Body::ProofOpened(opened) if opened.session == said.session)
            }),
            Word::Shares(said) => journal.synced().iter().any(|body| {
                matches!(body, Body::Released(released)
                    if released.session == said.session && released.package == said.package)
            }),
            Word::Receipt(receipt) => journal.synced().iter().any(
                |body| matches!(body, Body::Completed(completed) if completed.receipt == *receipt),
            ),
            Word::Ceremony(attempt, step, digest) => journal.synced().iter().any(|body| {
                matches!(body, Body::CeremonySent(sent)
                    if sent.attempt == *attempt
                        && sent.step == *step
                        && digest.is_none_or(|digest| digest == sent.digest))
            }),
            Word::Refusal(_) | Word::Other(_) => true,
        };
        if recorded {
            Ok(())
        } else {
            Err(format!("not on disk: {word:?}"))
        }
    }
}

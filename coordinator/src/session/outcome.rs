//! What members say of a request: each answer is checked against the question and the roster, and
//! passed on as it was signed. It decides whose answers count and when enough are there, and never
//! what they mean.

use std::collections::BTreeMap;

use firn_protocol::{
    codec::{List, Maybe},
    documents::RosterEntry,
    envelope::{Envelope, Verified},
    ids::{Identifier, UnixMillis},
    limits,
    messages::{
        FromMember, MissingMember, OutcomeQuery, OutcomeReport, OutcomeStatement, Refusal,
        RequestProgress, ToMember,
    },
    reject::Reject,
    sharing::ActiveSharing,
};

/// A question that has been put to a key's members.
#[derive(Debug)]
pub struct OutcomeInquiry {
    query: Verified<OutcomeQuery>,
    roster: Vec<RosterEntry>,
    enough: usize,
    statements: BTreeMap<Identifier, Verified<OutcomeStatement>>,
    refusals: BTreeMap<Identifier, Envelope<Refusal>>,
}

impl OutcomeInquiry {
    /// The most bytes that a member may answer with.
    pub const FRAME_LIMIT: usize = Envelope::<OutcomeStatement>::LIMIT + limits::SMALL_DOCUMENT;

    /// A question about a request of this key.
    ///
    /// # Errors
    /// [`Reject::KeyUnknown`] when it is about another key.
    pub fn new(query: Verified<OutcomeQuery>, sharing: &ActiveSharing) -> Result<Self, Reject> {
        let certified = sharing.certified();
        if query.key_id != certified.key_id() {
            return Err(Reject::KeyUnknown);
        }
        Ok(Self::among(
            query,
            certified.plan().roster.to_vec(),
            certified.plan().threshold.value().into(),
        ))
    }

    const fn among(query: Verified<OutcomeQuery>, roster: Vec<RosterEntry>, enough: usize) -> Self {
        Self {
            query,
            roster,
            enough,
            statements: BTreeMap::new(),
            refusals: BTreeMap::new(),
        }
    }

    /// What every member is asked.
    #[must_use]
    pub fn question(&self) -> ToMember {
        ToMember::OutcomeQuery(self.query.envelope().clone())
    }

    /// The members that it is for.
    #[must_use]
    pub fn roster(&self) -> &[RosterEntry] {
        &self.roster
    }

    /// Whether t members have said something that settles the matter: that no share of theirs has left,
    /// all of them, or at least one that it is signed. Then whoever is slower is not waited for; else one
    /// of those may hold the receipt.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        let said = self.statements.values();
        let none_left = said
            .clone()
            .filter(|word| has_let_nothing_out(word))
            .count();
        let is_signed = said.clone().any(|word| is_signed(word));
        none_left >= self.enough || (is_signed && self.statements.len() >= self.enough)
    }

    /// Takes a member's answer: its own word on this request, or its no.
    ///
    /// # Errors
    /// What is wrong with it; the member counts as one that has not answered.
    pub fn take(&mut self, from: Identifier, message: FromMember) -> Result<(), Reject> {
        let entry = self
            .roster
            .iter()
            .find(|entry| entry.identifier == from)
            .ok_or(Reject::NotAMember)?;
        match message {
            FromMember::Outcome(envelope) => {
                let statement = envelope.verify(&entry.identity)?;
                self.check(from, &statement)?;
                self.statements.insert(from, statement);
                Ok(())
            }
            FromMember::Refusal(envelope) => {
                let refusal = envelope.verify(&entry.identity)?;
                let about_another = |id| id != self.query.request_id;
                if refusal.request_id.0.is_some_and(about_another) {
                    return Err(Reject::UnexpectedMessage);
                }
                self.refusals.insert(from, refusal.into_envelope());
                Ok(())
            }
            FromMember::Commitments(_)
            | FromMember::Shares(_)
            | FromMember::Receipt(_)
            | FromMember::KeyDocuments(_)
            | FromMember::Acknowledgement(_)
            | FromMember::Status(_)
            | FromMember::DkgRound1(_)
            | FromMember::DkgRound2(_)
            | FromMember::Certificate(_)
            | FromMember::Complaint(_) => Err(Reject::UnexpectedMessage),
        }
    }

    fn check(&self, from: Identifier, statement: &OutcomeStatement) -> Result<(), Reject> {
        let query = &self.query;
        if statement.key_id != query.key_id || statement.request_id != query.request_id {
            return Err(Reject::UnexpectedMessage);
        }
        // An old answer, however true it was.
        if statement.nonce != query.nonce {
            return Err(Reject::SessionMismatch);
        }
        if statement.member != from {
            return Err(Reject::NotAMember);
        }
        Ok(())
    }

    /// The answers that have come, and who is missing; `since` says since when, where that is known.
    ///
    /// # Errors
    /// Never: a roster fits the lists.
    pub fn report(
        self,
        since: impl Fn(&RosterEntry) -> Option<UnixMillis>,
    ) -> Result<OutcomeReport, Reject> {
        let answered = |entry: &&RosterEntry| {
            self.statements.contains_key(&entry.identifier)
                || self.refusals.contains_key(&entry.identifier)
        };
        let missing = self
            .roster
            .iter()
            .filter(|entry| !answered(entry))
            .map(|entry| MissingMember {
                name: entry.name.clone(),
                since: Maybe(since(entry)),
            })
            .collect();
        Ok(OutcomeReport {
            missing: List::new(missing).ok_or(Reject::TooLarge)?,
            statements: List::new(
                self.statements
                    .into_values()
                    .map(Verified::into_envelope)
                    .collect(),
            )
            .ok_or(Reject::TooLarge)?,
            refusals: List::new(self.refusals.into_iter().collect()).ok_or(Reject::TooLarge)?,
        })
    }
}

fn has_let_nothing_out(word: &OutcomeStatement) -> bool {
    let known = word.known.0.as_ref();
    known.is_none_or(|known| known.progress == RequestProgress::Open)
}

fn is_signed(word: &OutcomeStatement) -> bool {
    let known = word.known.0.as_ref();
    known.is_some_and(|known| known.progress == RequestProgress::Completed)
}

#[cfg(test)]
mod tests {
    use firn_protocol::{
        codec::Maybe,
        documents::RosterEntry,
        envelope::Envelope,
        ids::{Epoch, Identifier, IntentDigest, KeyId, Nonce, PolicyDigest, RequestId, UnixMillis},
        keys::IdentitySecret,
        messages::{
            FromMember, KnownRequest, OutcomeQuery, OutcomeStatement, Refusal, RequestProgress,
            message_digest,
        },
        reject::Reject,
    };
    use zeroize::Zeroizing;

    use super::OutcomeInquiry;
    use crate::session::fake::{id, standing};

    fn secret(byte: u8) -> IdentitySecret {
        IdentitySecret::from_seed(&Zeroizing::new([byte; 32]))
    }

    fn inquiry() -> OutcomeInquiry {
        let requester = secret(9);
        let query = OutcomeQuery {
            key_id: KeyId::from_bytes([1; 32]),
            request_id: RequestId::from_bytes([2; 32]),
            nonce: Nonce::from_bytes([3; 32]),
            time: UnixMillis::new(1),
        };
        let query = Envelope::sign(&query, &requester).unwrap();
        let roster = (1..=3).map(|number| RosterEntry {
            name: format!("m-{number}").parse().unwrap(),
            identifier: id(number),
            identity: secret(u8::try_from(number).unwrap()).identity(),
            tls_name: format!("spiffe://td/participant/m-{number}")
                .parse()
                .unwrap(),
        });
        OutcomeInquiry::among(
            query.verify(&requester.identity()).unwrap(),
            roster.collect(),
            2,
        )
    }

    fn statement(member: Identifier) -> OutcomeStatement {
        OutcomeStatement {
            key_id: KeyId::from_bytes([1; 32]),
            request_id: RequestId::from_bytes([2; 32]),
            nonce: Nonce::from_bytes([3; 32]),
            member,
            known: Maybe(None),
            checkpoint: standing(&secret(1)).checkpoint,
            time: UnixMillis::new(5),
        }
    }

    fn said(statement: &OutcomeStatement, signer: u8) -> FromMember {
        FromMember::Outcome(Envelope::sign(statement, &secret(signer)).unwrap())
    }

    fn refusal(request_id: Option<RequestId>, signer: u8) -> FromMember {
        let refusal = Refusal {
            about: message_digest(b"query"),
            session: Maybe(None),
            request_id: Maybe(request_id),
            code: Reject::EpochOwnerConflict,
            culprit: Maybe(None),
            retry_after_ms: Maybe(None),
            time: UnixMillis::new(1),
        };
        FromMember::Refusal(Envelope::sign(&refusal, &secret(signer)).unwrap())
    }

    #[test]
    fn t_members_are_enough_and_everybody_is_accounted_for() {
        let mut inquiry = inquiry();
        inquiry.take(id(3), said(&statement(id(3)), 3)).unwrap();
        assert!(!inquiry.is_enough());
        inquiry.take(id(3), said(&statement(id(3)), 3)).unwrap();
        assert!(!inquiry.is_enough(), "the same member twice is one member");
        inquiry.take(id(1), said(&statement(id(1)), 1)).unwrap();
        assert!(inquiry.is_enough());
        let report = inquiry.report(|_| Some(UnixMillis::new(7))).unwrap();
        let signers = report
            .statements
            .iter()
            .map(|word| word.claimed_signer().unwrap());
        let signers: Vec<_> = signers.collect();
        assert_eq!(
            signers,
            [secret(1).identity(), secret(3).identity()],
            "ascending"
        );
        assert_eq!(report.missing.len(), 1);
        assert_eq!(report.missing[0].name.to_string(), "m-2");
        assert_eq!(report.missing[0].since, Maybe(Some(UnixMillis::new(7))));
    }

    #[test]
    fn a_share_that_has_left_waits_for_whoever_may_hold_the_receipt() {
        let known = |member, progress| {
            let mut word = statement(id(member));
            word.known = Maybe(Some(KnownRequest {
                intent: IntentDigest::from_bytes([7; 32]),
                policy: PolicyDigest::from_bytes([8; 32]),
                epoch: Epoch::new(1),
                progress,
                open_attempts: 0,
                receipt: Maybe(None),
            }));
            said(&word, u8::try_from(member).unwrap())
        };
        let mut inquiry = inquiry();
        inquiry
            .take(id(1), known(1, RequestProgress::Released))
            .unwrap();
        inquiry.take(id(2), said(&statement(id(2)), 2)).unwrap();
        assert!(
            !inquiry.is_enough(),
            "the third may have signed with the first"
        );
        inquiry
            .take(id(3), known(3, RequestProgress::Completed))
            .unwrap();
        assert!(inquiry.is_enough());
    }

    #[test]
    fn a_refusal_is_passed_on_and_is_not_a_statement() {
        let mut inquiry = inquiry();
        for member in 1..=2 {
            let no = refusal(None, u8::try_from(member).unwrap());
            inquiry.take(id(member), no).unwrap();
        }
        assert!(!inquiry.is_enough());
        let report = inquiry.report(|_| None).unwrap();
        assert_eq!((report.refusals.len(), report.missing.len()), (2, 1));
    }

    #[test]
    fn refuses_what_is_not_the_members_own_word_on_this_question() {
        let about = |change: fn(&mut OutcomeStatement)| {
            let mut changed = statement(id(1));
            change(&mut changed);
            said(&changed, 1)
        };
        let another = RequestId::from_bytes([0; 32]);
        for (answer, code) in [
            (said(&statement(id(1)), 2), Reject::UnknownSigner),
            (
                about(|word| word.key_id = KeyId::from_bytes([0; 32])),
                Reject::UnexpectedMessage,
            ),
            (
                about(|word| word.request_id = RequestId::from_bytes([0; 32])),
                Reject::UnexpectedMessage,
            ),
            (
                about(|word| word.nonce = Nonce::from_bytes([0; 32])),
                Reject::SessionMismatch,
            ),
            (about(|word| word.member = id(2)), Reject::NotAMember),
            (refusal(None, 2), Reject::UnknownSigner),
            (refusal(Some(another), 1), Reject::UnexpectedMessage),
        ] {
            let mut inquiry = inquiry();
            assert_eq!(inquiry.take(id(1), answer), Err(code));
            let report = inquiry.report(|_| None).unwrap();
            assert_eq!(report.missing.len(), 3, "{code}");
        }
        let stranger = inquiry().take(id(9), said(&statement(id(9)), 9));
        assert_eq!(stranger, Err(Reject::NotAMember));
    }
}

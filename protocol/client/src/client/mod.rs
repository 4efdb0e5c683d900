//! A requester and its coordinators. It decides whom to ask, how long and how often, and never takes a
//! coordinator's word for what members have signed.

mod pause;
mod seat;
mod story;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use firn_protocol::{
    codec::{Blob, List},
    documents::Grant,
    envelope::{Envelope, Verified},
    ids::{KeyId, RequestId, UnixMillis},
    limits,
    messages::{KeyQuery, OutcomeQuery, SignRequest, ToRequests},
    reject::Reject,
};
use tokio::time::{Instant, sleep};

use self::{pause::Pauses, seat::Seat, story::Story};
use crate::{
    authorities::PinnedAuthorities,
    caller::Caller,
    conversation::{self, Answer, Asked, FETCHING, OUTCOME, SIGNING},
    error::{Error, No},
    evidence::{OutcomeTerms, RequestOutcome, Statements},
    key::Key,
    profile::Coordinator,
    proposal::Proposal,
    system::{nonce, now, random},
};

/// How long and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How long one call of [`Client::sign`] goes on, over all coordinators and attempts.
    pub patience: Duration,
    /// How long one coordinator may take over one request; longer than it tries all its quorums.
    pub answer: Duration,
    /// How long one coordinator may take over a question that changes nothing.
    pub question: Duration,
    /// The pause when all coordinators have been asked once; each later one is twice as long.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            patience: Duration::from_mins(5),
            answer: Duration::from_mins(2),
            question: Duration::from_secs(20),
            first_pause: Duration::from_millis(250),
            longest_pause: Duration::from_secs(10),
        }
    }
}

/// A question about a request, with as much as whoever asks knows of it.
#[derive(Debug, Clone, Copy)]
pub struct Inquiry<'a> {
    request_id: RequestId,
    proposal: Option<&'a Proposal>,
    granted_until: Option<UnixMillis>,
}

impl<'a> Inquiry<'a> {
    /// What became of this request?
    #[must_use]
    pub const fn of(request_id: RequestId) -> Self {
        Self {
            request_id,
            proposal: None,
            granted_until: None,
        }
    }

    /// It was asked for this: signatures are verified against it, and not only against receipts.
    #[must_use]
    pub const fn about(self, proposal: &'a Proposal) -> Self {
        Self {
            proposal: Some(proposal),
            ..self
        }
    }

    /// No grant that was ever given for it lasts beyond this time. Members that are asked a minute later
    /// can then prove that it will never be signed.
    #[must_use]
    pub const fn granted_until(self, end: UnixMillis) -> Self {
        Self {
            granted_until: Some(end),
            ..self
        }
    }
}

impl From<RequestId> for Inquiry<'_> {
    fn from(request_id: RequestId) -> Self {
        Self::of(request_id)
    }
}

/// A requester's way to its keys. Copies share connections.
#[derive(Debug, Clone)]
pub struct Client(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    caller: Caller,
    authorities: PinnedAuthorities,
    settings: Settings,
    seats: Vec<Seat>,
    // Who gave the last good answer is asked first.
    preferred: AtomicUsize,
}

impl Client {
    /// A client of these coordinators, which are asked in this order. Nobody is dialled yet.
    ///
    /// # Errors
    /// [`Error::Usage`] for no coordinator or one twice; [`Error::Unfit`] for a coordinator, or a
    /// requester, that is not in the Authorities.
    pub fn new(
        caller: Caller,
        authorities: PinnedAuthorities,
        coordinators: &[Coordinator],
        settings: Settings,
    ) -> Result<Self, Error> {
        let names: BTreeSet<_> = coordinators.iter().map(|one| &one.name).collect();
        if coordinators.is_empty() || names.len() != coordinators.len() {
            return Err(Error::Usage {
                what: "there must be a coordinator, and none of them twice".to_owned(),
            });
        }
        if authorities.requester(caller.id()) != Some(&caller.identity()) {
            return Err(Error::Unfit {
                what: "this name with this key",
                code: Reject::UnknownRequester,
            });
        }
        let seats = coordinators
            .iter()
            .map(|one| {
                let holder = authorities.coordinator_named(&one.name);
                let holder = holder.ok_or(Error::Unfit {
                    what: "a coordinator's name",
                    code: Reject::UnknownCoordinator,
                })?;
                Ok(Seat::new(holder.clone(), one.address.clone()))
            })
            .collect::<Result<_, Error>>()?;
        Ok(Self(Arc::new(Inner {
            caller,
            authorities,
            settings,
            seats,
            preferred: AtomicUsize::new(0),
        })))
    }

    /// Who asks. Its certificate can be replaced while the client is in use.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.0.caller
    }

    /// The keys that count.
    #[must_use]
    pub fn authorities(&self) -> &PinnedAuthorities {
        &self.0.authorities
    }

    /// Asks what a key is, and verifies it. A coordinator can withhold the newest activation, and no
    /// more: what it then grants is refused by the members.
    ///
    /// # Errors
    /// A no; [`Error::Unreachable`]; [`Error::Unverified`].
    pub async fn key(&self, key_id: KeyId) -> Result<Key, Error> {
        let query = KeyQuery {
            key_id,
            nonce: nonce()?,
        };
        let message = ToRequests::Key(self.0.caller.sign(&query)?);
        let mut story = Story::new(FETCHING, usize::MAX);
        let mut lie = None;
        for place in self.places() {
            match self.question(place, FETCHING, &message).await {
                Ok(answer) => {
                    let found = conversation::documents(answer).and_then(|documents| {
                        Key::verify(&documents, &self.0.authorities)
                            .and_then(|key| is_about(key, key_id))
                            .map_err(Error::unverified("what a coordinator says of the key"))
                    });
                    match found {
                        Ok(key) => return Ok(self.answered(place, key)),
                        Err(Error::Unverified { what, code }) => {
                            lie = Some(Error::Unverified { what, code });
                        }
                        Err(error) => self.note(&mut story, place, error)?,
                    }
                }
                Err(error) => self.note(&mut story, place, error)?,
            }
        }
        Err(lie.unwrap_or_else(|| story.end_of_question()))
    }

    /// An intent to have a PSBT signed. Its digest goes to the control plane, which grants it.
    ///
    /// # Errors
    /// As [`Proposal::payment`].
    pub fn propose(&self, key: &Key, psbt: &[u8]) -> Result<Proposal, Error> {
        Proposal::payment(&self.0.caller, key, psbt)
    }

    /// Has a proposal signed under a grant that names it.
    ///
    /// Coordinators are asked one after the other, again and again with pauses, until one brings
    /// signatures that verify, until it is certain that asking is useless, or until
    /// [`Settings::patience`] is over. Every attempt is the same request with the same content, so
    /// however often it arrives it has one effect.
    ///
    /// The future may be dropped at any point. What may have happened then is what
    /// [`Error::OutcomeUnknown`] stands for: call this again, with this grant or a fresh one for the same
    /// request id, or ask [`Self::outcome`].
    ///
    /// # Errors
    /// [`Error::Unfit`] before anything is sent; [`Error::Refused`], [`Error::Conflict`] and
    /// [`Error::NotNow`] only where every attempt that was sent was answered;
    /// [`Error::OutcomeUnknown`] where one was not; [`Error::Unreachable`] where none was sent.
    pub async fn sign(
        &self,
        key: &Key,
        proposal: &Proposal,
        grant: &Envelope<Grant>,
    ) -> Result<Answer, Error> {
        self.sign_approved(key, proposal, grant, &[]).await
    }

    /// The same with signed approvals.
    ///
    /// # Errors
    /// As [`Self::sign`].
    pub async fn sign_approved(
        &self,
        key: &Key,
        proposal: &Proposal,
        grant: &Envelope<Grant>,
        approvals: &[Vec<u8>],
    ) -> Result<Answer, Error> {
        let terms = self.check_grant(key, proposal, grant)?;
        let asked = Asked {
            sharing: key.sharing(),
            intent: proposal.intent(),
            request_id: terms.request_id,
            epoch: terms.epoch,
        };
        let message = ToRequests::Sign(SignRequest {
            intent: proposal.envelope().clone(),
            grant: grant.clone(),
            approvals: bounded(approvals)?,
        });
        let settings = &self.0.settings;
        let deadline = Instant::now().checked_add(settings.patience);
        let left = || deadline.map_or(Duration::MAX, |end| end.duration_since(Instant::now()));
        let mut pauses = Pauses::new(settings.first_pause, settings.longest_pause);
        let mut story = Story::new(SIGNING, blocking(key));
        loop {
            for place in self.places() {
                let patience = settings.answer.min(left());
                if patience.is_zero() {
                    return Err(story.end());
                }
                let Some(seat) = self.0.seats.get(place) else {
                    continue;
                };
                let answer = seat
                    .question(&self.0.caller, SIGNING, &message, patience)
                    .await
                    .and_then(|answer| conversation::signed(answer, seat.holder(), &asked));
                match answer {
                    Ok(answer) => return Ok(self.answered(place, answer)),
                    Err(error) => self.note(&mut story, place, error)?,
                }
            }
            let pause = pauses.next(story.wish(), random::<1>().map_or(0, |[byte]| byte));
            if story.is_over() || pause >= left() {
                return Err(story.end());
            }
            sleep(pause).await;
        }
    }

    /// Asks the members what became of a request. It needs no grant and changes nothing; only the owner
    /// of the key's highest epoch is answered.
    ///
    /// Coordinators are asked one after the other until the statements prove something; what each of
    /// them brings counts together.
    ///
    /// # Errors
    /// A no, where members refuse to say; [`Error::Unreachable`].
    pub async fn outcome<'a>(
        &self,
        key: &Key,
        inquiry: impl Into<Inquiry<'a>>,
    ) -> Result<RequestOutcome, Error> {
        let inquiry: Inquiry<'a> = inquiry.into();
        let query = OutcomeQuery {
            key_id: key.key_id(),
            request_id: inquiry.request_id,
            nonce: nonce()?,
            time: now(),
        };
        let mut statements = Statements::new(OutcomeTerms {
            sharing: key.sharing(),
            request_id: query.request_id,
            nonce: query.nonce,
            signable: inquiry.proposal.map(Proposal::signable),
            granted_until: inquiry.granted_until,
        });
        let message = ToRequests::Outcome(self.0.caller.sign(&query)?);
        let mut story = Story::new(OUTCOME, usize::MAX);
        let mut has_report = false;
        for place in self.places() {
            let answer = self.question(place, OUTCOME, &message).await;
            match answer.and_then(conversation::report) {
                Ok(report) => {
                    has_report = true;
                    statements.add(&report);
                    let outcome = statements.judge();
                    if is_proven(&outcome) {
                        return Ok(self.answered(place, outcome));
                    }
                }
                Err(error) => self.note(&mut story, place, error)?,
            }
        }
        if let Some((code, members)) = statements.refused() {
            return Err(Error::no(No {
                doing: OUTCOME,
                code,
                members,
                missing: statements.missing(),
                detail: String::new(),
            }));
        }
        if has_report {
            Ok(statements.judge())
        } else {
            Err(story.end_of_question())
        }
    }

    /// A fresh request id: one for each effect that is wanted. Keep it before asking with it.
    ///
    /// # Errors
    /// [`Error::Randomness`].
    pub fn fresh_request_id() -> Result<RequestId, Error> {
        random().map(RequestId::from_bytes)
    }

    /// Everybody once, the preferred one first.
    fn places(&self) -> impl Iterator<Item = usize> + use<> {
        let count = self.0.seats.len();
        let first = self.0.preferred.load(Ordering::Relaxed).min(count);
        (first..count).chain(0..first)
    }

    fn answered<T>(&self, place: usize, answer: T) -> T {
        self.0.preferred.store(place, Ordering::Relaxed);
        answer
    }

    async fn question(
        &self,
        place: usize,
        doing: &'static str,
        message: &ToRequests,
    ) -> Result<firn_protocol::messages::FromRequests, Error> {
        let nobody = || Error::Usage {
            what: "there is no such coordinator".to_owned(),
        };
        let seat = self.0.seats.get(place).ok_or_else(nobody)?;
        let patience = self.0.settings.question;
        seat.question(&self.0.caller, doing, message, patience)
            .await
    }

    fn note(&self, story: &mut Story, place: usize, error: Error) -> Result<(), Error> {
        let Some(seat) = self.0.seats.get(place) else {
            return Err(error);
        };
        let coordinator = &seat.holder().id;
        tracing::info!(%coordinator, code = error.code(), "a coordinator did not bring what was asked for");
        story.note(place, coordinator, error)
    }

    /// What members would say of the grant, as far as it can be said here.
    fn check_grant(
        &self,
        key: &Key,
        proposal: &Proposal,
        grant: &Envelope<Grant>,
    ) -> Result<Verified<Grant>, Error> {
        let fits = || {
            let grant = grant.clone().verify(&self.0.authorities.grant_authority)?;
            let sharing = key.sharing();
            if grant.key_id != key.key_id() || proposal.key_id() != key.key_id() {
                return Err(Reject::GrantKeyMismatch);
            }
            if grant.owner != *self.0.caller.id() {
                return Err(Reject::GrantOwnerMismatch);
            }
            if grant.intent != proposal.digest() {
                return Err(Reject::GrantIntentMismatch);
            }
            if grant.activation != sharing.activation_digest() {
                return Err(Reject::ActivationMismatch);
            }
            if grant.policy != sharing.policy_digest() {
                return Err(Reject::GrantPolicyMismatch);
            }
            Ok(grant)
        };
        fits().map_err(Error::unfit("the grant"))
    }
}

/// Members that have to refuse before no quorum is left, whatever the others lie about.
fn blocking(key: &Key) -> usize {
    key.members()
        .len()
        .saturating_sub(key.threshold())
        .saturating_add(1)
}

fn is_about(key: Key, key_id: KeyId) -> Result<Key, Reject> {
    if key.key_id() == key_id {
        Ok(key)
    } else {
        Err(Reject::KeyUnknown)
    }
}

/// Whether more statements could not change it.
const fn is_proven(outcome: &RequestOutcome) -> bool {
    match outcome {
        RequestOutcome::Signed(signed) => !matches!(signed.proof, crate::evidence::Proof::Claim),
        RequestOutcome::NotSigned(_) | RequestOutcome::Conflict(_) => true,
        RequestOutcome::Released(_) | RequestOutcome::Undetermined(_) => false,
    }
}

type Approvals = List<Blob<{ limits::SMALL_DOCUMENT }>, { limits::MAX_APPROVALS }>;

fn bounded(approvals: &[Vec<u8>]) -> Result<Approvals, Error> {
    let too_much = || Error::Usage {
        what: format!("at most {} approvals, of usual size", limits::MAX_APPROVALS),
    };
    let approvals: Option<Vec<_>> = approvals.iter().cloned().map(Blob::new).collect();
    List::new(approvals.ok_or_else(too_much)?).ok_or_else(too_much)
}

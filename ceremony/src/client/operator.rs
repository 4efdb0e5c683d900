//! An operator's conversations: who is there, run a ceremony, deliver documents. It decides whether the
//! record of a ceremony proves a key and whose acknowledgements count.

use std::time::Duration;

use firn_client::{Caller, Line, Peer, Profile};
use firn_protocol::{
    documents::{KeyHolder, Plan},
    envelope::{Approved, Envelope},
    ids::{ActivationDigest, Identifier, KeyId, MessageDigest, Nonce},
    keys::IdentityKey,
    messages::{
        Acknowledgement, CeremonyFailed, CeremonyRecord, Deliver, FromCeremony, KeyDocuments,
        KeyQuery, Presence, PresenceQuery, Progress, RunCeremony, StatusQuery, StatusReport,
        ToCeremony,
    },
    reject::Reject,
    sharing::ActiveSharing,
};

use super::caller;
use crate::{
    clock::{now, random},
    domain::Party,
    error::Error,
    evidence::{CheckedCeremony, check_ceremony},
};

/// A question that the coordinator answers by itself.
const PRESENCE_PATIENCE: Duration = Duration::from_secs(10);
/// A question that it passes on to members.
const STATUS_PATIENCE: Duration = Duration::from_secs(20);
/// A ceremony's steps have deadlines of their own; this only catches a coordinator that is silent.
const CEREMONY_PATIENCE: Duration = Duration::from_mins(30);
/// Every member writes to its disk and answers.
const DELIVERY_PATIENCE: Duration = Duration::from_mins(2);

/// An operator's connection.
#[derive(Debug)]
pub struct OperatorLine {
    line: Line,
    operator: Caller,
    coordinator: IdentityKey,
}

/// Who has stored what was delivered.
#[derive(Debug, Clone)]
pub struct Delivered {
    /// Their words, as they came.
    pub words: Vec<Envelope<Acknowledgement>>,
    /// Members with a signed acknowledgement of exactly this activation.
    pub acknowledged: Vec<Identifier>,
    /// The others, and why, by the coordinator's word.
    pub missing: Vec<(Identifier, Reject)>,
}

impl OperatorLine {
    /// Dials as this operator.
    ///
    /// # Errors
    /// As [`Line::connect`].
    pub async fn connect(party: &Party, peer: &Peer) -> Result<Self, Error> {
        let operator = caller(party)?;
        Ok(Self {
            line: Line::connect(&operator, peer).await?,
            operator,
            coordinator: peer.holder.key,
        })
    }

    /// The coordinator at the other end.
    #[must_use]
    pub const fn holder(&self) -> &KeyHolder {
        self.line.coordinator()
    }

    /// Dials as the operator of a profile: the first of its coordinators that welcomes.
    ///
    /// # Errors
    /// What is wrong with the profile's files; as [`Line::to_any`].
    pub async fn to_any(profile: &Profile) -> Result<Self, Error> {
        let operator = profile
            .caller()?
            .with_software(concat!("firn ", env!("CARGO_PKG_VERSION")));
        let authorities = profile.authorities()?;
        let line = Line::to_any(&operator, &authorities, &profile.coordinators).await?;
        Ok(Self {
            coordinator: line.coordinator().key,
            line,
            operator,
        })
    }

    /// How the coordinator is and what it knows of the members, with the members' own words. Those are
    /// for the caller to verify against the roster, with the nonce that comes along.
    ///
    /// # Errors
    /// [`Error::Refused`]; [`Error::OutcomeUnknown`].
    pub async fn status(&self) -> Result<(StatusReport, Nonce), Error> {
        const DOING: &str = "asking how the members are";
        let query = StatusQuery {
            nonce: Nonce::from_bytes(*random::<32>()?),
            time: now(),
        };
        let message = ToCeremony::Status(self.operator.sign(&query)?);
        let mut answers = self.line.ask(DOING, &message, STATUS_PATIENCE).await?;
        match answers.next().await? {
            FromCeremony::Status(report) => Ok((report, query.nonce)),
            FromCeremony::Failed(failed) => Err(refused(DOING, &failed, None)),
            FromCeremony::Progress(_)
            | FromCeremony::Certified(_)
            | FromCeremony::Delivered(_)
            | FromCeremony::Presence(_)
            | FromCeremony::Key(_) => Err(UNEXPECTED),
        }
    }

    /// The documents that say what a key is, yet to be verified.
    ///
    /// # Errors
    /// [`Error::Refused`]; [`Error::OutcomeUnknown`].
    pub async fn key_documents(&self, key_id: KeyId) -> Result<KeyDocuments, Error> {
        const DOING: &str = "asking what a key is";
        let query = KeyQuery {
            key_id,
            nonce: Nonce::from_bytes(*random::<32>()?),
        };
        let message = ToCeremony::Key(self.operator.sign(&query)?);
        let mut answers = self.line.ask(DOING, &message, STATUS_PATIENCE).await?;
        match answers.next().await? {
            FromCeremony::Key(documents) => Ok(documents),
            FromCeremony::Failed(failed) => Err(refused(DOING, &failed, None)),
            FromCeremony::Progress(_)
            | FromCeremony::Certified(_)
            | FromCeremony::Delivered(_)
            | FromCeremony::Presence(_)
            | FromCeremony::Status(_) => Err(UNEXPECTED),
        }
    }

    /// Who is connected, by the coordinator's word.
    ///
    /// # Errors
    /// [`Error::Refused`]; [`Error::OutcomeUnknown`].
    pub async fn presence(&self) -> Result<Presence, Error> {
        const DOING: &str = "asking who is there";
        let query = PresenceQuery {
            nonce: Nonce::from_bytes(*random::<32>()?),
        };
        let query = ToCeremony::Presence(self.operator.sign(&query)?);
        let mut answers = self.line.ask(DOING, &query, PRESENCE_PATIENCE).await?;
        match answers.next().await? {
            FromCeremony::Presence(presence) => Ok(presence),
            FromCeremony::Failed(failed) => Err(refused(DOING, &failed, None)),
            FromCeremony::Progress(_)
            | FromCeremony::Certified(_)
            | FromCeremony::Delivered(_)
            | FromCeremony::Status(_)
            | FromCeremony::Key(_) => Err(UNEXPECTED),
        }
    }

    /// Runs the DKG that the plan describes; `on_progress` hears of each step.
    ///
    /// # Errors
    /// As [`Self::run_unverified`]; [`Error::Unverified`] for a record that does not prove a key.
    pub async fn run(
        &self,
        plan: &Approved<Plan>,
        on_progress: impl FnMut(&Progress),
    ) -> Result<(CeremonyRecord, CheckedCeremony), Error> {
        let record = self.run_unverified(plan, on_progress).await?;
        let checked = check_ceremony(&record, plan.clone(), &[self.coordinator])
            .map_err(Error::unverified("the ceremony's record"))?;
        Ok((record, checked))
    }

    /// The same, for whoever keeps what came back whatever it proves. After a lost connection it is safe
    /// to ask again: a ceremony that has made a key is not made twice.
    ///
    /// # Errors
    /// [`Error::Refused`] with step and culprit; [`Error::OutcomeUnknown`].
    pub async fn run_unverified(
        &self,
        plan: &Approved<Plan>,
        mut on_progress: impl FnMut(&Progress),
    ) -> Result<CeremonyRecord, Error> {
        const DOING: &str = "running the ceremony";
        let message = ToCeremony::Run(RunCeremony {
            plan: plan.endorsed().clone(),
        });
        let mut answers = self.line.ask(DOING, &message, CEREMONY_PATIENCE).await?;
        loop {
            match answers.next().await? {
                FromCeremony::Progress(progress) => on_progress(&progress),
                FromCeremony::Certified(record) => return Ok(record),
                FromCeremony::Failed(failed) => return Err(refused(DOING, &failed, Some(plan))),
                FromCeremony::Delivered(_)
                | FromCeremony::Presence(_)
                | FromCeremony::Status(_)
                | FromCeremony::Key(_) => return Err(UNEXPECTED),
            }
        }
    }

    /// Delivers the documents that make a sharing usable to all its members.
    ///
    /// # Errors
    /// [`Error::Refused`]; [`Error::Unverified`] for an acknowledgement that is not what it says;
    /// [`Error::OutcomeUnknown`].
    pub async fn deliver(
        &self,
        documents: KeyDocuments,
        sharing: &ActiveSharing,
    ) -> Result<Delivered, Error> {
        const DOING: &str = "delivering the activation";
        let message = ToCeremony::Deliver(Deliver { documents });
        let mut answers = self.line.ask(DOING, &message, DELIVERY_PATIENCE).await?;
        loop {
            match answers.next().await? {
                FromCeremony::Progress(_) => {}
                FromCeremony::Delivered(result) => {
                    let acknowledged = result
                        .acknowledgements
                        .iter()
                        .map(|word| acknowledged(word, sharing))
                        .collect::<Result<Vec<_>, Reject>>()
                        .map_err(Error::unverified("an acknowledgement"))?;
                    return Ok(Delivered {
                        words: result.acknowledgements.into_vec(),
                        acknowledged,
                        missing: result.missing.into_vec(),
                    });
                }
                FromCeremony::Failed(failed) => {
                    let plan = sharing.certified().plan();
                    return Err(refused(DOING, &failed, Some(plan)));
                }
                FromCeremony::Certified(_)
                | FromCeremony::Presence(_)
                | FromCeremony::Status(_)
                | FromCeremony::Key(_) => return Err(UNEXPECTED),
            }
        }
    }
}

const UNEXPECTED: Error = Error::Unverified {
    what: "the coordinator's answer",
    code: Reject::UnexpectedMessage,
};

/// Whose acknowledgement it is, if it is one of this activation by a member of its roster.
fn acknowledged(
    word: &Envelope<Acknowledgement>,
    sharing: &ActiveSharing,
) -> Result<Identifier, Reject> {
    let plan = sharing.certified().plan();
    let signer = word.claimed_signer()?;
    let member = plan.member(&signer).ok_or(Reject::NotAMember)?;
    let word = word.clone().verify(&member.identity)?;
    let activation: ActivationDigest = sharing.activation_digest();
    let is_this = word.member == member.identifier
        && word.what == MessageDigest::from_bytes(*activation.as_bytes());
    if is_this {
        Ok(member.identifier)
    } else {
        Err(Reject::ActivationMismatch)
    }
}

fn refused(doing: &'static str, failed: &CeremonyFailed, plan: Option<&Plan>) -> Error {
    let culprit = failed.culprit.0.map(|identifier| {
        let entry = plan.and_then(|plan| plan.member_at(identifier));
        entry.map_or_else(
            || format!(", member {identifier}"),
            |entry| format!(", {}", entry.name),
        )
    });
    let detail = format!("in {}{}", failed.step, culprit.unwrap_or_default());
    Error::Refused {
        doing,
        code: failed.code,
        detail,
    }
}

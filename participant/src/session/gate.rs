//! The gates of DESIGN: what is checked when a session is opened, in its order, before anything is
//! written. What depends on other sessions (epoch, request id, attempts) is judged by the ledger's
//! rules while the record is appended; this module puts everything before and after it in place.

mod grant;

pub use grant::{GrantTime, RefusedOpening, ShownEpoch};

use firn_ledger::rules::{Command, OpenRequest, ProofOpened, RequestOpened};
use firn_protocol::{
    bitcoin::{Network, Sats},
    codec::List,
    documents::{Authorities, Content, Grant, Intent},
    envelope::Verified,
    ids::{
        Flow, Identifier, IntentDigest, KeyId, MessageDigest, PolicyDigest, SessionId, UnixMillis,
    },
    keys::IdentityKey,
    messages::{ProofOpen, SignOpen},
    reject::Reject,
    session::{CeremonySubject, RequestSubject, SessionHeader, Subject},
    sharing::{ActiveSharing, CertifiedSharing},
    signable::{Item, Signable},
};

/// A key that this participant has an active share of, as its documents say it.
#[derive(Debug)]
pub struct KeyInUse {
    /// The verified documents.
    pub sharing: ActiveSharing,
    /// This participant's place.
    pub member: Identifier,
}

/// What every judged session has.
#[derive(Debug)]
pub struct Judged {
    /// Its id, recomputed.
    pub session: SessionId,
    /// Who takes part, ascending.
    pub members: Vec<Identifier>,
    /// What is signed, ascending by input.
    pub items: Vec<Item>,
    /// This participant's place.
    pub member: Identifier,
    /// The coordinator's key: its package must be signed with it.
    pub coordinator: IdentityKey,
}

/// A request that may be opened if the ledger's rules agree.
#[derive(Debug)]
pub struct JudgedRequest {
    /// The session.
    pub judged: Judged,
    /// What is to be written.
    pub command: Command,
    /// What the receipt will say.
    pub terms: ReceiptTerms,
}

/// What a receipt says of the request.
#[derive(Debug, Clone)]
pub struct ReceiptTerms {
    /// The key.
    pub key_id: KeyId,
    /// The intent.
    pub intent: IntentDigest,
    /// The policy.
    pub policy: PolicyDigest,
    /// The grant, which names request and epoch.
    pub grant: Verified<Grant>,
}

/// A proof of life that may be opened if the ledger's rules agree.
#[derive(Debug)]
pub struct JudgedProof {
    /// The session.
    pub judged: Judged,
    /// What is to be written.
    pub command: Command,
}

/// Judges the opening of a signing session, steps 4 to 12.
///
/// # Errors
/// The first gate that is shut, and the epoch that a valid grant showed before it: that one has to be
/// on disk before the refusal leaves.
pub fn judge_request<K: AsRef<KeyInUse>>(
    open: &SignOpen,
    key: impl FnOnce(KeyId) -> Result<K, Reject>,
    authorities: &Authorities,
    time: GrantTime,
) -> Result<(K, JudgedRequest), RefusedOpening> {
    let (header, coordinator) = verify_header(&open.header, authorities)?;
    let found = key(header.key_id)?;
    let key = found.as_ref();
    let (subject, members) = judge_header(&header, key)?;
    let (grant, requester) = grant::verify_grant(&open.grant, authorities, &key.sharing, time)?;
    let (intent, signable) = match judge_grant(open, &grant, requester, &header, &subject, key) {
        Ok(intent) => understand(&intent, &grant, key.sharing.certified())
            .map(|signable| (intent, signable))
            .map_err(|code| RefusedOpening::after_epoch(code, &grant))?,
        Err(code) => return Err(RefusedOpening::before_epoch(code, &grant)),
    };
    let opening = Opening {
        header: &header,
        key,
        grant: &grant,
        signable: &signable,
        members: &members,
    };
    let denied = judge_policy(&key.sharing, &intent, &signable)
        .or_else(|| (!open.approvals.is_empty()).then_some(Reject::UnknownSigner));
    let command = opening
        .command(denied)
        .map_err(|code| RefusedOpening::after_epoch(code, &grant))?;
    let judged = JudgedRequest {
        judged: Judged {
            session: header.session_id(),
            items: signable.items().to_vec(),
            member: key.member,
            members,
            coordinator,
        },
        command,
        terms: ReceiptTerms {
            key_id: header.key_id,
            intent: signable.intent_digest(),
            policy: key.sharing.policy_digest(),
            grant,
        },
    };
    Ok((found, judged))
}

/// A request that has passed every gate that does not hang on other sessions.
struct Opening<'a> {
    header: &'a Verified<SessionHeader>,
    key: &'a KeyInUse,
    grant: &'a Verified<Grant>,
    signable: &'a Signable,
    members: &'a [Identifier],
}

impl Opening<'_> {
    fn command(&self, denied: Option<Reject>) -> Result<Command, Reject> {
        let (header, grant, signable) = (self.header, self.grant, self.signable);
        let sharing = &self.key.sharing;
        let outflow = signable
            .summary()
            .map_or(Sats::ZERO, |summary| summary.outflow());
        let opened = RequestOpened {
            session: header.session_id(),
            key_id: header.key_id,
            share_version: header.share_version,
            activation: sharing.activation_digest(),
            epoch: grant.epoch,
            owner: grant.owner.clone(),
            request_id: grant.request_id,
            intent: signable.intent_digest(),
            policy: sharing.policy_digest(),
            grant: MessageDigest::from_bytes(grant.digest()),
            outflow,
            inputs: u32::try_from(signable.items().len()).map_err(|_| Reject::PsbtMalformed)?,
            coordinator: header.coordinator.clone(),
            members: List::new(self.members.to_vec()).ok_or(Reject::SessionMembers)?,
        };
        let roster = sharing.certified().plan().roster.len();
        let others = roster.saturating_sub(self.members.len());
        Ok(Command::OpenRequest(Box::new(OpenRequest {
            opened,
            at_once: others.saturating_add(1),
            denied,
        })))
    }
}

impl JudgedRequest {
    /// The refusal of a good request, for a reason that comes before any gate.
    #[must_use]
    pub fn withheld(&self, code: Reject) -> RefusedOpening {
        RefusedOpening::before_epoch(code, &self.terms.grant)
    }
}

impl ReceiptTerms {
    /// The grant once more, when the share is about to leave: withholding a package keeps no
    /// permission alive.
    ///
    /// # Errors
    /// [`Reject::GrantExpired`].
    pub fn still_granted(&self, time: GrantTime) -> Result<(), Reject> {
        time.judge_end(&self.grant)
    }
}

/// Judges the opening of a proof of life. Its authority is the plan that made the sharing.
///
/// # Errors
/// The first gate that is shut.
pub fn judge_proof(
    open: &ProofOpen,
    certified: &CertifiedSharing,
    member: Identifier,
    authorities: &Authorities,
    now: UnixMillis,
) -> Result<JudgedProof, Reject> {
    let (header, coordinator) = verify_header(&open.header, authorities)?;
    let expected = Subject::Ceremony(CeremonySubject {
        plan: certified.plan_digest(),
        ceremony_id: certified.plan().ceremony_id,
        rules: certified.plan().rules,
    });
    if header.flow != Flow::ProofOfLife || header.subject != expected {
        return Err(Reject::UnexpectedMessage);
    }
    check_sharing(&header, certified)?;
    let members = check_members(&header, certified, member)?;
    if certified.plan().expires <= now {
        return Err(Reject::PlanExpired);
    }
    let item = Item::proof_of_life(
        certified.plan_digest(),
        certified.share_version(),
        &members,
        &header.nonce,
    )?;
    let attempt = certified.attempt()?;
    let session = header.session_id();
    let command = Command::OpenProof(ProofOpened {
        session,
        key_id: header.key_id,
        share_version: header.share_version,
        attempt,
        coordinator: header.coordinator.clone(),
        members: List::new(members.clone()).ok_or(Reject::SessionMembers)?,
    });
    Ok(JudgedProof {
        judged: Judged {
            session,
            members,
            items: vec![item],
            member,
            coordinator,
        },
        command,
    })
}

/// A header counts if a coordinator that the Authorities name signed it in its own name.
pub(super) fn verify_header(
    header: &firn_protocol::envelope::Envelope<SessionHeader>,
    authorities: &Authorities,
) -> Result<(Verified<SessionHeader>, IdentityKey), Reject> {
    let keys = authorities.coordinators.iter().map(|holder| &holder.key);
    let header = header
        .clone()
        .verify_any(keys)
        .map_err(|error| error.or_unknown(Reject::UnknownCoordinator))?;
    let signer = *header.signer();
    if authorities.coordinator(&header.coordinator) != Some(&signer) {
        return Err(Reject::UnknownCoordinator);
    }
    if !header.members_ascend() {
        return Err(Reject::SessionMembers);
    }
    Ok((header, signer))
}

fn check_sharing(header: &SessionHeader, certified: &CertifiedSharing) -> Result<(), Reject> {
    if header.key_id != certified.key_id() {
        return Err(Reject::KeyUnknown);
    }
    if header.share_version != certified.share_version() {
        return Err(Reject::ActivationMismatch);
    }
    Ok(())
}

/// Exactly t members of the roster, and this participant among them.
fn check_members(
    header: &SessionHeader,
    certified: &CertifiedSharing,
    own: Identifier,
) -> Result<Vec<Identifier>, Reject> {
    let members = header.members.to_vec();
    let in_roster = members
        .iter()
        .all(|member| certified.member(*member).is_some());
    if members.len() != usize::from(certified.plan().threshold.value()) || !in_roster {
        return Err(Reject::SessionMembers);
    }
    if !members.contains(&own) {
        return Err(Reject::NotAMember);
    }
    Ok(members)
}

/// What the header says of flow, sharing and members.
fn judge_header(
    header: &SessionHeader,
    key: &KeyInUse,
) -> Result<(RequestSubject, Vec<Identifier>), Reject> {
    let certified = key.sharing.certified();
    let Subject::Request(subject) = header.subject.clone() else {
        return Err(Reject::UnexpectedMessage);
    };
    if header.flow != Flow::Sign {
        return Err(Reject::UnexpectedMessage);
    }
    check_sharing(header, certified)?;
    if subject.activation != key.sharing.activation_digest() {
        return Err(Reject::ActivationMismatch);
    }
    let members = check_members(header, certified, key.member)?;
    Ok((subject, members))
}

/// Whether a valid grant is for this request, and its owner asks for it. All that costs nothing comes
/// first, so that nobody without a good grant makes a participant verify or parse a large transaction.
fn judge_grant(
    open: &SignOpen,
    grant: &Grant,
    requester: &IdentityKey,
    header: &SessionHeader,
    subject: &RequestSubject,
    key: &KeyInUse,
) -> Result<Verified<Intent>, Reject> {
    let intent = open
        .intent
        .clone()
        .verify(requester)
        // The grant's owner and the requester are the same identity, or nothing is signed.
        .map_err(|error| error.or_unknown(Reject::GrantOwnerMismatch))?;
    let (policy, version) = (key.sharing.policy_digest(), key.sharing.policy().version);
    let checks = [
        (
            grant.request_id == subject.request_id,
            Reject::GrantRequestMismatch,
        ),
        (grant.intent == subject.intent, Reject::GrantIntentMismatch),
        (grant.policy == policy, Reject::GrantPolicyMismatch),
        (subject.policy == policy, Reject::GrantPolicyMismatch),
        (
            grant.least_policy_version <= version,
            Reject::PolicyVersionBehind,
        ),
        // No revocations exist yet: a grant that asks for any is ahead of this participant.
        (
            grant.least_revocation_version.value() == 0,
            Reject::RevocationsBehind,
        ),
        (grant.epoch == header.epoch, Reject::SessionMismatch),
    ];
    checks
        .into_iter()
        .find(|(holds, _)| !holds)
        .map_or(Ok(intent), |(_, code)| Err(code))
}

/// What the intent's bytes mean; grant and header must have named just that.
fn understand(
    intent: &Intent,
    grant: &Grant,
    certified: &CertifiedSharing,
) -> Result<Signable, Reject> {
    let network: Network = certified.plan().network;
    let signable = Signable::of_intent(
        intent,
        certified.key_id(),
        network,
        certified.public().group_key(),
    )?;
    if signable.intent_digest() == grant.intent {
        Ok(signable)
    } else {
        Err(Reject::GrantIntentMismatch)
    }
}

fn judge_policy(sharing: &ActiveSharing, intent: &Intent, signable: &Signable) -> Option<Reject> {
    let rules = &sharing.policy().rules;
    let violations = match (&intent.content, signable.summary()) {
        (Content::Psbt(_), Some(summary)) => firn_policy::evaluate(rules, summary),
        (Content::ProofOfLife(_), None) => {
            firn_policy::evaluate_proof_of_life(rules, intent.network)
        }
        (Content::Psbt(_), None) | (Content::ProofOfLife(_), Some(_)) => {
            return Some(Reject::Internal);
        }
    };
    violations.first().map(|violation| violation.code)
}

//! What was signed with the key. It decides whether somebody who may ask asked for it, whether it was
//! granted and allowed, and whether exactly these members made exactly these signatures.

use std::collections::BTreeMap;

use firn_client::evidence::{SigningTerms, check_receipts, check_session, check_signatures};
use firn_policy::{Violation, evaluate, evaluate_proof_of_life};
use firn_protocol::{
    documents::{Authorities, Grant, Intent, KeyHolder},
    envelope::{Envelope, Verified},
    ids::{IntentDigest, RequestId},
    reject::Reject,
    sharing::ActiveSharing,
    signable::Signable,
};

use super::{
    super::{
        checks::{Because, Checks},
        folder::RequestEvidence,
    },
    names_of,
    record::{in_own_name, keys_of},
};

/// What a request is checked with.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    /// The request that its file is named after.
    pub(super) id: RequestId,
    pub(super) active: &'a ActiveSharing,
    pub(super) authorities: &'a Authorities,
}

/// Intents that other requests of the folder stand for.
pub(super) type Seen = BTreeMap<IntentDigest, RequestId>;

pub(super) fn check(
    evidence: &RequestEvidence,
    terms: Terms<'_>,
    seen: &mut Seen,
    file: &mut Checks<'_>,
) -> Option<()> {
    let (intent, grant, answer) = evidence;
    let Terms {
        id,
        active,
        authorities,
    } = terms;
    let (intent, owner) = file.found(
        "the intent is signed by a requester of the Authorities",
        signed_intent(intent, authorities),
        |(_, owner)| owner.id.name().to_string(),
    )?;
    let coordinators = keys_of(authorities);
    let mut asked = SigningTerms {
        sharing: active,
        coordinators: &coordinators,
        intent: &intent,
        request_id: id,
        epoch: active.activation().first_epoch,
    };
    let signable = file.found(
        "the intent is for this key, and contradicts itself nowhere",
        asked.signable(),
        in_words,
    )?;
    let allowed = by_policy(&signable, active);
    file.take("the policy allows it, evaluated again here", allowed)?;
    let other = seen.insert(signable.intent_digest(), id);
    file.is(
        "no other request of this folder stands for the same intent",
        other.is_none(),
        "two requests for one effect",
    );
    let grant = grant.clone().verify(&authorities.grant_authority);
    let grant = file.take("the grant is signed by the grant authority", grant)?;
    let granted = check_grant(&grant, &terms, owner, &signable);
    file.found(
        "the grant is for exactly this key, activation, policy, owner, intent and request",
        granted,
        |()| format!("epoch {}", grant.epoch),
    )?;
    asked.epoch = grant.epoch;
    file.found(
        "each signature is valid for its input's own hash, under BIP-340",
        check_signatures(answer, &signable, &asked),
        |()| format!("{} of {}", answer.signatures.len(), signable.items().len()),
    )?;
    if let Some(record) = &answer.evidence.0 {
        file.found(
            "the session was opened by a coordinator in its own name",
            in_own_name(&record.header, authorities),
            Clone::clone,
        )?;
    }
    file.found(
        "exactly t members committed, signed one package and made these very signatures",
        check_session(answer, &signable, &asked),
        |signers| {
            if signers.is_empty() {
                "the answer came out of the members' ledgers: their receipts alone vouch for it"
                    .to_owned()
            } else {
                names_of(active.certified(), signers)
            }
        },
    )?;
    file.found(
        "members vouch for it, each with its own receipt of this request",
        check_receipts(answer, &signable, &asked),
        |members| names_of(active.certified(), members),
    )?;
    Some(())
}

fn signed_intent<'a>(
    intent: &Envelope<Intent>,
    authorities: &'a Authorities,
) -> Result<(Verified<Intent>, &'a KeyHolder), Reject> {
    let signer = intent.claimed_signer()?;
    let mut requesters = authorities.requesters.iter();
    let owner = requesters.find(|holder| holder.key == signer);
    let owner = owner.ok_or(Reject::UnknownRequester)?;
    Ok((intent.clone().verify(&owner.key)?, owner))
}

fn by_policy(signable: &Signable, active: &ActiveSharing) -> Result<(), Because> {
    let rules = &active.policy().rules;
    let network = active.certified().plan().network;
    let violations = signable.summary().map_or_else(
        || evaluate_proof_of_life(rules, network),
        |summary| evaluate(rules, summary),
    );
    if violations.is_empty() {
        return Ok(());
    }
    let broken: Vec<String> = violations
        .iter()
        .map(|Violation { code, detail, .. }| format!("{detail} [{}]", code.name()))
        .collect();
    Err(Because::new(broken.join("; ")))
}

fn check_grant(
    grant: &Grant,
    terms: &Terms<'_>,
    owner: &KeyHolder,
    signable: &Signable,
) -> Result<(), Reject> {
    let active = terms.active;
    for (holds, code) in [
        (
            grant.key_id == active.certified().key_id(),
            Reject::GrantKeyMismatch,
        ),
        (
            grant.activation == active.activation_digest(),
            Reject::ActivationMismatch,
        ),
        (
            grant.policy == active.policy_digest(),
            Reject::GrantPolicyMismatch,
        ),
        (
            grant.least_policy_version <= active.policy().version,
            Reject::PolicyVersionBehind,
        ),
        (grant.owner == owner.id, Reject::GrantOwnerMismatch),
        (
            grant.intent == signable.intent_digest(),
            Reject::GrantIntentMismatch,
        ),
        (grant.request_id == terms.id, Reject::GrantRequestMismatch),
        (
            grant.epoch >= active.activation().first_epoch,
            Reject::StaleEpoch,
        ),
        (grant.not_before < grant.expires, Reject::UnsoundDocument),
    ] {
        if !holds {
            return Err(code);
        }
    }
    Ok(())
}

fn in_words(signable: &Signable) -> String {
    signable.summary().map_or_else(
        || "a proof of life: it moves nothing".to_owned(),
        |summary| {
            format!(
                "transaction {}: {} leave the key, fee {}",
                summary.transaction().txid(),
                summary.outflow(),
                summary.fee()
            )
        },
    )
}

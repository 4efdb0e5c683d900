//! Plan, policy and activation. It decides whether each is signed by whom it must be and binds the others,
//! and says of a plan how many members may lie.

use firn_protocol::{
    documents::{Activation, Authorities, Ceremony, Plan, Policy},
    envelope::{Approved, Endorsed, Envelope, Verified},
    ids::{AuthoritiesDigest, Epoch, PlanDigest, PolicyDigest},
    messages::KeyDocuments,
    reject::Reject,
    sharing::{ActiveSharing, CertifiedSharing},
};

use super::super::checks::Checks;

/// The checks of what people sign.
pub(super) struct Documents<'a> {
    pub(super) authorities: &'a Approved<Authorities>,
}

/// Which operators signed an approved document: names, how many, how many it takes.
pub(super) fn signed_by<T>(approved: &Approved<T>, authorities: &Authorities) -> String {
    let operators = &authorities.operators;
    let signers = approved.endorsed().claimed_signers().unwrap_or_default();
    let names: Vec<&str> = operators
        .keys
        .iter()
        .filter(|named| signers.contains(&named.key))
        .map(|named| named.name.as_str())
        .collect();
    format!(
        "{}: {} of {}, {} needed",
        names.join(", "),
        names.len(),
        operators.keys.len(),
        operators.needed
    )
}

impl Documents<'_> {
    fn digest(&self) -> AuthoritiesDigest {
        AuthoritiesDigest::from_bytes(self.authorities.digest())
    }

    fn endorsed<T: firn_protocol::envelope::Document>(
        &self,
        endorsed: Endorsed,
        file: &mut Checks<'_>,
    ) -> Option<Approved<T>> {
        let operators = &self.authorities.operators;
        let needed = usize::from(operators.needed);
        file.found(
            "is signed by a quorum of the operators, and by nobody else",
            endorsed.verify::<T>(&operators.identities(), needed),
            |approved| signed_by(approved, self.authorities),
        )
    }

    pub(super) fn plan(&self, plan: Endorsed, file: &mut Checks<'_>) -> Option<Approved<Plan>> {
        let plan = self.endorsed::<Plan>(plan, file)?;
        let mut holds = file.is(
            "names these Authorities",
            plan.authorities == self.digest(),
            "it names others",
        );
        let sound = plan.is_sound().then_some(()).ok_or(Reject::UnsoundDocument);
        holds &= file
            .take("has its members in order, no name or key twice", sound)
            .is_some();
        holds &= file.is(
            "is of a ceremony that makes a key",
            matches!(plan.ceremony, Ceremony::Dkg(_)),
            "only the evidence of a key's making is checked so far",
        );
        let quorums = quorums_meet(&plan);
        holds &= file
            .found("any two quorums share a member", quorums, Clone::clone)
            .is_some();
        holds.then_some(plan)
    }

    pub(super) fn policy(
        &self,
        policy: Envelope<Policy>,
        plan: &Approved<Plan>,
        file: &mut Checks<'_>,
    ) -> Option<Verified<Policy>> {
        let policy = file.take(
            "is signed by the policy authority",
            policy.verify(&self.authorities.policy_authority),
        )?;
        let key_id = plan.key_id(PlanDigest::from_bytes(plan.digest()));
        let mut holds = file.is(
            "is for this key",
            policy.key_id == key_id,
            "it is for another key",
        );
        holds &= file.is(
            "has its rules in order, none twice",
            policy.is_sound(),
            "a rule is out of order, or stands twice",
        );
        let rules = Policy::rules_digest(&policy.rules);
        holds &= file.is(
            "is the first one, with exactly the rules that the plan binds",
            policy.version.value() == 1 && rules == Ok(plan.rules),
            "the plan binds other rules",
        );
        holds.then_some(policy)
    }

    pub(super) fn activation(
        &self,
        activation: Endorsed,
        policy: &Verified<Policy>,
        certified: &CertifiedSharing,
        file: &mut Checks<'_>,
    ) -> Option<ActiveSharing> {
        let activation = self.endorsed::<Activation>(activation, file)?;
        let mut is = |check, holds| file.is(check, holds, "it names another");
        let mut holds = is(
            "names this key and this sharing of it",
            activation.key_id == certified.key_id()
                && activation.share_version == certified.share_version(),
        );
        holds &= is(
            "names exactly these certificates",
            activation.certificates == certified.set_digest(),
        );
        holds &= is(
            "names exactly this policy",
            activation.policy == PolicyDigest::from_bytes(policy.digest())
                && activation.policy_version == policy.version,
        );
        holds &= is(
            "names these Authorities",
            activation.authorities == self.digest(),
        );
        holds &= is(
            "starts at the plan's first epoch",
            first_epoch(certified.plan()) == Some(activation.first_epoch),
        );
        holds &= is(
            "needs no freeze of old members, and names none",
            activation.freeze_receipts.is_empty(),
        );
        if !holds {
            return None;
        }
        let set = certified.certificate_set();
        let active = set.and_then(|set| {
            let documents = KeyDocuments {
                plan: certified.plan().endorsed().clone(),
                certificates: set.certificates,
                policy: policy.envelope().clone(),
                activation: activation.endorsed().clone(),
            };
            ActiveSharing::verify(&documents, self.authorities, self.digest())
        });
        file.take("makes a usable key, as every member checks it", active)
    }
}

fn first_epoch(plan: &Plan) -> Option<Epoch> {
    match &plan.ceremony {
        Ceremony::Dkg(terms) => Some(terms.first_epoch),
        Ceremony::Reshare(_) | Ceremony::Retire(_) => None,
    }
}

/// How many members may lie before promises about the whole key fall, and before its secrecy does.
fn quorums_meet(plan: &Plan) -> Result<String, Reject> {
    let n = plan.roster.len();
    let t = usize::from(plan.threshold.value());
    let meeting = t
        .saturating_mul(2)
        .checked_sub(n)
        .filter(|shared| *shared > 0);
    let shared = meeting.ok_or(Reject::UnsoundDocument)?;
    Ok(format!(
        "t = {t} of n = {n}, 2t > n: any two quorums share {shared}; what holds for the whole key \
         holds while at most f = {} lie, its secrecy while at most {} do",
        shared.saturating_sub(1),
        t.saturating_sub(1)
    ))
}

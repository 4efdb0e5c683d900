//! Making the key: plan, acceptance on each member's machine, ceremony, activation. It decides nothing
//! that operators would decide differently; it only types for them.

use std::collections::BTreeSet;

use firn_protocol::{
    bitcoin::{Child, Network, OwnScripts, Sats, descriptor, transaction::ScriptPubKey},
    documents::{Activation, Plan},
    envelope::Approved,
    keys::IdentitySecret,
    messages::Progress,
    sharing::{ActiveSharing, verify_plan},
};

use super::{
    Verdicts,
    archive::Archive,
    narrator::Narrator,
    processes::{Processes, accept, until},
};
use crate::{
    authority::{self, PlanTerms, RuleTerms},
    client::OperatorLine,
    clock::{now, random},
    domain::{Domain, Party, files::write_document},
    error::Error,
    fingerprint,
    payment::own_scripts,
};

pub(super) const NETWORK: Network = Network::Regtest;
const PLAN_VALIDITY_MS: u64 = 60 * 60 * 1000;
const SHOWN_ADDRESSES: u32 = 3;

/// A key that may be used, and what is known of it.
pub(super) struct Made {
    pub(super) active: ActiveSharing,
    pub(super) own: OwnScripts,
    pub(super) descriptor: String,
    pub(super) address: String,
    /// Where the policy lets money go.
    pub(super) destination: ScriptPubKey,
}

/// Waits until the coordinator has welcomed every member.
pub(super) async fn everybody_connected(
    operator: &OperatorLine,
    domain: &Domain,
    processes: &mut Processes,
    narrator: &Narrator,
) -> Result<(), Error> {
    let coordinator = processes.coordinator();
    narrator.fact(
        coordinator.name(),
        format_args!("process {}", coordinator.pid()),
    );
    for process in processes.participants() {
        narrator.fact(process.name(), format_args!("process {}", process.pid()));
    }
    let wanted: BTreeSet<_> = domain.members().iter().map(|member| &member.id).collect();
    until("the connection of every member", async || {
        processes.check()?;
        let presence = operator.presence().await?;
        let there: BTreeSet<_> = presence.members.iter().map(|member| &member.id).collect();
        Ok(wanted.is_subset(&there).then_some(()))
    })
    .await?;
    narrator.line("every member has been welcomed by the coordinator");
    Ok(())
}

/// From a plan to a key that may be used.
pub(super) async fn key(
    domain: &Domain,
    operator: &OperatorLine,
    threshold: u16,
    archive: &Archive,
    narrator: &Narrator,
    verdicts: &mut Verdicts<'_>,
) -> Result<Made, Error> {
    let terms = rule_terms()?;
    let plan = plan(domain, threshold, &terms, narrator)?;
    accept_everywhere(domain, &plan, narrator).await?;

    narrator.step("The ceremony");
    let spinner = narrator.spinner("the members talk");
    let mut steps = Steps::default();
    let (record, checked) = operator
        .run(&plan, |progress: &Progress| {
            spinner.suspend(|| steps.reached(progress, narrator));
        })
        .await?;
    spinner.finish_and_clear();
    steps.done(narrator);
    narrator.fact("attempt", checked.attempt);
    let sharing = checked.sharing;
    narrator.fact("certificates", sharing.set_digest());
    let members = sharing.plan().roster.len();
    verdicts.hold(
        "every member certified the same key from the same messages",
        sharing.certificates().len() == members,
    );
    let proofs = checked.proofs.len();
    verdicts.hold(
        &format!("every share has proved that it signs ({proofs} proofs of life)"),
        proofs > 0,
    );

    narrator.step("Policy and activation");
    let rules = authority::rules(&terms)?;
    let policy = authority::first_policy(sharing.key_id(), rules, &domain.policy_authority()?)?;
    let signed = policy
        .clone()
        .verify(&domain.authorities().policy_authority)?;
    let activation = authority::activation(&sharing, &signed, domain.authorities_digest());
    let activation = authority::endorse::<Activation>(&activation, &quorum_secrets(domain)?)?;
    let documents = authority::key_documents(&sharing, policy, activation)?;
    let active = ActiveSharing::verify(
        &documents,
        domain.authorities(),
        domain.authorities_digest(),
    )
    .map_err(Error::unverified("the activation"))?;
    archive.key(&documents, &record)?;
    describe_policy(&terms, narrator);
    narrator.fact("activation", active.activation_digest());
    let delivered = operator.deliver(documents, &active).await?;
    archive.delivered(&delivered, &active)?;
    for (member, code) in &delivered.missing {
        narrator.fact("missing", format_args!("member {member}: {code}"));
    }
    verdicts.hold(
        "every member has the activation on its disk and has signed so",
        delivered.acknowledged.len() == members,
    );
    known(active, terms, narrator)
}

/// The ceremony's steps as they are told: one is done when the next begins.
#[derive(Default)]
struct Steps {
    current: Option<(String, u16)>,
}

impl Steps {
    fn reached(&mut self, progress: &Progress, narrator: &Narrator) {
        let step = progress.step.as_str();
        // The steps inside one proof of life come again with each of them.
        if step.contains(':') {
            return;
        }
        if self.current.as_ref().is_none_or(|(name, _)| name != step) {
            self.done(narrator);
        }
        self.current = Some((step.to_owned(), progress.of));
    }

    fn done(&mut self, narrator: &Narrator) {
        if let Some((step, of)) = self.current.take() {
            narrator.fact(&step, format_args!("{of} of {of}"));
        }
    }
}

fn rule_terms() -> Result<RuleTerms, Error> {
    // Somebody else's address: a key hash that nobody here knows the key of.
    let mut destination = vec![0x00, 0x14];
    destination.extend_from_slice(&*random::<20>()?);
    let sats = |sats| Sats::new(sats).unwrap_or(Sats::ZERO);
    Ok(RuleTerms {
        network: NETWORK,
        destinations: vec![ScriptPubKey::new(destination)],
        outflow: sats(100_000_000),
        output: sats(80_000_000),
        fee: sats(20_000),
        fee_per_kvb: sats(50_000),
        allow_all: false,
    })
}

fn plan(
    domain: &Domain,
    threshold: u16,
    terms: &RuleTerms,
    narrator: &Narrator,
) -> Result<Approved<Plan>, Error> {
    narrator.step("A plan, signed by the operators");
    let members = domain.members().len();
    let plan = authority::plan(PlanTerms {
        network: NETWORK,
        purpose: "a demonstration on this machine",
        threshold,
        roster: domain.roster()?,
        authorities: domain.authorities_digest(),
        rules: &authority::rules(terms)?,
        expires: now().plus(PLAN_VALIDITY_MS),
    })?;
    let lying = plan.threshold.tolerated_liars(members);
    narrator.fact(
        "key",
        format_args!("{threshold} of {members} sign, on {NETWORK}"),
    );
    narrator.fact(
        "trust",
        format_args!(
            "secret while fewer than {threshold} members are broken into; limits and answers hold \
             for the whole key while at most {lying} lie"
        ),
    );
    let endorsed = authority::endorse(&plan, &quorum_secrets(domain)?)?;
    let plan = verify_plan(endorsed, domain.authorities(), domain.authorities_digest())
        .map_err(Error::unverified("the plan"))?;
    let names: Vec<&str> = domain.operator_quorum().iter().map(|p| p.name()).collect();
    narrator.fact("signed by", names.join(", "));
    narrator.fact("fingerprint", fingerprint::spoken(&plan.digest()));
    Ok(plan)
}

/// Each member's operator compares the fingerprint and accepts on the member's own machine.
async fn accept_everywhere(
    domain: &Domain,
    plan: &Approved<Plan>,
    narrator: &Narrator,
) -> Result<(), Error> {
    narrator.step("Acceptance, on each member's own machine");
    for member in domain.members() {
        write_document(&member.folder.plan(), plan.endorsed())?;
        accept(member, plan).await?;
        narrator.fact(member.name(), "the fingerprint is the same; accepted");
    }
    Ok(())
}

fn quorum_secrets(domain: &Domain) -> Result<Vec<IdentitySecret>, Error> {
    domain
        .operator_quorum()
        .into_iter()
        .map(Party::secret)
        .collect()
}

fn describe_policy(terms: &RuleTerms, narrator: &Narrator) {
    narrator.fact(
        "policy",
        format_args!(
            "at most {} leave in one transaction, at most {} to one output",
            terms.outflow, terms.output
        ),
    );
    narrator.fact(
        "",
        format_args!(
            "fee at most {} and {} for 1000 vbytes; SIGHASH_DEFAULT only",
            terms.fee, terms.fee_per_kvb
        ),
    );
    for address in terms
        .destinations
        .iter()
        .filter_map(|script| terms.network.address(script))
    {
        narrator.fact("pays only", address);
    }
}

/// Descriptor and addresses, worked out from the group key alone.
fn known(active: ActiveSharing, terms: RuleTerms, narrator: &Narrator) -> Result<Made, Error> {
    narrator.step("The key");
    let group_key = *active.certified().public().group_key();
    let own = own_scripts(&group_key)?;
    let descriptor = descriptor(&group_key, NETWORK)?;
    narrator.fact("group key", group_key);
    narrator.fact("descriptor", &descriptor);
    let mut addresses = Vec::new();
    for index in 0..SHOWN_ADDRESSES {
        let child = Child::new(0, index)?;
        let script = own.derive(child)?.script();
        let address = NETWORK.address(&script).unwrap_or_default();
        narrator.fact(&format!("address {child}"), &address);
        addresses.push(address);
    }
    let nowhere = || Error::Usage {
        what: "the policy lets money go nowhere".to_owned(),
    };
    Ok(Made {
        active,
        own,
        descriptor,
        address: addresses.into_iter().next().unwrap_or_default(),
        destination: terms.destinations.into_iter().next().ok_or_else(nowhere)?,
    })
}

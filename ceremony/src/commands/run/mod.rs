//! `firn run`: the ceremony itself. It decides that plan and policy fit and that everybody is there before
//! anybody begins, and keeps whatever comes back.

mod progress;
mod ready;

use std::path::{Path, PathBuf};

use clap::Args;
use firn_client::{PinnedAuthorities, Profile};
use firn_protocol::{
    documents::{Activation, Plan, Policy},
    envelope::{Approved, Endorsed, Envelope, Verified},
    ids::PlanDigest,
    messages::CeremonyRecord,
    reject::Reject,
    sharing::verify_plan,
};
use serde::Serialize;

use self::progress::Steps;
use super::{
    profile::ProfileOption,
    reports::{Fingerprint, Signatures, must_not_exist},
    runtime,
};
use crate::{
    authority::{activation, countersign, read_plan, signed_so_far},
    client::{OperatorLine, standings},
    clock::now,
    confirm,
    domain::files::read_document,
    error::{Error, Exit},
    evidence::{Beginning, CheckedCeremony, Folder, check_ceremony, keep_rejected},
    output::Output,
};

const RUNNING: &str = "running the ceremony";
const SIGNING: &str = "signing the activation";

/// Options of `firn run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  firn run plan.cbor --policy policy.cbor --out evidence\n\n\
                  Exit codes: 0 the key is made, 1 refused, 3 somebody is missing or the coordinator is \
                  busy: try again, 4 the connection was lost: run the same command again, it is safe."
)]
pub(crate) struct Arguments {
    /// The plan, signed by enough operators and accepted on every member's machine.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// The key's first policy, signed by the policy authority.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: PathBuf,
    /// The folder that is made for everything that was said and signed.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) profile: ProfileOption,
}

#[derive(Debug, Serialize)]
struct Report {
    folder: PathBuf,
    key_id: String,
    group_key: String,
    attempt: String,
    coordinator: String,
    threshold: u16,
    members: Vec<String>,
    /// Names of the members that proved their shares together.
    proofs_of_life: Vec<Vec<String>>,
    activation: Fingerprint,
    #[serde(flatten)]
    signatures: Signatures,
    next: Vec<String>,
}

/// Runs `firn run`.
pub(crate) fn run(arguments: &Arguments, output: &Output) -> Result<Exit, Error> {
    let output = *output;
    must_not_exist(&arguments.out)?;
    let profile = arguments.profile.load()?;
    let authorities = profile.authorities()?;
    let plan = fit_plan(&arguments.plan, &authorities)?;
    let policy = fit_policy(&arguments.policy, &plan, &authorities)?;
    let (record, coordinator) = runtime()?.block_on(perform(&profile, &plan, output))?;
    let beginning = |activation| Beginning {
        plan: plan.endorsed(),
        policy: policy.envelope(),
        ceremony: &record,
        activation,
    };
    let keys: Vec<_> = authorities
        .coordinators
        .iter()
        .map(|holder| holder.key)
        .collect();
    let checked = match check_ceremony(&record, plan.clone(), &keys) {
        Ok(checked) => checked,
        Err(code) => {
            let place = keep_rejected(&arguments.out, &beginning(None))?;
            output.say(format_args!(
                "What came back is kept in {}; no member can use a key before it is activated.",
                place.display()
            ));
            return Err(Error::unverified("the ceremony's record")(code));
        }
    };
    let (signed, digest, signatures) = draft(&profile, &authorities, &checked, &policy)?;
    let folder = Folder::create(&arguments.out, &beginning(Some(&signed)))?;
    let report = report(&folder, &checked, &coordinator, &digest, signatures);
    if !output.is_json() {
        report.say(&digest, output);
    }
    output.object(&report)?;
    Ok(Exit::Done)
}

/// The plan, if these Authorities' operators have signed it and its time is not over.
fn fit_plan(path: &Path, authorities: &PinnedAuthorities) -> Result<Approved<Plan>, Error> {
    let (endorsed, _, _) = read_plan(path)?;
    let plan = verify_plan(endorsed, authorities, authorities.digest())
        .map_err(Error::unverified("the plan"))?;
    if plan.expires <= now() {
        return Err(Error::Refused {
            doing: RUNNING,
            code: Reject::PlanExpired,
            detail: String::new(),
        });
    }
    Ok(plan)
}

/// The policy, if it is the first one of the plan's key, with the rules that the plan binds.
pub(crate) fn fit_policy(
    path: &Path,
    plan: &Approved<Plan>,
    authorities: &PinnedAuthorities,
) -> Result<Verified<Policy>, Error> {
    let limit = Envelope::<Policy>::LIMIT.saturating_add(8);
    let envelope: Envelope<Policy> = read_document(path, limit, "a policy")?;
    let unfit = |what: &str| Error::Unfit {
        path: path.to_owned(),
        what: what.to_owned(),
    };
    let policy = envelope
        .verify(&authorities.policy_authority)
        .map_err(|error| unfit(Reject::from(error).meaning()))?;
    if policy.key_id != plan.key_id(PlanDigest::from_bytes(plan.digest())) {
        return Err(unfit("it is for the key of another plan"));
    }
    if policy.version.value() != 1 || Policy::rules_digest(&policy.rules)? != plan.rules {
        return Err(unfit("its rules are not the ones that the plan binds"));
    }
    if !policy.is_sound() {
        return Err(unfit(Reject::UnsoundDocument.meaning()));
    }
    Ok(policy)
}

async fn perform(
    profile: &Profile,
    plan: &Approved<Plan>,
    output: Output,
) -> Result<(CeremonyRecord, String), Error> {
    let line = OperatorLine::to_any(profile).await?;
    let coordinator = line.holder().id.name().to_string();
    output.fact("coordinator", &coordinator);
    let (status, nonce) = line.status().await?;
    let members = standings(&plan.roster, &status, &nonce);
    ready::check(&members, plan, now(), RUNNING)?;
    let names: Vec<&str> = plan
        .roster
        .iter()
        .map(|entry| entry.name.as_str())
        .collect();
    output.fact("ready", names.join(", "));
    let mut steps = Steps::new(output);
    let outcome = line
        .run_unverified(plan, |progress| steps.reached(progress))
        .await;
    match outcome {
        Ok(record) => {
            steps.done();
            Ok((record, coordinator))
        }
        Err(error) => {
            steps.gone();
            if matches!(error, Error::OutcomeUnknown { .. }) {
                output.say(
                    "Run the same command again: the ceremony goes on without you, and its record is \
                     handed over when you ask.",
                );
            }
            Err(error)
        }
    }
}

/// The activation that follows, with this operator's signature.
fn draft(
    profile: &Profile,
    authorities: &PinnedAuthorities,
    checked: &CheckedCeremony,
    policy: &Verified<Policy>,
) -> Result<(Endorsed, [u8; 32], Signatures), Error> {
    let secret = profile.secret().map_err(firn_client::Error::Profile)?;
    let activation = activation(&checked.sharing, policy, authorities.digest());
    let unsigned = Endorsed::unsigned(&activation)?;
    let operators = &authorities.operators;
    let signed = countersign::<Activation>(unsigned, operators, &secret, SIGNING)?;
    let (_, digest) = signed.read::<Activation>()?;
    let by = signed_so_far::<Activation>(&signed, &operators.identities(), SIGNING)?;
    Ok((signed, digest, Signatures::of(operators, &by)))
}

fn report(
    folder: &Folder,
    checked: &CheckedCeremony,
    coordinator: &str,
    digest: &[u8; 32],
    signatures: Signatures,
) -> Report {
    let sharing = &checked.sharing;
    let plan = sharing.plan();
    let place = folder.path().display();
    let sign = format!("another operator, on a copy of the folder: firn activation sign {place}");
    let activate = format!("then: firn activate {place}");
    let next = if signatures.missing == 0 {
        vec![activate]
    } else {
        vec![sign, activate]
    };
    let proofs = checked.proofs.iter().map(|group| {
        let names = group.iter().filter_map(|member| sharing.member(*member));
        names.map(|entry| entry.name.to_string()).collect()
    });
    Report {
        folder: folder.path().to_owned(),
        key_id: sharing.key_id().to_string(),
        group_key: sharing.public().group_key().to_string(),
        attempt: checked.attempt.to_string(),
        coordinator: coordinator.to_owned(),
        threshold: plan.threshold.value(),
        members: plan
            .roster
            .iter()
            .map(|entry| entry.name.to_string())
            .collect(),
        proofs_of_life: proofs.collect(),
        activation: Fingerprint::of(digest),
        signatures,
        next,
    }
}

impl Report {
    fn say(&self, digest: &[u8; 32], output: Output) {
        let members = self.members.len();
        output.say("");
        output.say(format_args!(
            "The key is made: {} of {members} members sign. Every member certified it, and {} groups \
             proved their shares.",
            self.threshold,
            self.proofs_of_life.len()
        ));
        output.fact("key id", &self.key_id);
        output.fact("folder", self.folder.display());
        output.say("");
        output.say("Nobody can use it yet. The activation says that it may be used:");
        self.signatures.say(output);
        confirm::show("the activation", digest, output);
        output.say("");
        for (index, step) in self.next.iter().enumerate() {
            output.fact(if index == 0 { "next" } else { "" }, step);
        }
    }
}

//! `firn policy`: what a key may sign, as a signed document. It decides that the rules are the plan's and
//! the key that signs is the policy authority's; whether they are wise is for people.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use firn_protocol::{
    documents::{Authorities, Policy},
    envelope::{Approved, Envelope},
    reject::Reject,
};
use serde::Serialize;

use super::{
    plan::AuthoritiesOption,
    plan::described::{Described, bind, in_words},
    reports::must_not_exist,
};
use crate::{
    authority::{RULES_EXAMPLE, first_policy, read_rules, rules_digest},
    clock::now,
    domain::files::{read_document, read_identity, write_document},
    error::{Error, Exit},
    output::Output,
};

const SIGNING: &str = "signing the policy";

/// How `firn policy` is used.
pub(crate) const EXAMPLE: &str = "Example:\n  firn policy example > rules.toml";

/// What can be done with policies.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print rules that are complete, to begin with.
    #[command(after_help = "Example:\n  firn policy example > rules.toml")]
    Example,
    /// Sign a plan's rules as the first policy of its key.
    Sign(Sign),
    /// Say in words what a policy allows.
    Show(Show),
}

/// Options of `firn policy sign`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  firn policy sign --plan plan.cbor --rules rules.toml \\\n    \
                  --authority-key domain/policy-authority/identity.key --out policy.cbor"
)]
pub(crate) struct Sign {
    /// The plan of the key's ceremony.
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: PathBuf,
    /// The rules that the plan binds.
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: PathBuf,
    /// The policy authority's key.
    #[arg(long, value_name = "FILE")]
    pub(crate) authority_key: PathBuf,
    /// Where the policy goes.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) whose: AuthoritiesOption,
}

/// Options of `firn policy show`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  firn policy show policy.cbor --authorities domain/domain.toml")]
pub(crate) struct Show {
    /// The policy.
    #[arg(value_name = "POLICY")]
    pub(crate) policy: PathBuf,
    #[command(flatten)]
    pub(crate) whose: AuthoritiesOption,
}

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    file: PathBuf,
    key_id: String,
    version: u32,
    digest: String,
    rules_digest: String,
    rules_in_words: Vec<String>,
    signer: String,
    /// Whether the policy authority has signed it; null where the Authorities are not known here.
    is_by_authority: Option<bool>,
}

/// Runs `firn policy`.
pub(crate) fn run(command: &Command, output: &Output) -> Result<Exit, Error> {
    match command {
        Command::Example => {
            output.say(RULES_EXAMPLE.trim_end());
            output.object(&serde_json::json!({ "rules": RULES_EXAMPLE }))?;
        }
        Command::Sign(arguments) => {
            let report = sign(arguments)?;
            report.say(*output);
            output.object(&report)?;
        }
        Command::Show(arguments) => {
            let report = show(arguments)?;
            report.say(*output);
            output.object(&report)?;
        }
    }
    Ok(Exit::Done)
}

pub(crate) fn sign(arguments: &Sign) -> Result<Report, Error> {
    must_not_exist(&arguments.out)?;
    let authorities = arguments.whose.need()?;
    let described = Described::read(&arguments.plan, Some(&authorities), None, now())?;
    let rules = read_rules(&arguments.rules)?;
    bind(&described.plan, &arguments.rules, &rules)?;
    let secret = read_identity(&arguments.authority_key)?;
    if secret.identity() != authorities.policy_authority {
        return Err(Error::Refused {
            doing: SIGNING,
            code: Reject::UnknownSigner,
            detail: format!(
                "{} is not the policy authority's key",
                arguments.authority_key.display()
            ),
        });
    }
    let key_id = described.plan.key_id(described.digest);
    write_document(&arguments.out, &first_policy(key_id, rules, &secret)?)?;
    report(&arguments.out, Some(&authorities))
}

pub(crate) fn show(arguments: &Show) -> Result<Report, Error> {
    report(&arguments.policy, arguments.whose.find()?.as_ref())
}

fn report(file: &Path, authorities: Option<&Approved<Authorities>>) -> Result<Report, Error> {
    let limit = Envelope::<Policy>::LIMIT.saturating_add(8);
    let envelope: Envelope<Policy> = read_document(file, limit, "a policy")?;
    let unfit = |what: String| Error::Unfit {
        path: file.to_owned(),
        what,
    };
    let signer = match authorities {
        Some(authorities) => authorities.policy_authority,
        None => envelope
            .claimed_signer()
            .map_err(|error| unfit(error.to_string()))?,
    };
    let policy = envelope
        .verify(&signer)
        .map_err(|error| unfit(Reject::from(error).meaning().to_owned()))?;
    if !policy.is_sound() {
        return Err(unfit(Reject::UnsoundDocument.meaning().to_owned()));
    }
    Ok(Report {
        file: file.to_owned(),
        key_id: policy.key_id.to_string(),
        version: policy.version.value(),
        digest: hex::encode(policy.digest()),
        rules_digest: rules_digest(&policy.rules)?.to_string(),
        rules_in_words: in_words(&policy.rules),
        signer: signer.to_string(),
        is_by_authority: authorities.map(|_| true),
    })
}

impl Report {
    fn say(&self, output: Output) {
        if output.is_json() {
            return;
        }
        output.fact("policy", self.file.display());
        output.fact("key", &self.key_id);
        output.fact("version", self.version);
        for line in &self.rules_in_words {
            output.fact("", line);
        }
        output.fact("rules", &self.rules_digest);
        let whose = match self.is_by_authority {
            Some(_) => "the policy authority",
            None => "unknown here without --authorities",
        };
        output.fact("signed by", format_args!("{} ({whose})", self.signer));
    }
}

//! A plan in words. It decides nothing: it says what the plan says, what follows from its numbers, and
//! who stands behind it as far as that can be known here.

use std::path::{Path, PathBuf};

use firn_protocol::{
    documents::{Authorities, Ceremony, Plan, Rules},
    envelope::{Approved, Endorsed},
    ids::{PlanDigest, UnixMillis},
    reject::Reject,
};
use serde::Serialize;

use crate::{
    authority::{described_rules, read_plan, rules_digest, signed_so_far},
    commands::reports::{Fingerprint, Signatures},
    confirm,
    error::Error,
    fingerprint,
    output::Output,
    words::{date, from_now},
};

const READING: &str = "reading the plan";

/// A plan as it was read from a file, with what is known of it here.
pub(crate) struct Described {
    pub(crate) endorsed: Endorsed,
    pub(crate) plan: Plan,
    pub(crate) digest: PlanDigest,
    pub(crate) report: Report,
}

/// What a script reads of a plan.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    file: PathBuf,
    fingerprint: Fingerprint,
    ceremony: &'static str,
    ceremony_id: String,
    network: &'static str,
    purpose: String,
    threshold: u16,
    members: usize,
    /// How many members may lie before what is promised about the key as a whole fails.
    tolerated_liars: usize,
    /// How many members may be broken into before the key itself is lost.
    tolerated_thefts: u16,
    roster: Vec<Member>,
    authorities: String,
    rules: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rules_in_words: Vec<String>,
    expires_ms: u64,
    is_expired: bool,
    /// Who has signed, by the Authorities; null where they are not known here.
    signatures: Option<Signatures>,
    /// How many signatures there are, whoever made them.
    signature_count: usize,
}

#[derive(Debug, Serialize)]
struct Member {
    name: String,
    identifier: u16,
    identity: String,
    tls_name: String,
}

impl Report {
    /// Who has signed, where the Authorities are known.
    pub(crate) const fn signatures(&self) -> Option<&Signatures> {
        self.signatures.as_ref()
    }
}

impl Described {
    /// Reads a plan; where the Authorities are given it must stand on them, and where rules are given it
    /// must bind them.
    ///
    /// # Errors
    /// As [`read_plan`]; [`Error::Unverified`] for other Authorities; [`Error::Refused`] for a signature
    /// of a stranger; [`Error::Unfit`] for other rules.
    pub(crate) fn read(
        file: &Path,
        authorities: Option<&Approved<Authorities>>,
        rules: Option<(&Path, &Rules)>,
        now: UnixMillis,
    ) -> Result<Self, Error> {
        let (endorsed, plan, digest) = read_plan(file)?;
        let signatures = authorities
            .map(|authorities| signatures(&endorsed, &plan, authorities))
            .transpose()?;
        if let Some((path, rules)) = rules {
            bind(&plan, path, rules)?;
        }
        let count = endorsed.claimed_signers().map(|signers| signers.len());
        let members = plan.roster.len();
        let report = Report {
            file: file.to_owned(),
            fingerprint: Fingerprint::of(digest.as_bytes()),
            ceremony: kind(&plan.ceremony),
            ceremony_id: plan.ceremony_id.to_string(),
            network: plan.network.name(),
            purpose: plan.purpose.to_string(),
            threshold: plan.threshold.value(),
            members,
            tolerated_liars: plan.threshold.tolerated_liars(members),
            tolerated_thefts: plan.threshold.value().saturating_sub(1),
            roster: plan
                .roster
                .iter()
                .map(|member| Member {
                    name: member.name.to_string(),
                    identifier: member.identifier.value(),
                    identity: member.identity.to_string(),
                    tls_name: member.tls_name.to_string(),
                })
                .collect(),
            authorities: plan.authorities.to_string(),
            rules: plan.rules.to_string(),
            rules_in_words: rules.map_or_else(Vec::new, |(_, rules)| in_words(rules)),
            expires_ms: plan.expires.value(),
            is_expired: plan.expires <= now,
            signature_count: count.map_err(|error| Error::Unfit {
                path: file.to_owned(),
                what: error.to_string(),
            })?,
            signatures,
        };
        Ok(Self {
            endorsed,
            plan,
            digest,
            report,
        })
    }

    /// Says it to a person; the fingerprint last, since it is what is read aloud.
    pub(crate) fn say(&self, now: UnixMillis, output: Output) {
        let (plan, report) = (&self.plan, &self.report);
        output.fact("purpose", format_args!("{:?}", report.purpose));
        output.fact("makes", what(&plan.ceremony));
        output.fact("network", plan.network);
        output.fact(
            "key",
            format_args!("{} of {} members sign", report.threshold, report.members),
        );
        output.fact(
            "secrecy",
            format_args!(
                "holds while at most {} of them {} broken into (t-1)",
                report.tolerated_thefts,
                if report.tolerated_thefts == 1 {
                    "is"
                } else {
                    "are"
                }
            ),
        );
        output.fact("promises", promises(report.tolerated_liars));
        for member in &report.roster {
            output.fact(
                "member",
                format_args!(
                    "{}  {}  {}",
                    member.identifier, member.name, member.identity
                ),
            );
        }
        output.fact("authorities", &report.authorities);
        output.fact("rules", &report.rules);
        for line in &report.rules_in_words {
            output.fact("", line);
        }
        let distance = from_now(plan.expires, now);
        let expired = if report.is_expired { "EXPIRED " } else { "" };
        output.fact(
            "until",
            format_args!("{} ({expired}{distance})", date(plan.expires)),
        );
        match &report.signatures {
            Some(signatures) => signatures.say(output),
            None => output.fact(
                "signed by",
                format_args!(
                    "{} keys; whose they are is not known here without --authorities",
                    report.signature_count
                ),
            ),
        }
        output.say("");
        confirm::show("the plan", self.digest.as_bytes(), output);
    }

    /// Refuses a plan whose time is over.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub(crate) fn must_be_in_time(
        &self,
        now: UnixMillis,
        doing: &'static str,
    ) -> Result<(), Error> {
        if self.plan.expires > now {
            return Ok(());
        }
        Err(Error::Refused {
            doing,
            code: Reject::PlanExpired,
            detail: format!("it ended {}", from_now(self.plan.expires, now)),
        })
    }
}

/// What the plan's numbers mean for what is promised about the key as a whole.
fn promises(liars: usize) -> String {
    let who = match liars {
        0 => "none of them lies or is".to_owned(),
        1 => "at most 1 of them lies or is".to_owned(),
        more => format!("at most {more} of them lie or are"),
    };
    format!("about the key as a whole hold while {who} rolled back (f = 2t-n-1 = {liars})")
}

fn signatures(
    endorsed: &Endorsed,
    plan: &Plan,
    authorities: &Approved<Authorities>,
) -> Result<Signatures, Error> {
    if plan.authorities.as_bytes() != &authorities.digest() {
        return Err(Error::Unverified {
            what: "the plan",
            code: Reject::AuthoritiesMismatch,
        });
    }
    let operators = &authorities.operators;
    let signed = signed_so_far::<Plan>(endorsed, &operators.identities(), READING)?;
    Ok(Signatures::of(operators, &signed))
}

/// A plan must bind these rules.
///
/// # Errors
/// [`Error::Unfit`].
pub(crate) fn bind(plan: &Plan, path: &Path, rules: &Rules) -> Result<(), Error> {
    let found = rules_digest(rules)?;
    if found == plan.rules {
        return Ok(());
    }
    Err(Error::Unfit {
        path: path.to_owned(),
        what: format!(
            "these are other rules than the plan's: their digest begins with {}, the plan's with {}",
            fingerprint::short(found.as_bytes()),
            fingerprint::short(plan.rules.as_bytes())
        ),
    })
}

/// Rules, a line for each statement.
pub(crate) fn in_words(rules: &Rules) -> Vec<String> {
    described_rules(rules)
        .into_iter()
        .map(|(name, value)| format!("{name:<10} {value}").trim_end().to_owned())
        .collect()
}

const fn kind(ceremony: &Ceremony) -> &'static str {
    match ceremony {
        Ceremony::Dkg(_) => "dkg",
        Ceremony::Reshare(_) => "reshare",
        Ceremony::Retire(_) => "retire",
    }
}

fn what(ceremony: &Ceremony) -> String {
    match ceremony {
        Ceremony::Dkg(terms) => format!("a new key, starting at epoch {}", terms.first_epoch),
        Ceremony::Reshare(terms) => {
            format!(
                "new shares (version {}) of the key {}",
                terms.new_share_version, terms.key_id
            )
        }
        Ceremony::Retire(terms) => {
            format!(
                "an end to shares (version {}) of the key {}",
                terms.share_version, terms.key_id
            )
        }
    }
}

//! `firn enroll`: makes a machine's or a person's keys where they stay, and puts in place what comes back.
//! It decides in which order that happens; nothing is believed before its fingerprint was compared.

use std::path::{Path, PathBuf};

use clap::Args;
use firn_protocol::{
    documents::{Authorities, Enrollment},
    names::{Name, Role, SpiffeId, TrustDomain},
};
use serde::Serialize;

use super::reports::Fingerprint;
use crate::{
    clock::now,
    confirm,
    domain::{Description, EnrolledFolder},
    error::{Error, Exit},
    output::Output,
};

const FINGERPRINT: &str = "--authorities-fingerprint";

/// Options of `firn enroll`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  firn enroll p1 --name p1 --domain domain.toml\n  \
                  (carry p1/enrollment.cbor to the operators, who send back a certificate)\n  \
                  firn enroll p1 --certificate p1.pem\n\n\
                  Before there are Authorities, a trust domain's name is enough:\n  \
                  firn enroll ada --role operator --trust-domain custody.example\n  \
                  firn enroll ada --domain domain.toml --certificate ada.pem"
)]
pub(crate) struct Arguments {
    /// The folder: new or empty for a new machine, the same again to finish.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The name; without it the folder's.
    #[arg(long)]
    pub(crate) name: Option<Name>,
    /// participant, operator, requester or coordinator.
    #[arg(long, default_value = "participant")]
    pub(crate) role: Role,
    /// The trust domain's description, as `firn init` wrote it.
    #[arg(long, value_name = "FILE")]
    pub(crate) domain: Option<PathBuf>,
    /// The trust domain, where there is no description yet.
    #[arg(long, value_name = "DOMAIN", conflicts_with = "domain")]
    pub(crate) trust_domain: Option<TrustDomain>,
    /// The Authorities' fingerprint as the operators have read it out; else you are asked.
    #[arg(long, value_name = "WORDS|HEX")]
    pub(crate) authorities_fingerprint: Option<String>,
    /// The certificate that was issued for this folder's request; a later one replaces it.
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    folder: PathBuf,
    name: SpiffeId,
    identity: String,
    enrollment: PathBuf,
    fingerprint: Fingerprint,
    request: PathBuf,
    /// The digest of the Authorities that are in place.
    authorities: Option<String>,
    /// Whether the Authorities name this key; null for participants, whom a plan names.
    is_named: Option<bool>,
    has_certificate: bool,
    configuration: Option<PathBuf>,
    next: String,
}

/// Runs `firn enroll`.
pub(crate) fn run(arguments: &Arguments, output: &Output) -> Result<Exit, Error> {
    let (report, digest) = perform(arguments, *output)?;
    if !output.is_json() {
        show(&report, &digest, *output);
    }
    output.object(&report)?;
    Ok(Exit::Done)
}

pub(crate) fn perform(arguments: &Arguments, output: Output) -> Result<(Report, [u8; 32]), Error> {
    let is_new = !EnrolledFolder::is_at(&arguments.dir);
    if is_new && arguments.certificate.is_some() {
        return Err(Error::BadFile {
            path: arguments.dir.clone(),
            what: "an enrollment, so there is nothing that a certificate could be for",
        });
    }
    let description = arguments
        .domain
        .as_deref()
        .map(Description::read)
        .transpose()?;
    if let Some(description) = &description {
        confirm::compared(
            "the Authorities",
            &description.authorities().digest(),
            arguments.authorities_fingerprint.as_deref(),
            FINGERPRINT,
            output,
        )?;
    }
    let folder = if is_new {
        let id = wanted(arguments, description.as_ref())?;
        EnrolledFolder::begin(&arguments.dir, &id, now())?
    } else {
        let folder = EnrolledFolder::open(&arguments.dir)?;
        is_the_same(arguments, folder.enrolled().enrollment())?;
        folder
    };
    if let Some(description) = &description {
        folder.join(description)?;
    }
    if let Some(certificate) = &arguments.certificate {
        if !folder.has_joined() {
            return Err(Error::Usage {
                what: "the certificate cannot be judged before the trust domain is known: give \
                       --domain, too"
                    .to_owned(),
            });
        }
        folder.install(certificate)?;
    }
    Ok((report(&folder)?, folder.enrolled().fingerprint()))
}

/// Who a new folder is to be.
fn wanted(arguments: &Arguments, description: Option<&Description>) -> Result<SpiffeId, Error> {
    let domain = description
        .map(Description::trust_domain)
        .or(arguments.trust_domain.as_ref())
        .ok_or_else(|| Error::Usage {
            what: "whose machine is this? give --domain FILE, or --trust-domain where there is none yet"
                .to_owned(),
        })?;
    let name = match &arguments.name {
        Some(name) => name.clone(),
        None => folder_name(&arguments.dir).parse()?,
    };
    Ok(SpiffeId::new(domain.clone(), arguments.role, name))
}

fn folder_name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}

/// What was typed must not say another name than the folder's.
fn is_the_same(arguments: &Arguments, enrollment: &Enrollment) -> Result<(), Error> {
    let found = &enrollment.name;
    let other_name = arguments
        .name
        .as_ref()
        .is_some_and(|name| name != found.name());
    let domain = arguments.trust_domain.as_ref();
    if other_name || domain.is_some_and(|domain| domain != found.trust_domain()) {
        return Err(Error::Usage {
            what: format!("{} is the folder of {found}", arguments.dir.display()),
        });
    }
    Ok(())
}

fn report(folder: &EnrolledFolder) -> Result<Report, Error> {
    let (files, enrolled) = (folder.folder(), folder.enrolled());
    let enrollment = enrolled.enrollment();
    let authorities = folder.has_joined().then(|| folder.joined()).transpose()?;
    let has_certificate = files.certificate().exists();
    let is_named = authorities
        .as_ref()
        .and_then(|authorities| is_named(authorities, enrollment));
    Ok(Report {
        folder: files.path().to_owned(),
        name: enrollment.name.clone(),
        identity: enrollment.identity.to_string(),
        enrollment: files.enrollment(),
        fingerprint: Fingerprint::of(&enrolled.fingerprint()),
        request: files.request(),
        is_named,
        has_certificate,
        configuration: authorities.is_some().then(|| files.config()),
        next: next(folder, authorities.is_some(), has_certificate),
        authorities: authorities.map(|authorities| hex::encode(authorities.digest())),
    })
}

fn is_named(authorities: &Authorities, enrollment: &Enrollment) -> Option<bool> {
    let (name, key) = (&enrollment.name, &enrollment.identity);
    match name.role() {
        Role::Participant => None,
        Role::Operator => Some(authorities.operators.identities().contains(key)),
        Role::Requester => Some(authorities.requester(name) == Some(key)),
        Role::Coordinator => Some(authorities.coordinator(name) == Some(key)),
    }
}

fn next(folder: &EnrolledFolder, has_joined: bool, has_certificate: bool) -> String {
    let files = folder.folder();
    let config = files.config();
    let (dir, config) = (files.path().display(), config.display());
    match (
        has_joined,
        has_certificate,
        folder.enrolled().enrollment().name.role(),
    ) {
        (true, true, Role::Participant) => format!("firn-participant --config {config}"),
        (true, true, Role::Coordinator) => format!("firn-coordinator --config {config}"),
        (true, true, Role::Operator | Role::Requester) => {
            format!("give the commands --profile {config}")
        }
        (true, false, _) => format!(
            "carry {} to the operators; with what they send back: firn enroll {dir} --certificate FILE",
            files.enrollment().display()
        ),
        (false, ..) => format!(
            "carry {} to the operators; with what they send back: firn enroll {dir} --domain FILE \
             --certificate FILE",
            files.enrollment().display()
        ),
    }
}

fn show(report: &Report, digest: &[u8; 32], output: Output) {
    output.fact("name", &report.name);
    output.fact("folder", report.folder.display());
    output.fact("identity", &report.identity);
    if let Some(config) = &report.configuration {
        output.fact("configuration", config.display());
    }
    if report.has_certificate {
        output.fact("certificate", "in place: key, name and roots fit");
    } else {
        output.fact("enrollment", report.enrollment.display());
        output.fact(
            "request",
            format_args!("{} (for any CA)", report.request.display()),
        );
        output.say("");
        confirm::show("this enrollment", digest, output);
    }
    if report.is_named == Some(false) {
        output.say("");
        output.say("The Authorities do not name this key, so nobody will listen to it yet.");
    }
    output.say("");
    output.say(format_args!("Next: {}", report.next));
}

//! `firn admit`: the development CA's certificate for somebody who has enrolled. It decides that the
//! enrollment is the one that was read out, and leaves it to people who may be called what.

use std::path::{Path, PathBuf};

use clap::Args;
use firn_protocol::names::SpiffeId;
use serde::Serialize;

use super::reports::{Fingerprint, must_not_exist};
use crate::{
    clock::now,
    confirm,
    domain::{DevelopmentCa, Enrolled, LEAF_VALIDITY, files::write_public},
    error::{Error, Exit},
    output::Output,
    words::{date, from_now},
};

/// Options of `firn admit`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  firn admit p1/enrollment.cbor --ca domain/ca --out p1.pem\n\n\
                  A CA of your own signs the request beside the enrollment (tls.csr) instead."
)]
pub(crate) struct Arguments {
    /// What the machine gave to you.
    #[arg(value_name = "ENROLLMENT")]
    pub(crate) enrollment: PathBuf,
    /// The folder of the development CA.
    #[arg(long, value_name = "DIR")]
    pub(crate) ca: PathBuf,
    /// Where the certificate goes.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// The enrollment's fingerprint as its keeper has read it out; else you are asked.
    #[arg(long, value_name = "WORDS|HEX")]
    pub(crate) fingerprint: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    name: SpiffeId,
    identity: String,
    fingerprint: Fingerprint,
    certificate: PathBuf,
    expires_ms: u64,
}

/// Runs `firn admit`.
pub(crate) fn run(arguments: &Arguments, output: &Output) -> Result<Exit, Error> {
    let report = perform(arguments, *output)?;
    output.fact("certificate", report.certificate.display());
    output.fact("for", &report.name);
    output.say(format_args!(
        "Next: carry it back, and there: firn enroll DIR --certificate {}",
        file_name(&report.certificate)
    ));
    output.object(&report)?;
    Ok(Exit::Done)
}

pub(crate) fn perform(arguments: &Arguments, output: Output) -> Result<Report, Error> {
    must_not_exist(&arguments.out)?;
    let enrolled = Enrolled::read(&arguments.enrollment)?;
    let enrollment = enrolled.enrollment();
    let ca = DevelopmentCa::load(&arguments.ca)?;
    if enrollment.name.trust_domain() != ca.trust_domain() {
        return Err(Error::Unfit {
            path: arguments.enrollment.clone(),
            what: format!(
                "{} is not of the trust domain {}",
                enrollment.name,
                ca.trust_domain()
            ),
        });
    }
    let now = now();
    if arguments.fingerprint.is_none() {
        output.fact("name", &enrollment.name);
        output.fact("identity", enrollment.identity);
        output.fact("software", &enrollment.software);
        output.fact(
            "made",
            format_args!(
                "{} ({})",
                date(enrollment.time),
                from_now(enrollment.time, now)
            ),
        );
    }
    confirm::compared(
        "the enrollment",
        &enrolled.fingerprint(),
        arguments.fingerprint.as_deref(),
        confirm::OPTION,
        output,
    )?;
    let pem = ca.issue(&enrollment.name, enrolled.key(), now)?;
    write_public(&arguments.out, pem.as_bytes())?;
    let validity = u64::try_from(LEAF_VALIDITY.as_millis()).unwrap_or(u64::MAX);
    Ok(Report {
        name: enrollment.name.clone(),
        identity: enrollment.identity.to_string(),
        fingerprint: Fingerprint::of(&enrolled.fingerprint()),
        certificate: arguments.out.clone(),
        expires_ms: now.plus(validity).value(),
    })
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

//! `firn grant`: the control plane's permission for one request. It decides that whoever is named may ask at
//! all and that the key that signs is the grant authority's; the members judge everything else again.

use std::path::PathBuf;

use clap::Args;
use firn_client::{Client, Key, Profile};
use firn_protocol::{
    documents::Grant,
    envelope::Envelope,
    ids::{Epoch, RequestId},
    names::{Role, SpiffeId},
    reject::Reject,
};
use serde::Serialize;

use super::{
    key::resolve, profile::ProfileOption, psbt::Described, reports::must_not_exist, runtime,
};
use crate::{
    authority::{GrantTerms, grant},
    clock::now,
    domain::files::{read_identity, write_document},
    error::{Error, Exit},
    output::Output,
    psbt_file::PsbtFile,
    words::{Span, date, from_now},
};

const DOING: &str = "granting the request";

/// Options of `firn grant`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  firn grant --key evidence --psbt payment.psbt --owner treasury --valid 10m \\\n    \
                  --authority-key domain/grant-authority/identity.key --out grant.cbor\n\n\
                  A request id that is granted again, with the same PSBT, asks for the same thing again.\n\n\
                  The file holds one CBOR byte string, and in it the signed grant (COSE_Sign1), as policy.cbor \
                  holds a policy."
)]
pub(crate) struct Arguments {
    /// The key: a ceremony's folder, a key.cbor, or a key id.
    #[arg(long, value_name = "WHERE")]
    pub(crate) key: String,
    /// What may be signed.
    #[arg(long, value_name = "FILE")]
    pub(crate) psbt: PathBuf,
    /// Who may ask: a requester's name, or its whole SPIFFE id.
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: String,
    /// The owner's epoch; by default the one that the key was activated with. A higher one ends every
    /// other owner, for good.
    #[arg(long, value_name = "N")]
    pub(crate) epoch: Option<u64>,
    /// The request, 64 hexadecimal digits; by default a new one.
    #[arg(long, value_name = "HEX")]
    pub(crate) request_id: Option<String>,
    /// How long from now it counts.
    #[arg(long, value_name = "DURATION", default_value = "10m")]
    pub(crate) valid: Span,
    /// The grant authority's key.
    #[arg(long, value_name = "FILE")]
    pub(crate) authority_key: PathBuf,
    /// Where the grant goes.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) profile: ProfileOption,
}

#[derive(Debug, Serialize)]
struct Report {
    file: PathBuf,
    request_id: String,
    owner: String,
    epoch: u64,
    not_before_ms: u64,
    expires_ms: u64,
    payment: Described,
}

/// Runs `firn grant`.
pub(crate) fn run(arguments: &Arguments, output: &Output) -> Result<Exit, Error> {
    must_not_exist(&arguments.out)?;
    let profile = arguments.profile.load()?;
    let key = runtime()?.block_on(resolve(&arguments.key, &profile))?;
    let report = perform(arguments, &profile, &key)?;
    if !output.is_json() {
        report.say(*output);
    }
    output.object(&report)?;
    Ok(Exit::Done)
}

fn perform(arguments: &Arguments, profile: &Profile, key: &Key) -> Result<Report, Error> {
    let payment = Described::of(key, &PsbtFile::read(&arguments.psbt)?.bytes)?;
    let authorities = profile.authorities()?;
    let refused = |code, detail: String| Error::Refused {
        doing: DOING,
        code,
        detail,
    };
    let owner = owner(&arguments.owner, profile)?;
    if authorities.requester(&owner).is_none() {
        return Err(refused(Reject::UnknownRequester, owner.to_string()));
    }
    let secret = read_identity(&arguments.authority_key)?;
    if secret.identity() != authorities.grant_authority {
        let file = arguments.authority_key.display();
        let detail = format!("{file} is not the grant authority's key");
        return Err(refused(Reject::UnknownSigner, detail));
    }
    let not_before = now();
    let terms = GrantTerms {
        owner: owner.clone(),
        epoch: arguments
            .epoch
            .map_or(key.sharing().activation().first_epoch, Epoch::new),
        intent: payment.signable().intent_digest(),
        request_id: request_id(arguments.request_id.as_deref())?,
        not_before,
        expires: not_before.plus(arguments.valid.millis()),
    };
    let report = Report {
        file: arguments.out.clone(),
        request_id: terms.request_id.to_string(),
        owner: owner.to_string(),
        epoch: terms.epoch.value(),
        not_before_ms: not_before.value(),
        expires_ms: terms.expires.value(),
        payment,
    };
    let signed: Envelope<Grant> = grant(terms, key.sharing(), &secret)?;
    write_document(&arguments.out, &signed)?;
    Ok(report)
}

fn owner(name: &str, profile: &Profile) -> Result<SpiffeId, Error> {
    if name.contains("://") {
        return Ok(name.parse()?);
    }
    let domain = profile.name.trust_domain().clone();
    Ok(SpiffeId::new(domain, Role::Requester, name.parse()?))
}

fn request_id(given: Option<&str>) -> Result<RequestId, Error> {
    match given {
        None => Ok(Client::fresh_request_id()?),
        Some(text) => RequestId::from_hex(text).ok_or_else(|| Error::Usage {
            what: format!("--request-id {text}: a request id is 64 hexadecimal digits"),
        }),
    }
}

impl Report {
    fn say(&self, output: Output) {
        self.payment.say(output);
        let expires = firn_protocol::ids::UnixMillis::new(self.expires_ms);
        output.fact("request", &self.request_id);
        output.fact(
            "owner",
            format_args!("{}, epoch {}", self.owner, self.epoch),
        );
        output.fact(
            "counts until",
            format_args!("{} ({})", date(expires), from_now(expires, now())),
        );
        output.fact("grant", self.file.display());
    }
}

//! `firn sign`: has a payment signed, as a requester. It decides when it is certain that nothing was signed,
//! when it is certain that something was, and says so when it is neither.

use std::path::{Path, PathBuf};

use clap::Args;
use firn_client::{
    Client, Error as Failure, Inquiry, Key, Proposal, RequestOutcome, Settings, WhatNext,
    evidence::SignedOutcome, payment::insert,
};
use firn_protocol::{
    codec::{List, Maybe},
    documents::{Grant, InputSignature},
    envelope::Envelope,
    ids::RequestId,
    messages::RequestSigned,
};
use serde::Serialize;

use super::{key::resolve, profile::ProfileOption, reports::must_not_exist, runtime};
use crate::{
    domain::files::read_document,
    error::{Error, Exit},
    evidence::Folder,
    output::Output,
    psbt_file::PsbtFile,
    words::Span,
};

const DOING: &str = "asking for signatures";

/// Options of `firn sign`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  firn sign --key evidence --psbt payment.psbt --grant grant.cbor \\\n    \
                  --out signed.psbt --evidence evidence --profile domain/requesters/treasury/firn.toml\n\n\
                  Exit codes: 0 signed, 1 refused for good, 3 try again with the same grant or a fresh one \
                  for the same request id, 4 outcome unknown: firn request status, 5 conflict."
)]
pub(crate) struct Arguments {
    /// The key: a ceremony's folder, a key.cbor, or a key id.
    #[arg(long, value_name = "WHERE")]
    pub(crate) key: String,
    /// What is to be signed, binary or base64.
    #[arg(long, value_name = "FILE")]
    pub(crate) psbt: PathBuf,
    /// The control plane's permission for exactly that.
    #[arg(long, value_name = "FILE")]
    pub(crate) grant: PathBuf,
    /// Where the signed PSBT goes, in the form of the other.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Keep what was asked and answered in this ceremony's folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) evidence: Option<PathBuf>,
    /// How long to go on asking.
    #[arg(long, value_name = "DURATION", default_value = "2m")]
    pub(crate) patience: Span,
    #[command(flatten)]
    pub(crate) profile: ProfileOption,
}

#[derive(Debug, Serialize)]
struct Report {
    request_id: String,
    txid: String,
    file: PathBuf,
    session: String,
    /// Names of the members whose receipts came along.
    receipts: Vec<String>,
    /// Whether it had been signed before.
    is_stored: bool,
    /// The transaction, where every input is signed.
    transaction: Option<String>,
    /// Where what was asked and answered is kept.
    evidence: Option<PathBuf>,
}

/// Signatures that prove themselves, from the answer or from the members' ledgers.
struct Proven {
    signed: RequestSigned,
    is_stored: bool,
}

/// Runs `firn sign`.
pub(crate) fn run(arguments: &Arguments, output: &Output) -> Result<Exit, Error> {
    must_not_exist(&arguments.out)?;
    let profile = arguments.profile.load()?;
    let file = PsbtFile::read(&arguments.psbt)?;
    let grant: Envelope<Grant> = read_document(
        &arguments.grant,
        Envelope::<Grant>::LIMIT.saturating_add(8),
        "a grant",
    )?;
    let report = runtime()?.block_on(async {
        let client = profile.client(Settings {
            patience: std::time::Duration::from_millis(arguments.patience.millis()),
            ..Settings::default()
        })?;
        let key = resolve(&arguments.key, &profile).await?;
        let proposal = client.propose(&key, &file.bytes)?;
        let granted = granted(&client, &grant)?;
        output.say(format_args!("request      {granted}"));
        if !output.is_json()
            && let Some(overview) = proposal.overview()
        {
            output.say(overview);
        }
        let proven = tokio::select! {
            proven = obtain(&client, &key, &proposal, &grant, granted) => proven?,
            // Whatever was asked is asked; the members know what came of it.
            _ = tokio::signal::ctrl_c() => return Err(Error::OutcomeUnknown {
                doing: DOING,
                reason: format!("you stopped waiting; `firn request status {granted}` says what became of it"),
            }),
        };
        let psbt = insert(&file.bytes, &proven.signed.signatures)?;
        file.form.write(&arguments.out, &psbt)?;
        let evidence = keep(arguments.evidence.as_deref(), &proposal, &grant, &proven.signed)?;
        Ok(report(arguments, &key, &proposal, granted, &proven, evidence))
    })?;
    if !output.is_json() {
        report.say(*output);
    }
    output.object(&report)?;
    Ok(Exit::Done)
}

/// The request that the grant authority's word is for.
fn granted(client: &Client, grant: &Envelope<Grant>) -> Result<RequestId, Error> {
    let authority = &client.authorities().grant_authority;
    let grant = grant
        .clone()
        .verify(authority)
        .map_err(|error| Error::unverified("the grant")(error.into()))?;
    Ok(grant.request_id)
}

/// Asks for signatures; where it is not known what came of it, the members are asked.
async fn obtain(
    client: &Client,
    key: &Key,
    proposal: &Proposal,
    grant: &Envelope<Grant>,
    request_id: RequestId,
) -> Result<Proven, Error> {
    let failure = match client.sign(key, proposal, grant).await {
        Ok(answer) => {
            return Ok(Proven {
                is_stored: answer.checked.is_stored,
                signed: answer.signed,
            });
        }
        Err(failure) => failure,
    };
    match failure.what_next() {
        // An earlier attempt may have been signed although this one was refused or not answered.
        WhatNext::AskOutcome | WhatNext::GiveUp => {}
        WhatNext::Usage | WhatNext::RetrySameRequest | WhatNext::Conflict => {
            return Err(failure.into());
        }
    }
    let inquiry = Inquiry::of(request_id).about(proposal);
    match client.outcome(key, inquiry).await {
        Ok(outcome) => settle(outcome, failure),
        Err(_) => Err(failure.into()),
    }
}

/// What the members say, where it settles the matter; else what was not known before stays unknown.
fn settle(outcome: RequestOutcome, failure: Failure) -> Result<Proven, Error> {
    match outcome {
        RequestOutcome::Signed(signed) => Ok(Proven {
            signed: stored(signed)?,
            is_stored: true,
        }),
        RequestOutcome::NotSigned(_) if failure.what_next() == WhatNext::AskOutcome => {
            Err(Error::Unsettled {
                doing: DOING,
                what: "no signature exists so far",
            })
        }
        RequestOutcome::Released(_) => Err(Error::Unsettled {
            doing: DOING,
            what: "a share has left a member, so it counts as signed, and nobody here has the signature",
        }),
        RequestOutcome::NotSigned(_)
        | RequestOutcome::Conflict(_)
        | RequestOutcome::Undetermined(_) => Err(failure.into()),
    }
}

/// Signatures out of the members' ledgers, in the form in which they came the first time.
fn stored(outcome: SignedOutcome) -> Result<RequestSigned, Error> {
    let too_many = || Error::Usage {
        what: "there are more signatures than a session has".to_owned(),
    };
    let session = outcome.session;
    Ok(RequestSigned {
        session,
        signatures: List::<InputSignature, _>::new(outcome.signatures).ok_or_else(too_many)?,
        receipts: List::new(outcome.receipts).ok_or_else(too_many)?,
        evidence: Maybe(None),
    })
}

fn keep(
    folder: Option<&Path>,
    proposal: &Proposal,
    grant: &Envelope<Grant>,
    signed: &RequestSigned,
) -> Result<Option<PathBuf>, Error> {
    let Some(folder) = folder else {
        return Ok(None);
    };
    let folder = Folder::at(folder);
    let evidence = (proposal.envelope().clone(), grant.clone(), signed.clone());
    folder.add_request(&evidence)?;
    Ok(Some(folder.path().to_owned()))
}

fn report(
    arguments: &Arguments,
    key: &Key,
    proposal: &Proposal,
    request_id: RequestId,
    proven: &Proven,
    evidence: Option<PathBuf>,
) -> Report {
    let signed = &proven.signed;
    let finished = proposal.finish(&signed.signatures).ok();
    let overview = proposal.overview();
    Report {
        request_id: request_id.to_string(),
        txid: overview.map(|overview| overview.txid).unwrap_or_default(),
        file: arguments.out.clone(),
        session: signed.session.to_string(),
        receipts: signed
            .receipts
            .iter()
            .map(|(member, _)| key.name_of(*member))
            .collect(),
        is_stored: proven.is_stored,
        transaction: finished.map(|payment| hex::encode(payment.transaction)),
        evidence,
    }
}

impl Report {
    fn say(&self, output: Output) {
        let how = if self.is_stored {
            "signed before"
        } else {
            "signed"
        };
        output.fact(how, &self.txid);
        output.fact("receipts", self.receipts.join(", "));
        output.fact("PSBT", self.file.display());
        if self.transaction.is_none() {
            output.fact("incomplete", "other inputs have to be signed elsewhere");
        }
        if let Some(folder) = &self.evidence {
            output.fact("evidence", folder.display());
        }
    }
}

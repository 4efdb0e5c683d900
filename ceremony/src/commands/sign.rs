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

use super::{
    key::{resolve, verified},
    profile::ProfileOption,
    reports::must_not_exist,
    runtime,
};
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
        let evidence = arguments.evidence.as_deref();
        let evidence = evidence
            .map(|path| folder_of(&key, path, &client))
            .transpose()?;
        output.say(format_args!("request      {granted}"));
        if !output.is_json()
            && let Some(overview) = proposal.overview()
        {
            output.say(overview);
        }
        let proven = tokio::select! {
            proven = obtain(&client, &key, &proposal, &grant, granted) => proven,
            // Whatever was asked is asked; the members know what came of it.
            _ = tokio::signal::ctrl_c() => Err(Error::OutcomeUnknown {
                doing: DOING,
                reason: "you stopped waiting".to_owned(),
            }),
        };
        let proven = proven.map_err(|error| with_question(error, arguments, granted))?;
        let psbt = insert(&file.bytes, &proven.signed.signatures)?;
        file.form.write(&arguments.out, &psbt)?;
        if let Some(folder) = &evidence {
            let signed = proven.signed.clone();
            folder.add_request(&(proposal.envelope().clone(), grant.clone(), signed))?;
        }
        Ok::<_, Error>(report(arguments, &key, &proposal, granted, &proven))
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

/// The folder that keeps what is asked and answered, which must be this key's.
fn folder_of(key: &Key, path: &Path, client: &Client) -> Result<Folder, Error> {
    let folder = Folder::at(path);
    let found = verified(&folder.key_documents()?, client.authorities())?;
    if found.key_id() == key.key_id() {
        Ok(folder)
    } else {
        Err(Error::Usage {
            what: format!("--evidence {}: it is another key's folder", path.display()),
        })
    }
}

/// Says what to type, where it is not known what became of the request.
fn with_question(error: Error, arguments: &Arguments, request_id: RequestId) -> Error {
    if let Error::OutcomeUnknown { doing, reason } = error {
        let question = question(arguments, request_id);
        Error::OutcomeUnknown {
            doing,
            reason: format!("{reason}; to find out what became of it: {question}"),
        }
    } else {
        error
    }
}

/// The command that asks for the outcome, and writes the signed PSBT where there is one.
fn question(arguments: &Arguments, request_id: RequestId) -> String {
    let psbt = arguments.psbt.to_string_lossy();
    let out = arguments.out.to_string_lossy();
    let mut command = format!("firn request status {request_id}");
    let mut put = |option: &str, value: &str| {
        command.push_str(&format!(" {option} {}", shell_word(value)));
    };
    put("--key", &arguments.key);
    put("--psbt", &psbt);
    put("--out", &out);
    if let Some(profile) = &arguments.profile.profile {
        put("--profile", &profile.to_string_lossy());
    }
    command
}

/// As a shell takes it for one word.
fn shell_word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+=:,@%".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

fn report(
    arguments: &Arguments,
    key: &Key,
    proposal: &Proposal,
    request_id: RequestId,
    proven: &Proven,
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
        evidence: arguments.evidence.clone(),
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

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn what_is_to_be_typed_survives_a_shell() {
        for (text, word) in [
            ("evidence/key.cbor", "evidence/key.cbor"),
            ("my key", "'my key'"),
            ("it's", r"'it'\''s'"),
            ("$(rm)", "'$(rm)'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(text), word);
        }
    }
}

//! `firn request status`: what became of a request, by the members' signed word. It decides nothing: what
//! the statements prove together is the requester's library's arithmetic, told here in words.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use firn_client::{
    Client, Inquiry, Key, Proposal, RequestOutcome, Settings,
    evidence::{Proof, Prospect},
    payment::insert,
};
use firn_protocol::{ids::RequestId, names::Name};
use serde::Serialize;

use super::{key::resolve, profile::ProfileOption, reports::must_not_exist, runtime};
use crate::{
    error::{Error, Exit},
    output::{Missing, Output},
    psbt_file::PsbtFile,
};

/// How `firn request` is used.
pub(crate) const EXAMPLE: &str = "Example:\n  firn request status 3f9c... --key evidence";

/// What can be asked about requests.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Ask the members what became of a request. It needs no grant and changes nothing.
    Status(Status),
}

/// Options of `firn request status`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  firn request status \
                  3f9c0d5e7a1b2c4d6e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9001122334455 --key evidence \\\n    \
                  --psbt payment.psbt --out signed.psbt --profile domain/requesters/treasury/firn.toml\n\n\
                  Exit codes: 0 signed, 1 not signed and it cannot be any more, 3 not signed yet or only \
                  partly: ask for it again with the same request id, 4 too few members have answered: ask \
                  again later, 5 the request id stands for something else.")]
pub(crate) struct Status {
    /// The request, 64 hexadecimal digits.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The key: a ceremony's folder, a key.cbor, or a key id.
    #[arg(long, value_name = "WHERE")]
    pub(crate) key: String,
    /// What was to be signed: signatures are then verified against it, and not only against receipts.
    #[arg(long, value_name = "FILE")]
    pub(crate) psbt: Option<PathBuf>,
    /// Where the signed PSBT goes, if it was signed.
    #[arg(long, value_name = "FILE", requires = "psbt")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) profile: ProfileOption,
}

#[derive(Debug, Default, Serialize)]
struct Report {
    request_id: String,
    /// signed, not_signed, released, conflicting or undetermined.
    outcome: &'static str,
    /// The same in words, with what to do.
    meaning: String,
    /// For a signed request: how far that is verified.
    proof: Option<&'static str>,
    intent: Option<String>,
    session: Option<String>,
    signatures: Vec<Signature>,
    /// Members whose receipts or statements say that shares have left.
    signed_by: Vec<String>,
    /// Members that say that no share of theirs has left.
    none_left_at: Vec<String>,
    missing: Vec<Missing>,
    /// Members that refused to say, with their codes.
    refused: Vec<String>,
    file: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Signature {
    input: u32,
    signature: String,
}

/// Runs `firn request`.
pub(crate) fn run(command: &Command, output: &Output) -> Result<Exit, Error> {
    match command {
        Command::Status(arguments) => status(arguments, *output),
    }
}

fn status(arguments: &Status, output: Output) -> Result<Exit, Error> {
    let request_id = RequestId::from_hex(&arguments.id).ok_or_else(|| Error::Usage {
        what: format!("{}: a request id is 64 hexadecimal digits", arguments.id),
    })?;
    arguments.out.as_deref().map_or(Ok(()), must_not_exist)?;
    let profile = arguments.profile.load()?;
    let file = arguments.psbt.as_deref().map(PsbtFile::read).transpose()?;
    let (outcome, key) = runtime()?.block_on(async {
        let client: Client = profile.client(Settings::default())?;
        let key = resolve(&arguments.key, &profile).await?;
        let proposal: Option<Proposal> = file
            .as_ref()
            .map(|file| client.propose(&key, &file.bytes))
            .transpose()?;
        let mut inquiry = Inquiry::of(request_id);
        if let Some(proposal) = &proposal {
            inquiry = inquiry.about(proposal);
        }
        Ok::<_, Error>((client.outcome(&key, inquiry).await?, key))
    })?;
    let mut report = report(request_id, &outcome, &key);
    if let (Some(file), Some(out), RequestOutcome::Signed(signed)) =
        (&file, &arguments.out, &outcome)
        && signed.proof == Proof::Signatures
    {
        let psbt = insert(&file.bytes, &signed.signatures)?;
        file.form.write(out, &psbt)?;
        report.file = Some(out.clone());
    }
    if !output.is_json() {
        report.say(output);
    }
    output.object(&report)?;
    Ok(outcome.what_next().map_or(Exit::Done, Exit::from))
}

fn report(request_id: RequestId, outcome: &RequestOutcome, key: &Key) -> Report {
    let report = Report {
        request_id: request_id.to_string(),
        outcome: outcome.code(),
        meaning: meaning(outcome),
        ..Report::default()
    };
    match outcome {
        RequestOutcome::Signed(signed) => Report {
            proof: Some(match signed.proof {
                Proof::Signatures => "signatures",
                Proof::Members => "members",
                Proof::Claim => "claim",
            }),
            intent: Some(signed.intent.to_string()),
            session: Some(signed.session.to_string()),
            signatures: signed
                .signatures
                .iter()
                .map(|made| Signature {
                    input: made.input,
                    signature: made.signature.to_string(),
                })
                .collect(),
            signed_by: signed
                .receipts
                .iter()
                .map(|(member, _)| key.name_of(*member))
                .collect(),
            ..report
        },
        RequestOutcome::NotSigned(not_signed) => Report {
            signed_by: text(&not_signed.released_by),
            none_left_at: text(&not_signed.stated_by),
            ..report
        },
        RequestOutcome::Released(released) => Report {
            signed_by: text(&released.released_by),
            none_left_at: text(&released.stated_by),
            missing: released.missing.iter().map(Missing::from).collect(),
            ..report
        },
        RequestOutcome::Conflict(conflict) => Report {
            intent: conflict.known.first().map(|(_, intent)| intent.to_string()),
            signed_by: Vec::new(),
            ..report
        },
        RequestOutcome::Undetermined(undetermined) => Report {
            none_left_at: text(&undetermined.stated_by),
            missing: undetermined.missing.iter().map(Missing::from).collect(),
            refused: undetermined
                .refused
                .iter()
                .map(|no| format!("{} says {}", no.member, no.code))
                .collect(),
            ..report
        },
    }
}

fn meaning(outcome: &RequestOutcome) -> String {
    match outcome {
        RequestOutcome::Signed(signed) => match signed.proof {
            Proof::Signatures => "signed: the signatures are the key's own over this PSBT".to_owned(),
            Proof::Members => {
                "signed: more members say so than may lie; --psbt verifies it without believing anybody"
                    .to_owned()
            }
            Proof::Claim => {
                "signed, by the word of as few members as may lie: ask again, with --psbt if you have it"
                    .to_owned()
            }
        },
        RequestOutcome::NotSigned(not_signed) => {
            let said = not_signed.stated_by.len();
            match not_signed.prospect {
                Prospect::Open { attempts } => format!(
                    "not signed when {said} members were asked, and {attempts} attempts are under way: ask \
                     again"
                ),
                Prospect::WhileGranted => format!(
                    "not signed, as {said} members prove together; whoever holds a grant that lives may still \
                     ask for it, with the same request id"
                ),
                Prospect::Over => format!(
                    "not signed, as {said} members prove together, and it cannot be any more: every grant for \
                     it has ended"
                ),
            }
        }
        RequestOutcome::Released(_) => {
            "counts as signed: a share has left, and nobody who answered has the signature. Ask for it again \
             with the same request id: it is the same transaction, never a second one"
                .to_owned()
        }
        RequestOutcome::Conflict(_) => {
            "the request id stands for another transaction than this PSBT; nothing was overwritten".to_owned()
        }
        RequestOutcome::Undetermined(undetermined) => format!(
            "not known: {} of the {} members have answered that it takes to prove anything. It may be signed, \
             so pay in no other way; start the missing ones and ask again",
            undetermined.stated_by.len(),
            undetermined.needed
        ),
    }
}

fn text(names: &[Name]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

impl Report {
    fn say(&self, output: Output) {
        output.fact("request", &self.request_id);
        output.fact("outcome", &self.meaning);
        for made in &self.signatures {
            output.fact(format_args!("input {}", made.input), &made.signature);
        }
        let list = |name: &str, members: &[String]| {
            if !members.is_empty() {
                output.fact(name, members.join(", "));
            }
        };
        list("shares from", &self.signed_by);
        list("none left", &self.none_left_at);
        list("refused", &self.refused);
        for member in &self.missing {
            output.fact("missing", member);
        }
        if let Some(file) = &self.file {
            output.fact("PSBT", file.display());
        }
    }
}

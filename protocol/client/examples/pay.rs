//! A custody service's payment from beginning to end: profile, key, intent, grant, signatures.
//!
//! ```text
//! cargo run -p firn-client --example pay -- /etc/treasury KEY_ID payment.psbt orders/4711
//! ```
//!
//! The order's folder is the service's memory of this payment. What is needed to ask again is in it before
//! anything is asked, so the program may be killed at any point and started again: it never pays twice, and
//! it never has to guess.

use std::{
    fs,
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use firn_client::{
    Client, Error, Inquiry, Key, Profile, Proposal, RequestOutcome, Settings, WhatNext,
    evidence::Prospect,
};
use firn_protocol::{
    codec,
    documents::{Grant, InputSignature},
    envelope::Envelope,
    ids::{KeyId, RequestId},
};

/// A grant, and the head of the byte string that it is in a file.
const GRANT_LIMIT: usize = Envelope::<Grant>::LIMIT + 8;

type Failure = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [profile, key_id, psbt, order] = arguments.as_slice() else {
        return Err("PROFILE KEY_ID PSBT ORDER are needed".into());
    };
    let key_id = KeyId::from_hex(key_id).ok_or("a key id is 64 hexadecimal digits")?;
    let psbt = fs::read(psbt)?;
    let order = PathBuf::from(order);

    // Nobody is dialled yet: coordinators are, when the first question is asked.
    let client = Profile::load(Path::new(profile))?.client(Settings::default())?;
    let key = client.key(key_id).await?;

    // The same PSBT gives the same intent digest, however often this program starts.
    let proposal = client.propose(&key, &psbt)?;
    let request_id = request_id(&order)?;
    let mut out = std::io::stdout().lock();
    if let Some(overview) = proposal.overview() {
        writeln!(out, "{overview}")?;
    }
    writeln!(out, "intent       {}", proposal.digest())?;
    writeln!(out, "request      {request_id}")?;

    // The control plane looks at intent and request, and grants exactly them, as `firn grant` does.
    let grant = fs::read(order.join("grant.cbor"))?;
    let grant: Envelope<Grant> = codec::decode(&grant, GRANT_LIMIT)?;

    let signatures = pay(&client, &key, &proposal, request_id, &grant).await?;
    let payment = proposal.finish(&signatures)?;
    fs::write(order.join("signed.psbt"), &payment.psbt)?;
    fs::write(order.join("transaction"), &payment.transaction)?;
    writeln!(out, "signed       {}", payment.txid)?;
    Ok(())
}

/// One request id for each order, on disk before it is used.
fn request_id(order: &Path) -> Result<RequestId, Failure> {
    let path = order.join("request");
    match fs::read_to_string(&path) {
        Ok(text) => RequestId::from_hex(text.trim()).ok_or_else(|| "not a request id".into()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let fresh = Client::fresh_request_id()?;
            let mut file = fs::File::create_new(&path)?;
            writeln!(file, "{fresh}")?;
            file.sync_all()?;
            fs::File::open(order)?.sync_all()?;
            Ok(fresh)
        }
        Err(error) => Err(error.into()),
    }
}

/// Asks until it is signed, or until it is certain that it will not be.
async fn pay(
    client: &Client,
    key: &Key,
    proposal: &Proposal,
    request_id: RequestId,
    grant: &Envelope<Grant>,
) -> Result<Vec<InputSignature>, Failure> {
    loop {
        let error = match client.sign(key, proposal, grant).await {
            Ok(answer) => return Ok(answer.signed.signatures.to_vec()),
            Err(error) => error,
        };
        match error.what_next() {
            // Nothing was sent that stayed without an answer, and it may go better later.
            WhatNext::RetrySameRequest => {}
            // Whatever the members have said no to, an earlier attempt may have been signed: ask them.
            WhatNext::AskOutcome | WhatNext::GiveUp => {
                if let Some(signatures) = settled(client, key, proposal, request_id, error).await? {
                    return Ok(signatures);
                }
            }
            WhatNext::Usage | WhatNext::Conflict => return Err(error.into()),
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
}

/// The signatures, if there are any; nothing where it is worth asking again.
async fn settled(
    client: &Client,
    key: &Key,
    proposal: &Proposal,
    request_id: RequestId,
    error: Error,
) -> Result<Option<Vec<InputSignature>>, Failure> {
    let inquiry = Inquiry::of(request_id).about(proposal);
    let outcome = match client.outcome(key, inquiry).await {
        Ok(outcome) => outcome,
        // Nobody has answered: that says nothing about the payment.
        Err(unanswered) if unanswered.what_next() == WhatNext::RetrySameRequest => return Ok(None),
        Err(refused) => return Err(refused.into()),
    };
    match outcome {
        RequestOutcome::Signed(signed) => Ok(Some(signed.signatures)),
        // The same request again gives the same transaction, never a second one.
        RequestOutcome::Released(_) | RequestOutcome::Undetermined(_) => Ok(None),
        RequestOutcome::NotSigned(not_signed) => match (not_signed.prospect, error.what_next()) {
            // Refused for good, and no attempt under way that could still sign it.
            (Prospect::Over | Prospect::WhileGranted, WhatNext::GiveUp) => Err(error.into()),
            _ => Ok(None),
        },
        RequestOutcome::Conflict(_) => Err("the request id stands for another payment".into()),
    }
}

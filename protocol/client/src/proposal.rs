//! An intent, signed by the requester and understood. It decides what the bytes mean, by the same rules
//! as the members; whether they will sign it is their policy's question.

use std::fmt;

use firn_protocol::{
    bitcoin::Summary,
    codec::Blob,
    documents::{Content, InputSignature, Intent, ProofOfLife},
    envelope::Envelope,
    ids::{IntentDigest, KeyId},
    limits,
    reject::Reject,
    signable::Signable,
};
use serde::Serialize;

use crate::{
    caller::Caller,
    error::Error,
    key::Key,
    payment::{SignedPayment, finish},
    system::nonce,
};

/// Something to be signed: what the requester asks for, and what it would do.
#[derive(Debug, Clone)]
pub struct Proposal {
    intent: Intent,
    envelope: Envelope<Intent>,
    signable: Signable,
}

impl Proposal {
    /// A payment: every own input of a PSBT, version 0 or 2.
    ///
    /// # Errors
    /// [`Error::Unfit`] for a PSBT that no member would sign, whatever its policy.
    pub fn payment(caller: &Caller, key: &Key, psbt: &[u8]) -> Result<Self, Error> {
        let psbt = Blob::new(psbt.to_vec()).ok_or_else(|| Error::Usage {
            what: format!("a PSBT has at most {} bytes", limits::MAX_PSBT),
        })?;
        Self::new(caller, key, Content::Psbt(psbt))
    }

    /// A proof that the key can sign, over a challenge that can never be a transaction.
    ///
    /// # Errors
    /// [`Error::Randomness`].
    pub fn proof_of_life(caller: &Caller, key: &Key) -> Result<Self, Error> {
        let challenge = ProofOfLife { nonce: nonce()? };
        Self::new(caller, key, Content::ProofOfLife(challenge))
    }

    fn new(caller: &Caller, key: &Key, content: Content) -> Result<Self, Error> {
        let intent = Intent {
            network: key.network(),
            key_id: key.key_id(),
            content,
        };
        let signable = understand(&intent, key).map_err(Error::unfit("the PSBT"))?;
        let envelope = caller.sign(&intent)?;
        Ok(Self {
            intent,
            envelope,
            signable,
        })
    }

    /// An intent that was signed before, for asking with it again after a restart.
    ///
    /// # Errors
    /// [`Error::Unfit`] for one that the caller has not signed, or that is not for this key.
    pub fn again(caller: &Caller, key: &Key, envelope: Envelope<Intent>) -> Result<Self, Error> {
        const WHAT: &str = "the signed intent";
        let verified = envelope
            .verify(&caller.identity())
            .map_err(|error| Error::unfit(WHAT)(error.into()))?;
        let signable = understand(&verified, key).map_err(Error::unfit(WHAT))?;
        Ok(Self {
            intent: Intent::clone(&verified),
            signable,
            envelope: verified.into_envelope(),
        })
    }

    /// What everybody means by "the intent": this is what the control plane grants.
    #[must_use]
    pub const fn digest(&self) -> IntentDigest {
        self.signable.intent_digest()
    }

    /// The key that is to sign.
    #[must_use]
    pub const fn key_id(&self) -> KeyId {
        self.intent.key_id
    }

    /// The intent.
    #[must_use]
    pub const fn intent(&self) -> &Intent {
        &self.intent
    }

    /// The intent as it travels; keep it, to ask with it again.
    #[must_use]
    pub const fn envelope(&self) -> &Envelope<Intent> {
        &self.envelope
    }

    /// The hashes that will be signed.
    #[must_use]
    pub const fn signable(&self) -> &Signable {
        &self.signable
    }

    /// What signing would do, for people and logs; none for a proof of life.
    #[must_use]
    pub fn overview(&self) -> Option<Overview> {
        self.signable.summary().map(Overview::of)
    }

    /// Puts signatures into the PSBT and takes the transaction out.
    ///
    /// # Errors
    /// [`Error::Payment`] where signatures do not fit or an input stays unsigned, as foreign ones do;
    /// [`Error::Usage`] for a proof of life.
    pub fn finish(&self, signatures: &[InputSignature]) -> Result<SignedPayment, Error> {
        match &self.intent.content {
            Content::Psbt(psbt) => Ok(finish(psbt.as_bytes(), signatures)?),
            Content::ProofOfLife(_) => Err(Error::Usage {
                what: "a proof of life is no transaction".to_owned(),
            }),
        }
    }
}

fn understand(intent: &Intent, key: &Key) -> Result<Signable, Reject> {
    Signable::of_intent(intent, key.key_id(), key.network(), key.group_key())
}

/// What signing a payment would do. Amounts are satoshi.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// The transaction's id, as people read it. It does not change when it is signed.
    pub txid: String,
    /// What is spent, in order.
    pub inputs: Vec<OverviewInput>,
    /// What is paid, in order.
    pub outputs: Vec<OverviewOutput>,
    /// What miners get.
    pub fee_sats: u64,
    /// What comes back to the key.
    pub change_sats: u64,
    /// What leaves the key, fee included.
    pub outflow_sats: u64,
}

/// One input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OverviewInput {
    /// The output that it spends: transaction id and index.
    pub outpoint: String,
    /// How much it holds.
    pub sats: u64,
    /// The address that it is locked to, where its script has one.
    pub address: Option<String>,
    /// The child whose key signs; none for a foreign input.
    pub own: Option<String>,
}

/// One output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OverviewOutput {
    /// How much.
    pub sats: u64,
    /// To whom, where the script has an address.
    pub address: Option<String>,
    /// The script, in hexadecimal.
    pub script: String,
    /// The child that it belongs to where it is change; none for somebody else's.
    pub own: Option<String>,
}

impl Overview {
    /// The same of a payment that nobody proposes yet.
    #[must_use]
    pub fn of(summary: &Summary) -> Self {
        let network = summary.network();
        let inputs = summary
            .inputs()
            .iter()
            .map(|input| OverviewInput {
                outpoint: input.outpoint.to_string(),
                sats: input.spent.value.value(),
                address: network.address(&input.spent.script),
                own: input.own.map(|own| own.key.child().to_string()),
            })
            .collect();
        let outputs: Vec<_> = summary
            .outputs()
            .iter()
            .map(|output| OverviewOutput {
                sats: output.output.value.value(),
                address: network.address(&output.output.script),
                script: hex::encode(output.output.script.as_bytes()),
                own: output.own.map(|child| child.to_string()),
            })
            .collect();
        let change = outputs.iter().filter(|output| output.own.is_some());
        Self {
            txid: summary.transaction().txid().to_string(),
            inputs,
            change_sats: change.fold(0, |sum, output| sum.saturating_add(output.sats)),
            outputs,
            fee_sats: summary.fee().value(),
            outflow_sats: summary.outflow().value(),
        }
    }
}

impl fmt::Display for Overview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "transaction  {}", self.txid)?;
        for input in &self.inputs {
            let owner = input.own.as_deref().unwrap_or("foreign");
            writeln!(
                f,
                "spends       {} sat  {} ({owner})",
                input.sats, input.outpoint
            )?;
        }
        for output in &self.outputs {
            let to = output.address.as_deref().unwrap_or(&output.script);
            match &output.own {
                Some(child) => writeln!(f, "change       {} sat  {to} ({child})", output.sats)?,
                None => writeln!(f, "pays         {} sat  {to}", output.sats)?,
            }
        }
        writeln!(f, "fee          {} sat", self.fee_sats)?;
        write!(
            f,
            "leaves       {} sat in all, fee included",
            self.outflow_sats
        )
    }
}

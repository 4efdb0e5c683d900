//! What a run leaves: the ceremony's folder, exactly as in service, and beside it the payments and the
//! report, as other tools read them.

use std::path::PathBuf;

use firn_protocol::{
    bitcoin::transaction::TxOut,
    messages::{CeremonyRecord, KeyDocuments, RequestSigned, SignRequest},
    sharing::ActiveSharing,
};
use serde::Serialize;

use super::report::{DemoReport, ReportedPrevout};
use crate::{
    client::Delivered,
    domain::{
        Domain,
        files::{make_folder, write_document, write_public},
    },
    error::Error,
    evidence::{Beginning, Folder, merge_acknowledgements},
    payment::SignedPayment,
};

/// Where everything goes.
#[derive(Debug)]
pub(super) struct Archive {
    root: PathBuf,
    folder: Folder,
}

impl Archive {
    /// Makes the folder of the payments; the ceremony's comes into being with the ceremony.
    pub(super) fn create(domain: &Domain) -> Result<Self, Error> {
        let root = domain.path().to_owned();
        make_folder(&root.join("payments"))?;
        let folder = Folder::at(root.join("evidence"));
        Ok(Self { root, folder })
    }

    /// The ceremony's folder.
    pub(super) const fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Keeps everything that says what a key is: in the ceremony's folder, and as one file to carry.
    pub(super) fn key(
        &self,
        documents: &KeyDocuments,
        ceremony: &CeremonyRecord,
    ) -> Result<(), Error> {
        let beginning = Beginning {
            plan: &documents.plan,
            policy: &documents.policy,
            ceremony,
            activation: Some(&documents.activation),
        };
        Folder::create(self.folder.path(), &beginning)?;
        write_document(&self.root.join("key.cbor"), documents)
    }

    /// Keeps who has stored the activation.
    pub(super) fn delivered(
        &self,
        delivered: &Delivered,
        active: &ActiveSharing,
    ) -> Result<(), Error> {
        let (words, _) = merge_acknowledgements(&[], &delivered.words, active)
            .map_err(Error::unverified("an acknowledgement"))?;
        self.folder.put_acknowledgements(&words)
    }

    /// Keeps a request and its answer. The same request again adds nothing.
    pub(super) fn answer(
        &self,
        request: &SignRequest,
        answer: &RequestSigned,
    ) -> Result<(), Error> {
        let evidence = (
            request.intent.clone(),
            request.grant.clone(),
            answer.clone(),
        );
        self.folder.add_request(&evidence).map(|_| ())
    }

    /// Keeps a transaction and what it spends, as other tools read them.
    pub(super) fn payment(&self, name: &str, payment: &SignedPayment) -> Result<(), Error> {
        let folder = self.root.join("payments");
        let text = format!("{}\n", hex::encode(&payment.transaction));
        let path = |kind: &str| folder.join(format!("transaction-{name}.{kind}"));
        write_public(&path("hex"), text.as_bytes())?;
        write_public(&path("psbt"), &payment.psbt)?;
        let spent = json(&prevouts(&payment.spent))?;
        write_public(&folder.join(format!("prevouts-{name}.json")), &spent)
    }

    /// Keeps the report itself.
    pub(super) fn report(&self, report: &DemoReport) -> Result<(), Error> {
        write_public(&self.root.join("report.json"), &json(report)?)
    }
}

/// Spent outputs as scripts read them.
pub(super) fn prevouts(spent: &[TxOut]) -> Vec<ReportedPrevout> {
    spent
        .iter()
        .map(|output| ReportedPrevout {
            value: output.value.value(),
            script: hex::encode(output.script.as_bytes()),
        })
        .collect()
}

fn json<T: Serialize>(value: &T) -> Result<Vec<u8>, Error> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|_| Error::Write)?;
    text.push(b'\n');
    Ok(text)
}

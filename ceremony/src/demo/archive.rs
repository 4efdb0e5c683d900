//! The evidence folder: every document and answer as it travelled, for whoever verifies it later.

use std::path::{Path, PathBuf};

use firn_protocol::{
    bitcoin::transaction::TxOut,
    messages::{KeyDocuments, RequestSigned, SignRequest},
};
use serde::Serialize;

use super::report::{DemoReport, ReportedPrevout};
use crate::{
    domain::{
        Domain,
        files::{make_folder, write_document, write_public},
    },
    error::Error,
    payment::SignedPayment,
};

/// The folder.
#[derive(Debug)]
pub(super) struct Archive(PathBuf);

impl Archive {
    /// Makes the folder and puts the Authorities into it.
    pub(super) fn create(domain: &Domain) -> Result<Self, Error> {
        let archive = Self(domain.path().join("evidence"));
        make_folder(&archive.0)?;
        archive.document("authorities", domain.authorities().endorsed())?;
        Ok(archive)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Keeps a document in its one encoding.
    pub(super) fn document<T: Serialize>(&self, name: &str, document: &T) -> Result<(), Error> {
        write_document(&self.0.join(format!("{name}.cbor")), document)
    }

    /// Keeps everything that says what a key is, together and one by one.
    pub(super) fn key(&self, documents: &KeyDocuments) -> Result<(), Error> {
        self.document("key", documents)?;
        self.document("policy", &documents.policy)?;
        self.document("activation", &documents.activation)
    }

    /// Keeps a request and its answer.
    pub(super) fn answer(
        &self,
        name: &str,
        request: &SignRequest,
        answer: &RequestSigned,
    ) -> Result<(), Error> {
        self.document(&format!("request-{name}"), request)?;
        self.document(&format!("answer-{name}"), answer)
    }

    /// Keeps a transaction and what it spends, as other tools read them.
    pub(super) fn payment(&self, name: &str, payment: &SignedPayment) -> Result<(), Error> {
        let text = format!("{}\n", hex::encode(&payment.transaction));
        let path = |kind: &str| self.0.join(format!("transaction-{name}.{kind}"));
        write_public(&path("hex"), text.as_bytes())?;
        write_public(&path("psbt"), &payment.psbt)?;
        let spent = json(&prevouts(&payment.spent))?;
        write_public(&self.0.join(format!("prevouts-{name}.json")), &spent)
    }

    /// Keeps the report itself.
    pub(super) fn report(&self, report: &DemoReport) -> Result<(), Error> {
        write_public(&self.0.join("report.json"), &json(report)?)
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

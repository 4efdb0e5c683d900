//! The daemon's care for itself: certificate and signs of life. It decides that a participant whose
//! ledger does not answer is not alive.

use std::{sync::Arc, time::Duration};

use firn_process::{Due, Upkeep};
use firn_protocol::ids::UnixMillis;
use firn_transport::{Dialer, Renewal};
use tokio::{sync::watch, time::timeout};

use super::host::DaemonHost;
use crate::{rules::ParticipantRules, service::Service, store::Committer};

/// How long the ledger's thread may take to answer: a sync of a disk that is busy, and more.
const LEDGER_ANSWERS: Duration = Duration::from_secs(10);

/// What needs care.
pub(super) struct Care {
    pub(super) upkeep: Upkeep,
    pub(super) dialer: Arc<Dialer>,
    pub(super) ledger: Committer<ParticipantRules>,
    pub(super) service: Arc<Service<DaemonHost>>,
}

impl Care {
    /// Goes on until the process is to stop.
    pub(super) async fn keep(mut self, mut stopped: watch::Receiver<bool>) {
        loop {
            let due = tokio::select! {
                () = async { drop(stopped.wait_for(|stopped| *stopped).await) } => return,
                due = self.upkeep.next() => due,
            };
            if due == Due::Beat && !self.ledger_answers().await {
                tracing::error!("the ledger's thread does not answer; no sign of life is given");
                continue;
            }
            self.upkeep.act(due, &*self.dialer);
            self.service.certificate_ends(end_of(self.upkeep.renewal()));
        }
    }

    async fn ledger_answers(&self) -> bool {
        let asked = self.ledger.query(|_| ());
        matches!(timeout(LEDGER_ANSWERS, asked).await, Ok(Ok(())))
    }
}

/// When the certificate in use ends.
pub(super) fn end_of(renewal: &Renewal) -> UnixMillis {
    let seconds = renewal.validity().not_after().unix_seconds();
    UnixMillis::new(seconds.saturating_mul(1000))
}

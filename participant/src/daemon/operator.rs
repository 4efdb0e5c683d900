//! The answers on the control socket. It decides nothing: the service does.

use std::sync::Arc;

use firn_protocol::messages::{FromDaemon, LocalStatus, ToDaemon};

use super::{host::DaemonHost, links::Links};
use crate::{
    control::{Answers, failure},
    service::Service,
};

/// Whoever answers this machine's operator.
pub(super) struct OperatorDesk {
    pub(super) service: Arc<Service<DaemonHost>>,
    pub(super) links: Arc<Links>,
}

impl Answers for OperatorDesk {
    async fn answer(&self, question: ToDaemon) -> FromDaemon {
        match question {
            ToDaemon::AcceptPlan(asked) => match self.service.accept_plan(&asked).await {
                Ok(accepted) => FromDaemon::Accepted(accepted),
                Err(error) => {
                    tracing::warn!(code = error.code(), "a plan is not accepted: {error}");
                    failure(error.code(), &error.to_string(), error.advice())
                }
            },
            ToDaemon::Status(nonce) => match self.service.status(nonce).await {
                Ok(status) => FromDaemon::Status(LocalStatus {
                    status,
                    links: self.links.all(),
                }),
                Err(code) => failure(code.name(), code.meaning(), code.advice()),
            },
        }
    }
}

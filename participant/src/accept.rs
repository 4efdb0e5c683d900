//! The operator's word, on this machine, that a plan may be carried out. It decides whether a plan is
//! the one that was read out and whether it counts here; the running participant checks it again.

use std::path::{Path, PathBuf};

use firn_protocol::{
    codec::{self, Malformed},
    documents::Plan,
    envelope::Endorsed,
    ids::PlanDigest,
    reject::Reject,
    sharing::verify_plan,
};

use crate::{
    config::Config,
    documents::{DocumentError, accept_plan},
    identity::{IdentityError, load_authorities, load_identity},
    private_files::{FileError, read_public},
};

/// Why a plan is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// The plan's file.
    #[error(transparent)]
    File(#[from] FileError),
    /// Identity key or Authorities.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// It cannot be kept.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The file is no plan.
    #[error("{path} is no endorsed plan: {reason}")]
    NoPlan {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: Malformed,
    },
    /// It is another plan than the one that was read out.
    #[error("the plan's fingerprint is {found}, not the one given")]
    Fingerprint {
        /// The plan's digest.
        found: PlanDigest,
    },
    /// It does not count here.
    #[error("the plan does not count here: {0}")]
    Refused(Reject),
}

impl AcceptError {
    /// The stable code of the reason.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::File(error) => error.code(),
            Self::Identity(error) => error.code(),
            Self::Document(error) => error.code(),
            Self::NoPlan { .. } => "plan_unreadable",
            Self::Fingerprint { .. } => "plan_fingerprint",
            Self::Refused(code) => code.name(),
        }
    }

    /// What an operator can do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::File(error) => error.advice(),
            Self::Identity(error) => error.advice(),
            Self::Document(error) => error.advice(),
            Self::NoPlan { .. } => "Fetch the plan's file again from whoever wrote it.",
            Self::Fingerprint { .. } => {
                "Compare again by voice. If it stays different, somebody changed the file: stop."
            }
            Self::Refused(code) => code.advice(),
        }
    }
}

/// A plan that is accepted.
#[derive(Debug)]
pub struct Accepted {
    digest: PlanDigest,
    member: String,
}

impl Accepted {
    /// For the operator, or as JSON for a script.
    #[must_use]
    pub fn to_text(&self, json: bool) -> String {
        if json {
            serde_json::json!({ "plan": self.digest.to_string(), "member": self.member })
                .to_string()
        } else {
            format!("accepted plan {} as member {}", self.digest, self.member)
        }
    }
}

/// Accepts the plan in `path` for this machine, if it is the one with the fingerprint, the operators
/// have endorsed it, and this participant is in its roster.
///
/// # Errors
/// [`AcceptError`].
pub fn accept(config: &Config, path: &Path, fingerprint: &str) -> Result<Accepted, AcceptError> {
    let (authorities, authorities_digest) =
        load_authorities(&config.authorities, config.authorities_digest)?;
    let identity = load_identity(&config.identity_key)?.identity();
    let bytes = read_public(path, Endorsed::LIMIT)?;
    let no_plan = |reason| AcceptError::NoPlan {
        path: path.to_owned(),
        reason,
    };
    let endorsed: Endorsed = codec::decode(&bytes, Endorsed::LIMIT).map_err(no_plan)?;
    let (_, digest) = endorsed.read::<Plan>().map_err(no_plan)?;
    let found = PlanDigest::from_bytes(digest);
    if PlanDigest::from_hex(fingerprint) != Some(found) {
        return Err(AcceptError::Fingerprint { found });
    }
    let plan = verify_plan(endorsed.clone(), &authorities, authorities_digest)
        .map_err(AcceptError::Refused)?;
    let member = plan
        .member(&identity)
        .filter(|member| member.tls_name == config.name)
        .ok_or(AcceptError::Refused(Reject::NotAMember))?;
    let digest = accept_plan(&config.data_dir, &endorsed)?;
    Ok(Accepted {
        digest,
        member: member.name.to_string(),
    })
}

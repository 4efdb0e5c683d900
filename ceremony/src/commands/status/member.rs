//! A member's word on how it is, for people and for scripts. It decides nothing; whose word it is has been
//! verified before.

use firn_protocol::{
    ids::UnixMillis,
    keys::IdentityKey,
    messages::{KeyStatus, MemberStatus},
    names::SpiffeId,
};
use serde::Serialize;

use crate::{
    error::Error,
    output::Output,
    words::{date, from_now},
};

/// Sooner than this a certificate's end is a warning.
const SOON_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// How a member is.
#[derive(Debug, Serialize)]
pub(crate) struct MemberWord {
    name: SpiffeId,
    software: String,
    build: String,
    authorities: String,
    ledger_size: u64,
    ledger_root: String,
    stopped: Option<Stopped>,
    certificate_expires_ms: u64,
    accepted_plans: Vec<String>,
    keys: Vec<KeyWord>,
    time_ms: u64,
}

/// Why a member would sign nothing now.
#[derive(Debug, Serialize)]
struct Stopped {
    code: &'static str,
    meaning: &'static str,
    advice: &'static str,
}

/// One key, as a member has it.
#[derive(Debug, Serialize)]
pub(crate) struct KeyWord {
    key_id: String,
    share_version: u32,
    stage: &'static str,
    activation: Option<String>,
    policy_version: Option<u32>,
    epoch: Option<u64>,
    owner: Option<SpiffeId>,
}

impl MemberWord {
    /// What `identity` has signed of itself; its checkpoint must be its own, too.
    ///
    /// # Errors
    /// [`Error::Unverified`].
    pub(crate) fn of(status: &MemberStatus, identity: &IdentityKey) -> Result<Self, Error> {
        let checkpoint = status
            .checkpoint
            .clone()
            .verify(identity)
            .map_err(|error| Error::Unverified {
                what: "a member's checkpoint",
                code: error.into(),
            })?;
        Ok(Self {
            name: status.name.clone(),
            software: status.software.to_string(),
            build: status.build.to_string(),
            authorities: status.authorities.to_string(),
            ledger_size: checkpoint.size.leaves(),
            ledger_root: hex::encode(checkpoint.root.as_bytes()),
            stopped: status.stopped.0.map(|code| Stopped {
                code: code.name(),
                meaning: code.meaning(),
                advice: code.advice(),
            }),
            certificate_expires_ms: status.certificate_expires.value(),
            accepted_plans: status.accepted.iter().map(ToString::to_string).collect(),
            keys: status.keys.iter().map(KeyWord::from).collect(),
            time_ms: status.time.value(),
        })
    }
}

impl From<&KeyStatus> for KeyWord {
    fn from(status: &KeyStatus) -> Self {
        Self {
            key_id: status.key_id.to_string(),
            share_version: status.share_version.value(),
            stage: status.stage.name(),
            activation: status.activation.0.as_ref().map(ToString::to_string),
            policy_version: status.policy_version.0.map(|version| version.value()),
            epoch: status.epoch.0.map(|epoch| epoch.value()),
            owner: status.owner.0.clone(),
        }
    }
}

impl MemberWord {
    /// Its software, as it calls itself.
    pub(super) fn software(&self) -> &str {
        &self.software
    }

    /// When its TLS certificate ends.
    pub(super) const fn certificate_expires(&self) -> UnixMillis {
        UnixMillis::new(self.certificate_expires_ms)
    }

    /// Plans that are accepted on its machine and have not made a key yet.
    pub(super) fn accepted_plans(&self) -> &[String] {
        &self.accepted_plans
    }

    /// Why it would sign nothing now, and what to do.
    pub(super) fn stopped_because(&self) -> Option<String> {
        let stopped = self.stopped.as_ref()?;
        let Stopped {
            code,
            meaning,
            advice,
        } = stopped;
        Some(format!("{meaning} {advice} [{code}]"))
    }

    /// Whether it would sign.
    pub(crate) const fn is_ready(&self) -> bool {
        self.stopped.is_none()
    }

    /// Says it to a person.
    pub(crate) fn say(&self, now: UnixMillis, output: Output) {
        output.fact("member", &self.name);
        output.fact(
            "software",
            format_args!("{} (build {})", self.software, brief(&self.build)),
        );
        output.fact("authorities", &self.authorities);
        output.fact(
            "ledger",
            format_args!(
                "{} records, root {}",
                self.ledger_size,
                brief(&self.ledger_root)
            ),
        );
        let expires = UnixMillis::new(self.certificate_expires_ms);
        let warning = if expires <= now {
            "EXPIRED "
        } else if expires <= now.plus(SOON_MS) {
            "RENEW IT: "
        } else {
            ""
        };
        output.fact(
            "certificate",
            format_args!(
                "until {} ({warning}{})",
                date(expires),
                from_now(expires, now)
            ),
        );
        for plan in &self.accepted_plans {
            output.fact("accepted plan", plan);
        }
        if self.keys.is_empty() {
            output.fact("keys", "none yet");
        }
        for key in &self.keys {
            key.say(output);
        }
        match &self.stopped {
            None => output.fact("state", "ready"),
            Some(stopped) => {
                output.fact(
                    "state",
                    format_args!("STOPPED: {} [{}]", stopped.meaning, stopped.code),
                );
                output.fact("", stopped.advice);
            }
        }
    }
}

impl KeyWord {
    fn say(&self, output: Output) {
        output.fact("key", &self.key_id);
        let policy = self
            .policy_version
            .map_or_else(String::new, |version| format!(", policy version {version}"));
        output.fact(
            "",
            format_args!(
                "share version {}, {}{policy}",
                self.share_version, self.stage
            ),
        );
        if let Some(epoch) = self.epoch {
            let owner = self
                .owner
                .as_ref()
                .map_or_else(|| "nobody yet".to_owned(), ToString::to_string);
            output.fact("", format_args!("epoch {epoch}, held by {owner}"));
        }
    }
}

/// The beginning of a digest, for lines where the whole helps nobody.
fn brief(hex: &str) -> &str {
    hex.get(..8).unwrap_or(hex)
}

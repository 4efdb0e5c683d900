//! A payment in words: what signing it would do, what the key's policy says of it, and what nobody has
//! checked. It decides nothing; the members judge again.

use firn_client::{Key, Overview};
use firn_policy::{Violation, evaluate, signed_vbytes};
use firn_protocol::signable::Signable;
use serde::Serialize;

use crate::{error::Error, output::Output};

/// What a PSBT would do to a key.
#[derive(Debug, Serialize)]
pub(crate) struct Described {
    key_id: String,
    network: String,
    /// What a grant is for.
    intent: String,
    #[serde(flatten)]
    overview: Overview,
    /// The signed transaction's least virtual size.
    vbytes: u64,
    /// Satoshi for a thousand virtual bytes.
    fee_per_kvb_sats: u64,
    /// What the policy in force would refuse it for.
    policy_violations: Vec<Broken>,
    #[serde(skip)]
    signable: Signable,
}

#[derive(Debug, Serialize)]
struct Broken {
    code: &'static str,
    rule: &'static str,
    detail: String,
}

impl Described {
    /// Understands a PSBT as the members will.
    ///
    /// # Errors
    /// [`Error::Refused`] for one that no member would sign, whatever its policy.
    pub(crate) fn of(key: &Key, psbt: &[u8]) -> Result<Self, Error> {
        const DOING: &str = "reading the PSBT";
        let refused = |code| Error::Refused {
            doing: DOING,
            code,
            detail: String::new(),
        };
        let signable = Signable::of_psbt(psbt, key.key_id(), key.network(), key.group_key())
            .map_err(refused)?;
        let summary = signable
            .summary()
            .ok_or_else(|| refused(firn_protocol::reject::Reject::Internal))?;
        let vbytes = signed_vbytes(summary);
        let fee = summary.fee().value();
        let broken = |violation: Violation| Broken {
            code: violation.code.name(),
            rule: violation.rule,
            detail: violation.detail,
        };
        Ok(Self {
            key_id: key.key_id().to_string(),
            network: key.network().to_string(),
            intent: signable.intent_digest().to_string(),
            overview: Overview::of(summary),
            vbytes,
            fee_per_kvb_sats: fee.saturating_mul(1000).checked_div(vbytes).unwrap_or(0),
            policy_violations: evaluate(&key.sharing().policy().rules, summary)
                .into_iter()
                .map(broken)
                .collect(),
            signable,
        })
    }

    /// The same for the members' rules.
    pub(crate) const fn signable(&self) -> &Signable {
        &self.signable
    }

    /// Whether the policy in force allows it.
    pub(crate) const fn is_allowed(&self) -> bool {
        self.policy_violations.is_empty()
    }

    /// Says it to a person.
    pub(crate) fn say(&self, output: Output) {
        output.say(&self.overview);
        output.say(format_args!(
            "fee rate     {} sat for a thousand vbytes ({} vbytes)",
            self.fee_per_kvb_sats, self.vbytes
        ));
        output.say(format_args!("intent       {}", self.intent));
        if self.is_allowed() {
            output.say("policy       allows it");
        }
        for broken in &self.policy_violations {
            output.say(format_args!(
                "policy       would refuse it: {} [{}]",
                broken.detail, broken.code
            ));
        }
        output.say("not checked  that the coins exist and are unspent: ask your own node");
    }
}

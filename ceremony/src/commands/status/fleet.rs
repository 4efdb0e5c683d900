//! How all members are, and whether their keys can sign now. It decides by the members' own words, signed
//! for this question; what only a coordinator says is shown as its word.

use std::collections::BTreeSet;

use firn_client::{Key, evidence::MOST_SKEW_MS};
use firn_protocol::{
    documents::RosterEntry,
    ids::{KeyId, Nonce, UnixMillis},
    messages::{KeyStatus, MemberReport, MemberStatus, ShareStage, StatusReport},
    names::SpiffeId,
};
use serde::Serialize;

use super::member::MemberWord;
use crate::{
    client::{NoWord, Standing, standings},
    output::Output,
    words::{date, from_now, length},
};

/// Sooner than this a certificate's end is a warning.
const SOON_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// Everything that one coordinator and its members say.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    coordinator: SpiffeId,
    coordinator_software: String,
    coordinator_since_ms: u64,
    members: Vec<Member>,
    keys: Vec<KeyView>,
    /// Keys that members name and that nobody may use yet, or whose documents cannot be had.
    other_keys: Vec<OtherKey>,
}

/// One member, as the coordinator sees it, and its own word.
#[derive(Debug, Serialize)]
struct Member {
    name: SpiffeId,
    connected_since_ms: Option<u64>,
    last_seen_ms: Option<u64>,
    /// Whether the word is by the key that a roster has for this member; without a key that is known here
    /// nobody can say.
    is_verified: bool,
    /// Its clock less this machine's.
    clock_difference_ms: Option<i64>,
    warnings: Vec<String>,
    word: Option<MemberWord>,
}

/// One key that may be used.
#[derive(Debug, Serialize)]
struct KeyView {
    key_id: String,
    purpose: String,
    network: &'static str,
    threshold: usize,
    members: usize,
    tolerated_liars: usize,
    tolerated_thefts: usize,
    share_version: u32,
    policy_version: u32,
    can_sign_now: bool,
    /// Members that would sign now.
    ready: Vec<String>,
    /// The others, each with the reason.
    not_ready: Vec<String>,
    /// What members say of its epoch; more than one where they differ.
    epochs: Vec<EpochView>,
    shares: Vec<ShareView>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct EpochView {
    epoch: Option<u64>,
    owner: Option<SpiffeId>,
    members: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ShareView {
    member: String,
    share_version: u32,
    stage: &'static str,
}

/// A key that is named by members only.
#[derive(Debug, Serialize)]
pub(crate) struct OtherKey {
    pub(crate) key_id: String,
    pub(crate) members: Vec<String>,
    pub(crate) why: String,
}

/// The keys that members name, whoever they are.
pub(crate) fn named_keys(report: &StatusReport) -> BTreeSet<KeyId> {
    let words = report.members.iter().filter_map(claimed);
    words
        .flat_map(|word| word.keys.iter().map(|key| key.key_id).collect::<Vec<_>>())
        .collect()
}

/// Which members name a key, and how far they are with it.
pub(crate) fn stages_of(report: &StatusReport, key_id: KeyId) -> Vec<String> {
    let words = report.members.iter().filter_map(claimed);
    words
        .filter_map(|word| {
            let key = word.keys.iter().find(|key| key.key_id == key_id)?;
            Some(format!("{}: {}", word.name.name(), key.stage.name()))
        })
        .collect()
}

/// A member's word by whatever key it names: for finding out what to ask next.
fn claimed(report: &MemberReport) -> Option<MemberStatus> {
    let envelope = report.status.0.clone()?;
    let signer = envelope.claimed_signer().ok()?;
    let word = envelope.verify(&signer).ok()?;
    Some((*word).clone())
}

impl Report {
    /// What follows from the words, for these keys.
    pub(crate) fn of(
        report: &StatusReport,
        nonce: &Nonce,
        keys: &[Key],
        other_keys: Vec<OtherKey>,
        now: UnixMillis,
    ) -> Self {
        let rosters: Vec<&RosterEntry> = keys.iter().flat_map(|key| key.members()).collect();
        Self {
            coordinator: report.coordinator.clone(),
            coordinator_software: report.software.to_string(),
            coordinator_since_ms: report.since.value(),
            members: members(report, nonce, &rosters, now),
            keys: keys
                .iter()
                .map(|key| key_view(key, &standings(key.members(), report, nonce), now))
                .collect(),
            other_keys,
        }
    }

    /// Whether every key that is shown can sign now.
    pub(crate) fn can_sign(&self) -> bool {
        self.keys.iter().all(|key| key.can_sign_now)
    }
}

/// Everybody that the coordinator has seen, and everybody in a roster that it has not.
fn members(
    report: &StatusReport,
    nonce: &Nonce,
    rosters: &[&RosterEntry],
    now: UnixMillis,
) -> Vec<Member> {
    let mut all: Vec<Member> = report
        .members
        .iter()
        .map(|member| {
            let entry = rosters.iter().find(|entry| entry.tls_name == member.id);
            seen(member, entry.copied(), nonce, now)
        })
        .collect();
    for entry in rosters {
        if !all.iter().any(|member| member.name == entry.tls_name) {
            all.push(Member {
                name: entry.tls_name.clone(),
                connected_since_ms: None,
                last_seen_ms: None,
                is_verified: false,
                clock_difference_ms: None,
                warnings: vec!["not seen since the coordinator started".to_owned()],
                word: None,
            });
        }
    }
    all
}

fn seen(
    report: &MemberReport,
    entry: Option<&RosterEntry>,
    nonce: &Nonce,
    now: UnixMillis,
) -> Member {
    let mut warnings = Vec::new();
    let identity = match (entry, &report.status.0) {
        (Some(entry), _) => Some(entry.identity),
        (None, Some(envelope)) => envelope.claimed_signer().ok(),
        (None, None) => None,
    };
    let word =
        report
            .status
            .0
            .clone()
            .zip(identity)
            .and_then(|(envelope, identity)| match envelope.verify(&identity) {
                Ok(word) if word.nonce == *nonce && word.name == report.id => {
                    Some((word, identity))
                }
                Ok(_) => {
                    warnings.push("its word is not an answer to this question".to_owned());
                    None
                }
                Err(error) => {
                    warnings.push(format!("its word does not verify: {error}"));
                    None
                }
            });
    if report.connected.0.is_some() && report.status.0.is_none() {
        warnings.push("connected, and does not answer".to_owned());
    }
    let difference = word.as_ref().map(|(word, _)| difference(word.time, now));
    if let Some((word, _)) = &word {
        warnings.extend(certificate_warning(word.certificate_expires, now));
    }
    if let Some(off) = difference.filter(|off| off.unsigned_abs() > MOST_SKEW_MS) {
        warnings.push(format!("its clock is {}", ahead_or_behind(off)));
    }
    Member {
        name: report.id.clone(),
        connected_since_ms: report.connected.0.map(UnixMillis::value),
        last_seen_ms: report.last_seen.0.map(UnixMillis::value),
        is_verified: entry.is_some() && word.is_some(),
        clock_difference_ms: difference,
        warnings,
        word: word.and_then(|(word, identity)| MemberWord::of(&word, &identity).ok()),
    }
}

fn certificate_warning(expires: UnixMillis, now: UnixMillis) -> Option<String> {
    if expires <= now {
        Some(format!("its certificate ended {}", from_now(expires, now)))
    } else if expires <= now.plus(SOON_MS) {
        Some(format!(
            "its certificate ends {}: renew it",
            from_now(expires, now)
        ))
    } else {
        None
    }
}

fn difference(theirs: UnixMillis, ours: UnixMillis) -> i64 {
    let (theirs, ours) = (i128::from(theirs.value()), i128::from(ours.value()));
    i64::try_from(theirs.saturating_sub(ours)).unwrap_or(i64::MAX)
}

fn ahead_or_behind(milliseconds: i64) -> String {
    let length = length(milliseconds.unsigned_abs());
    if milliseconds < 0 {
        format!("{length} behind")
    } else {
        format!("{length} ahead")
    }
}

fn key_view(key: &Key, standings: &[Standing<'_>], now: UnixMillis) -> KeyView {
    let sharing = key.sharing();
    let plan = sharing.certified().plan();
    let (mut ready, mut not_ready) = (Vec::new(), Vec::new());
    let mut epochs: Vec<EpochView> = Vec::new();
    let mut shares = Vec::new();
    for standing in standings {
        let name = standing.entry.name.to_string();
        match not_ready_because(key, standing, now) {
            None => ready.push(name.clone()),
            Some(why) => not_ready.push(format!("{name} {why}")),
        }
        let Some(status) = share_of(key, standing) else {
            continue;
        };
        shares.push(ShareView {
            member: name.clone(),
            share_version: status.share_version.value(),
            stage: status.stage.name(),
        });
        let epoch = status.epoch.0.map(|epoch| epoch.value());
        let owner = status.owner.0.clone();
        let same = epochs
            .iter_mut()
            .find(|view| view.epoch == epoch && view.owner == owner);
        match same {
            Some(view) => view.members.push(name),
            None => epochs.push(EpochView {
                epoch,
                owner,
                members: vec![name],
            }),
        }
    }
    epochs.sort_by_key(|view| std::cmp::Reverse(view.epoch));
    KeyView {
        key_id: key.key_id().to_string(),
        purpose: plan.purpose.to_string(),
        network: key.network().name(),
        threshold: key.threshold(),
        members: key.members().len(),
        tolerated_liars: key.tolerated_liars(),
        tolerated_thefts: key.threshold().saturating_sub(1),
        share_version: sharing.certified().share_version().value(),
        policy_version: sharing.policy().version.value(),
        can_sign_now: ready.len() >= key.threshold(),
        ready,
        not_ready,
        epochs,
        shares,
    }
}

/// The key as the member has it: the share of the highest version.
fn share_of<'a>(key: &Key, standing: &'a Standing<'_>) -> Option<&'a KeyStatus> {
    let word = standing.word.as_ref().ok()?;
    let shares = word
        .keys
        .iter()
        .filter(|share| share.key_id == key.key_id());
    shares.max_by_key(|share| share.share_version)
}

fn not_ready_because(key: &Key, standing: &Standing<'_>, now: UnixMillis) -> Option<String> {
    let word = match &standing.word {
        Ok(word) => word,
        Err(NoWord::NotConnected) => {
            let since = standing.last_seen.map_or_else(
                || "not seen since the coordinator started".to_owned(),
                |seen| format!("last seen {}", from_now(seen, now)),
            );
            return Some(format!("is not connected, {since}"));
        }
        Err(NoWord::Silent) => return Some("is connected, and does not answer".to_owned()),
        Err(NoWord::Unverified(code)) => {
            return Some(format!(
                "gave a word that does not verify: {}",
                code.meaning()
            ));
        }
    };
    if let Some(code) = word.stopped.0 {
        return Some(format!("has stopped: {} {}", code.meaning(), code.advice()));
    }
    let off = difference(word.time, now);
    if off.unsigned_abs() > MOST_SKEW_MS {
        return Some(format!("has a clock that is {}", ahead_or_behind(off)));
    }
    let Some(share) = share_of(key, standing) else {
        return Some("has no share of it".to_owned());
    };
    let sharing = key.sharing();
    if share.share_version != sharing.certified().share_version() {
        return Some(format!(
            "has a share of another version, {}",
            share.share_version
        ));
    }
    match share.stage {
        ShareStage::Active if share.activation.0 == Some(sharing.activation_digest()) => None,
        ShareStage::Active => Some("goes by another activation".to_owned()),
        ShareStage::Pending | ShareStage::Certified => {
            Some("has not got the activation: firn activate".to_owned())
        }
    }
}

impl Report {
    /// Says it to a person.
    pub(crate) fn say(&self, now: UnixMillis, output: Output) {
        let since = from_now(UnixMillis::new(self.coordinator_since_ms), now);
        output.fact(
            "coordinator",
            format_args!(
                "{}, {}, running since {since}",
                self.coordinator.name(),
                self.coordinator_software
            ),
        );
        for member in &self.members {
            member.say(now, output);
        }
        for key in &self.keys {
            output.say("");
            key.say(output);
        }
        for key in &self.other_keys {
            output.say("");
            output.fact("key", &key.key_id);
            output.fact("", format_args!("{} ({})", key.why, key.members.join(", ")));
        }
        if self.keys.is_empty() && self.other_keys.is_empty() {
            output.fact("keys", "none yet");
        }
    }
}

impl Member {
    fn say(&self, now: UnixMillis, output: Output) {
        let there = match (self.connected_since_ms, self.last_seen_ms) {
            (Some(since), _) => {
                format!("connected since {}", from_now(UnixMillis::new(since), now))
            }
            (None, Some(seen)) => {
                format!(
                    "NOT CONNECTED, last seen {}",
                    from_now(UnixMillis::new(seen), now)
                )
            }
            (None, None) => "NOT CONNECTED".to_owned(),
        };
        output.fact("member", format_args!("{:<10} {there}", self.name.name()));
        if let Some(word) = &self.word {
            let seconds = self.clock_difference_ms.unwrap_or_default() / 1000;
            let whose = if self.is_verified {
                ""
            } else {
                " (no roster here has its key)"
            };
            output.fact(
                "",
                format_args!(
                    "{}, clock {seconds:+} s, certificate until {}{whose}",
                    word.software(),
                    date(word.certificate_expires()),
                ),
            );
            if let Some(stopped) = word.stopped_because() {
                output.fact("", format_args!("STOPPED: {stopped}"));
            }
            for plan in word.accepted_plans() {
                output.fact("", format_args!("has accepted the plan {plan}"));
            }
        }
        for warning in &self.warnings {
            output.fact("", format_args!("WARNING: {warning}"));
        }
    }
}

impl KeyView {
    fn say(&self, output: Output) {
        output.fact("key", &self.key_id);
        output.fact(
            "",
            format_args!(
                "{:?} on {}: t = {} of n = {} sign; f = {} may lie, {} may be broken into",
                self.purpose,
                self.network,
                self.threshold,
                self.members,
                self.tolerated_liars,
                self.tolerated_thefts
            ),
        );
        output.fact(
            "",
            format_args!(
                "share version {}, policy version {}",
                self.share_version, self.policy_version
            ),
        );
        for share in self
            .shares
            .iter()
            .filter(|s| s.stage != ShareStage::Active.name())
        {
            let version = share.share_version;
            output.fact(
                "",
                format_args!("{}: {}, version {version}", share.member, share.stage),
            );
        }
        if self.epochs.len() > 1 {
            output.fact(
                "epoch",
                "members differ; the highest counts as soon as they hear of it:",
            );
        }
        for view in &self.epochs {
            let owner = view.owner.as_ref();
            let owner = owner.map_or_else(|| "nobody yet".to_owned(), |id| id.name().to_string());
            let epoch = view
                .epoch
                .map_or_else(|| "none".to_owned(), |epoch| epoch.to_string());
            let members = view.members.join(", ");
            output.fact("epoch", format_args!("{epoch}, held by {owner}: {members}"));
        }
        if self.can_sign_now {
            output.fact(
                "can sign",
                format_args!(
                    "now: {} are ready, {} are needed",
                    self.ready.len(),
                    self.threshold
                ),
            );
        } else {
            let more = self.threshold.saturating_sub(self.ready.len());
            output.fact("CANNOT SIGN", format_args!("{more} more must be ready:"));
        }
        for why in &self.not_ready {
            output.fact("", why);
        }
    }
}

#[cfg(test)]
mod tests;

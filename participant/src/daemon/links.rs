//! What is known of the connection to each coordinator, for the operator of this machine. It decides
//! nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};

use firn_protocol::{
    codec::{List, Maybe, Text},
    ids::UnixMillis,
    limits,
    messages::LinkStatus,
    names::SpiffeId,
};

/// One entry for each coordinator, in the order of the configuration.
pub(super) struct Links(Mutex<Vec<LinkStatus>>);

impl Links {
    pub(super) fn new<'a>(coordinators: impl Iterator<Item = &'a SpiffeId>) -> Self {
        let entry = |coordinator: &SpiffeId| LinkStatus {
            coordinator: coordinator.clone(),
            since: Maybe(None),
            code: Maybe(None),
        };
        Self(Mutex::new(coordinators.map(entry).collect()))
    }

    /// The connection is up.
    pub(super) fn up(&self, coordinator: &SpiffeId, now: UnixMillis) {
        self.set(coordinator, Some(now), None);
    }

    /// The connection is not up, or not any more.
    pub(super) fn down(&self, coordinator: &SpiffeId, code: &str) {
        self.set(coordinator, None, Some(Text::clipped(code)));
    }

    pub(super) fn all(&self) -> List<LinkStatus, { limits::MAX_AUTHORITY_KEYS }> {
        // The configuration holds no more.
        List::new(self.entries().clone()).unwrap_or(List::empty())
    }

    fn set(
        &self,
        coordinator: &SpiffeId,
        since: Option<UnixMillis>,
        code: Option<Text<{ limits::MAX_NAME }>>,
    ) {
        let mut entries = self.entries();
        let of = |entry: &&mut LinkStatus| entry.coordinator == *coordinator;
        if let Some(entry) = entries.iter_mut().find(of) {
            entry.since = Maybe(since);
            entry.code = Maybe(code);
        }
    }

    fn entries(&self) -> MutexGuard<'_, Vec<LinkStatus>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_up_since_then_or_down_for_a_reason_and_others_stay_as_they_are() {
        let id = |name: &str| format!("spiffe://td/coordinator/{name}").parse().unwrap();
        let (one, two, stranger): (SpiffeId, SpiffeId, SpiffeId) = (id("1"), id("2"), id("3"));
        let links = Links::new([&one, &two].into_iter());
        let said = || {
            let said = |link: &LinkStatus| {
                let code = link.code.0.as_ref().map(|code| code.as_str().to_owned());
                (link.since.0.map(UnixMillis::value), code)
            };
            links.all().iter().map(said).collect::<Vec<_>>()
        };
        assert_eq!(said(), [(None, None), (None, None)]);
        links.down(&one, "clock_skew");
        links.up(&stranger, UnixMillis::new(4));
        assert_eq!(said(), [(None, Some("clock_skew".into())), (None, None)]);
        links.up(&one, UnixMillis::new(5));
        links.down(&two, "tls_expired");
        assert_eq!(
            said(),
            [(Some(5), None), (None, Some("tls_expired".into()))]
        );
    }
}

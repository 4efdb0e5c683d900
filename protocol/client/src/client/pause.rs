//! How long to wait between rounds over the coordinators. It decides the length only: doubling, bounded,
//! never in step with other clients.

use std::time::Duration;

/// The pauses of one call.
#[derive(Debug)]
pub(super) struct Pauses {
    next: Duration,
    longest: Duration,
}

impl Pauses {
    pub(super) fn new(first: Duration, longest: Duration) -> Self {
        Self {
            next: first.min(longest),
            longest,
        }
    }

    /// The next pause: between half and the whole of what doubling gives, `random` of 255 parts between
    /// them, and not shorter than `wish` within the bound.
    pub(super) fn next(&mut self, wish: Option<Duration>, random: u8) -> Duration {
        let whole = self.next;
        self.next = whole.saturating_mul(2).min(self.longest);
        let half = whole.checked_div(2).unwrap_or_default();
        let part = half.saturating_mul(u32::from(random)).checked_div(255);
        let wish = wish.unwrap_or_default().min(self.longest);
        half.saturating_add(part.unwrap_or_default()).max(wish)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Pauses;

    #[test]
    fn doubles_up_to_its_bound_and_hears_wishes_within_it() {
        let ms = Duration::from_millis;
        let mut pauses = Pauses::new(ms(200), ms(1_000));
        let mut made = Vec::new();
        for (wish, random) in [
            (None, 255),
            (None, 0),
            (None, 255),
            (None, 255),
            (Some(ms(700)), 0),
            (Some(ms(90_000)), 0),
        ] {
            made.push(pauses.next(wish, random).as_millis());
        }
        assert_eq!(made, [200, 200, 800, 1_000, 700, 1_000]);
    }
}

//! Times for people. It decides how a date looks, and never what the time is.

use firn_protocol::ids::UnixMillis;
use time::OffsetDateTime;

/// Date and time of day, to the second.
#[must_use]
pub fn date(time: UnixMillis) -> String {
    let seconds = i64::try_from(time.value() / 1000).ok();
    let Some(date) = seconds.and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok()) else {
        return format!("{time} ms after 1970 began");
    };
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC",
        date.year(),
        u8::from(date.month()),
        date.day(),
        date.hour(),
        date.minute(),
        date.second()
    )
}

#[cfg(test)]
mod tests {
    use firn_protocol::ids::UnixMillis;

    use super::date;

    #[test]
    fn every_time_has_a_date_or_says_that_it_has_none() {
        let time = UnixMillis::new(1_700_000_000_123);
        assert_eq!(date(time), "2023-11-14 22:13:20 UTC");
        assert!(date(UnixMillis::new(u64::MAX)).contains("ms after"));
    }
}

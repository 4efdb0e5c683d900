//! From when until when a certificate is good (RFC 5280, section 4.1.2.5). It decides on which side of
//! the period a time lies and when to warn of its end, and never whether a certificate is believed.

use std::{fmt, time::Duration};

use rustls::pki_types::{CertificateDer, UnixTime};
use time::{Date, Month, OffsetDateTime, Time};

use crate::der::{BadDer, SEQUENCE, next, only};

const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// Serial number, signature algorithm and issuer stand before the validity.
const FIELDS_BEFORE: usize = 3;

/// A second of a certificate's validity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CertificateTime(u64);

impl CertificateTime {
    /// Seconds since 1970; an earlier time counts as 1970.
    #[must_use]
    pub const fn unix_seconds(self) -> u64 {
        self.0
    }
}

impl fmt::Display for CertificateTime {
    /// As in RFC 3339: `2026-08-01T12:00:00Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = i64::try_from(self.0).ok();
        let Some(at) = seconds.and_then(|at| OffsetDateTime::from_unix_timestamp(at).ok()) else {
            return write!(f, "{} s after 1970", self.0);
        };
        let (date, time) = (at.date(), at.time());
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
            date.year(),
            u8::from(date.month()),
            date.day(),
            time.hour(),
            time.minute(),
            time.second()
        )
    }
}

/// The period of a certificate, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    not_before: CertificateTime,
    not_after: CertificateTime,
}

/// Where a time lies in a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Before its beginning.
    NotYetValid,
    /// Within it.
    Valid,
    /// Within it, and its end is near.
    Ending,
    /// After its end.
    Expired,
}

impl Validity {
    /// All of time.
    pub(crate) const ALWAYS: Self = Self {
        not_before: CertificateTime(0),
        not_after: CertificateTime(u64::MAX),
    };

    /// The period of this certificate.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Result<Self, BadDer> {
        let (_, signed, _) = next(only(certificate, SEQUENCE)?)?;
        let (tag, _, after_version) = next(signed)?;
        // The version may be left out, and is for version 1.
        let mut fields = if tag == VERSION {
            after_version
        } else {
            signed
        };
        for _ in 0..FIELDS_BEFORE {
            (_, _, fields) = next(fields)?;
        }
        let (SEQUENCE, period, _) = next(fields)? else {
            return Err(BadDer);
        };
        let (tag, from, rest) = next(period)?;
        let not_before = time_of(tag, from)?;
        let (tag, until, []) = next(rest)? else {
            return Err(BadDer);
        };
        let not_after = time_of(tag, until)?;
        Ok(Self {
            not_before,
            not_after,
        })
    }

    /// The first second at which it is good.
    #[must_use]
    pub const fn not_before(self) -> CertificateTime {
        self.not_before
    }

    /// The last second at which it is good.
    #[must_use]
    pub const fn not_after(self) -> CertificateTime {
        self.not_after
    }

    /// Where `now` lies; the end is near within `warn`, or within [`Self::usual_warning`].
    #[must_use]
    pub fn standing(self, now: UnixTime, warn: Option<Duration>) -> Standing {
        let now = now.as_secs();
        let left = self.not_after.0.checked_sub(now);
        let near = warn.unwrap_or_else(|| self.usual_warning()).as_secs();
        match left {
            None => Standing::Expired,
            Some(_) if now < self.not_before.0 => Standing::NotYetValid,
            Some(left) if left <= near => Standing::Ending,
            Some(_) => Standing::Valid,
        }
    }

    /// How long before its end people want to know: a third of its life, and at most 14 days.
    #[must_use]
    pub const fn usual_warning(self) -> Duration {
        const LONGEST: u64 = 14 * 24 * 60 * 60;
        let third = self.not_after.0.saturating_sub(self.not_before.0) / 3;
        Duration::from_secs(if third < LONGEST { third } else { LONGEST })
    }

    /// The period in which both are good; empty, if there is none.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            not_before: self.not_before.max(other.not_before),
            not_after: self.not_after.min(other.not_after),
        }
    }

    /// Whether it is good at `now`.
    pub(crate) fn covers(self, now: UnixTime) -> bool {
        (self.not_before.0..=self.not_after.0).contains(&now.as_secs())
    }
}

/// A time in one of the two forms that RFC 5280 allows: to the second, in UTC.
fn time_of(tag: u8, text: &[u8]) -> Result<CertificateTime, BadDer> {
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = number(text, 2)?;
            (
                year.saturating_add(if year < 50 { 2000 } else { 1900 }),
                rest,
            )
        }
        GENERALIZED_TIME => number(text, 4)?,
        _ => return Err(BadDer),
    };
    let (month, rest) = small(rest)?;
    let (day, rest) = small(rest)?;
    let (hour, rest) = small(rest)?;
    let (minute, rest) = small(rest)?;
    let (second, b"Z") = small(rest)? else {
        return Err(BadDer);
    };
    let month = Month::try_from(month).map_err(|_| BadDer)?;
    let date = Date::from_calendar_date(year, month, day).map_err(|_| BadDer)?;
    let time = Time::from_hms(hour, minute, second).map_err(|_| BadDer)?;
    let seconds = date.with_time(time).assume_utc().unix_timestamp();
    Ok(CertificateTime(u64::try_from(seconds).unwrap_or(0)))
}

fn small(text: &[u8]) -> Result<(u8, &[u8]), BadDer> {
    let (number, rest) = number(text, 2)?;
    Ok((u8::try_from(number).map_err(|_| BadDer)?, rest))
}

/// A number of so many digits at the beginning of a text.
fn number(text: &[u8], digits: usize) -> Result<(i32, &[u8]), BadDer> {
    let (digits, rest) = text.split_at_checked(digits).ok_or(BadDer)?;
    // Only digits: `parse` would take a sign.
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err(BadDer);
    }
    let text = std::str::from_utf8(digits).map_err(|_| BadDer)?;
    Ok((text.parse().map_err(|_| BadDer)?, rest))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};
    use time::OffsetDateTime;

    use super::*;

    fn second(text: &str) -> u64 {
        let tag = if text.len() == 13 {
            UTC_TIME
        } else {
            GENERALIZED_TIME
        };
        time_of(tag, text.as_bytes()).unwrap().unix_seconds()
    }

    #[test]
    fn reads_both_forms_of_a_time() {
        for (text, seconds, shown) in [
            ("700101000000Z", 0, "1970-01-01T00:00:00Z"),
            ("260801120000Z", 1_785_585_600, "2026-08-01T12:00:00Z"),
            ("20260801120000Z", 1_785_585_600, "2026-08-01T12:00:00Z"),
            ("491231235959Z", 2_524_607_999, "2049-12-31T23:59:59Z"),
            ("500101000000Z", 0, "1970-01-01T00:00:00Z"),
            ("20500101000000Z", 2_524_608_000, "2050-01-01T00:00:00Z"),
            ("240229000000Z", 1_709_164_800, "2024-02-29T00:00:00Z"),
            ("99991231235959Z", 253_402_300_799, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(second(text), seconds, "{text}");
            assert_eq!(CertificateTime(seconds).to_string(), shown);
        }
    }

    #[test]
    fn refuses_what_is_no_time() {
        for (tag, text) in [
            (UTC_TIME, "2608011200Z"),
            (UTC_TIME, "260801120000"),
            (UTC_TIME, "260801120000+0000"),
            (UTC_TIME, "20260801120000Z"),
            (UTC_TIME, "26080112000-Z"),
            (UTC_TIME, "+60801120000Z"),
            (UTC_TIME, "260230000000Z"),
            (UTC_TIME, "261301000000Z"),
            (UTC_TIME, "260801240000Z"),
            (GENERALIZED_TIME, "260801120000Z"),
            (GENERALIZED_TIME, "20260801120000.5Z"),
            (0x16, "260801120000Z"),
            (UTC_TIME, ""),
        ] {
            assert_eq!(time_of(tag, text.as_bytes()), Err(BadDer), "{text}");
        }
    }

    fn period(from: i64, until: i64) -> (CertificateDer<'static>, Validity) {
        let mut params = CertificateParams::default();
        params.not_before = OffsetDateTime::from_unix_timestamp(from).unwrap();
        params.not_after = OffsetDateTime::from_unix_timestamp(until).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().der().clone();
        let validity = Validity::of(&certificate).unwrap();
        (certificate, validity)
    }

    fn at(seconds: u64) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs(seconds))
    }

    /// What webpki finds expired or not yet valid at a time is so here, to the second.
    #[test]
    fn agrees_with_the_verifier_of_tls() {
        for (from, until) in [(1_000, 2_000), (1_785_585_600, 2_524_608_001)] {
            let (certificate, validity) = period(from, until);
            assert_eq!(
                i64::try_from(validity.not_before().unix_seconds()),
                Ok(from)
            );
            assert_eq!(
                i64::try_from(validity.not_after().unix_seconds()),
                Ok(until)
            );
            let leaf = webpki::EndEntityCert::try_from(&certificate).unwrap();
            let anchor = webpki::anchor_from_trusted_cert(&certificate).unwrap();
            for now in [from - 1, from, until, until + 1] {
                let now = at(u64::try_from(now).unwrap());
                let judged = leaf.verify_for_usage(
                    webpki::ALL_VERIFICATION_ALGS,
                    std::slice::from_ref(&anchor),
                    &[],
                    now,
                    webpki::KeyUsage::server_auth(),
                    None,
                    None,
                );
                let theirs = match judged {
                    Err(webpki::Error::CertExpired { .. }) => Standing::Expired,
                    Err(webpki::Error::CertNotValidYet { .. }) => Standing::NotYetValid,
                    _ => Standing::Valid,
                };
                let none = Some(Duration::ZERO);
                let ours = validity.standing(now, none);
                let same = if ours == Standing::Ending {
                    Standing::Valid
                } else {
                    ours
                };
                assert_eq!(same, theirs);
                assert_eq!(validity.covers(now), theirs == Standing::Valid);
            }
        }
    }

    #[test]
    fn warns_a_third_of_its_life_or_14_days_before_the_end() {
        const DAY: u64 = 86_400;
        for (life, warned) in [(3_600, 1_200), (42 * DAY, 14 * DAY), (365 * DAY, 14 * DAY)] {
            let (_, validity) = period(1_000, i64::try_from(1_000 + life).unwrap());
            let end = 1_000 + life;
            for (now, warn, standing) in [
                (999, None, Standing::NotYetValid),
                (1_000, None, Standing::Valid),
                (end - warned - 1, None, Standing::Valid),
                (end - warned, None, Standing::Ending),
                (end, None, Standing::Ending),
                (end + 1, None, Standing::Expired),
                (end - 10, Some(9), Standing::Valid),
                (end - 9, Some(9), Standing::Ending),
            ] {
                let warn = warn.map(Duration::from_secs);
                assert_eq!(validity.standing(at(now), warn), standing, "{life} {now}");
            }
        }
    }

    #[test]
    fn refuses_every_truncation() {
        let (certificate, _) = period(1_000, 2_000);
        for length in 0..certificate.len() {
            let cut = CertificateDer::from(certificate[..length].to_vec());
            assert_eq!(Validity::of(&cut), Err(BadDer), "{length}");
        }
    }
}

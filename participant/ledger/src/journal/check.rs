//! The whole check of a journal at rest, for the operator's tool and for evidence. It reports all that
//! it can say and changes nothing.

use firn_protocol::ids::UnixMillis;

use super::{
    Bound, BoundBreach, Damage, End, Head, Record, ScanError, Scanner, SegmentSource, Sequence,
};

/// One thing that somebody has to know about a journal.
#[derive(Debug, thiserror::Error)]
pub enum Finding {
    /// The journal is damaged; nothing from there on is believed.
    #[error("damaged: {0}")]
    Damaged(Damage),
    /// Segments could not be read.
    #[error("segments cannot be read: {0}")]
    Unreadable(std::io::Error),
    /// Somebody knows of another or a longer history.
    #[error(transparent)]
    Breach(BoundBreach),
    /// A record that the rules never write after the ones before it.
    #[error("record {sequence}: {what}")]
    Unlawful {
        /// The record.
        sequence: Sequence,
        /// What is wrong with it.
        what: String,
    },
    /// The last write was never finished; a participant cuts it off when it starts.
    #[error(
        "the last write was never finished and never acknowledged: {written} bytes in segment {segment} from byte {offset}"
    )]
    TornTail {
        /// The last segment.
        segment: super::SegmentNumber,
        /// Where the unfinished batch begins.
        offset: usize,
        /// How many bytes of it were written.
        written: usize,
    },
    /// A record is older than the one before it: the clock was set back.
    #[error("record {sequence} was written at {time}, before the record before it ({before})")]
    ClockWentBack {
        /// The record.
        sequence: Sequence,
        /// Its time.
        time: UnixMillis,
        /// The time of the record before it.
        before: UnixMillis,
    },
}

impl Finding {
    /// Whether a participant refuses to start because of it.
    #[must_use]
    pub const fn refuses_start(&self) -> bool {
        match self {
            Self::Damaged(_) | Self::Unreadable(_) | Self::Breach(_) | Self::Unlawful { .. } => {
                true
            }
            Self::TornTail { .. } | Self::ClockWentBack { .. } => false,
        }
    }
}

/// What a check found.
#[derive(Debug)]
pub struct Report {
    /// The records that verified, and the Merkle root over them.
    pub head: Head,
    /// The time of the last of them.
    pub last_time: Option<UnixMillis>,
    /// All that was found, in the journal's order.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether a participant would start from this journal.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        !self.findings.iter().any(Finding::refuses_start)
    }
}

/// Checks the form of a journal from its first record to its last against all that is known of it.
pub fn check<S: SegmentSource>(source: &mut S, bounds: &[Bound]) -> Report {
    check_with(source, bounds, |_| Ok(()))
}

/// As [`check`], and asks `judge` about every record. What comes after the first record that it
/// refuses is not judged any more, since it builds on it.
pub fn check_with<S: SegmentSource>(
    source: &mut S,
    bounds: &[Bound],
    judge: impl FnMut(&Record) -> Result<(), String>,
) -> Report {
    let mut findings = Vec::new();
    let mut report = Report {
        head: Head::empty(),
        last_time: None,
        findings: Vec::new(),
    };
    if let Err(error) = walk(source, bounds, judge, &mut report, &mut findings) {
        findings.push(match error {
            ScanError::Unreadable(error) => Finding::Unreadable(error),
            ScanError::Damaged(damage) => Finding::Damaged(damage),
            ScanError::Breach(breach) => Finding::Breach(breach),
        });
    }
    report.findings = findings;
    report
}

fn walk<S: SegmentSource>(
    source: &mut S,
    bounds: &[Bound],
    mut judge: impl FnMut(&Record) -> Result<(), String>,
    report: &mut Report,
    findings: &mut Vec<Finding>,
) -> Result<(), ScanError> {
    let mut scanner = Scanner::new(source, bounds)?;
    let mut lawful = true;
    while let Some(batch) = scanner.next_batch()? {
        for entry in batch.entries() {
            let (sequence, time) = (entry.record().sequence(), entry.record().time());
            if let Some(before) = report.last_time.filter(|before| time < *before) {
                findings.push(Finding::ClockWentBack {
                    sequence,
                    time,
                    before,
                });
            }
            report.last_time = Some(time);
            if lawful && let Err(what) = judge(entry.record()) {
                lawful = false;
                findings.push(Finding::Unlawful { sequence, what });
            }
        }
        report.head = scanner.tip().head();
    }
    if let Some((
        End::TornTail {
            segment,
            offset,
            written,
        },
        _,
    )) = scanner.end()
    {
        findings.push(Finding::TornTail {
            segment,
            offset,
            written,
        });
    }
    Ok(())
}

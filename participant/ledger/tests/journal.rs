//! What a reader may conclude from a journal's bytes: every record of every sound journal, and from
//! any other no more than was acknowledged.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "a test states what it expects"
)]

use firn_ledger::journal::{
    Appender, Bound, BoundBreach, Damage, End, Entry, Finding, Flaw, Head, Knower, MAX_BODY_BYTES,
    MemorySegments, NewRecord, RecordKind, ScanError, Scanner, SegmentBytes, SegmentNumber, Tip,
    check,
};
use firn_protocol::{
    ids::UnixMillis,
    merkle::{LeafHash, MerkleTree, TreeSize},
};

struct Journal {
    segments: MemorySegments,
    appender: Appender,
    tip: Tip,
    entries: Vec<Entry>,
    /// The head after each batch, the empty one first.
    heads: Vec<Head>,
    /// Segment, offset and length of each batch.
    batches: Vec<(SegmentNumber, usize, usize)>,
}

impl Journal {
    fn new(segment_bytes: u32) -> Self {
        Self {
            segments: MemorySegments::default(),
            appender: Appender::new(SegmentBytes::new(segment_bytes).unwrap(), None),
            tip: Tip::genesis(),
            entries: Vec::new(),
            heads: vec![Head::empty()],
            batches: Vec::new(),
        }
    }

    fn append(&mut self, bodies: &[Vec<u8>]) {
        let before = self.tip.clone();
        let mut entries = Vec::new();
        for body in bodies {
            let new = NewRecord::new(RecordKind::new(7), body.clone()).unwrap();
            let entry = self
                .tip
                .next_entry(new, UnixMillis::new(1_000 + self.tip.size().leaves()))
                .unwrap();
            self.tip.advance(&entry).unwrap();
            entries.push(entry);
        }
        let write = self.appender.append(&before, &entries).unwrap();
        if let Some(header) = write.create {
            let mut bytes = header.encode();
            bytes.resize(header.segment_bytes().as_usize(), 0);
            self.segments.0.insert(header.number(), bytes);
        }
        let segment = self.segments.0.get_mut(&write.segment).unwrap();
        let space = &mut segment[write.offset..write.offset + write.bytes.len()];
        assert!(
            space.iter().all(|byte| *byte == 0),
            "only never-written space is written"
        );
        space.copy_from_slice(&write.bytes);
        self.batches
            .push((write.segment, write.offset, write.bytes.len()));
        self.heads.push(self.tip.head());
        self.entries.extend(entries);
    }

    fn last_head(&self) -> Head {
        *self.heads.last().unwrap()
    }
}

/// What a participant would conclude: where the journal ends, and how.
fn read(segments: &MemorySegments, bounds: &[Bound]) -> Result<(Head, End, Vec<Entry>), ScanError> {
    let mut source = segments.clone();
    let mut scanner = Scanner::new(&mut source, bounds)?;
    let mut entries = Vec::new();
    while let Some(batch) = scanner.next_batch()? {
        entries.extend(batch.into_entries());
    }
    let (end, _) = scanner.end().unwrap();
    Ok((scanner.tip().head(), end, entries))
}

fn small() -> Journal {
    let mut journal = Journal::new(2048);
    journal.append(&[b"first".to_vec()]);
    journal.append(&[b"second".to_vec(), vec![0xab; 300], b"fourth".to_vec()]);
    journal.append(&[b"fifth".to_vec()]);
    assert_eq!(journal.segments.0.len(), 2);
    journal
}

fn bound(knower: Knower, head: Head) -> Bound {
    Bound { knower, head }
}

#[test]
fn reads_back_what_was_written_over_several_segments() {
    let mut journal = Journal::new(8192);
    for round in 0..100_u8 {
        let bodies: Vec<_> = (0..=round % 5)
            .map(|n| vec![round; usize::from(n) * 150])
            .collect();
        journal.append(&bodies);
    }
    assert!(journal.segments.0.len() > 5);
    let (head, end, entries) = read(&journal.segments, &[]).unwrap();
    assert_eq!((head, end), (journal.last_head(), End::Clean));
    assert_eq!(entries, journal.entries);
    let leaves: Vec<_> = entries
        .iter()
        .map(|entry| LeafHash::of(entry.bytes()))
        .collect();
    assert_eq!(
        MerkleTree::from_leaves(&leaves).root_at(head.size).unwrap(),
        head.root
    );
    let report = check(&mut journal.segments, &[bound(Knower::Anchor, head)]);
    assert!(report.is_sound() && report.findings.is_empty());
    assert_eq!(report.head, head);
}

#[test]
fn an_empty_journal_is_clean() {
    let (head, end, entries) = read(&MemorySegments::default(), &[]).unwrap();
    assert_eq!((head, end, entries.len()), (Head::empty(), End::Clean, 0));
}

#[test]
fn takes_the_largest_body_and_no_batch_over_a_segment() {
    let mut journal = Journal::new(SegmentBytes::DEFAULT.bytes());
    journal.append(&[vec![0; MAX_BODY_BYTES]]);
    assert_eq!(read(&journal.segments, &[]).unwrap().0, journal.last_head());
    assert!(NewRecord::new(RecordKind::new(1), vec![0; MAX_BODY_BYTES + 1]).is_err());

    let mut tight = Appender::new(SegmentBytes::new(1024).unwrap(), None);
    let new = |bytes| NewRecord::new(RecordKind::new(1), vec![1; bytes]).unwrap();
    let entry = |bytes| {
        Tip::genesis()
            .next_entry(new(bytes), UnixMillis::new(1))
            .unwrap()
    };
    assert!(tight.append(&Tip::genesis(), &[entry(600)]).is_none());
    assert!(tight.append(&Tip::genesis(), &[]).is_none());
    assert!(tight.append(&Tip::genesis(), &[entry(300)]).is_some());
}

#[test]
fn every_flipped_bit_is_refused_unless_it_is_in_never_written_space() {
    let journal = small();
    let (last_segment, last_offset, last_length) = *journal.batches.last().unwrap();
    let mut refused = 0;
    for (number, bytes) in &journal.segments.0 {
        for bit in 0..bytes.len() * 8 {
            let mut damaged = journal.segments.clone();
            damaged.0.get_mut(number).unwrap()[bit / 8] ^= 1 << (bit % 8);
            let outcome = read(&damaged, &[]);
            let in_tail = *number == last_segment && bit / 8 >= last_offset + last_length;
            match outcome {
                Err(ScanError::Damaged(_)) => refused += 1,
                // Not in the sector where the next batch would begin: that one would begin otherwise.
                Ok(_) if in_tail && bit / 8 < last_offset + last_length + 512 => {
                    panic!("bit {bit} passed for the beginning of a batch")
                }
                // A stray bit where nothing was ever written costs nothing, and is said.
                Ok((head, End::TornTail { .. }, _)) if in_tail => {
                    assert_eq!(head, journal.last_head())
                }
                other => panic!("segment {number}, bit {bit}: {other:?}"),
            }
        }
    }
    assert!(refused > 16_000, "{refused}");
}

#[test]
fn a_batch_cut_short_at_any_byte_is_torn_and_its_bound_refuses_the_cut() {
    for bodies in [
        vec![b"short".to_vec()],
        vec![vec![0x55; 1200], b"x".to_vec()],
        vec![vec![0; 1300]],
    ] {
        let mut journal = Journal::new(4096);
        journal.append(&[b"kept".to_vec()]);
        journal.append(&bodies);
        let (segment, offset, length) = journal.batches[1];
        for written in 0..length {
            let mut torn = journal.segments.clone();
            torn.0.get_mut(&segment).unwrap()[offset + written..offset + length].fill(0);
            let (head, end, _) = read(&torn, &[bound(Knower::Anchor, journal.heads[1])]).unwrap();
            assert_eq!(head, journal.heads[1], "cut at {written}");
            let clean = torn.0[&segment][offset..].iter().all(|byte| *byte == 0);
            match end {
                End::Clean => assert!(clean),
                End::TornTail {
                    segment: at,
                    offset: from,
                    ..
                } => assert_eq!((at, from), (segment, offset)),
            }
            for knower in [Knower::Anchor, Knower::Index, Knower::Witness] {
                let known = bound(knower, journal.heads[2]);
                match read(&torn, &[known]) {
                    Err(ScanError::Breach(BoundBreach::Behind { bound, found })) => {
                        assert_eq!((bound, found), (known, journal.heads[1]));
                    }
                    other => panic!("cut at {written}: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn every_subset_of_unwritten_sectors_is_torn() {
    let mut journal = Journal::new(8192);
    journal.append(&[b"kept".to_vec()]);
    journal.append(&[vec![0x77; 900], vec![0; 1200], vec![0x33; 400]]);
    let (segment, offset, length) = journal.batches[1];
    let sectors = length / 512;
    for lost in 1..1_u32 << sectors {
        let mut torn = journal.segments.clone();
        let bytes = torn.0.get_mut(&segment).unwrap();
        let before = bytes.clone();
        for sector in (0..sectors).filter(|sector| lost >> sector & 1 == 1) {
            bytes[offset + sector * 512..offset + (sector + 1) * 512].fill(0);
        }
        // Some sectors of this batch are zeros anyway: losing those loses nothing.
        let wanted = if *bytes == before {
            journal.heads[2]
        } else {
            journal.heads[1]
        };
        let (head, _, _) = read(&torn, &[]).unwrap();
        assert_eq!(head, wanted, "lost {lost:b}");
    }
}

#[test]
fn a_hole_before_a_later_batch_is_damage() {
    let mut journal = Journal::new(8192);
    for _ in 0..3 {
        journal.append(&[vec![0x77; 900]]);
    }
    for batch in 0..2 {
        let (segment, offset, length) = journal.batches[batch];
        for hole in [
            offset..offset + 512,
            offset + 512..offset + 1024,
            offset..offset + length,
        ] {
            let mut damaged = journal.segments.clone();
            damaged.0.get_mut(&segment).unwrap()[hole].fill(0);
            let refused = read(&damaged, &[]).unwrap_err();
            let ScanError::Damaged(Damage { sequence, .. }) = refused else {
                panic!("{refused:?}")
            };
            assert_eq!(sequence.value(), batch as u64);
        }
    }
}

#[test]
fn segments_missing_swapped_resized_or_from_elsewhere_are_refused() {
    let journal = small();
    let (first, second) = (SegmentNumber::FIRST, SegmentNumber::FIRST.next());
    let mut other = Journal::new(2048);
    for _ in 0..4 {
        other.append(&[b"other".to_vec()]);
    }
    let change = |change: &dyn Fn(&mut MemorySegments)| {
        let mut segments = journal.segments.clone();
        change(&mut segments);
        match read(&segments, &[]) {
            Err(ScanError::Damaged(damage)) => damage.flaw,
            other => panic!("{other:?}"),
        }
    };
    let missing = change(&|all| drop(all.0.remove(&first)));
    assert_eq!(missing, Flaw::SegmentMissing { found: second });
    let swapped = change(&|all| {
        let bytes = all.0.insert(first, all.0[&second].clone()).unwrap();
        all.0.insert(second, bytes);
    });
    assert_eq!(swapped, Flaw::SegmentPlace);
    let foreign = change(&|all| drop(all.0.insert(second, other.segments.0[&second].clone())));
    assert_eq!(foreign, Flaw::SegmentPlace);
    for length in [0, 100, 512, 1500, 2047, 2049] {
        let resized = change(&|all| all.0.get_mut(&second).unwrap().resize(length, 0));
        assert!(
            matches!(resized, Flaw::SegmentLength { .. } | Flaw::SegmentHeader),
            "{resized:?}"
        );
    }
    let emptied = change(&|all| all.0.get_mut(&first).unwrap()[512..].fill(0));
    assert_eq!(emptied, Flaw::SegmentPlace);
    let mut newer = journal.segments.clone();
    newer.0.get_mut(&first).unwrap()[11] = 2;
    assert!(matches!(
        read(&newer, &[]),
        Err(ScanError::Damaged(Damage {
            flaw: Flaw::SegmentVersion { found: 2 },
            ..
        }))
    ));
}

#[test]
fn no_damage_yields_a_record_that_was_not_written() {
    let mut journal = Journal::new(4096);
    for round in 0..12_u8 {
        journal.append(&[vec![round; usize::from(round) * 90], b"and".to_vec()]);
    }
    // A small generator of our own: any sequence will do, as long as it is the same each time.
    let mut state = 0x9e37_79b9_u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut refused, mut cut) = (0, 0);
    for _ in 0..4_000 {
        let mut damaged = journal.segments.clone();
        let count = damaged.0.len();
        for _ in 0..=random(3) {
            let bytes = damaged.0.values_mut().nth(random(count)).unwrap();
            let (from, length) = (random(bytes.len()), 1 + random(700));
            let to = (from + length).min(bytes.len());
            match random(4) {
                0 => bytes[from..to].fill(0),
                1 => bytes[from..to].fill(0xff),
                2 => bytes[from] ^= 1 << random(8),
                _ => bytes.copy_within(from..to, random(4096 - (to - from))),
            }
        }
        let mut scanner = Scanner::new(&mut damaged, &[]).unwrap();
        let mut found = Vec::new();
        let refusal = loop {
            match scanner.next_batch() {
                Ok(Some(batch)) => found.extend(batch.into_entries()),
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        assert_eq!(found, journal.entries[..found.len()]);
        if refusal {
            refused += 1;
            assert!(
                scanner.next_batch().unwrap_or(None).is_none(),
                "a scan that failed is over"
            );
        } else if found.len() < journal.entries.len() {
            cut += 1;
            assert!(
                found.len() >= journal.entries.len() - 2,
                "only the last batch may be cut"
            );
        }
    }
    assert!(refused > 2_000 && cut > 10, "{refused} refused, {cut} cut");
}

#[test]
fn a_batch_copied_to_another_place_is_not_one() {
    let journal = small();
    // A record is not the next one anywhere else; what its place guards is the header, since a copied
    // one would make a torn batch before it look acknowledged.
    let (segment, offset, length) = journal.batches[2];
    let mut torn = journal.segments.clone();
    let bytes = torn.0.get_mut(&segment).unwrap();
    bytes.copy_within(offset..offset + 60, offset + length);
    bytes[offset..offset + 512].fill(0);
    assert_eq!(read(&torn, &[]).unwrap().0, journal.heads[2]);
    let mut copied = journal.segments.clone();
    let bytes = copied.0.get_mut(&segment).unwrap();
    bytes.copy_within(offset..offset + length, offset + length);
    assert!(matches!(read(&copied, &[]), Err(ScanError::Damaged(_))));
}

#[test]
fn another_history_is_refused_at_any_size_that_somebody_knows() {
    let journal = small();
    let mut other = Journal::new(2048);
    for _ in 0..5 {
        other.append(&[b"other".to_vec()]);
    }
    for size in 0..=5 {
        let tree = |journal: &Journal| {
            let leaves: Vec<_> = journal.entries.iter().map(Entry::leaf).collect();
            let root = MerkleTree::from_leaves(&leaves)
                .root_at(TreeSize::new(size))
                .unwrap();
            Head {
                size: TreeSize::new(size),
                root,
            }
        };
        assert!(read(&journal.segments, &[bound(Knower::Witness, tree(&journal))]).is_ok());
        let refused = read(&journal.segments, &[bound(Knower::Witness, tree(&other))]);
        match (size, refused) {
            (0, Ok(_)) => {}
            (_, Err(ScanError::Breach(BoundBreach::Diverged { .. }))) => assert_ne!(size, 0),
            (_, other) => panic!("{other:?}"),
        }
    }
    let mut source = journal.segments.clone();
    let report = check(&mut source, &[bound(Knower::Witness, other.last_head())]);
    assert!(!report.is_sound());
    assert!(matches!(report.findings[..], [Finding::Breach(_)]));
}

#[test]
fn the_report_names_a_clock_that_went_back() {
    let mut journal = Journal::new(4096);
    let mut tip = Tip::genesis();
    let before = tip.clone();
    let entries = [500, 400].map(|time| {
        let new = NewRecord::new(RecordKind::new(1), Vec::new()).unwrap();
        let entry = tip.next_entry(new, UnixMillis::new(time)).unwrap();
        tip.advance(&entry).unwrap();
        entry
    });
    let write = journal.appender.append(&before, &entries).unwrap();
    let mut bytes = write.create.unwrap().encode();
    bytes.extend_from_slice(&write.bytes);
    bytes.resize(4096, 0);
    journal.segments.0.insert(write.segment, bytes);
    let report = check(&mut journal.segments, &[]);
    assert!(report.is_sound());
    assert!(
        matches!(report.findings[..], [Finding::ClockWentBack { .. }]),
        "{report:?}"
    );
}

#[test]
fn a_sound_journal_of_records_that_no_rule_wrote_is_not_lawful() {
    let mut journal = small();
    let report = firn_ledger::rules::check(&mut journal.segments, &[]);
    assert!(!report.is_sound());
    assert!(matches!(
        report.findings.as_slice(),
        [Finding::Unlawful { sequence, .. }] if sequence.value() == 0
    ));
    assert_eq!(
        report.head,
        journal.last_head(),
        "its form is sound to the end"
    );
}

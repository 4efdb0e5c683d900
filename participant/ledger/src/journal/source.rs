//! Where segments are read from. It never decides what they mean.

use std::{collections::BTreeMap, io};

use super::SegmentNumber;

/// The segments of one journal.
pub trait SegmentSource {
    /// The numbers of all segments that exist, in ascending order.
    ///
    /// # Errors
    /// Whatever keeps them from being listed.
    fn numbers(&mut self) -> io::Result<Vec<SegmentNumber>>;

    /// The whole of one segment, at most [`super::SegmentBytes::MAX`].
    ///
    /// # Errors
    /// Whatever keeps it from being read.
    fn read(&mut self, number: SegmentNumber) -> io::Result<Vec<u8>>;
}

/// Segments in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemorySegments(pub BTreeMap<SegmentNumber, Vec<u8>>);

impl SegmentSource for MemorySegments {
    fn numbers(&mut self) -> io::Result<Vec<SegmentNumber>> {
        Ok(self.0.keys().copied().collect())
    }

    fn read(&mut self, number: SegmentNumber) -> io::Result<Vec<u8>> {
        self.0
            .get(&number)
            .cloned()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

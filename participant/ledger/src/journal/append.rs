//! Where the next batch goes. It decides place and bytes; whoever writes them says when they are
//! durable.

use super::{
    Entry, Place, SECTOR_BYTES, SegmentBytes, SegmentHeader, SegmentNumber, Tip, batch_bytes,
    encode_batch,
};

/// One batch to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// A segment that has to exist, whole and durable, before the batch is written.
    pub create: Option<SegmentHeader>,
    /// The segment to write to.
    pub segment: SegmentNumber,
    /// The byte within its file.
    pub offset: usize,
    /// The batch.
    pub bytes: Vec<u8>,
}

/// Follows the end of a journal that is being written.
#[derive(Clone, Debug)]
pub struct Appender {
    size: SegmentBytes,
    place: Option<Place>,
}

impl Appender {
    /// Goes on at `place`, as a [`super::Scanner`] found it; new segments get `size`.
    #[must_use]
    pub const fn new(size: SegmentBytes, place: Option<Place>) -> Self {
        Self { size, place }
    }

    /// The largest batch that can be written.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.size.capacity()
    }

    /// Plans the batch of `entries`, the first of which follows `before`. None if it is empty or over
    /// the capacity; the place is then unchanged.
    #[must_use]
    pub fn append(&mut self, before: &Tip, entries: &[Entry]) -> Option<Write> {
        let record_bytes = entries.iter().map(|entry| entry.bytes().len()).sum();
        let length = batch_bytes(entries.len(), record_bytes);
        let fits = |place: &Place| {
            let end = place.offset.saturating_add(length);
            end <= place.header.segment_bytes().as_usize()
        };
        let (place, create) = match self.place.clone().filter(fits) {
            Some(place) => (place, None),
            None if length > self.capacity() => return None,
            None => {
                let number = self
                    .place
                    .as_ref()
                    .map_or(SegmentNumber::FIRST, |old| old.header.number().next());
                let header = SegmentHeader::new(self.size, number, before);
                (
                    Place {
                        header: header.clone(),
                        offset: SECTOR_BYTES,
                    },
                    Some(header),
                )
            }
        };
        let bytes = encode_batch(entries, &place.header, place.offset)?;
        let write = Write {
            create,
            segment: place.header.number(),
            offset: place.offset,
            bytes,
        };
        let offset = place.offset.saturating_add(length);
        self.place = Some(Place { offset, ..place });
        Some(write)
    }
}

//! Bitcoin's integers, compact sizes and length-prefixed strings. Decides only whether bytes have
//! that form; allocates nothing while reading.

/// Why bytes do not have the form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WireError {
    /// The bytes end before the item does.
    Truncated,
    /// A compact size is longer than its number needs.
    NonMinimal,
}

/// What has not been read yet of some bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn take(&mut self, length: u64) -> Result<&'a [u8], WireError> {
        let length = usize::try_from(length).map_err(|_| WireError::Truncated)?;
        let (head, tail) = self
            .rest
            .split_at_checked(length)
            .ok_or(WireError::Truncated)?;
        self.rest = tail;
        Ok(head)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (head, tail) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(WireError::Truncated)?;
        self.rest = tail;
        Ok(*head)
    }

    pub(super) fn u8(&mut self) -> Result<u8, WireError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A compact size in its shortest form; a longer form would let one PSBT have two encodings.
    pub(super) fn compact_size(&mut self) -> Result<u64, WireError> {
        let (number, least) = match self.u8()? {
            0xfd => (u64::from(u16::from_le_bytes(self.array()?)), 0xfd),
            0xfe => (u64::from(self.u32()?), 0x1_0000),
            0xff => (self.u64()?, 0x1_0000_0000),
            short => (u64::from(short), 0),
        };
        if number < least {
            Err(WireError::NonMinimal)
        } else {
            Ok(number)
        }
    }

    /// Bytes after their length as a compact size.
    pub(super) fn prefixed(&mut self) -> Result<&'a [u8], WireError> {
        let length = self.compact_size()?;
        self.take(length)
    }
}

/// Appends the shortest compact size of `number`.
pub(super) fn put_compact_size(out: &mut Vec<u8>, number: usize) {
    // `usize` has at most 64 bits on every platform that Rust supports.
    let number = u64::try_from(number).unwrap_or(u64::MAX);
    if let Ok(short) = u8::try_from(number)
        && short < 0xfd
    {
        out.push(short);
    } else if let Ok(number) = u16::try_from(number) {
        out.push(0xfd);
        out.extend_from_slice(&number.to_le_bytes());
    } else if let Ok(number) = u32::try_from(number) {
        out.push(0xfe);
        out.extend_from_slice(&number.to_le_bytes());
    } else {
        out.push(0xff);
        out.extend_from_slice(&number.to_le_bytes());
    }
}

/// Appends `bytes` after their length.
pub(super) fn put_prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    put_compact_size(out, bytes.len());
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::{Cursor, WireError, put_compact_size};

    #[test]
    fn each_number_has_one_compact_size() {
        for number in [
            0,
            1,
            0xfc,
            0xfd,
            0xffff,
            0x1_0000,
            0xffff_ffff,
            0x1_0000_0000,
        ] {
            let mut bytes = Vec::new();
            put_compact_size(&mut bytes, number);
            assert_eq!(Cursor::new(&bytes).compact_size(), Ok(number as u64));
            for end in 0..bytes.len() {
                let cut = Cursor::new(&bytes[..end]).compact_size();
                assert_eq!(cut, Err(WireError::Truncated));
            }
        }
        for longer in [
            &[0xfd, 0xfc, 0][..],
            &[0xfe, 0xff, 0xff, 0, 0],
            &[0xff, 1, 0, 0, 0, 0, 0, 0, 0],
        ] {
            assert_eq!(
                Cursor::new(longer).compact_size(),
                Err(WireError::NonMinimal)
            );
        }
    }
}

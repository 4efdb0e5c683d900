//! The form of one CBOR item, judged on its raw bytes. It decides what is well-formed and
//! deterministic (RFC 8949 sections 3 and 4.2.1) and never allocates or looks at meaning.

use super::Malformed;
use crate::limits::MAX_DEPTH;

/// Checks that `bytes` are exactly one item in the deterministic form.
///
/// # Errors
/// The first deviation, in reading order.
pub fn check(bytes: &[u8]) -> Result<(), Malformed> {
    let mut walk = Walk { rest: bytes };
    walk.item(0)?;
    if walk.rest.is_empty() {
        Ok(())
    } else {
        Err(Malformed::TrailingBytes)
    }
}

struct Walk<'a> {
    rest: &'a [u8],
}

impl<'a> Walk<'a> {
    fn take(&mut self, count: u64) -> Result<&'a [u8], Malformed> {
        let count = usize::try_from(count).map_err(|_| Malformed::Truncated)?;
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn number(&mut self, width: u64) -> Result<u64, Malformed> {
        let bytes = self.take(width)?;
        Ok(bytes
            .iter()
            .fold(0, |number, byte| (number << 8) | u64::from(*byte)))
    }

    /// The argument of a head, in its shortest form.
    fn argument(&mut self, additional: u8) -> Result<u64, Malformed> {
        let (number, least) = match additional {
            0..=23 => return Ok(u64::from(additional)),
            24 => (self.number(1)?, 24),
            25 => (self.number(2)?, 1 << 8),
            26 => (self.number(4)?, 1 << 16),
            27 => (self.number(8)?, 1 << 32),
            28..=30 => return Err(Malformed::Reserved),
            _ => return Err(Malformed::IndefiniteLength),
        };
        if number < least {
            Err(Malformed::NotShortest)
        } else {
            Ok(number)
        }
    }

    /// Recursion is bounded by `MAX_DEPTH`, so the stack is too.
    fn item(&mut self, depth: usize) -> Result<(), Malformed> {
        let initial = self.number(1)?;
        let major = initial >> 5;
        let additional = u8::try_from(initial & 0x1f).map_err(|_| Malformed::Reserved)?;
        match major {
            0 | 1 => self.argument(additional).map(|_| ()),
            2 => {
                let length = self.argument(additional)?;
                self.take(length).map(|_| ())
            }
            3 => {
                let length = self.argument(additional)?;
                let text = self.take(length)?;
                std::str::from_utf8(text)
                    .map(|_| ())
                    .map_err(|_| Malformed::InvalidUtf8)
            }
            4 => {
                let length = self.argument(additional)?;
                let depth = deeper(depth)?;
                self.claim(length)?;
                (0..length).try_for_each(|_| self.item(depth))
            }
            5 => {
                let length = self.argument(additional)?;
                let depth = deeper(depth)?;
                self.claim(length)?;
                self.map(length, depth)
            }
            6 => Err(Malformed::Tag),
            _ => match additional {
                20 | 21 => Ok(()),
                25..=27 => Err(Malformed::Float),
                28..=30 => Err(Malformed::Reserved),
                31 => Err(Malformed::IndefiniteLength),
                _ => Err(Malformed::Simple),
            },
        }
    }

    /// An array cannot hold more items than there are bytes left, whatever its head says.
    fn claim(&self, items: u64) -> Result<(), Malformed> {
        match usize::try_from(items) {
            Ok(items) if items <= self.rest.len() => Ok(()),
            _ => Err(Malformed::Truncated),
        }
    }

    fn map(&mut self, length: u64, depth: usize) -> Result<(), Malformed> {
        let mut previous: Option<&[u8]> = None;
        for _ in 0..length {
            let before = self.rest;
            self.item(depth)?;
            let key = before
                .len()
                .checked_sub(self.rest.len())
                .and_then(|used| before.get(..used))
                .ok_or(Malformed::Truncated)?;
            if let Some(previous) = previous {
                match previous.cmp(key) {
                    std::cmp::Ordering::Less => {}
                    std::cmp::Ordering::Equal => return Err(Malformed::DuplicateKey),
                    std::cmp::Ordering::Greater => return Err(Malformed::UnsortedKeys),
                }
            }
            previous = Some(key);
            self.item(depth)?;
        }
        Ok(())
    }
}

fn deeper(depth: usize) -> Result<usize, Malformed> {
    if depth < MAX_DEPTH {
        Ok(depth.saturating_add(1))
    } else {
        Err(Malformed::TooDeep)
    }
}

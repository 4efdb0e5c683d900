//! As much of DER (X.690) as a certificate request is made of. It decides where an element ends, and
//! refuses whatever is not written in its one form.

/// Bytes that are not the DER that they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadDer;

pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(super) const UTF8_STRING: u8 = 0x0c;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;
/// The first choice of a context, constructed.
pub(super) const CONTEXT_0: u8 = 0xa0;

/// One element: its tag, its content, and all of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Element<'a> {
    pub(super) tag: u8,
    pub(super) content: &'a [u8],
    pub(super) whole: &'a [u8],
}

/// Elements one after another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    /// Those in the content of the one element of this tag that `bytes` are.
    pub(super) fn of(bytes: &'a [u8], tag: u8) -> Result<Self, BadDer> {
        let mut outer = Self(bytes);
        let element = outer.take(tag)?;
        outer.end()?;
        Ok(Self(element.content))
    }

    /// Those that stand in these bytes.
    pub(super) const fn within(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next one, which must have this tag.
    pub(super) fn take(&mut self, tag: u8) -> Result<Element<'a>, BadDer> {
        let element = self.next()?;
        if element.tag == tag {
            Ok(element)
        } else {
            Err(BadDer)
        }
    }

    /// The next one.
    pub(super) fn next(&mut self) -> Result<Element<'a>, BadDer> {
        let (&tag, rest) = self.0.split_first().ok_or(BadDer)?;
        let (&first, rest) = rest.split_first().ok_or(BadDer)?;
        // The shortest form of the length, of at most two bytes.
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81 => {
                let (&low, rest) = rest.split_first().ok_or(BadDer)?;
                (at_least(usize::from(low), 0x80)?, rest)
            }
            0x82 => {
                let (&length, rest) = rest.split_first_chunk().ok_or(BadDer)?;
                (
                    at_least(usize::from(u16::from_be_bytes(length)), 0x100)?,
                    rest,
                )
            }
            _ => return Err(BadDer),
        };
        let (content, after) = rest.split_at_checked(length).ok_or(BadDer)?;
        let taken = self.0.len().saturating_sub(after.len());
        let whole = self.0.get(..taken).ok_or(BadDer)?;
        self.0 = after;
        Ok(Element {
            tag,
            content,
            whole,
        })
    }

    /// Whether there is no more.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes that are left.
    pub(super) const fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// There must be no more.
    pub(super) const fn end(&self) -> Result<(), BadDer> {
        if self.is_empty() { Ok(()) } else { Err(BadDer) }
    }
}

const fn at_least(length: usize, least: usize) -> Result<usize, BadDer> {
    if length >= least {
        Ok(length)
    } else {
        Err(BadDer)
    }
}

#[cfg(test)]
mod tests {
    use super::{BadDer, Elements, INTEGER, SEQUENCE};

    #[test]
    fn an_element_has_one_form_and_an_end() {
        let mut elements = Elements::of(b"\x30\x06\x02\x01\x07\x02\x01\x09", SEQUENCE).unwrap();
        let first = elements.take(INTEGER).unwrap();
        assert_eq!(
            (first.content, first.whole),
            (&b"\x07"[..], &b"\x02\x01\x07"[..])
        );
        assert_eq!(elements.end(), Err(BadDer));
        assert_eq!(elements.take(INTEGER).unwrap().content, b"\x09");
        assert_eq!(elements.end(), Ok(()));
        for refused in [
            &b""[..],
            b"\x30",
            b"\x30\x02\x00",
            b"\x30\x00\x00",
            b"\x31\x00",
            b"\x30\x80\x00\x00",
            b"\x30\x81\x01\x00",
            b"\x30\x82\x00\x01\x00",
            b"\x30\x83\x00\x00\x01\x00",
        ] {
            assert!(Elements::of(refused, SEQUENCE).is_err(), "{refused:02x?}");
        }
    }
}

//! Just enough DER (X.690, section 10) to find one field of a certificate that TLS has parsed or will
//! parse. It never skips what it cannot read.

/// A certificate, or what is looked for in it, is not the DER that it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadDer;

/// The tag of a SEQUENCE.
pub(crate) const SEQUENCE: u8 = 0x30;

/// The content of the one element that `bytes` are.
pub(crate) fn only(bytes: &[u8], tag: u8) -> Result<&[u8], BadDer> {
    match next(bytes)? {
        (found, value, []) if found == tag => Ok(value),
        _ => Err(BadDer),
    }
}

/// Tag, content, and what comes after the first element of `bytes`.
pub(crate) fn next(bytes: &[u8]) -> Result<(u8, &[u8], &[u8]), BadDer> {
    let (&tag, rest) = bytes.split_first().ok_or(BadDer)?;
    let (&first, rest) = rest.split_first().ok_or(BadDer)?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => {
            let (&[low], rest) = rest.split_first_chunk().ok_or(BadDer)?;
            (usize::from(low), rest)
        }
        0x82 => {
            let (&length, rest) = rest.split_first_chunk().ok_or(BadDer)?;
            (usize::from(u16::from_be_bytes(length)), rest)
        }
        _ => return Err(BadDer),
    };
    let (value, rest) = rest.split_at_checked(length).ok_or(BadDer)?;
    Ok((tag, value, rest))
}

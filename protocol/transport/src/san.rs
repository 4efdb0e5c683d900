//! The URI names of a certificate's subject alternative name (RFC 5280, section 4.2.1.6). It decides
//! how many there are, and never skips one that it cannot read.
//!
//! `webpki` lists URI names too, but leaves out those that are not UTF-8 and everything behind a
//! name of an unknown kind; "exactly one" has to count those as well.

use crate::der::{BadDer, SEQUENCE, next, only};

const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const BOOLEAN: u8 = 0x01;
const EXTENSIONS: u8 = 0xa3;
const URI: u8 = 0x86;
const SUBJECT_ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];

/// All URI names of the certificate, as raw bytes.
pub(crate) fn uri_names(certificate: &[u8]) -> Result<Vec<&[u8]>, BadDer> {
    let Some(names) = subject_alternative_name(certificate)? else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    let mut rest = only(names, SEQUENCE)?;
    while !rest.is_empty() {
        let (tag, value, after) = next(rest)?;
        match tag {
            URI => found.push(value),
            // The other choices of GeneralName, each with its one tag.
            0xa0 | 0x81 | 0x82 | 0xa3 | 0xa4 | 0xa5 | 0x87 | 0x88 => {}
            _ => return Err(BadDer),
        }
        rest = after;
    }
    Ok(found)
}

/// The value of the extension, without the octet string around it.
fn subject_alternative_name(certificate: &[u8]) -> Result<Option<&[u8]>, BadDer> {
    let (_, signed, _) = next(only(certificate, SEQUENCE)?)?;
    let mut fields = signed;
    while !fields.is_empty() {
        let (tag, value, after) = next(fields)?;
        fields = after;
        if tag != EXTENSIONS {
            continue;
        }
        let mut extensions = only(value, SEQUENCE)?;
        while !extensions.is_empty() {
            let (_, extension, more) = next(extensions)?;
            extensions = more;
            let (OBJECT_IDENTIFIER, id, content) = next(extension)? else {
                return Err(BadDer);
            };
            if id != SUBJECT_ALTERNATIVE_NAME {
                continue;
            }
            let (tag, value, after) = next(content)?;
            // A `critical` flag may stand before the value.
            return match tag {
                BOOLEAN => only(after, OCTET_STRING).map(Some),
                OCTET_STRING if after.is_empty() => Ok(Some(value)),
                _ => Err(BadDer),
            };
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::{BadDer, EXTENSIONS, SEQUENCE, uri_names};

    const INTEGER: u8 = 0x02;
    const VERSION: u8 = 0xa0;

    fn der(tag: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![tag, 0x82];
        bytes.extend(u16::try_from(content.len()).unwrap().to_be_bytes());
        bytes.extend(content);
        bytes
    }

    fn certificate(names: &[u8]) -> Vec<u8> {
        let mut extension = vec![6, 3, 0x55, 0x1d, 0x11, 1, 1, 0xff];
        extension.extend(der(4, &der(SEQUENCE, names)));
        let extensions = der(EXTENSIONS, &der(SEQUENCE, &der(SEQUENCE, &extension)));
        let signed = [der(VERSION, &der(INTEGER, &[2])), extensions].concat();
        der(SEQUENCE, &der(SEQUENCE, &signed))
    }

    #[test]
    fn counts_every_uri_whatever_its_bytes_are() {
        let names = [&b"\x86\x03a:b"[..], b"\x82\x01h", b"\x86\x02\xff\xfe"].concat();
        let certificate = certificate(&names);
        assert_eq!(uri_names(&certificate).unwrap(), [&b"a:b"[..], b"\xff\xfe"]);
    }

    #[test]
    fn refuses_names_of_an_unknown_kind_and_every_truncation() {
        assert_eq!(
            uri_names(&certificate(b"\x86\x03a:b\x99\x01x")),
            Err(BadDer)
        );
        assert_eq!(uri_names(&certificate(b"\x86\x09a:b")), Err(BadDer));
        let whole = certificate(b"\x86\x03a:b");
        assert_eq!(uri_names(&whole).unwrap().len(), 1);
        for length in 0..whole.len() {
            assert_eq!(uri_names(&whole[..length]), Err(BadDer), "{length}");
        }
    }
}

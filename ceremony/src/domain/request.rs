//! Certificate requests (PKCS #10, RFC 2986) for X.509-SVIDs. It decides whether whoever asks holds the
//! key and asks for exactly one name, and takes nothing else that a request may say.

use firn_protocol::names::SpiffeId;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData,
    SanType, SignatureAlgorithm, string::Ia5String,
};
use zeroize::Zeroizing;

use super::der::{
    BIT_STRING, BadDer, CONTEXT_0, Elements, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE,
    SET,
};
use crate::error::Error;

/// ecPublicKey on prime256v1 (RFC 5480), as an AlgorithmIdentifier's content.
const P256: &[u8] = &[
    0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d,
    0x03, 0x01, 0x07,
];
/// ecdsa-with-SHA256 (RFC 5758), as an AlgorithmIdentifier's content.
const ECDSA_SHA256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
/// extensionRequest (RFC 2985, section 5.4.2).
const EXTENSION_REQUEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x0e];
/// subjectAltName (RFC 5280, section 4.2.1.6).
const SUBJECT_ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];
/// uniformResourceIdentifier among the GeneralNames.
const URI: u8 = 0x86;

/// A fresh TLS key and the request for its certificate.
pub(super) struct FreshRequest {
    /// The private key, PKCS #8 in PEM.
    pub(super) key_pem: Zeroizing<String>,
    /// The request, DER.
    pub(super) der: Vec<u8>,
    /// The same in PEM.
    pub(super) pem: String,
}

impl FreshRequest {
    /// A key on P-256, and the request to have it called `id`.
    ///
    /// # Errors
    /// [`Error::Issue`].
    pub(super) fn make(id: &SpiffeId) -> Result<Self, Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name = common_name(id);
        params.subject_alt_names = vec![SanType::URI(Ia5String::try_from(id.to_string())?)];
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let request = params.serialize_request(&key)?;
        Ok(Self {
            key_pem: Zeroizing::new(key.serialize_pem()),
            der: request.der().to_vec(),
            pem: request.pem()?,
        })
    }
}

/// The subject that people see; peers look at the URI name alone.
pub(super) fn common_name(id: &SpiffeId) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, id.name().as_str());
    name
}

/// Why a request is not granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    /// It is not a request, or not one for a key on P-256.
    #[error("the certificate request is not PKCS #10 for an ECDSA key on P-256 with SHA-256")]
    Form,
    /// Whoever asks does not hold the key.
    #[error("the certificate request is not signed by the key that it is for")]
    Signature,
    /// It asks for another name, or for more than one.
    #[error("the certificate request does not ask for exactly the enrollment's name")]
    Name,
}

impl From<BadDer> for BadRequest {
    fn from(_: BadDer) -> Self {
        Self::Form
    }
}

/// A key whose holder has asked for a certificate with exactly one name.
#[derive(Debug)]
pub struct RequestedKey {
    point: Vec<u8>,
}

impl RequestedKey {
    /// The key of this request, if it is signed by that key and asks to be called `id` and nothing
    /// else. Whatever else it asks for is not granted, so it is not looked at.
    ///
    /// # Errors
    /// [`BadRequest`].
    pub fn verify(der: &[u8], id: &SpiffeId) -> Result<Self, BadRequest> {
        let mut request = Elements::of(der, SEQUENCE)?;
        let signed = request.take(SEQUENCE)?;
        let algorithm = request.take(SEQUENCE)?;
        let signature = whole_bytes(request.take(BIT_STRING)?.content)?;
        request.end()?;
        if algorithm.content != ECDSA_SHA256 {
            return Err(BadRequest::Form);
        }
        let mut fields = Elements::within(signed.content);
        if fields.take(INTEGER)?.content != [0] {
            return Err(BadRequest::Form);
        }
        fields.take(SEQUENCE)?;
        let mut key = Elements::within(fields.take(SEQUENCE)?.content);
        if key.take(SEQUENCE)?.content != P256 {
            return Err(BadRequest::Form);
        }
        let point = whole_bytes(key.take(BIT_STRING)?.content)?;
        key.end()?;
        let attributes = fields.take(CONTEXT_0)?.content;
        fields.end()?;
        webpki::ring::ECDSA_P256_SHA256
            .verify_signature(point, signed.whole, signature)
            .map_err(|_| BadRequest::Signature)?;
        if requested_uri(attributes)? != id.to_string().as_bytes() {
            return Err(BadRequest::Name);
        }
        Ok(Self {
            point: point.to_vec(),
        })
    }
}

impl PublicKeyData for RequestedKey {
    fn der_bytes(&self) -> &[u8] {
        &self.point
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

/// The one URI in the one list of names in the one list of extensions.
fn requested_uri(attributes: &[u8]) -> Result<&[u8], BadRequest> {
    let mut attribute = Elements::of(attributes, SEQUENCE)?;
    if attribute.take(OBJECT_IDENTIFIER)?.content != EXTENSION_REQUEST {
        return Err(BadRequest::Form);
    }
    let values = attribute.take(SET)?;
    attribute.end()?;
    let mut extensions = Elements::of(values.content, SEQUENCE)?;
    let mut uri = None;
    while !extensions.is_empty() {
        let mut extension = Elements::within(extensions.take(SEQUENCE)?.content);
        if extension.take(OBJECT_IDENTIFIER)?.content != SUBJECT_ALTERNATIVE_NAME {
            continue;
        }
        let mut value = extension.next()?;
        if value.tag != OCTET_STRING {
            // `critical` may stand before the value.
            value = extension.take(OCTET_STRING)?;
        }
        extension.end()?;
        let mut names = Elements::of(value.content, SEQUENCE)?;
        let name = names.next()?;
        if name.tag != URI || !names.is_empty() || uri.is_some() {
            return Err(BadRequest::Name);
        }
        uri = Some(name.content);
    }
    uri.ok_or(BadRequest::Name)
}

/// The content of a bit string of whole bytes.
fn whole_bytes(content: &[u8]) -> Result<&[u8], BadDer> {
    match content.split_first() {
        Some((0, bytes)) => Ok(bytes),
        _ => Err(BadDer),
    }
}

#[cfg(test)]
mod tests {
    use firn_protocol::names::SpiffeId;
    use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, SanType};

    use super::{BadRequest, FreshRequest, RequestedKey};

    fn id(name: &str) -> SpiffeId {
        format!("spiffe://test.firn/participant/{name}")
            .parse()
            .unwrap()
    }

    fn asking(names: Vec<SanType>) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.subject_alt_names = names;
        let key = KeyPair::generate().unwrap();
        params.serialize_request(&key).unwrap().der().to_vec()
    }

    fn uri(name: &str) -> SanType {
        SanType::URI(id(name).to_string().try_into().unwrap())
    }

    #[test]
    fn a_request_is_for_its_name_alone() {
        let request = FreshRequest::make(&id("p1")).unwrap();
        assert!(RequestedKey::verify(&request.der, &id("p1")).is_ok());
        assert!(
            request
                .pem
                .starts_with("-----BEGIN CERTIFICATE REQUEST-----")
        );
        let dns = SanType::DnsName("p1.example".try_into().unwrap());
        for (der, asked) in [
            (request.der, "p2"),
            (asking(vec![]), "p1"),
            (asking(vec![uri("p1"), uri("p2")]), "p1"),
            (asking(vec![uri("p1"), uri("p1")]), "p1"),
            (asking(vec![uri("p1"), dns.clone()]), "p1"),
            (asking(vec![dns]), "p1"),
        ] {
            let refused = RequestedKey::verify(&der, &id(asked)).map(|_| ());
            assert!(
                matches!(refused, Err(BadRequest::Name | BadRequest::Form)),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn no_byte_of_a_request_can_be_changed() {
        let request = FreshRequest::make(&id("p1")).unwrap();
        for index in 0..request.der.len() {
            let mut changed = request.der.clone();
            changed[index] ^= 1;
            assert!(
                RequestedKey::verify(&changed, &id("p1")).is_err(),
                "{index}"
            );
            assert!(RequestedKey::verify(&request.der[..index], &id("p1")).is_err());
        }
        let mut longer = request.der;
        longer.push(0);
        assert_eq!(
            RequestedKey::verify(&longer, &id("p1")).map(|_| ()),
            Err(BadRequest::Form)
        );
    }

    #[test]
    fn refuses_another_kind_of_key() {
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![uri("p1")];
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let der = params.serialize_request(&key).unwrap().der().to_vec();
        assert_eq!(
            RequestedKey::verify(&der, &id("p1")).map(|_| ()),
            Err(BadRequest::Form)
        );
    }
}

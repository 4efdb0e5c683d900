//! Who a process is: trust domain, role and name, as the SPIFFE id in its certificate says them.
//! It decides whether text is such a name, and never whether the name may be believed.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::limits;

/// Bytes of a whole SPIFFE id; checked before anything is copied.
pub const MAX_SPIFFE_ID: usize = 384;

/// Bytes of a trust domain (the SPIFFE ID specification, section 2.1).
pub const MAX_TRUST_DOMAIN: usize = 255;

const SCHEME: &str = "spiffe://";

// A trust domain, a role and a name that are each within bounds always make an id within bounds.
const _: () = assert!(
    SCHEME.len() + MAX_TRUST_DOMAIN + 1 + "coordinator".len() + 1 + limits::MAX_NAME
        <= MAX_SPIFFE_ID
);

/// Why text is not a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// A SPIFFE id of more than [`MAX_SPIFFE_ID`] bytes.
    #[error("SPIFFE id is longer than 384 bytes")]
    TooLong,
    /// Not `spiffe://` followed by exactly a trust domain, a role and a name.
    #[error("SPIFFE id is not spiffe://<trust domain>/<role>/<name>")]
    NotSpiffe,
    /// A trust domain that is empty, too long, or has other characters than `a-z`, `0-9`, `.`, `-`
    /// and `_`.
    #[error("trust domain is not 1 to 255 of a-z, 0-9, '.', '-', '_'")]
    TrustDomain,
    /// A role that is not one of [`Role::ALL`].
    #[error("role is not participant, coordinator, requester or operator")]
    Role,
    /// A name that is empty, too long, has other characters than `a-z`, `0-9` and `-`, or begins or
    /// ends with a hyphen.
    #[error("name is not 1 to 64 of a-z, 0-9, '-', with no hyphen at either end")]
    Name,
}

/// The domain whose CA vouches for a name: 1 to [`MAX_TRUST_DOMAIN`] bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrustDomain(Box<str>);

impl TrustDomain {
    /// The trust domain as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TrustDomain {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        let allowed = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'_')
        };
        if text.is_empty() || text.len() > MAX_TRUST_DOMAIN || !text.bytes().all(allowed) {
            return Err(BadName::TrustDomain);
        }
        Ok(Self(text.into()))
    }
}

/// What a process is in the network; what it may open follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Holds a signing share and decides for itself.
    Participant,
    /// Carries messages and holds nothing.
    Coordinator,
    /// Asks for signatures.
    Requester,
    /// Runs ceremonies.
    Operator,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [
        Self::Participant,
        Self::Coordinator,
        Self::Requester,
        Self::Operator,
    ];

    /// The role as it stands in a SPIFFE id.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Participant => "participant",
            Self::Coordinator => "coordinator",
            Self::Requester => "requester",
            Self::Operator => "operator",
        }
    }
}

impl FromStr for Role {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or(BadName::Role)
    }
}

/// What distinguishes a process from others of its role: 1 to [`limits::MAX_NAME`] bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<str>);

impl Name {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let bounded = !text.is_empty() && text.len() <= limits::MAX_NAME;
        if !bounded || !text.bytes().all(allowed) || text.starts_with('-') || text.ends_with('-') {
            return Err(BadName::Name);
        }
        Ok(Self(text.into()))
    }
}

/// A SPIFFE id of the one form used here: `spiffe://<trust domain>/<role>/<name>`.
///
/// One id has one text: no upper case, no percent-encoding, no port, no trailing slash, so that
/// comparing values and comparing texts are the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpiffeId {
    trust_domain: TrustDomain,
    role: Role,
    name: Name,
}

impl SpiffeId {
    /// The id of these parts.
    #[must_use]
    pub const fn new(trust_domain: TrustDomain, role: Role, name: Name) -> Self {
        Self {
            trust_domain,
            role,
            name,
        }
    }

    /// Whose CA vouches for it.
    #[must_use]
    pub const fn trust_domain(&self) -> &TrustDomain {
        &self.trust_domain
    }

    /// What the process is.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Which one of its role it is.
    #[must_use]
    pub const fn name(&self) -> &Name {
        &self.name
    }
}

impl FromStr for SpiffeId {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        if text.len() > MAX_SPIFFE_ID {
            return Err(BadName::TooLong);
        }
        let path = text.strip_prefix(SCHEME).ok_or(BadName::NotSpiffe)?;
        let mut parts = path.split('/');
        let (Some(trust_domain), Some(role), Some(name), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(BadName::NotSpiffe);
        };
        Ok(Self {
            trust_domain: trust_domain.parse()?,
            role: role.parse()?,
            name: name.parse()?,
        })
    }
}

impl fmt::Display for TrustDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for SpiffeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{SCHEME}{}/{}/{}",
            self.trust_domain, self.role, self.name
        )
    }
}

/// Serialised as text and read back through the parser, so that no decoder is a way around it.
macro_rules! serde_as_text {
    ($($name:ident: $what:literal),* $(,)?) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;

                impl de::Visitor<'_> for Text {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($what)
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }

                deserializer.deserialize_str(Text)
            }
        }
    )*};
}

serde_as_text!(
    TrustDomain: "a trust domain",
    Role: "a role",
    Name: "a name",
    SpiffeId: "a SPIFFE id",
);

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::{BadName, MAX_TRUST_DOMAIN, Name, Role, SpiffeId, TrustDomain};

    #[test]
    fn an_id_has_one_text() {
        for role in Role::ALL {
            let text = format!("spiffe://custody.example/{role}/a-1");
            let id: SpiffeId = text.parse().unwrap();
            assert_eq!(id.to_string(), text);
            assert_eq!(id.role(), role);
            assert_eq!(id.trust_domain().as_str(), "custody.example");
            assert_eq!(id.name().as_str(), "a-1");
        }
    }

    #[test]
    fn refuses_every_other_form_of_an_id() {
        for (text, why) in [
            ("", BadName::NotSpiffe),
            ("spiffe://", BadName::NotSpiffe),
            ("spiffe://td/participant", BadName::NotSpiffe),
            ("spiffe://td/participant/a/", BadName::NotSpiffe),
            ("spiffe://td/participant/a/b", BadName::NotSpiffe),
            ("SPIFFE://td/participant/a", BadName::NotSpiffe),
            ("https://td/participant/a", BadName::NotSpiffe),
            (" spiffe://td/participant/a", BadName::NotSpiffe),
            ("spiffe:///participant/a", BadName::TrustDomain),
            ("spiffe://TD/participant/a", BadName::TrustDomain),
            ("spiffe://td:1/participant/a", BadName::TrustDomain),
            ("spiffe://u@td/participant/a", BadName::TrustDomain),
            ("spiffe://t%64/participant/a", BadName::TrustDomain),
            ("spiffe://td//a", BadName::Role),
            ("spiffe://td/Participant/a", BadName::Role),
            ("spiffe://td/signer/a", BadName::Role),
            ("spiffe://td/participant/", BadName::Name),
            ("spiffe://td/participant/A", BadName::Name),
            ("spiffe://td/participant/-a", BadName::Name),
            ("spiffe://td/participant/a-", BadName::Name),
            ("spiffe://td/participant/a?b", BadName::Name),
            ("spiffe://td/participant/a#b", BadName::Name),
            ("spiffe://td/participant/a\0", BadName::Name),
            ("spiffe://td/participant/\u{e4}", BadName::Name),
        ] {
            assert_eq!(text.parse::<SpiffeId>(), Err(why), "{text:?}");
        }
    }

    #[test]
    fn bounds_every_part() {
        let domain = "d".repeat(MAX_TRUST_DOMAIN);
        assert!(domain.parse::<TrustDomain>().is_ok());
        assert_eq!(
            format!("{domain}d").parse::<TrustDomain>(),
            Err(BadName::TrustDomain)
        );
        let name = "n".repeat(64);
        assert!(name.parse::<Name>().is_ok());
        assert_eq!(format!("{name}n").parse::<Name>(), Err(BadName::Name));
        assert!(
            format!("spiffe://{domain}/coordinator/{name}")
                .parse::<SpiffeId>()
                .is_ok()
        );
        let long = format!("spiffe://td/participant/{}", "a".repeat(384));
        assert_eq!(long.parse::<SpiffeId>(), Err(BadName::TooLong));
    }

    #[test]
    fn decodes_only_through_the_parser() {
        let id: SpiffeId = "spiffe://td/requester/a".parse().unwrap();
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(json, "\"spiffe://td/requester/a\"");
        assert_eq!(serde_json::from_str::<SpiffeId>(&json).unwrap(), id);
        assert_eq!(
            serde_json::from_reader::<_, SpiffeId>(Cursor::new(&json)).unwrap(),
            id
        );
        assert!(serde_json::from_str::<SpiffeId>("\"spiffe://td/requester/\"").is_err());
        assert!(serde_json::from_str::<Name>("\"A\"").is_err());
        assert!(serde_json::from_str::<Role>("\"boss\"").is_err());
        assert!(serde_json::from_str::<TrustDomain>("7").is_err());

        let mut cbor = Vec::new();
        ciborium::into_writer(&id, &mut cbor).unwrap();
        assert_eq!(
            ciborium::from_reader::<SpiffeId, _>(cbor.as_slice()).unwrap(),
            id
        );
    }
}

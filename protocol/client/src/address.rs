//! Where a coordinator listens, as people write it. It decides whether text is host and port; names are
//! looked up when somebody dials, and never before.

use std::{fmt, net::SocketAddr, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Host and port: `name:port`, `192.0.2.1:port` or `[2001:db8::1]:port`; the port is not 0.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    host: String,
    port: u16,
}

/// Text is not host and port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an address is host:port, with brackets around an IPv6 address")]
pub struct BadAddress;

impl Address {
    /// The name or IP address, without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The UDP port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self {
            host: address.ip().to_string(),
            port: address.port(),
        }
    }
}

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let (host, port) = text.rsplit_once(':').ok_or(BadAddress)?;
        let bracketed = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let good = match bracketed {
            Some(host) => host.parse::<std::net::Ipv6Addr>().is_ok(),
            None => {
                let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
                (1..=253).contains(&host.len()) && host.bytes().all(allowed)
            }
        };
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().map_err(|_| BadAddress)?;
        if !good || !digits || port == 0 {
            return Err(BadAddress);
        }
        let host = bracketed.unwrap_or(host).to_owned();
        Ok(Self { host, port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn takes_names_and_both_families_and_nothing_else() {
        for text in ["relay.example:4433", "192.0.2.1:1", "[2001:db8::1]:65535"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in [
            "relay",
            "relay:0",
            "relay:+1",
            ":1",
            "2001:db8::1:1",
            "[relay]:1",
            "re lay:1",
            "relay:65536",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}

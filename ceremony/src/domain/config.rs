//! The configurations of the processes and people of a domain, in the words that each of them reads. It
//! decides nothing beyond them; each judges its own configuration.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use firn_client::{Address, Coordinator};
use firn_protocol::{
    ids::AuthoritiesDigest,
    names::{Role, SpiffeId},
};
use serde::Serialize;

use super::{
    description::to_toml,
    folders::{
        ADDRESS, ANCHOR, AUTHORITIES, CERTIFICATE, DATA, IDENTITY, ROOTS, TLS_KEY, VAULT_KEY,
    },
};
use crate::error::Error;

#[derive(Serialize)]
struct CoordinatorConfig {
    listen: SocketAddr,
    address_file: Option<&'static str>,
    identity_key: &'static str,
    authorities: &'static str,
    authorities_digest: String,
    tls: Tls,
}

#[derive(Serialize)]
struct ParticipantConfig<'a> {
    name: &'a SpiffeId,
    data_dir: &'static str,
    anchor_dir: &'static str,
    identity_key: &'static str,
    authorities: &'static str,
    authorities_digest: String,
    log: &'static str,
    tls: Tls,
    vault: Vault,
    coordinators: &'a [Coordinator],
}

#[derive(Serialize)]
struct Profile<'a> {
    name: &'a SpiffeId,
    identity_key: &'static str,
    authorities: &'static str,
    authorities_digest: String,
    tls: Tls,
    coordinators: &'a [Coordinator],
}

#[derive(Serialize)]
struct Tls {
    certificate: &'static str,
    key: &'static str,
    roots: &'static str,
}

const TLS: Tls = Tls {
    certificate: CERTIFICATE,
    key: TLS_KEY,
    roots: ROOTS,
};

#[derive(Serialize)]
struct Vault {
    unlock: &'static str,
    file: &'static str,
}

/// Where a coordinator listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Listening {
    /// At the address that the domain knows it by.
    At(Address),
    /// At any free port of this machine, which it writes into a file.
    Anywhere,
}

/// The configuration of a process or person, by its role.
///
/// # Errors
/// [`Error::Usage`] for a coordinator that the domain knows no address of.
pub(super) fn configuration(
    id: &SpiffeId,
    authorities: AuthoritiesDigest,
    coordinators: &[Coordinator],
) -> Result<String, Error> {
    match id.role() {
        Role::Participant => participant(id, authorities, coordinators),
        Role::Requester | Role::Operator => to_toml(&Profile {
            name: id,
            identity_key: IDENTITY,
            authorities: AUTHORITIES,
            authorities_digest: authorities.to_string(),
            tls: TLS,
            coordinators,
        }),
        Role::Coordinator => {
            let own = coordinators
                .iter()
                .find(|coordinator| coordinator.name == *id);
            let own = own.ok_or_else(|| Error::Usage {
                what: format!("the domain knows no address of {id}"),
            })?;
            coordinator(authorities, &Listening::At(own.address.clone()))
        }
    }
}

/// A coordinator's configuration.
pub(super) fn coordinator(
    authorities: AuthoritiesDigest,
    listening: &Listening,
) -> Result<String, Error> {
    let (listen, address_file) = match listening {
        Listening::At(address) => (to_listen(address), None),
        Listening::Anywhere => (([127, 0, 0, 1], 0).into(), Some(ADDRESS)),
    };
    to_toml(&CoordinatorConfig {
        listen,
        address_file,
        identity_key: IDENTITY,
        authorities: AUTHORITIES,
        authorities_digest: authorities.to_string(),
        tls: TLS,
    })
}

fn participant(
    id: &SpiffeId,
    authorities: AuthoritiesDigest,
    coordinators: &[Coordinator],
) -> Result<String, Error> {
    to_toml(&ParticipantConfig {
        name: id,
        data_dir: DATA,
        anchor_dir: ANCHOR,
        identity_key: IDENTITY,
        authorities: AUTHORITIES,
        authorities_digest: authorities.to_string(),
        log: "auto",
        tls: TLS,
        vault: Vault {
            unlock: "key-file",
            file: VAULT_KEY,
        },
        coordinators,
    })
}

/// Where a process that is reached at an address listens: the address itself where it is one of a
/// machine, every address of the machine where it is a name.
fn to_listen(address: &Address) -> SocketAddr {
    let everywhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let host = address.host().parse().unwrap_or(everywhere);
    SocketAddr::new(host, address.port())
}

#[cfg(test)]
mod tests {
    use super::to_listen;

    #[test]
    fn a_coordinator_with_a_name_listens_everywhere() {
        for (address, listens) in [
            ("127.0.0.1:7600", "127.0.0.1:7600"),
            ("[::1]:7600", "[::1]:7600"),
            ("relay.custody.example:7600", "0.0.0.0:7600"),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(to_listen(&address).to_string(), listens);
        }
    }
}

//! The configurations of the processes of a domain, in the words that each of them reads. It decides
//! nothing beyond them; a process judges its own configuration.

use std::net::SocketAddr;

use serde::Serialize;

use super::{
    folders::{
        ADDRESS, ANCHOR, AUTHORITIES, CERTIFICATE, DATA, IDENTITY, ROOTS, TLS_KEY, VAULT_KEY,
    },
    people::{Domain, Party},
};
use crate::error::Error;

#[derive(Serialize)]
struct CoordinatorConfig {
    listen: SocketAddr,
    address_file: &'static str,
    identity_key: &'static str,
    authorities: &'static str,
    authorities_digest: String,
    tls: Tls,
}

#[derive(Serialize)]
struct ParticipantConfig {
    name: String,
    data_dir: &'static str,
    anchor_dir: &'static str,
    identity_key: &'static str,
    authorities: &'static str,
    authorities_digest: String,
    log: &'static str,
    tls: Tls,
    vault: Vault,
    coordinators: Vec<Peer>,
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

#[derive(Serialize)]
struct Peer {
    name: String,
    address: String,
}

/// The configuration of a domain's coordinator: loopback, any free port.
///
/// # Errors
/// Never for what a domain is made of.
pub fn coordinator_config(domain: &Domain) -> Result<String, Error> {
    write(&CoordinatorConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        address_file: ADDRESS,
        identity_key: IDENTITY,
        authorities: AUTHORITIES,
        authorities_digest: domain.authorities_digest().to_string(),
        tls: TLS,
    })
}

/// The configuration of one member, which dials the coordinator at `address`.
///
/// # Errors
/// Never for what a domain is made of.
pub fn participant_config(
    domain: &Domain,
    member: &Party,
    address: SocketAddr,
) -> Result<String, Error> {
    write(&ParticipantConfig {
        name: member.id.to_string(),
        data_dir: DATA,
        anchor_dir: ANCHOR,
        identity_key: IDENTITY,
        authorities: AUTHORITIES,
        authorities_digest: domain.authorities_digest().to_string(),
        log: "human",
        tls: TLS,
        vault: Vault {
            unlock: "key-file",
            file: VAULT_KEY,
        },
        coordinators: vec![Peer {
            name: domain.coordinator().id.to_string(),
            address: address.to_string(),
        }],
    })
}

fn write<T: Serialize>(config: &T) -> Result<String, Error> {
    toml::to_string(config).map_err(|error| Error::Usage {
        what: format!("the configuration cannot be written: {error}"),
    })
}

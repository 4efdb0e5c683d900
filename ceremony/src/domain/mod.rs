//! A trust domain on disk, for development: CA, authorities, and a folder for each process that holds
//! all that it needs and nothing of another's. It decides who is who; every piece can be replaced by
//! the operator's own CA and keys.

mod ca;
mod config;
pub mod files;
mod folders;
mod maker;
mod people;

pub use ca::{BACKDATING, DevelopmentCa, Issued, LEAF_VALIDITY, ROOT_VALIDITY};
pub use config::{coordinator_config, participant_config};
pub use folders::ProcessFolder;
pub use people::{Domain, DomainTerms, Party};

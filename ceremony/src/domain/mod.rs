//! A trust domain: its founding, what is carried to each machine, and what each machine makes for itself.
//! It decides who is who and in which folder; every piece can be replaced by the operator's own CA and
//! keys.

mod ca;
mod config;
mod der;
mod description;
mod enrolling;
pub mod files;
mod folders;
mod founding;
mod people;
mod request;

pub use ca::{BACKDATING, DevelopmentCa, LEAF_VALIDITY, ROOT_VALIDITY};
pub use description::{Description, Draft, read_endorsed_authorities};
pub(crate) use description::{is_description, line_of, read_toml_text, twin};
pub use enrolling::{Enrolled, EnrolledFolder};
pub use folders::ProcessFolder;
pub use founding::{AUTHORITIES, CA, DESCRIPTION, Founded, Founding, GRANT_KEY, POLICY_KEY, Seat};
pub use people::{Domain, DomainTerms, Party};
pub use request::{BadRequest, RequestedKey};

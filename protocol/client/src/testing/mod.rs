//! A real key with its members, and coordinators of its own that answer as a test tells them. Nothing here
//! is checked by the side that makes it: what refuses must be the side under test.

mod relay;
mod tls;
pub(crate) mod world;

pub(crate) use relay::{Reaction, Relay};
pub(crate) use tls::Ca;
pub(crate) use world::{Knows, World};

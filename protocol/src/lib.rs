//! What Firn's processes say to each other: documents, messages, digests, limits and the Bitcoin
//! rules they rest on. Pure: no I/O, no clock, no randomness of its own.

pub mod bitcoin;
pub mod codec;
pub mod documents;
pub mod envelope;
pub mod ids;
pub mod keys;
pub mod limits;
pub mod merkle;
pub mod messages;
pub mod names;
pub mod reject;
pub mod session;
pub mod sharing;
pub mod signable;
pub mod tagged;
pub mod threshold;

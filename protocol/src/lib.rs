//! What Firn's processes say to each other: documents, messages, digests, limits and the Bitcoin
//! rules they rest on. Pure: no I/O, no clock, no randomness of its own.

pub mod bitcoin;
pub mod merkle;
pub mod names;
pub mod tagged;

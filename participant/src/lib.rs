//! The participant: holds one signing share and decides for itself what it signs.

pub mod rules;
pub mod session;
pub mod store;

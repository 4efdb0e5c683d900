//! The participant: holds one signing share and decides for itself what it signs.

pub mod accept;
pub mod config;
pub mod control;
pub mod daemon;
pub mod documents;
pub mod identity;
pub mod private_files;
pub mod process;
pub mod refusals;
pub mod rules;
pub mod service;
pub mod session;
pub mod store;
pub mod vault;

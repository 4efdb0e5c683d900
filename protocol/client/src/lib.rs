//! The requester's library: it asks coordinators for signatures, verifies whatever comes back, and never
//! takes silence for an answer.

mod address;
mod authorities;
mod caller;
mod client;
mod conversation;
mod error;
pub mod evidence;
mod files;
mod key;
mod line;
pub mod payment;
pub mod profile;
mod proposal;
mod system;
#[cfg(test)]
#[allow(
    clippy::arithmetic_side_effects,
    reason = "a test that overflows fails"
)]
mod testing;

pub use address::{Address, BadAddress};
pub use authorities::PinnedAuthorities;
pub use caller::Caller;
pub use client::{Client, Inquiry, Settings};
pub use conversation::{Answer, Asked};
pub use error::{Error, MemberNo, No, Tried, WhatNext};
pub use evidence::RequestOutcome;
pub use files::FileError;
pub use key::{KEY_DOCUMENTS_LIMIT, Key};
pub use line::{Answers, Line, Peer};
pub use profile::{Coordinator, Profile, ProfileError};
pub use proposal::{Overview, OverviewInput, OverviewOutput, Proposal};

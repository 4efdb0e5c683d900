//! The requester's library. It asks coordinators to have intents signed, verifies whatever comes back, and
//! never takes silence for an answer; it holds no share and believes no machine.
//!
//! # What a service does
//!
//! 1. [`Profile::load`] and [`Profile::client`]: who it is, whose keys count, whom it asks. Or
//!    [`Client::new`] from explicit parts.
//! 2. [`Client::key`]: what the key is, verified from plan to activation under the pinned Authorities.
//! 3. [`Client::propose`]: an intent from a PSBT, with an [`Overview`] for people. Its
//!    [digest](Proposal::digest) goes to the control plane, which grants it.
//! 4. [`Client::sign`]: signatures. [`Proposal::finish`] puts them into the PSBT.
//! 5. [`Client::outcome`]: whenever it is not certain what became of a request.
//!
//! `examples/pay.rs` is all of it, in a program that may be killed at any point:
//!
//! ```no_run
#![doc = include_str!("../examples/pay.rs")]
//! ```
//!
//! # Never guess
//!
//! A request id stands for one intent, for ever and for the key as a whole: asking again with the same id
//! and the same content has no second effect, however often and through however many coordinators it
//! arrives. So keep the id before asking with it, and never take a new one because an answer was lost.
//!
//! | [`Error::what_next`] | it is certain that | what to do |
//! |---|---|---|
//! | [`WhatNext::RetrySameRequest`] | every attempt that was sent was answered with "not now", or none was sent | the same again |
//! | [`WhatNext::AskOutcome`] | something was sent that got no answer that proves itself | [`Client::outcome`], or the same again |
//! | [`WhatNext::GiveUp`] | whoever answered refuses for good | [`Client::outcome`] before it is paid in another way |
//! | [`WhatNext::Conflict`] | members know the id, the intent or the epoch otherwise | find out who asks in this service's name |
//! | [`WhatNext::Usage`] | nothing was sent | put right what was given |
//!
//! A no is never more than a no: a coordinator may have had an earlier attempt signed and keep it to
//! itself. What [`Client::outcome`] says is proven by the members' own signed statements; the arithmetic is
//! with [`evidence::Statements`]. [`RequestOutcome::Undetermined`] means what it says: too few members have
//! answered, and nothing is known.
//!
//! # Cancellation
//!
//! Every future of this crate may be dropped at any point. Connections stay usable. What may have happened
//! to a request whose [`Client::sign`] was dropped is what [`WhatNext::AskOutcome`] stands for, and is found
//! out in the same way.

mod address;
mod authorities;
mod caller;
mod client;
mod conversation;
mod date;
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
pub use date::date;
pub use error::{Error, MemberNo, No, Tried, WhatNext, last_seen};
pub use evidence::RequestOutcome;
pub use files::FileError;
pub use key::{KEY_DOCUMENTS_LIMIT, Key};
pub use line::{Answers, Line, Peer};
pub use profile::{Coordinator, Profile, ProfileError};
pub use proposal::{Overview, OverviewInput, OverviewOutput, Proposal};

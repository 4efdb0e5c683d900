//! The coordinator: carries messages between participants and keeps nothing. It chooses whom to
//! ask, names who failed, and never decides what is signed.
//!
//! The machines in [`session`] are pure; [`daemon`] is the thin shell of sockets and tasks around
//! them. A coordinator that is killed loses nothing but the attempts in flight.

mod carry;
pub mod config;
pub mod daemon;
pub mod error;
mod intake;
mod keys;
mod line;
mod logging;
mod records;
pub mod registry;
mod seen;
pub mod session;
mod state;
mod turns;
pub mod voice;

pub use logging::start as start_logging;

//! What a daemon is to its machine, the same for participant and coordinator: it ends when it is told
//! to, tells systemd how it does, and keeps its certificate up to date. It never looks into a message.

pub mod service_manager;
mod stop;
mod upkeep;

pub use stop::stop_signal;
pub use upkeep::{Due, Upkeep};

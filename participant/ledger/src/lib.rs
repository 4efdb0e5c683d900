//! The participant's journal: format, rules and checks. Pure: it never writes, and the one place that
//! reads files is [`folder`], for whoever checks a journal at rest.

pub mod folder;
pub mod journal;
pub mod rules;
pub mod table;

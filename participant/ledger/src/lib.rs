//! The participant's journal: format, rules and checks. Pure.

//! Process-level tests of Firn.

//! What the process-level tests share: a small world with one sample of everything that can be said,
//! and a way to write each sample wrongly. Nothing here is part of a product.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "test support: a failure here is a failed test"
)]

pub mod binaries;
pub mod cluster;
pub mod diagnostic;
pub mod malformed;
pub mod rewriting;
pub mod samples;
pub mod simulation;
pub mod tool;
pub mod vectors;

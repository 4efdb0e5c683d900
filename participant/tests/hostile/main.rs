//! What a hostile coordinator, member, requester or disk may try, each by name, against the pure
//! sessions of three members with a ledger in memory and a key from a real DKG. The coordinator is
//! the test: it may say anything. Each attack is refused with its own code, and nothing is released.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    unreachable_pub,
    reason = "a test that fails says where; an attack is written for three members"
)]

mod ceremony;
mod certificates;
mod clocks;
mod dealing;
mod epoch;
mod forbidden;
mod member;
mod opening;
mod operator;
mod outcome;
mod package;
mod people;
mod release;
mod requests;
mod rounds;
mod signing;
mod world;

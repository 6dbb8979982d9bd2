//! Drives the real executor over real sockets against a small node that lives in the test.
#![allow(
    clippy::unwrap_used, // a failed helper is a failed test
    clippy::expect_used,
    clippy::wildcard_imports // of the messages
)]

mod client;
mod delivery;
mod drain;
mod gate;
mod harness;
mod membership;
mod node;
mod output;
mod runs;
mod security;
mod turns;
mod witness;

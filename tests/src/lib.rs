//! Drives real processes over real sockets: database servers, nodes, executors.
//!
//! A scenario (see `tests/system/`) builds a [`World`] on one kind of database, starts nodes and
//! executors in it, does something bad to them, and lets [`World::settle_and_check`] hold the
//! outcome against the promises of the design: every log terminal, one per (task, fire time,
//! shard), none early, none doubled.
//!
//! Every process that a scenario starts dies with the test process, however that ends: see
//! [`process`]. Nothing is read from the product's insides: what a scenario knows, it knows from
//! the API, the wire, the database and the demo executor's report.

// Futures around the futures of a database driver.
#![recursion_limit = "256"]
// Test code: a broken assumption of the harness should stop the test where it is.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc)]

pub mod certificates;
pub mod clock;
pub mod cost;
pub mod folder;
pub mod http;
pub mod port;
pub mod process;
pub mod wait;

pub mod database;
pub mod dump;
pub mod foreign;
pub mod outage;
pub mod proxy;
pub mod relay;
pub mod rows;
pub mod server;
pub mod slow;
mod template;

pub mod api;
pub mod client;
pub mod command;
pub mod executor;
pub mod job_admin;
pub mod node;
pub mod openapi;
pub mod people;
pub mod plain_executor;
pub mod report;
pub mod tenants;
pub mod visits;

pub mod fake;
pub mod identity_provider;
pub mod nacos;
pub mod wire;

pub mod events;
pub mod fires;
pub mod invariants;
pub mod world;

pub mod every_field;

pub use api::{Api, App};
pub use client::{Client, Library};
pub use clock::{now_ms, now_us};
pub use database::{Database, connect};
pub use executor::Executor;
pub use fake::{FakeExecutor, OnDispatch, OnHealth};
pub use fires::Fires;
pub use node::Node;
pub use outage::Outage;
pub use report::Start;
pub use rows::{LogRow, Status};
pub use server::Kind;
pub use visits::Visit;
pub use wait::{await_until, pass};
pub use world::World;

//! Where a run goes: pure functions from what is known to an executor.
//!
//! ```text
//! online of the app ─ handler ─ tags ─ open ─▶ candidates ─ refused_by, avoid ─▶ routing ─▶ Choice
//! ```
//!
//! **One order.** Candidates are ordered by (address, id) on every node: an address outlives the
//! process behind it, an id does not. "First", "last", ties, the probing order and the numbers of
//! shards all follow it, so every node decides alike, even after executors restart.
//! Addresses are compared as text: `:10000` comes before `:9999`.
//!
//! **No state in a node.** What a routing must remember is in the database and comes in as an
//! argument: a run's number within its task ([`Request::seq`]), how often and when each address
//! was used ([`Uses`]), the load that executors report.

mod tags;

mod candidates;
mod no_executor;

mod load;
mod ring;
mod round;
mod uses;
mod weights;

mod chooser;
mod field;
mod fleet;
mod known;
mod probe;
mod strategy;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod properties;

pub use candidates::{CandidateLists, Candidates};
pub use chooser::{Choice, Chooser, Request};
pub use fleet::Fleet;
pub use known::Known;
pub use no_executor::NoExecutor;
pub use probe::{Probe, ProbeAnswer};
pub use ring::{Ring, Rings};
pub use strategy::Routing;
pub use tags::Tags;
pub use uses::{Use, UseChange, Uses};
pub use weights::Weights;

use super::executor::Executor;
use std::sync::Arc;

/// Executors in the order of (address, id); copying it copies a pointer.
pub type Executors = Arc<[Arc<Executor>]>;

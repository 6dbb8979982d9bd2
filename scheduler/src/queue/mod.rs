//! Claimed runs in memory, and the loader that fills it.
//!
//! The queue is bounded, and shared fairly: tenants leave it in turns, each its most urgent runs
//! first; none can have more than its share of it in memory, nor of what is under way. What is in
//! it is QUEUED in the database with this node as its owner; everything else about it is a copy,
//! and the version decides whether the copy still holds.

mod batch;
mod blocked;
mod fair_queue;
mod loader;
mod missed;
mod page;
mod run_queue;
mod shared;

pub use batch::{Batch, UnderWay};
pub use blocked::BlockedRuns;
pub(crate) use loader::returned_to_all;
pub use loader::{Loader, LoaderParts, LoaderSettings};
pub use missed::MissedRuns;
pub use run_queue::RunQueue;

#[cfg(test)]
use crate::domain::task_log::test::run_of as run;

//! Claimed runs in memory, and the loader that fills it.
//!
//! The queue is bounded, and shared fairly: tenants leave it in turns, each its most urgent runs
//! first; none can have more than its share of it in memory, nor of what is under way. What is in
//! it is QUEUED in the database with this node as its owner; everything else about it is a copy,
//! and the version decides whether the copy still holds.

mod batch;
mod fair;
mod loader;
mod page;
mod run_queue;

pub use batch::{Batch, UnderWay};
pub(crate) use loader::returned_to_all;
pub use loader::{Loader, LoaderSettings};
pub use run_queue::RunQueue;

/// A run of tenant 1, for tests.
#[cfg(test)]
pub(crate) fn run(id: i64, due_time: i64) -> crate::domain::Run {
    use crate::domain::task_log::PRIORITY_DEFAULT;
    use crate::domain::{Origin, Reason, Run, Status};
    Run {
        id,
        version: 1,
        tenant_id: 1,
        app_id: 1,
        task_id: 1,
        revision: 1,
        parent_id: 0,
        shard_index: 0,
        shard_total: 1,
        fire_time: due_time,
        due_time,
        attempt: 0,
        failures: 0,
        status: Status::Queued,
        reason: Reason::None,
        params: None,
        origin: Origin::Schedule,
        seq: id,
        priority: PRIORITY_DEFAULT,
        executor_id: 0,
    }
}

//! What `dispatch/` asks: guarded steps, permits.

use super::outcome::DispatchedRun;
use crate::domain::permit::{Granted, PermitRequest};
use crate::domain::rate_limit::{self, Slot};
use crate::domain::routing::{Use, UseChange};
use crate::domain::{ExecutorId, LogId, NodeId, Reason, Run, TaskId, Transition};
use crate::store::error::Result;
use async_trait::async_trait;
use std::collections::HashSet;

/// One run to hand to one executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunDispatch {
    /// Task log id.
    pub id: LogId,
    /// Version that the row must have.
    pub version: i64,
    /// Executor that gets it.
    pub executor_id: ExecutorId,
    /// When this was first tried, ms: the acceptance window begins here, and a repetition is known by it.
    pub dispatched_at: i64,
    /// The attempt before, when another executor did not take it: it is kept beside the log.
    pub refused: Option<RefusedAttempt>,
}

/// A dispatch that its executor refused, or that never reached it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedAttempt {
    /// Its number.
    pub number: i32,
    /// Who did not take it.
    pub executor_id: ExecutorId,
    /// When it was marked, ms.
    pub dispatched_at: i64,
}

/// Asked by `dispatch/`.
#[async_trait]
pub trait DispatchStore: Send + Sync {
    /// QUEUED or DISPATCHED → DISPATCHED to the executor, attempt + 1. Answers the ids that are so now by this call, or by
    /// an earlier one with the same instant; the others were changed by another. Attempts that were refused are kept.
    async fn dispatch(&self, node: NodeId, items: &[RunDispatch]) -> Result<HashSet<LogId>>;
    /// In one transaction: the parent QUEUED → DISPATCHED with that many shards, and each shard
    /// inserted as DISPATCHED to its executor, attempt 1. `false` when the parent was changed by
    /// another node.
    async fn dispatch_shards(&self, node: NodeId, parent: &Run, shards: &[Run], now: i64) -> Result<bool>;
    /// Guarded steps out of the hot path. Answers the ids that moved. Attempts that they end without
    /// ending the run are kept, in the same transaction.
    async fn change(&self, changes: &[Transition]) -> Result<HashSet<LogId>>;
    /// Notes on DISPATCHED runs (id, version) why their executors must stop them; the version
    /// grows, so that a decision based on an older read loses the race. Answers those noted.
    async fn note_stop(&self, runs: &[(LogId, i64)], reason: Reason) -> Result<HashSet<LogId>>;
    /// Settles runs (QUEUED, or DISPATCHED) that a change of their task revoked, and that certainly have not started: in one
    /// transaction each goes on under the definition that is valid now, or is CANCELLED with what that means for its
    /// parent, for `max_fires` and for what is planned. Answers those that moved; what has another version, or was not
    /// revoked, does not.
    async fn settle_revoked(&self, runs: &[Run], now: i64) -> Result<HashSet<LogId>>;
    /// Takes the mark of a revocation off runs (id, version) that have started: they go on as they are.
    async fn leave_running(&self, runs: &[(LogId, i64)]) -> Result<()>;
}

/// Asked by `dispatch/` for runs that may only run so many at once, and for what routing
/// remembers.
#[async_trait]
pub trait PermitStore: Send + Sync {
    /// Gives permits in the order of `asks`, as far as their bounds go; answers who gets none. A permit counts while its
    /// run is DISPATCHED, or QUEUED with the asked version. What asks in order and gets none is noted: no later run of its
    /// task gets one before it, as long as it is QUEUED with that version; and so is what has waited for long, before which
    /// no less urgent run gets one of the same task, app or tenant. What is not QUEUED with the asked version changes nothing.
    async fn acquire(&self, asks: &[PermitRequest]) -> Result<Granted>;
    /// Gives permits of runs back that did not go out after all. With `in_order`, no later run of their tasks passes them.
    async fn release(&self, ids: &[LogId], in_order: bool) -> Result<()>;
    /// Notes on QUEUED rows that still have this version what they wait for, beside (id, version),
    /// where they say nothing yet. The version stays: nothing was decided.
    async fn note_waits(&self, waits: &[(LogId, i64, Reason)]) -> Result<()>;
    /// In one transaction: takes slots in the rate limits of the runs' tenants, in the order of `asks`,
    /// and puts those back that have a later one: due then, [`Reason::OverQuota`]. Answers what each
    /// got. The quota is the one that stands in the database, whatever the caller has heard of. A run
    /// that would wait changes slots with the first less urgent one that waits (INIT, and without a
    /// time-out for waiting).
    async fn take_rate_slots(&self, asks: &[rate_limit::SlotRequest], now: i64) -> Result<Vec<Slot>>;
    /// DISPATCHED runs of these tasks that hold permits.
    async fn holders(&self, tasks: &[TaskId]) -> Result<Vec<DispatchedRun>>;
    /// How often and when these tasks used each executor's address.
    async fn uses(&self, tasks: &[TaskId]) -> Result<Vec<(TaskId, String, Use)>>;
    /// Adds uses; other nodes add at the same time.
    async fn add_uses(&self, changes: &[UseChange], new_id: &(dyn Fn() -> i64 + Sync)) -> Result<()>;
    /// Fires of the schedule, at or after the instant beside each task, that were due before
    /// `due_before` (ms), or made up for as was not written them in time, and have neither expired
    /// nor been cancelled: (task, fire time), latest first.
    async fn overdue(&self, since: &[(TaskId, i64)], due_before: i64, limit: u64) -> Result<Vec<(TaskId, i64)>>;
}

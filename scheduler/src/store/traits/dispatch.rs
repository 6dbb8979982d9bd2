//! What `dispatch/` asks: guarded steps, permits.

use crate::domain::failure::{self, Attempt};
use crate::domain::permit::{Limit, PermitRequest};
use crate::domain::rate_limit::{self, Slot};
use crate::domain::routing::{Use, UseChange};
use crate::domain::{AppId, ExecutorId, LogId, NodeId, Reason, Run, Status, Task, TaskId};
use crate::store::{DispatchedRun, Result};
use async_trait::async_trait;
use std::collections::{HashMap, HashSet};

/// The attempt that a step ends without ending its run: it is kept beside the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastAttempt {
    /// Its number.
    pub number: i32,
    /// When it should have started, ms: the row tells of the next one then.
    pub due_time: i64,
}

impl LastAttempt {
    /// That of `run`, if a step to `to` ends it so.
    fn ended_by(run: &Run, to: Status) -> Option<Self> {
        let is_over = run.status == Status::Dispatched && to == Status::Retry;
        is_over.then_some(Self { number: run.attempt, due_time: run.due_time })
    }
}

/// One guarded step to a state in which nobody runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Task log id.
    pub id: LogId,
    /// Version that the row must have.
    pub version: i64,
    /// The run's app, for the metrics; 0 where it does not end.
    pub app_id: AppId,
    /// New state.
    pub to: Status,
    /// When it is due again; unchanged for an end.
    pub due_time: i64,
    /// Failed attempts so far.
    pub failures: i32,
    /// Why.
    pub reason: Reason,
    /// For people; empty keeps what is there.
    pub message: String,
    /// When the handler was entered, 0 when unknown or never.
    pub started_at: i64,
    /// When it ended, 0 when it has not.
    pub finished_at: i64,
    /// What it ends of a run that goes on.
    pub ended: Option<LastAttempt>,
}

impl Change {
    /// A step of `run` that changes nothing but its state.
    #[must_use]
    pub fn of(run: &Run, to: Status, reason: Reason) -> Self {
        Self {
            id: run.id,
            version: run.version,
            app_id: run.app_id,
            to,
            due_time: run.due_time,
            failures: run.failures,
            reason,
            message: String::new(),
            started_at: 0,
            finished_at: 0,
            ended: LastAttempt::ended_by(run, to),
        }
    }

    /// What the task's definition has follow on an attempt of `run` that failed for `reason` at `now` (epoch ms).
    #[must_use]
    pub fn after_failure(task: &Task, run: &Run, reason: Reason, now: i64) -> Self {
        let next = failure::after(task, Attempt::of(run), reason, now);
        Self {
            due_time: next.due_time,
            failures: next.failures,
            finished_at: if next.status.is_terminal() { now } else { 0 },
            ..Self::of(run, next.status, reason)
        }
    }

    /// The step with which a run waits for its slot at `due_time` (ms) in the rate of a tenant that
    /// may have `per_minute` fires in a minute.
    #[must_use]
    pub fn delayed(ask: &rate_limit::SlotRequest, due_time: i64, per_minute: i32) -> Self {
        Self {
            id: ask.id,
            version: ask.version,
            app_id: AppId::NONE,
            to: ask.back_to,
            due_time,
            failures: ask.failures,
            reason: Reason::OverQuota,
            message: format!(
                "delayed by {} ms: the tenant may have {per_minute} fires in a minute (its quota max_fires_per_minute)",
                due_time - ask.at
            ),
            started_at: 0,
            finished_at: 0,
            ended: None,
        }
    }

    /// The step of a run that waits for its slot and has changed it with a more urgent one.
    #[must_use]
    pub fn overtaken(run: &rate_limit::DelayedRun) -> Self {
        Self {
            id: run.id,
            version: run.version,
            app_id: AppId::NONE,
            to: Status::Init,
            due_time: run.due_time,
            failures: run.failures,
            reason: Reason::OverQuota,
            message: "a more urgent run of the tenant took its place (quota max_fires_per_minute)".to_owned(),
            started_at: 0,
            finished_at: 0,
            ended: None,
        }
    }
}

/// One run to hand to one executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunDispatch {
    /// Task log id.
    pub id: LogId,
    /// Version that the row must have.
    pub version: i64,
    /// Executor that gets it.
    pub executor_id: ExecutorId,
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
    /// QUEUED or DISPATCHED → DISPATCHED to the executor, attempt + 1. Answers the ids that are
    /// so now; the others were changed by somebody else. Attempts that were refused are kept.
    async fn dispatch(&self, node: NodeId, items: &[RunDispatch], now: i64) -> Result<HashSet<LogId>>;
    /// In one transaction: the parent QUEUED → DISPATCHED with that many shards, and each shard
    /// inserted as DISPATCHED to its executor, attempt 1. `false` when the parent was changed by
    /// somebody else.
    async fn dispatch_shards(&self, node: NodeId, parent: &Run, shards: &[Run], now: i64) -> Result<bool>;
    /// Guarded steps out of the hot path. Answers the ids that moved. Attempts that they end without
    /// ending the run are kept, in the same transaction.
    async fn change(&self, changes: &[Change]) -> Result<HashSet<LogId>>;
    /// Notes on DISPATCHED runs (id, version) why their executors must stop them; the version
    /// grows, so that whoever judges them by an older look loses the race. Answers those noted.
    async fn note_stop(&self, runs: &[(LogId, i64)], reason: Reason) -> Result<HashSet<LogId>>;
}

/// Asked by `dispatch/` for runs that may only run so many at once, and for what routing
/// remembers.
#[async_trait]
pub trait PermitStore: Send + Sync {
    /// Gives permits in the order of `asks`, as far as their bounds go; answers the ids that get
    /// none, with what holds them up. A permit counts while its run is DISPATCHED, or QUEUED with
    /// the asked version. What asks in order and gets none is noted: no later run of its task gets
    /// one before it, as long as it is QUEUED with that version.
    async fn acquire(&self, asks: &[PermitRequest]) -> Result<HashMap<LogId, Limit>>;
    /// Gives permits of runs back that did not go out after all; they wait again.
    async fn release(&self, ids: &[LogId]) -> Result<()>;
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
    /// `due_before` (ms), or made up for as nobody had written them in time, and have neither expired
    /// nor been cancelled: (task, fire time), latest first.
    async fn overdue(&self, since: &[(TaskId, i64)], due_before: i64, limit: u64) -> Result<Vec<(TaskId, i64)>>;
}

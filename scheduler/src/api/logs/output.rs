//! Runs as responses show them.

use crate::api::words::{RunReason, RunStatus, RunTrigger, STOPPING};
use crate::domain::{IdSource, Reason, Status};
use crate::store::{DispatchedRun, KeptAttempt, LogView, cut};
use serde::Serialize;
use utoipa::ToSchema;

/// Progress of a sharded run.
#[derive(Serialize, ToSchema)]
pub struct Shards {
    /// Total number of shards.
    total: i32,
    /// Shards that have started, or are due and held by an executor.
    started: i64,
    /// Shards that have ended.
    ended: i64,
    /// Shards that have succeeded.
    succeeded: i64,
}

/// One run of a task.
#[derive(Serialize, ToSchema)]
pub struct TaskLog {
    /// Id.
    pub id: String,
    /// Task.
    task: String,
    /// Its name; null when it no longer exists.
    task_name: Option<String>,
    /// App's id.
    app: String,
    /// App's name; null when it no longer exists.
    app_name: Option<String>,
    /// Tenant's name.
    tenant: String,
    /// Revision of the task that it follows.
    revision: i64,
    /// Its state; `stopping` when its executor was asked to stop it and has not confirmed yet.
    #[schema(value_type = RunStatus)]
    status: &'static str,
    /// Why it is in this state; docs/concepts.md lists the words.
    #[schema(value_type = RunReason)]
    reason: &'static str,
    /// What made it: `schedule`, `misfire`, `manual`, `parent` or `backfill`.
    #[schema(value_type = RunTrigger)]
    trigger: &'static str,
    /// 1 to 9, 9 is the most urgent.
    priority: i32,
    /// The scheduled instant, epoch ms.
    fire_time: i64,
    /// When this attempt should start, epoch ms.
    due_time: i64,
    /// How often it was dispatched.
    attempt: i32,
    /// How many attempts failed.
    failures: i32,
    /// Which shard, from 0.
    shard_index: i32,
    /// Number of shards.
    shard_total: i32,
    /// Progress of the shards, if the run is sharded.
    shards: Option<Shards>,
    /// The sharded run that it belongs to.
    parent: Option<String>,
    /// The executor that has or had it.
    executor: Option<String>,
    /// The node that has or had it.
    node: Option<String>,
    /// When it was written, epoch ms.
    written_at: i64,
    /// The node that wrote it.
    written_by: Option<String>,
    /// When a node claimed it, epoch ms.
    queued_at: Option<i64>,
    /// When it was dispatched, epoch ms.
    dispatched_at: Option<i64>,
    /// When the handler started, epoch ms.
    started_at: Option<i64>,
    /// When it ended, epoch ms.
    finished_at: Option<i64>,
    /// Free text for people to read.
    message: String,
    /// What the handler returned.
    output: String,
    /// Parameters instead of the task's.
    params: Option<String>,
    /// Increases with every step.
    version: i64,
}

/// One run of a task, with its attempts.
#[derive(Serialize, ToSchema)]
pub struct TaskLogInFull {
    /// The run.
    #[serde(flatten)]
    pub log: TaskLog,
    /// Every dispatch, oldest first; the last one is taken from the log itself.
    pub attempts: Vec<AttemptOutput>,
}

/// A dispatch of a run to an executor, and its outcome.
#[derive(Serialize, ToSchema)]
#[schema(as = Attempt)]
pub struct AttemptOutput {
    /// Counted from 1.
    attempt: i32,
    /// Its outcome: `retry` when it failed, or was not accepted, and the run went on.
    #[schema(value_type = RunStatus)]
    status: &'static str,
    /// Why.
    #[schema(value_type = RunReason)]
    reason: &'static str,
    /// Message for people; its first 1,000 characters.
    message: String,
    /// Executor that had it; null for a sharded run, whose shards name theirs.
    executor: Option<String>,
    /// Address of that executor.
    executor_address: Option<String>,
    /// The node that dispatched it.
    node: Option<String>,
    /// When it should have started, epoch ms.
    due_time: i64,
    /// When it was dispatched, epoch ms.
    dispatched_at: Option<i64>,
    /// When the handler started, epoch ms; unknown until the result comes.
    started_at: Option<i64>,
    /// When the handler ended, epoch ms; null when it never started, or its end is unknown.
    finished_at: Option<i64>,
}

impl AttemptOutput {
    pub fn kept(kept: KeptAttempt) -> Self {
        let KeptAttempt { number, executor_id, address, node_id, due_time, .. } = kept;
        Self {
            attempt: number,
            status: kept.status.as_str(),
            reason: kept.reason.as_str(),
            message: kept.message,
            executor: known_id(executor_id),
            executor_address: (!address.is_empty()).then_some(address),
            node: known_id(node_id),
            due_time,
            dispatched_at: known_time(kept.dispatched_at),
            started_at: known_time(kept.started_at),
            finished_at: known_time(kept.finished_at),
        }
    }

    /// The last attempt, taken from the log itself.
    pub fn last(log: &LogView, address: Option<String>) -> Self {
        let LogView { dispatched, .. } = log;
        Self {
            attempt: dispatched.run.attempt,
            status: shown_status(dispatched),
            reason: shown_reason(dispatched).as_str(),
            message: cut(&log.message),
            executor: known_id(dispatched.run.executor_id),
            executor_address: address,
            node: known_id(dispatched.node_id),
            due_time: dispatched.run.due_time,
            dispatched_at: known_time(dispatched.dispatched_at),
            started_at: known_time(log.started_at),
            finished_at: known_time(dispatched.finished_at),
        }
    }
}

fn known_id(id: impl Into<i64>) -> Option<String> {
    let id = id.into();
    (id != 0).then(|| id.to_string())
}

fn known_time(ms: i64) -> Option<i64> {
    (ms != 0).then_some(ms)
}

fn is_stopping(dispatched: &DispatchedRun) -> bool {
    dispatched.run.status == Status::Dispatched && dispatched.is_stopping()
}

/// A run's state as shown to callers.
pub fn shown_status(dispatched: &DispatchedRun) -> &'static str {
    if is_stopping(dispatched) { STOPPING } else { dispatched.run.status.as_str() }
}

/// The reason for the state as shown to callers.
fn shown_reason(dispatched: &DispatchedRun) -> Reason {
    if is_stopping(dispatched) { dispatched.stopping } else { dispatched.run.reason }
}

impl From<&LogView> for TaskLog {
    fn from(log: &LogView) -> Self {
        let dispatched = &log.dispatched;
        let run = &dispatched.run;
        let time = known_time;
        Self {
            id: run.id.to_string(),
            task: run.task_id.to_string(),
            task_name: log.task_name.clone(),
            app: run.app_id.to_string(),
            app_name: log.app_name.clone(),
            tenant: log.tenant.clone(),
            revision: run.revision,
            status: shown_status(dispatched),
            reason: shown_reason(dispatched).as_str(),
            trigger: run.trigger.as_str(),
            priority: run.priority,
            fire_time: run.fire_time,
            due_time: run.due_time,
            attempt: run.attempt,
            failures: run.failures,
            shard_index: run.shard_index,
            shard_total: run.shard_total,
            shards: log.shards.map(|shards| Shards {
                total: run.shard_total,
                started: shards.started,
                ended: shards.ended,
                succeeded: shards.succeeded,
            }),
            parent: known_id(run.parent_id),
            executor: known_id(run.executor_id),
            node: known_id(dispatched.node_id),
            written_at: IdSource::made_at(run.id),
            written_by: known_id(IdSource::made_by(run.id)),
            queued_at: time(log.queued_at),
            dispatched_at: time(dispatched.dispatched_at),
            started_at: time(log.started_at),
            finished_at: time(dispatched.finished_at),
            message: log.message.clone(),
            output: log.output.clone(),
            params: run.params.clone(),
            version: run.version,
        }
    }
}

//! Runs of another scheduler that have ended, written among those of their tasks: nothing claims, counts or repeats them.

use super::dialect::Kind;
use super::sql_store::retrying;
use super::values::{clean, to_json};
use super::{Result, SqlStore};
use crate::domain::import::RunEnd;
use crate::domain::{LogId, TaskId, TenantId};

const OLD_RUN: &[(&str, Kind)] = &[
    ("id", Kind::Big),
    ("task_id", Kind::Big),
    ("fire_time", Kind::Big),
    ("finished_at", Kind::Big),
    ("status", Kind::Int),
    ("reason", Kind::Text),
    ("message", Kind::Text),
];

statements!(
    // Looked for first: MariaDB counts rows that an upsert has left alone.
    OLD_RUNS_ADD = |d| format!(
        "INSERT INTO task_log (id, tenant_id, app_id, task_id, revision, parent_id, shard_index, shard_total, bucket, \
         fire_time, due_time, status, version, attempt, failures, node_id, executor_id, queued_at, dispatched_at, \
         started_at, finished_at, reason, message, trigger_kind, seq, priority, stopping) SELECT v.n_id, t.tenant_id, \
         t.app_id, t.id, t.revision, 0, 0, 1, 0, v.n_fire_time, v.n_fire_time, v.n_status, 1, 1, 0, 0, 0, 0, 0, \
         v.n_fire_time, v.n_finished_at, v.n_reason, v.n_message, 'schedule', t.turn, t.priority, '' FROM {} task t ON t.id \
         = v.n_task_id WHERE t.tenant_id = {{2}} AND NOT EXISTS (SELECT 1 FROM task_log l WHERE l.task_id = t.id AND \
         l.fire_time = v.n_fire_time AND l.shard_index = 0) {}",
        d.batch(1, OLD_RUN),
        d.or_ignore("task_log", "task_id, fire_time, shard_index")
    ),
);

const ACTION: &str = "write runs of another scheduler";

/// Runs that are written at once at most.
pub const OLD_RUNS_MAX: usize = 500;

/// A run that has ended elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldRun {
    /// Id of its log here. Retention goes by it: it is kept as long as others, counted from now.
    pub id: LogId,
    /// Its task.
    pub task_id: TaskId,
    /// When it fired, epoch ms.
    pub fire_time: i64,
    /// When it ended, epoch ms.
    pub finished_at: i64,
    /// How.
    pub end: RunEnd,
    /// For people.
    pub message: String,
}

impl SqlStore {
    /// Writes them, at most [`OLD_RUNS_MAX`]; those of tasks that are not the tenant's, and of instants at which their task has a run
    /// already, are left out. Answers how many were written.
    pub async fn add_old_runs(&self, tenant: TenantId, runs: &[OldRun]) -> Result<u64> {
        let row = |run: &OldRun| {
            let (status, reason) = run.end.here();
            let (status, message) = (status as i16, clean(&run.message));
            (run.id, run.task_id, run.fire_time, run.finished_at, status, reason.as_str(), message)
        };
        let rows = to_json(ACTION, &runs.iter().map(row).collect::<Vec<_>>())?;
        retrying(|| self.add_old_runs_once(tenant, &rows)).await
    }

    async fn add_old_runs_once(&self, tenant: TenantId, rows: &str) -> Result<u64> {
        let tx = self.begin(ACTION).await?;
        let written = tx.execute(&OLD_RUNS_ADD, [rows.into(), tenant.into()]).await?;
        tx.commit().await?;
        Ok(written)
    }
}

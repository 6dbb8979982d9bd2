//! What `pregenerate/` asks: plans of fires, backfills.

use super::cluster::Fence;
use crate::domain::plan::Plan;
use crate::domain::{BackfillId, LogId, NodeId, Task, TaskId, TenantId};
use crate::store::error::Result;
use async_trait::async_trait;
use std::collections::{HashMap, HashSet};

/// Tasks as they were read.
#[derive(Debug, Default)]
pub struct FoundTasks {
    /// These.
    pub tasks: Vec<Task>,
    /// There, but not in words that this release knows, or without their calendar: they are neither gone nor of use.
    pub unreadable: Vec<TaskId>,
}

/// Most cancelled fires that are read at once; earlier ones are left to the unique index.
const SKIPPED_MAX: u64 = 10_000;

/// Asked by `pregenerate/`.
#[async_trait]
pub trait PlanStore: Send + Sync {
    /// Started tasks whose watermark lies at or before `until`, earliest first, of all tenants but these. What cannot be
    /// read is passed over, and its watermark stays.
    async fn tasks_due(&self, until: i64, besides: &[TenantId], limit: u64) -> Result<Vec<Task>>;
    /// These tasks, whatever their state.
    async fn find_tasks(&self, ids: &[TaskId]) -> Result<FoundTasks>;
    /// The same without those that cannot be read.
    async fn tasks(&self, ids: &[TaskId]) -> Result<Vec<Task>> {
        Ok(self.find_tasks(ids).await?.tasks)
    }
    /// Fires at or after the instant beside each task, and before `until` (ms), that a person cancelled
    /// before they were claimed: (task, fire time), latest first.
    async fn skipped(&self, since: &[(TaskId, i64)], until: i64, limit: u64) -> Result<Vec<(TaskId, i64)>>;
    /// Of these tasks' fires that are not written, and are before `until` (ms), those that people cancelled, by task. Asks only
    /// where there are such fires.
    async fn skipped_of(&self, tasks: &[Task], until: i64) -> Result<HashMap<TaskId, Vec<i64>>> {
        let late = tasks.iter().filter(|task| task.next_fire_at < until);
        let late: Vec<(TaskId, i64)> = late.map(|task| (task.id, task.next_fire_at)).collect();
        let mut skipped: HashMap<TaskId, Vec<i64>> = HashMap::new();
        if !late.is_empty() {
            for (task, fire_time) in self.skipped(&late, until, SKIPPED_MAX).await? {
                skipped.entry(task).or_default().push(fire_time);
            }
        }
        Ok(skipped)
    }
    /// In one transaction: checks the fence, moves each watermark that is still where the plan
    /// found it, writes the logs of exactly those tasks. A log that exists is left alone, save
    /// one that was cancelled by an edit or a stop, which the new definition takes over. A plan
    /// that does not know that its task has children by now writes nothing. Answers the ids of
    /// the tasks that moved; `None` when the fence is no longer valid, or the database has not heard of the node lately.
    async fn write_ahead(&self, by: Writer, plans: &[Plan], now: i64) -> Result<Option<HashSet<TaskId>>>;
}

/// Who writes ahead.
#[derive(Debug, Clone, Copy)]
pub enum Writer {
    /// Who holds the lease, for all tasks.
    Lease(Fence),
    /// Any node, for a task that it has just changed.
    Node(NodeId),
}

/// A range of a task's fires for which runs are written after the fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backfill {
    /// Id.
    pub id: BackfillId,
    /// Tenant.
    pub tenant_id: TenantId,
    /// Task.
    pub task_id: TaskId,
    /// First instant, ms.
    pub range_from: i64,
    /// First instant after it, ms.
    pub range_until: i64,
    /// Written up to this instant, ms.
    pub next_at: i64,
    /// Runs of it at once at most.
    pub max_concurrent: i32,
    /// Parameters instead of the task's.
    pub params: Option<String>,
    /// `open`, `done` or `cancelled`.
    pub status: String,
    /// Runs written.
    pub written: i64,
    /// Fires left out, because they have a log already.
    pub existing: i64,
    /// ms.
    pub created_at: i64,
    /// ms, or 0.
    pub finished_at: i64,
}

impl Backfill {
    /// How far it may be written at `now`, ms, from where it stands; `None` if that is not yet to be. The clock may have been set
    /// back since it was asked for: what is to come by now waits.
    #[must_use]
    pub fn past_until(&self, now: i64) -> Option<i64> {
        let until = self.range_until.min(now + 1);
        (until == self.range_until || until > self.next_at).then_some(until)
    }
}

/// Asked by `pregenerate/` for backfills.
#[async_trait]
pub trait BackfillStore: Send + Sync {
    /// Backfills after this one that are not done, oldest first.
    async fn open_backfills(&self, after: BackfillId, limit: u64) -> Result<Vec<Backfill>>;
    /// In one transaction: writes as many runs as may go on at once, and moves on, if the backfill
    /// is still where the caller saw it; ends it when all have ended. Answers how many it wrote: none for a `node` of which the
    /// database has not heard lately.
    async fn advance(
        &self,
        node: NodeId,
        of: &Backfill,
        new_id: &(dyn Fn() -> LogId + Sync),
        now: i64,
    ) -> Result<usize>;
}

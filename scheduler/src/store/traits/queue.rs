//! What `queue/` asks: rows to claim.

use crate::domain::{LogId, NodeId, Reason, Run, TaskId, TenantId};
use crate::store::error::Result;
use async_trait::async_trait;
use std::collections::HashSet;

/// A node's part of the rows: those whose bucket modulo `total` is `index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// From 0.
    pub index: u32,
    /// Number of nodes.
    pub total: u32,
}

impl Share {
    /// Whether what has this id is in this part of all, where rows have no bucket. Ids that are made one after the other end in the
    /// same bits.
    #[must_use]
    pub fn has(self, id: i64) -> bool {
        let spread = (id.unsigned_abs().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % u64::from(self.total.max(1));
        spread == u64::from(self.index)
    }
}

/// When rows to claim are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueRange {
    /// After this instant, epoch ms: what is due earlier is held.
    pub after: i64,
    /// At or before this instant, epoch ms.
    pub until: i64,
}

impl DueRange {
    /// Everything.
    pub const ALL: Self = Self { after: i64::MIN, until: i64::MAX };

    /// Everything that is due at or before `until` (epoch ms).
    #[must_use]
    pub fn until(until: i64) -> Self {
        Self { after: i64::MIN, until }
    }

    /// What is left of it behind these rows, the earliest of it, all of which have left it. (Others may be due with the last one.)
    #[must_use]
    pub fn from_last_of(self, done: &[Run]) -> Self {
        let after = done.last().map_or(self.after, |last| last.due_time.saturating_sub(1));
        Self { after, ..self }
    }

    /// Whether this instant (epoch ms) lies in it.
    #[must_use]
    pub fn has(self, due_time: i64) -> bool {
        due_time > self.after && due_time <= self.until
    }
}

/// Buckets that rows are spread over.
pub const BUCKETS: i64 = 1_024;

/// Rows that a claim passes by, so that others come in before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// These tenants' …
    pub tenants: Vec<TenantId>,
    /// … up to this priority.
    pub priority: i32,
}

/// Tenants that one read leaves out at most; any after them are not left out.
pub const LEFT_OUT_MAX: usize = 16;

/// A question about a task's missed fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissedQuestion {
    /// Of this task.
    pub task: TaskId,
    /// Fires from this instant on, epoch ms …
    pub from: i64,
    /// … and before this one.
    pub until: i64,
    /// Which of them is asked for, counted from the latest, which is 1.
    pub place: i64,
}

/// A run that ends before any node has claimed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnclaimedEnd {
    /// Task log id.
    pub id: LogId,
    /// Version that the row must have.
    pub version: i64,
    /// Why.
    pub reason: Reason,
    /// For people.
    pub message: String,
}

/// Asked by `queue/`.
#[async_trait]
pub trait ClaimStore: Send + Sync {
    /// INIT and RETRY rows due in this range, earliest first; of one share or of all.
    async fn claimable(&self, share: Option<Share>, due: DueRange, limit: u64) -> Result<Vec<Run>>;
    /// The same of all shares, without those left out; cheap also behind a backlog of theirs.
    async fn claimable_besides(&self, left_out: &LeftOut, due: DueRange, limit: u64) -> Result<Vec<Run>>;
    /// INIT/RETRY → QUEUED for `node`. Answers those that are the node's now, with their new
    /// version; the others went to another node.
    async fn claim(&self, node: NodeId, runs: Vec<Run>, now: i64) -> Result<Vec<Run>>;
    /// For each question, at most one of a task, the fire at that place, if there are so many fires that were due before
    /// `due_before` (epoch ms), or made up for as they were not written in time, and have neither expired nor been cancelled:
    /// (task, fire time).
    async fn missed_at(&self, questions: &[MissedQuestion], due_before: i64) -> Result<Vec<(TaskId, i64)>>;
    /// INIT → EXPIRED, as if claimed by `node` at `now` (ms). Answers those that are so by this call, or an earlier one with the
    /// same instant.
    async fn expire_unclaimed(&self, node: NodeId, ends: &[UnclaimedEnd], now: i64) -> Result<HashSet<LogId>>;
    /// Rows QUEUED for `node`, earliest first: after an error whose effect is unknown.
    ///
    /// This and what follows looks at every row in this range that is QUEUED or DISPATCHED, until it has found enough.
    async fn queued_of(&self, node: NodeId, due: DueRange, limit: u64) -> Result<Vec<Run>> {
        self.queued_before(node, i64::MAX, due, limit).await
    }
    /// Those of them that were claimed before `at` (epoch ms).
    async fn queued_before(&self, node: NodeId, at: i64, due: DueRange, limit: u64) -> Result<Vec<Run>>;
    /// Rows QUEUED for nodes other than `live`, earliest first.
    async fn queued_of_others(&self, live: &[NodeId], due: DueRange, limit: u64) -> Result<Vec<Run>>;
    /// The due time (ms) of the QUEUED or DISPATCHED run that has `rows` others from `from` (ms) on before it; none when there
    /// are not so many that are due before `until` (ms).
    async fn held_after(&self, from: i64, until: i64, rows: u64) -> Result<Option<i64>>;
}

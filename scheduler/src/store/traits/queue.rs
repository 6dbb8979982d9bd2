//! What `queue/` asks: rows to claim.

use crate::domain::{NodeId, Run, TenantId};
use crate::store::error::Result;
use async_trait::async_trait;

/// A node's part of the rows: those whose bucket modulo `total` is `index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// From 0.
    pub index: u32,
    /// Number of nodes.
    pub total: u32,
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
    /// Everything that is due at or before `until` (epoch ms).
    #[must_use]
    pub fn until(until: i64) -> Self {
        Self { after: i64::MIN, until }
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
    /// Rows QUEUED for `node`, earliest first: after an error whose effect is unknown.
    async fn queued_of(&self, node: NodeId, limit: u64) -> Result<Vec<Run>>;
    /// Rows QUEUED for nodes other than `live`.
    async fn queued_of_others(&self, live: &[NodeId], limit: u64) -> Result<Vec<Run>>;
}

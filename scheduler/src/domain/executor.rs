//! A running process that takes runs, as routing sees it.

use super::routing::Tags;
use super::{AppId, ExecutorId, NodeId, TenantId};
use std::collections::HashSet;

/// Largest weight.
pub const WEIGHT_MAX: i32 = 100;

/// Default weight of an executor.
pub const WEIGHT_DEFAULT: i32 = 1;

/// One executor process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executor {
    /// Id, one per process start.
    pub id: ExecutorId,
    /// Tenant id.
    pub tenant_id: TenantId,
    /// App id.
    pub app_id: AppId,
    /// Random per process start.
    pub instance: String,
    /// Key that it registered with, and that messages to it are signed with.
    pub key_id: String,
    /// `http://host:port`.
    pub address: String,
    /// Tags, compared exactly.
    pub tags: HashSet<String>,
    /// Handler names.
    pub handlers: HashSet<String>,
    /// Last committed heartbeat, cluster ms.
    pub heartbeat_at: i64,
    /// Takes no new runs.
    pub draining: bool,
    /// Takes no new runs, because a person disabled it.
    pub disabled: bool,
    /// Share of the runs compared with the others', 0..=[`WEIGHT_MAX`]; with 0 it takes none.
    pub weight: i32,
    /// Runs at once at most.
    pub capacity: i32,
    /// Runs accepted and not started, as of its last heartbeat.
    pub held: i32,
    /// Runs started and not ended, as of its last heartbeat.
    pub running: i32,
    /// Grows when the description changes.
    pub described_at: i64,
    /// Of its own software, as it says; empty when it says nothing.
    pub version: String,
    /// The node that received its last heartbeat, 0 when unknown.
    pub node_id: NodeId,
}

impl Executor {
    /// Whether it may be given a run of `handler` under the condition `tags`.
    #[must_use]
    pub fn fits(&self, handler: &str, tags: &Tags) -> bool {
        self.is_open() && self.handlers.contains(handler) && tags.fits(&self.tags)
    }

    /// Whether it may be given runs that it could not be given as `before`.
    #[must_use]
    pub fn may_take_more_than(&self, before: &Self) -> bool {
        self.is_open() && (!before.is_open() || self.handlers != before.handlers || self.tags != before.tags)
    }

    /// Whether it takes new runs at all: neither draining, nor disabled, nor without weight.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.draining && !self.disabled && self.share() > 0
    }

    /// Its weight as a number that is safe to count with: whatever is stored, 0..=[`WEIGHT_MAX`].
    #[must_use]
    pub fn share(&self) -> i64 {
        i64::from(self.weight.clamp(0, WEIGHT_MAX))
    }
}

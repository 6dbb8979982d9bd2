//! A running process that takes runs, as routing sees it.

use super::routing::Tags;
use super::{AppId, ExecutorId, NodeId, Owner, TenantId};
use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;

/// Largest weight.
pub const WEIGHT_MAX: i32 = 100;

/// Default weight of an executor.
pub const WEIGHT_DEFAULT: i32 = 1;

/// Names that are asked for one by one. Copying it copies a pointer: what an executor can do seldom changes, its load with
/// every heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NameSet(Arc<HashSet<String>>);

impl Deref for NameSet {
    type Target = HashSet<String>;

    fn deref(&self) -> &HashSet<String> {
        &self.0
    }
}

impl From<HashSet<String>> for NameSet {
    fn from(names: HashSet<String>) -> Self {
        Self(Arc::new(names))
    }
}

impl FromIterator<String> for NameSet {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Self {
        Self(Arc::new(names.into_iter().collect()))
    }
}

impl<const N: usize> From<[String; N]> for NameSet {
    fn from(names: [String; N]) -> Self {
        names.into_iter().collect()
    }
}

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
    pub tags: NameSet,
    /// Handler names; a plain one does not tell them.
    pub handlers: NameSet,
    /// It holds nothing early, lists neither runs nor handlers, and has no lease: a node speaks for it.
    pub plain: bool,
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

/// What changes of an executor from heartbeat to heartbeat, and what shows that its description has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulse {
    /// Executor.
    pub id: ExecutorId,
    /// Last committed heartbeat, or its farewell, cluster ms.
    pub heartbeat_at: i64,
    /// When it left or was replaced, ms; 0 while it is there.
    pub gone_at: i64,
    /// Takes no new runs.
    pub draining: bool,
    /// Takes no new runs, because a person disabled it.
    pub disabled: bool,
    /// As [`Executor::weight`].
    pub weight: i32,
    /// As [`Executor::held`].
    pub held: i32,
    /// As [`Executor::running`].
    pub running: i32,
    /// The node that received its last heartbeat.
    pub node_id: NodeId,
    /// As [`Executor::capacity`].
    pub capacity: i32,
    /// As [`Executor::key_id`].
    pub key_id: String,
    /// As [`Executor::described_at`]: with it, tags, handlers and address may have changed.
    pub described_at: i64,
}

impl Executor {
    /// Whose it is.
    #[must_use]
    pub fn owner(&self) -> Owner {
        Owner { tenant_id: self.tenant_id, app_id: self.app_id }
    }

    /// Whether it may be given a run of `handler` under the condition `tags`.
    #[must_use]
    pub fn fits(&self, handler: &str, tags: &Tags) -> bool {
        self.is_open() && self.has(handler) && tags.fits(&self.tags)
    }

    /// Whether it has this handler, as far as is known.
    #[must_use]
    pub fn has(&self, handler: &str) -> bool {
        self.plain || self.handlers.contains(handler)
    }

    /// Whether it may be given runs that it could not be given as `before`.
    #[must_use]
    pub fn may_take_more_than(&self, before: &Self) -> bool {
        self.is_open() && (!before.is_open() || self.handlers != before.handlers || self.tags != before.tags)
    }

    /// Whether routing sees the same in it as in `other`, but for its load and its place in time.
    #[must_use]
    pub fn routes_like(&self, other: &Self) -> bool {
        self.id == other.id
            && self.address == other.address
            && (self.draining, self.disabled, self.weight) == (other.draining, other.disabled, other.weight)
            && (self.plain, &self.handlers) == (other.plain, &other.handlers)
            && self.tags == other.tags
    }

    /// This executor as a heartbeat leaves it.
    #[must_use]
    pub fn at_pulse(&self, pulse: &Pulse) -> Self {
        let Pulse { heartbeat_at, draining, disabled, weight, held, running, capacity, node_id, .. } = *pulse;
        let key_id = pulse.key_id.clone();
        Self { key_id, heartbeat_at, draining, disabled, weight, capacity, held, running, node_id, ..self.clone() }
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

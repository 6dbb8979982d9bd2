//! What `cluster/` and `api/` ask of executors.

use crate::domain::executor::Pulse;
use crate::domain::{Executor, ExecutorId, NodeId, Owner};
use crate::store::Result;
use async_trait::async_trait;
use carillon_protocol::{Register, RunKey};
use std::collections::HashSet;

/// Whose key signed an executor's message, and when.
#[derive(Debug, Clone, Copy)]
pub struct Signer<'a> {
    /// Owner of the key.
    pub owner: Owner,
    /// The key.
    pub key_id: &'a str,
    /// By the executor's clock, ms. Of each kind of message only one that is newer than those
    /// before it counts, so that none can be repeated, wherever and whenever.
    pub signed_at: i64,
}

/// What a registration came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// The process's id.
    pub executor_id: ExecutorId,
    /// Handlers of the process that have no task, because the tenant has as many as it may.
    pub left_out: Vec<String>,
}

/// A heartbeat to commit.
#[derive(Debug, Clone)]
pub struct ExecutorHeartbeat {
    /// Whose.
    pub executor_id: ExecutorId,
    /// As sent; another instance's beat does not count.
    pub instance: String,
    /// Accepted, not started.
    pub held: usize,
    /// Started, not ended.
    pub running: usize,
    /// Takes no new runs.
    pub draining: bool,
    /// The node that heard it.
    pub node_id: NodeId,
}

/// A heartbeat with who signed it, and when.
#[derive(Debug, Clone)]
pub struct SignedHeartbeat {
    /// As [`Signer::owner`].
    pub owner: Owner,
    /// As [`Signer::signed_at`], ms.
    pub signed_at: i64,
    /// What it says.
    pub heartbeat: ExecutorHeartbeat,
}

/// What became of a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeartbeatVerdict {
    /// It is committed.
    Committed,
    /// The executor is not known, or has gone.
    Unknown,
    /// A newer one has been heard before.
    Outdated,
}

/// Asked by `cluster/` and `api/` for executors.
#[async_trait]
pub trait ExecutorStore: Send + Sync {
    /// Registers a process or refreshes its description. A process seen for the first time
    /// replaces the process at its address; one that was replaced itself does not come back. Makes
    /// a stopped task of each handler never seen before, as far as the tenant's quota goes; what it
    /// leaves out is tried again with each registration. A message that is not newer than the last
    /// registration is [`StoreErrorKind::Outdated`](crate::store::StoreErrorKind::Outdated). `new_id` makes ids.
    async fn register(
        &self,
        signer: &Signer<'_>,
        register: &Register,
        new_id: &(dyn Fn() -> i64 + Sync),
        now: i64,
    ) -> Result<Registration>;
    /// Commits a heartbeat by the database's clock; answers whether the executor is known. One
    /// that is not newer than the last is [`StoreErrorKind::Outdated`](crate::store::StoreErrorKind::Outdated).
    async fn beat(&self, signer: &Signer<'_>, beat: &ExecutorHeartbeat) -> Result<bool>;
    /// The same for at most [`BATCH_MAX`](crate::store::BATCH_MAX) executors, one of each: all in one transaction. Answers
    /// in their order; an error is of all of them.
    async fn beats(&self, beats: &[SignedHeartbeat]) -> Result<Vec<HeartbeatVerdict>>;
    /// After an executor's silence: bumps the version of every run that is still its own, so that
    /// a decision based on an older read loses the race; answers those. The others it must drop.
    async fn reconfirm(&self, owner: Owner, executor_id: ExecutorId, runs: &[RunKey]) -> Result<HashSet<RunKey>>;
    /// Marks an executor as gone (`left`) or as taking no new runs, unless it has registered since. Its farewell is a sign
    /// of life, too: nodes learn of it as of a heartbeat.
    async fn retire(&self, signer: &Signer<'_>, executor_id: ExecutorId, left: bool, now: i64) -> Result<()>;
    /// Executors with a heartbeat at or after `since` that are not gone.
    async fn executors(&self, since: i64) -> Result<Vec<Executor>>;
    /// Of these executors those with a heartbeat at or after `since` that are not gone.
    async fn executors_among(&self, ids: &[ExecutorId], since: i64) -> Result<Vec<Executor>>;
    /// What heartbeats, registrations and farewells at or after `since` left, also of those that are gone.
    async fn pulses(&self, since: i64) -> Result<Vec<Pulse>>;
    /// These executors with their last heartbeat and when they went, dead or alive.
    async fn executor_ends(&self, ids: &[ExecutorId]) -> Result<Vec<ExecutorEnd>>;
}

/// What is left of an executor that no longer beats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorEnd {
    /// Id.
    pub id: ExecutorId,
    /// Owner.
    pub owner: Owner,
    /// Random per process start.
    pub instance: String,
    /// Key that it registered with.
    pub key_id: String,
    /// Where it listened.
    pub address: String,
    /// Whether it listened there itself, see [`Register::own_address`].
    pub own_address: bool,
    /// As [`Executor::plain`].
    pub plain: bool,
    /// Last committed heartbeat, ms.
    pub heartbeat_at: i64,
    /// When it left or was replaced, ms; else 0.
    pub gone_at: i64,
}

//! What executors say of themselves: registration, heartbeat, farewell.

use super::{Clock, Registry, Snapshot};
use crate::domain::IdSource;
use crate::store::{ExecutorBeat, ExecutorStore, Result, Scope};
use carillon_protocol::{Heartbeat, Register, RunKey};
use std::sync::Arc;

/// The node's ear for executors.
pub struct Executors {
    store: Arc<dyn ExecutorStore>,
    clock: Arc<dyn Clock>,
    registry: Arc<Registry>,
    ids: Arc<IdSource>,
}

impl Executors {
    /// Over the node's parts.
    pub fn new(
        store: Arc<dyn ExecutorStore>,
        clock: Arc<dyn Clock>,
        registry: Arc<Registry>,
        ids: Arc<IdSource>,
    ) -> Self {
        Self { store, clock, registry, ids }
    }

    /// Registers a process; answers its id.
    pub async fn register(&self, scope: Scope, key_id: &str, register: &Register, alive_since: i64) -> Result<i64> {
        let now = self.clock.now_ms();
        let new_id = || self.ids.next(now);
        let id = self.store.register(scope, key_id, register, &new_id, now).await?;
        self.registry.refresh(&*self.store, alive_since).await?;
        tracing::info!(executor = id, address = register.address, instance = register.instance, "executor registered");
        Ok(id)
    }

    /// Commits a heartbeat; `false` when the executor is not known and must register again.
    /// Answered only after the commit: the executor starts what it holds by this promise.
    pub async fn heartbeat(&self, scope: Scope, beat: Heartbeat) -> Result<bool> {
        let Heartbeat { executor_id, instance, snapshot_at, held, running, unacknowledged, draining, .. } = beat;
        let row = ExecutorBeat { executor_id, instance, scope, held: held.len(), running: running.len(), draining };
        if !self.store.beat(&[row]).await?.contains(&executor_id) {
            return Ok(false);
        }
        let runs: std::collections::HashSet<RunKey> = held.into_iter().chain(running).chain(unacknowledged).collect();
        let received_at = self.clock.now_ms();
        // An executor whose clock runs ahead must not vouch for what it has not seen yet.
        let taken_at = snapshot_at.min(received_at);
        self.registry.heard(executor_id, Snapshot { taken_at, received_at, runs });
        Ok(true)
    }

    /// Takes an executor out of routing; for good when it `left`.
    pub async fn retire(&self, scope: Scope, executor_id: i64, left: bool, alive_since: i64) -> Result<()> {
        self.store.retire(scope, executor_id, left, self.clock.now_ms()).await?;
        self.registry.refresh(&*self.store, alive_since).await
    }
}

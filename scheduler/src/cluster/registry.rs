//! The executors that are online, as this node last read them, and what those that beat here
//! said they hold.

use crate::domain::{AppId, Executor, ExecutorId, TenantId};
use crate::store::{ExecutorStore, Result};
use arc_swap::ArcSwap;
use carillon_protocol::RunKey;
use dashmap::DashMap;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// What an executor said it holds.
#[derive(Debug)]
pub struct Snapshot {
    /// When it was taken, by the executor's estimate of the cluster clock, ms.
    pub taken_at: i64,
    /// When it came here, ms.
    pub received_at: i64,
    /// Held, running, or ended without an acknowledgement.
    pub runs: HashSet<RunKey>,
    /// Those of them that it was told to drop. It may not have heard it.
    pub cancelled: HashSet<RunKey>,
    /// Before this instant its runs may have been given away; a list taken before it may lack some of them. ms, 0 for never.
    pub doubted_until: i64,
}

type ByApp = HashMap<(TenantId, AppId), Vec<Arc<Executor>>>;

/// Online executors. Reads never wait.
#[derive(Default)]
pub struct Registry {
    online: ArcSwap<ByApp>,
    snapshots: DashMap<ExecutorId, Snapshot>,
    /// Executors that could not be reached, and until when (ms) routing leaves them out.
    avoided: DashMap<ExecutorId, i64>,
    /// Apps with an executor that has come since the last look at what waits for one.
    come: Mutex<HashSet<(TenantId, AppId)>>,
}

impl Registry {
    /// Reads who is online: a heartbeat at or after `alive_since` (ms).
    pub async fn refresh(&self, store: &dyn ExecutorStore, alive_since: i64) -> Result<()> {
        let executors = store.executors(alive_since).await?;
        let ids: HashSet<ExecutorId> = executors.iter().map(|executor| executor.id).collect();
        let mut online = ByApp::new();
        let before: HashMap<ExecutorId, Arc<Executor>> =
            self.everyone().into_iter().map(|executor| (executor.id, executor)).collect();
        for executor in executors {
            let app = (executor.tenant_id, executor.app_id);
            if before.get(&executor.id).is_none_or(|before| executor.may_take_more_than(before)) {
                self.note_come(app);
            }
            online.entry(app).or_default().push(Arc::new(executor));
        }
        self.online.store(Arc::new(online));
        self.snapshots.retain(|id, _| ids.contains(id));
        self.avoided.retain(|id, _| ids.contains(id));
        Ok(())
    }

    /// Executors of one app that may be tried at `now` (ms). When every one is being avoided,
    /// all are: a wrong suspicion must not stop an app.
    pub fn of_app(&self, tenant_id: TenantId, app_id: AppId, now: i64) -> Vec<Arc<Executor>> {
        let online = self.online.load();
        let Some(all) = online.get(&(tenant_id, app_id)) else { return Vec::new() };
        let trusted: Vec<_> = all
            .iter()
            .filter(|executor| self.avoided.get(&executor.id).is_none_or(|until| *until <= now))
            .cloned()
            .collect();
        if trusted.is_empty() { all.clone() } else { trusted }
    }

    /// All executors of one app that are online.
    pub fn online(&self, tenant_id: TenantId, app_id: AppId) -> Vec<Arc<Executor>> {
        self.online.load().get(&(tenant_id, app_id)).cloned().unwrap_or_default()
    }

    /// The executor, if it is online.
    pub fn find(&self, id: ExecutorId) -> Option<Arc<Executor>> {
        self.online.load().values().flatten().find(|executor| executor.id == id).cloned()
    }

    /// Ids of everyone online.
    pub fn ids(&self) -> Vec<ExecutorId> {
        self.online.load().values().flatten().map(|executor| executor.id).collect()
    }

    /// Everyone online.
    pub fn everyone(&self) -> Vec<Arc<Executor>> {
        self.online.load().values().flatten().cloned().collect()
    }

    /// Leaves an executor out of routing until `until` (ms) or its next heartbeat.
    pub fn avoid(&self, id: ExecutorId, until: i64) {
        self.avoided.insert(id, until);
    }

    /// Whether routing leaves this executor out at `now` (ms) where there is another.
    pub fn is_avoided(&self, id: ExecutorId, now: i64) -> bool {
        self.avoided.get(&id).is_some_and(|until| *until > now)
    }

    /// Apps (tenant, app) of which an executor has come, or takes what it did not take before, since
    /// this was asked last.
    pub fn take_come(&self) -> HashSet<(TenantId, AppId)> {
        std::mem::take(&mut *self.come.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note_come(&self, app: (TenantId, AppId)) {
        self.come.lock().unwrap_or_else(PoisonError::into_inner).insert(app);
    }

    /// Takes what an executor said.
    pub fn heard(&self, id: ExecutorId, snapshot: Snapshot) {
        if self.avoided.remove(&id).is_some()
            && let Some(executor) = self.find(id)
        {
            self.note_come((executor.tenant_id, executor.app_id));
        }
        self.snapshots.insert(id, snapshot);
    }

    /// Whether the executor beat here since `since` (ms).
    pub fn heard_lately(&self, id: ExecutorId, since: i64) -> bool {
        self.snapshots.get(&id).is_some_and(|snapshot| snapshot.received_at >= since)
    }

    /// Until when (ms) runs of the executor may have been given away that none of its lists here has shown yet.
    pub fn doubted_until(&self, id: ExecutorId) -> i64 {
        self.snapshots.get(&id).map_or(0, |snapshot| snapshot.doubted_until)
    }

    /// Of these runs those that the executor was told to drop with its last heartbeat here.
    pub fn told_to_drop(&self, id: ExecutorId, runs: &[RunKey]) -> Vec<RunKey> {
        let snapshot = self.snapshots.get(&id);
        let told = |run: &&RunKey| snapshot.as_ref().is_some_and(|snapshot| snapshot.cancelled.contains(run));
        runs.iter().filter(told).copied().collect()
    }

    /// Executors that beat here since `since` (ms).
    pub fn heard_since(&self, since: i64) -> Vec<ExecutorId> {
        self.snapshots.iter().filter(|entry| entry.received_at >= since).map(|entry| *entry.key()).collect()
    }

    /// Whether the executor's last snapshot is newer than `after` (ms) and does not hold the run.
    pub fn denies(&self, id: ExecutorId, run: RunKey, after: i64) -> bool {
        self.snapshots.get(&id).is_some_and(|snapshot| snapshot.taken_at > after && !snapshot.runs.contains(&run))
    }
}

//! The scripts that runs are. A version never changes, so it is kept for as long as there is room. Where one is missing, those that
//! others wait for are read with it, by one caller at a time: at the top of a minute a thousand may be needed at once.

use crate::domain::recent::Recent;
use crate::domain::xxljob::Script;
use crate::domain::{Owner, TaskId, TenantId};
use crate::store::{Result, SCRIPTS_AT_ONCE, ScriptStore};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Memory for scripts that are kept, bytes.
const KEPT_BYTES_MAX: usize = 32 << 20;

/// What is kept of a script beside its text, bytes.
const REST_BYTES: usize = 128;

/// Room for the scripts of runs that are on their way, KiB: a thousand of the largest. Further runs wait, and may be late.
const ON_THE_WAY_KIB_MAX: usize = 64 * 1_024;

/// A version of a task's script, and whose task it is.
type Wanted = (TaskId, i64, TenantId);

/// Scripts, as far as they are known here, and where the others are.
pub struct Scripts {
    store: Arc<dyn ScriptStore>,
    known: Mutex<Recent<(TaskId, i64), Arc<Script>>>,
    /// What callers wait for.
    wanted: Mutex<BTreeSet<Wanted>>,
    /// Who reads; the others find what was read.
    reading: tokio::sync::Mutex<()>,
    room: Semaphore,
}

impl Scripts {
    /// Over the store.
    pub fn new(store: Arc<dyn ScriptStore>) -> Self {
        let (known, wanted) = (Mutex::new(Recent::new(KEPT_BYTES_MAX)), Mutex::default());
        Self { store, known, wanted, reading: tokio::sync::Mutex::default(), room: Semaphore::new(ON_THE_WAY_KIB_MAX) }
    }

    /// A version of a task's script; none if it is no longer kept.
    pub async fn of(&self, owner: Owner, task: TaskId, version: i64) -> Result<Option<Arc<Script>>> {
        let known = || lock(&self.known).get((task, version));
        if let Some(script) = known() {
            return Ok(Some(script));
        }
        let own = (task, version, owner.tenant_id);
        lock(&self.wanted).insert(own);
        let _turn = self.reading.lock().await;
        if let Some(script) = known() {
            return Ok(Some(script));
        }
        let batch: Vec<Wanted> = {
            let mut wanted = lock(&self.wanted);
            wanted.remove(&own);
            let others = std::iter::from_fn(|| wanted.pop_first());
            std::iter::once(own).chain(others.take(SCRIPTS_AT_ONCE - 1)).collect()
        };
        let found = self.store.scripts(&batch).await?;
        let mut mine = None;
        for (key, script) in found {
            let (script, bytes) = (Arc::new(script), REST_BYTES);
            if key == (task, version) {
                mine = Some(Arc::clone(&script));
            }
            let bytes = bytes + script.source.len();
            lock(&self.known).insert(key, script, bytes);
        }
        Ok(mine)
    }

    /// Waits until there is room for a script on its way; none if there never is.
    pub async fn room(&self, script: &Script) -> Option<SemaphorePermit<'_>> {
        let kib = u32::try_from(script.source.len() / 1_024 + 1).ok()?;
        self.room.acquire_many(kib).await.ok()
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::AppId;
    use crate::domain::xxljob::GlueType;
    use async_trait::async_trait;
    use futures_util::future::join_all;
    use std::collections::HashMap;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Every task has one version; it counts how often it is asked.
    #[derive(Default)]
    struct Asked {
        times: AtomicUsize,
    }

    #[async_trait]
    impl ScriptStore for Asked {
        async fn scripts(&self, wanted: &[Wanted]) -> Result<HashMap<(TaskId, i64), Script>> {
            assert!(wanted.len() <= SCRIPTS_AT_ONCE);
            self.times.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            let of =
                |task: TaskId| Script { glue_type: GlueType::GlueShell, source: task.0.to_string(), updated_at: 1 };
            let found = wanted.iter().filter(|(_, version, tenant)| (*version, tenant.0) == (1, 7));
            Ok(found.map(|(task, version, _)| ((*task, *version), of(*task))).collect())
        }
    }

    const OWNER: Owner = Owner { tenant_id: TenantId(7), app_id: AppId(1) };

    #[tokio::test]
    async fn a_burst_of_different_scripts_is_read_together() {
        let store = Arc::new(Asked::default());
        let scripts = Scripts::new(store.clone());
        let all = join_all((0..1_000).map(|id| scripts.of(OWNER, TaskId(id), 1))).await;
        let all: Vec<String> = all.into_iter().map(|one| one.unwrap().unwrap().source.clone()).collect();
        assert_eq!(all, (0..1_000).map(|id| id.to_string()).collect::<Vec<_>>());
        let times = store.times.swap(0, Ordering::Relaxed);
        assert!(times <= 11, "{times} statements for 1,000 scripts");
        join_all((0..1_000).map(|id| scripts.of(OWNER, TaskId(id), 1))).await;
        assert_eq!(store.times.load(Ordering::Relaxed), 0, "they are kept");
    }

    #[tokio::test]
    async fn one_of_another_tenant_or_version_is_not_there() {
        let scripts = Scripts::new(Arc::new(Asked::default()));
        assert_eq!(scripts.of(OWNER, TaskId(1), 2).await.unwrap(), None);
        let other = Owner { tenant_id: TenantId(8), ..OWNER };
        assert_eq!(scripts.of(other, TaskId(1), 1).await.unwrap(), None);
    }

    #[tokio::test]
    async fn the_room_for_those_on_their_way_has_a_bound() {
        let scripts = Scripts::new(Arc::new(Asked::default()));
        let large = Script { glue_type: GlueType::GlueShell, source: "x".repeat(60_000), updated_at: 1 };
        let mut held = Vec::new();
        for _ in 0..ON_THE_WAY_KIB_MAX / 59 {
            held.push(scripts.room(&large).await);
        }
        let mut next = Box::pin(scripts.room(&large));
        assert!(futures_util::poll!(&mut next).is_pending());
        held.pop();
        assert!(next.await.is_some());
    }
}

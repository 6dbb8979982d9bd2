//! What the queue has in common with the batches that left it.

use super::fair_queue::FairQueue;
use crate::domain::{LogId, Run, TenantId};
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// What the queue has in common with the batches that left it.
#[derive(Default)]
pub(super) struct Shared {
    inner: Mutex<Inner>,
    pub changed: Changed,
}

/// Wakes whoever waits for the queue: a thread, or a task.
#[derive(Default)]
pub(super) struct Changed {
    thread: Condvar,
    task: Notify,
}

impl Changed {
    pub fn notify(&self) {
        self.thread.notify_all();
        // Kept for a task that has looked and does not wait yet.
        self.task.notify_one();
    }

    /// Lets the thread sleep until there is a change, at most for so long.
    pub fn block<'a>(&self, inner: MutexGuard<'a, Inner>, most: Duration) -> MutexGuard<'a, Inner> {
        self.thread.wait_timeout(inner, most).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Completes when there is a change, or after so long.
    pub async fn wait(&self, most: Duration) {
        // Either way the queue is looked at again.
        drop(tokio::time::timeout(most, self.task.notified()).await);
    }
}

#[derive(Default)]
pub(super) struct Inner {
    pub order: FairQueue,
    pub under_way: RunsUnderWay,
    /// Due runs stay until others finish.
    pub passed_over: bool,
    pub closed: bool,
}

/// Runs that left the queue and are not decided yet: the newest version, and how many batches hold the run. One that a
/// batch has put back may be taken again before that batch ends.
#[derive(Default)]
pub(super) struct RunsUnderWay(HashMap<LogId, (i64, u32)>);

impl RunsUnderWay {
    pub fn begin(&mut self, runs: &[Run]) {
        for run in runs {
            let (version, batches) = self.0.entry(run.id).or_default();
            *version = run.version.max(*version);
            *batches += 1;
        }
    }

    fn finish(&mut self, id: LogId) {
        if let Some((_, batches)) = self.0.get_mut(&id) {
            *batches -= 1;
            if *batches == 0 {
                self.0.remove(&id);
            }
        }
    }

    pub fn version_of(&self, id: LogId) -> Option<i64> {
        self.0.get(&id).map(|(version, _)| *version)
    }

    pub fn versions(&self) -> impl Iterator<Item = (LogId, i64)> {
        self.0.iter().map(|(id, (version, _))| (*id, *version))
    }
}

impl Shared {
    /// These runs are no longer under way.
    pub(super) fn finish(&self, runs: &HashMap<LogId, TenantId>) {
        let mut inner = self.lock();
        for (id, tenant) in runs {
            inner.order.finish(*tenant, 1);
            inner.under_way.finish(*id);
        }
        if std::mem::take(&mut inner.passed_over) {
            drop(inner);
            self.changed.notify();
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every method leaves the collections in step before it can panic.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

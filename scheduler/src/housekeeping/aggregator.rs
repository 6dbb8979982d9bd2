//! Statistics: the node that holds their lease counts each minute a little after its end.
//!
//! A fire counts in the minute of its fire time. A minute of which runs have not ended stays on a
//! list in the database and is counted again, later and later, for as long as its logs are kept;
//! who writes runs of past instants (missed fires, backfills) puts their minutes on the list in the
//! same transaction. Counting writes whole rows over earlier ones, so a node that dies half-way
//! leaves nothing behind that its successor does not write again.

use crate::cluster::{Clock, Membership};
use crate::domain::TaskId;
use crate::domain::statistics::{DAY_MS, GRAINS, Grain, HOUR_MS, count_again_after_ms};
use crate::store::{
    ClusterStore, Counted, Counting, Fence, LeaseName, Part, Result, STATISTICS_LEASE_MS, StatisticsStore,
};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A minute is counted this long after its end: runs started manually are committed by then, and
/// most others have ended. ms.
const SETTLE_MS: i64 = 20_000;

/// Logs, and tasks, that one statement counts; a task with more than that in one minute comes alone.
const LOGS_MAX: u64 = 5_000;
const TASKS_MAX: usize = 500;

/// Rows of an hour that one statement adds up, about.
const HOUR_ROWS_MAX: u64 = 50_000;

/// Minutes and hours counted in one tick at most, and for how long at most, ms; the next goes on.
const COUNTS_MAX: u64 = 200;
const TICK_MS: i64 = 5_000;

/// Old rows deleted at a time, and how often in one tick.
const PURGE_ROWS: u64 = 2_000;
const PURGES_MAX: usize = 20;

/// How long what is kept.
#[derive(Debug, Clone, Copy)]
pub struct StatisticsSettings {
    /// Task logs, ms; older minutes cannot be counted again.
    pub logs_ms: i64,
    /// Figures of single tasks by the minute, ms.
    pub task_minutes_ms: i64,
    /// All others, ms.
    pub figures_ms: i64,
}

/// Counts, on one node.
pub struct Aggregator<S: ?Sized> {
    store: Arc<S>,
    clock: Arc<dyn Clock>,
    membership: Arc<Membership>,
    settings: StatisticsSettings,
    fence: Mutex<Option<Fence>>,
    /// Start of the day on which all that was too old was gone, ms.
    purged_on: AtomicI64,
}

impl<S: StatisticsStore + ClusterStore + ?Sized> Aggregator<S> {
    /// Over the node's parts.
    pub fn new(
        store: Arc<S>,
        clock: Arc<dyn Clock>,
        membership: Arc<Membership>,
        settings: StatisticsSettings,
    ) -> Self {
        Self { store, clock, membership, settings, fence: Mutex::default(), purged_on: AtomicI64::new(0) }
    }

    /// Counts what is due, if this node holds the lease or can take it; returns how many minutes
    /// and hours.
    pub async fn tick(&self) -> Result<usize> {
        let held = *self.lock();
        let me = self.membership.id();
        let fence = self.store.take_lease(LeaseName::Statistics, me, held, STATISTICS_LEASE_MS).await?;
        *self.lock() = fence;
        let Some(fence) = fence else { return Ok(0) };
        let Some(began) = super::believed(&*self.clock) else { return Ok(0) };
        if !self.store.list_minutes(fence, self.since(Grain::TaskMinute, began), began - SETTLE_MS).await? {
            return Ok(0);
        }
        let mut counted = 0;
        for of in self.store.to_count(began, COUNTS_MAX).await? {
            let goes_on = self.count(fence, &of).await?;
            counted += usize::from(goes_on);
            if !goes_on || self.clock.now_ms() - began > TICK_MS {
                break;
            }
        }
        self.purge(began).await?;
        Ok(counted)
    }

    /// From when on figures of single tasks are there by the minute, ms.
    pub fn task_minutes_since(&self) -> i64 {
        self.since(Grain::TaskHour, self.clock.now_ms())
    }

    /// Whether this node had the lease at its last look.
    pub fn has_lease(&self) -> bool {
        self.lock().is_some()
    }

    /// Lets another node count at once.
    pub async fn release(&self) -> Result<()> {
        let held = self.lock().take();
        match held {
            Some(fence) => self.store.release_lease(fence).await,
            None => Ok(()),
        }
    }

    /// `false` when the lease is lost.
    async fn count(&self, fence: Fence, of: &Counting) -> Result<bool> {
        let Some(now) = super::believed(&*self.clock) else { return Ok(false) };
        let found = if of.start < self.since(of.grain, now) {
            // Its logs, or its minutes, are no longer all there.
            Some(Counted { again_at: None, is_change: false })
        } else if of.grain == Grain::TaskMinute {
            self.count_minute(fence, of).await?
        } else {
            self.sum_hour(fence, of.start).await?
        };
        let Some(found) = found else { return Ok(false) };
        self.store.counted(fence, of, found, self.clock.now_ms()).await
    }

    /// What begins before that is not counted, ms.
    fn since(&self, grain: Grain, now: i64) -> i64 {
        let kept = match grain {
            Grain::TaskMinute => self.settings.logs_ms.min(self.settings.task_minutes_ms),
            _ => self.settings.task_minutes_ms,
        };
        // Retention of logs goes by the time when they were written, up to an hour before they fire.
        now - kept + HOUR_MS
    }

    /// `None` when the lease is lost.
    async fn count_minute(&self, fence: Fence, of: &Counting) -> Result<Option<Counted>> {
        let open_before = if of.is_full { 0 } else { self.store.open_runs(of.start).await? };
        let tasks =
            if of.is_full { self.store.tasks_fired(of.start).await? } else { self.store.tasks_open(of.start).await? };
        for batch in batches(&tasks) {
            if !self.store.count_tasks(fence, of.start, &batch).await? {
                return Ok(None);
            }
        }
        let open = if tasks.is_empty() { 0 } else { self.store.open_runs(of.start).await? };
        let is_change = !tasks.is_empty() && (of.is_full || open != open_before);
        if is_change && !self.store.sum_minute(fence, of.start).await? {
            return Ok(None);
        }
        let again_at = (open > 0).then(|| self.clock.now_ms() + count_again_after_ms(of.tries));
        Ok(Some(Counted { again_at, is_change }))
    }

    /// `None` when the lease is lost.
    async fn sum_hour(&self, fence: Fence, hour: i64) -> Result<Option<Counted>> {
        // Odd, because ids of tasks made one by one are even.
        let parts = (self.store.rows_of_hour(hour).await? / HOUR_ROWS_MAX) as i64 | 1;
        for index in 0..parts {
            if !self.store.sum_task_hours(fence, hour, Part { index, of: parts }).await? {
                return Ok(None);
            }
        }
        let done = self.store.sum_tenant_hours(fence, hour).await?;
        Ok(done.then_some(Counted { again_at: None, is_change: false }))
    }

    /// Figures go by whole days: once a day, in as many ticks as it takes.
    async fn purge(&self, now: i64) -> Result<()> {
        let today = now - now.rem_euclid(DAY_MS);
        if self.purged_on.load(Ordering::Relaxed) == today {
            return Ok(());
        }
        let mut left = PURGES_MAX;
        for grain in GRAINS {
            let kept =
                if grain == Grain::TaskMinute { self.settings.task_minutes_ms } else { self.settings.figures_ms };
            let before = today - kept;
            while self.store.purge_figures(grain, before, PURGE_ROWS).await? {
                left -= 1;
                if left == 0 {
                    return Ok(());
                }
            }
        }
        self.purged_on.store(today, Ordering::Relaxed);
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Fence>> {
        self.fence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tasks in their order, cut so that one statement counts neither too many of them nor too many logs.
fn batches(tasks: &[(TaskId, u64)]) -> Vec<Vec<TaskId>> {
    let mut batches: Vec<Vec<TaskId>> = Vec::new();
    let mut logs_in_last = 0;
    for (task, logs) in tasks.iter().copied() {
        match batches.last_mut() {
            Some(last) if last.len() < TASKS_MAX && logs_in_last + logs <= LOGS_MAX => {
                last.push(task);
                logs_in_last += logs;
            }
            _ => {
                batches.push(vec![task]);
                logs_in_last = logs;
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_holds_neither_too_many_tasks_nor_too_many_logs() {
        let small = batches(&(0..1_200).map(|task| (TaskId(task), 1)).collect::<Vec<_>>());
        assert_eq!(small.iter().map(Vec::len).collect::<Vec<_>>(), [500, 500, 200]);
        let large =
            batches(&[(TaskId(1), 3_000), (TaskId(2), 2_000), (TaskId(3), 1), (TaskId(4), 9_000), (TaskId(5), 1)]);
        assert_eq!(large, [vec![TaskId(1), TaskId(2)], vec![TaskId(3)], vec![TaskId(4)], vec![TaskId(5)]]);
        assert!(batches(&[]).is_empty());
    }
}

//! Schedules → task logs, a few minutes ahead, by the node that holds the lease.
//!
//! Cost follows the number of fires: only tasks whose watermark lies in the window are read. The
//! lease keeps nodes from doing the same work twice; that they cannot double a log is up to the
//! watermark's guard and the unique index.

mod backfill;

pub use backfill::Backfiller;

use crate::cluster::{Clock, LoadWatch, Membership, RuleBook};
use crate::domain::plan::{Window, plan_besides};
use crate::domain::{AppId, IdSource, Task, TaskId, TenantId};
use crate::metrics::{OTHER_APPS, RUNS_ENDED};
use crate::store::{
    ClusterStore, Fence, LEFT_OUT_MAX, LeaseName, PlanStore, Result, StoreError, StoreErrorKind, Writer,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Distances of pre-generation, ms.
#[derive(Debug, Clone, Copy)]
pub struct PregenerateSettings {
    /// How far ahead logs are written.
    pub ahead_ms: i64,
    /// A fire later than this without a log was missed.
    pub misfire_after_ms: i64,
    /// How long the lease lives without renewal.
    pub lease_ttl_ms: i64,
}

/// Tasks planned in one transaction at most.
const TASKS_MAX: u64 = 500;

/// Logs written in one transaction, about.
const LOGS_TARGET: usize = 2_000;

/// Tasks with missed fires in one transaction: each gets its rows for those and a good while beyond, so that what is behind
/// does not stay behind.
const MISSED_TASKS_MAX: usize = 8;

/// While pages of tasks are filled by some tenants and are behind, the tasks of all others are looked for this often, ms.
const OTHERS_EVERY_MS: i64 = 500;

/// Pages of those others in one such look at most.
const OTHERS_PAGES_MAX: usize = 4;

/// A tenant with more than this part of a page fills it: the same as for claims.
const PAGE_PARTS: usize = LEFT_OUT_MAX + 1;

/// What is written less far ahead than this is behind, ms.
const NEAR_MS: i64 = 30_000;

/// One tick goes on for about so long, ms; the next goes on. A node that stops waits for it.
const TICK_MAX_MS: i64 = 20_000;

/// When it makes way, it rests so many times as long as it has just worked, …
const REST_TIMES: i64 = 4;
/// … or so many while fires have passed that are not written, ms at most …
const REST_TIMES_BEHIND: i64 = 1;
/// … this.
const REST_MAX_MS: i64 = 1_000;

/// Transactions in one tick at most; the next tick goes on.
const ROUNDS_MAX: usize = 200;

/// The writer of task logs of one node.
pub struct Pregenerator<S: ?Sized> {
    store: Arc<S>,
    clock: Arc<dyn Clock>,
    membership: Arc<Membership>,
    ids: Arc<IdSource>,
    watch: Arc<LoadWatch>,
    rules: Arc<RuleBook>,
    settings: PregenerateSettings,
    fence: Mutex<Option<Fence>>,
}

/// One tick of the lease holder.
struct Round {
    fence: Fence,
    written: usize,
    /// When the tasks of tenants with few of them are looked for again, ms.
    others_at: i64,
    /// When the rest is left to the next tick, ms.
    ends_at: i64,
}

impl<S: PlanStore + ClusterStore + ?Sized> Pregenerator<S> {
    /// Over the node's parts.
    pub fn new(
        store: Arc<S>,
        clock: Arc<dyn Clock>,
        membership: Arc<Membership>,
        ids: Arc<IdSource>,
        watch: Arc<LoadWatch>,
        rules: Arc<RuleBook>,
        settings: PregenerateSettings,
    ) -> Self {
        Self { store, clock, membership, ids, watch, rules, settings, fence: Mutex::default() }
    }

    /// Writes everything that falls into the window, if this node has the lease. Returns how many
    /// logs were planned.
    pub async fn tick(&self) -> Result<usize> {
        let held = *self.lock();
        let ttl = self.settings.lease_ttl_ms;
        let fence = self.store.take_lease(LeaseName::Pregenerate, self.membership.id(), held, ttl).await?;
        if fence != held {
            tracing::info!(fence = fence.map(|fence| fence.number), "pre-generation lease changed hands");
            *self.lock() = fence;
        }
        let Some(fence) = fence else {
            self.watch.written_ahead(None);
            return Ok(0);
        };
        let mut round = Round { fence, written: 0, others_at: i64::MIN, ends_at: self.here_ms() + TICK_MAX_MS };
        for _ in 0..ROUNDS_MAX {
            let tasks = self.store.tasks_due(self.until(), &[], TASKS_MAX).await?;
            let ahead = tasks.first().map_or(self.settings.ahead_ms, |task| task.next_fire_at - self.clock.now_ms());
            self.watch.written_ahead(Some(ahead));
            let is_full = tasks.len() as u64 >= TASKS_MAX;
            let heavy = if is_full && ahead < NEAR_MS { heavy(&tasks) } else { Vec::new() };
            if tasks.is_empty() || !self.write_page(&mut round, tasks, &heavy).await? {
                break;
            }
        }
        Ok(round.written)
    }

    /// Writes for these tasks, a transaction at a time. In between, tasks of tenants that are not `heavy` come first, and
    /// runs that are due. `false` when the lease is lost, or the tick is over.
    async fn write_page(&self, round: &mut Round, tasks: Vec<Task>, heavy: &[TenantId]) -> Result<bool> {
        for tasks in self.transactions(tasks) {
            if !heavy.is_empty() && self.here_ms() >= round.others_at {
                if !self.write_others(round, heavy).await? {
                    return Ok(false);
                }
                round.others_at = self.here_ms() + OTHERS_EVERY_MS;
            }
            let began = self.here_ms();
            if !self.write_fenced(round, &tasks).await? {
                return Ok(false);
            }
            if self.watch.should_make_way() {
                let is_behind = self.watch.behind().written_ahead_ms.is_some_and(|ahead| ahead < 0);
                let times = if is_behind { REST_TIMES_BEHIND } else { REST_TIMES };
                let rest = ((self.here_ms() - began).max(1) * times).min(REST_MAX_MS);
                tokio::time::sleep(Duration::from_millis(rest.unsigned_abs())).await;
            }
            if self.here_ms() >= round.ends_at {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes for tenants that stand behind those that fill the pages. `false` when the lease is lost.
    async fn write_others(&self, round: &mut Round, heavy: &[TenantId]) -> Result<bool> {
        for _ in 0..OTHERS_PAGES_MAX {
            let tasks = self.store.tasks_due(self.until(), heavy, TASKS_MAX).await?;
            let is_full = tasks.len() as u64 >= TASKS_MAX;
            for tasks in self.transactions(tasks) {
                if !self.write_fenced(round, &tasks).await? {
                    return Ok(false);
                }
            }
            if !is_full {
                break;
            }
        }
        Ok(true)
    }

    /// `false` when the lease is lost.
    async fn write_fenced(&self, round: &mut Round, tasks: &[Task]) -> Result<bool> {
        let Some(logs) = self.write(Writer::Lease(round.fence), tasks).await? else {
            let fence = round.fence.number;
            tracing::warn!(fence, "lost the pre-generation lease while writing; nothing was written");
            *self.lock() = None;
            return Ok(false);
        };
        round.written += logs;
        Ok(true)
    }

    /// Cuts tasks into what is written at once: few that have missed fires, many others.
    fn transactions(&self, tasks: Vec<Task>) -> Vec<Vec<Task>> {
        let missed_before = self.clock.now_ms() - self.settings.misfire_after_ms;
        let (missed, others): (Vec<Task>, Vec<Task>) =
            tasks.into_iter().partition(|task| task.next_fire_at < missed_before);
        let mut parts: Vec<Vec<Task>> = missed.chunks(MISSED_TASKS_MAX).map(<[Task]>::to_vec).collect();
        parts.extend((!others.is_empty()).then_some(others));
        parts
    }

    /// Writes the window of one task at once, without the lease: right after it was started or
    /// edited, so that its first fires are not late.
    ///
    /// # Errors
    /// Of the store; also while it has not heard of this node lately.
    pub async fn write_task(&self, id: TaskId) -> Result<usize> {
        let mut written = 0;
        for _ in 0..ROUNDS_MAX {
            let tasks = self.store.tasks(&[id]).await?;
            if tasks.iter().all(|task| task.next_fire_at > self.until()) {
                break;
            }
            let Some(logs) = self.write(Writer::Node(self.membership.id()), &tasks).await? else {
                const DETAIL: &str =
                    "the database has not heard of this node for a minute; it has with the next heartbeat";
                return Err(StoreError::new(StoreErrorKind::Unavailable, "write task logs ahead", DETAIL));
            };
            written += logs;
        }
        Ok(written)
    }

    /// Whether this node had the lease at its last look.
    pub fn has_lease(&self) -> bool {
        self.lock().is_some()
    }

    /// Lets another node write at once.
    pub async fn release(&self) -> Result<()> {
        let held = self.lock().take();
        match held {
            Some(fence) => self.store.release_lease(fence).await,
            None => Ok(()),
        }
    }

    async fn write(&self, by: Writer, tasks: &[Task]) -> Result<Option<usize>> {
        let now = self.clock.now_ms();
        let window = Window {
            now,
            until: self.until(),
            misfire_after_ms: self.settings.misfire_after_ms,
            fires_max: (LOGS_TARGET / tasks.len().max(1)).max(1),
            doubted_until: self.rules.doubted_until(now).unwrap_or(i64::MIN),
        };
        let skipped = self.store.skipped_of(tasks, now - self.settings.misfire_after_ms).await?;
        let besides = |task: &Task| skipped.get(&task.id).map_or(&[][..], Vec::as_slice);
        let plan = |task| plan_besides(task, window, besides(task), || self.ids.next(now));
        let plans: Vec<_> = tasks.iter().filter_map(plan).collect();
        let logs = plans.iter().map(|plan| plan.fires.len()).sum();
        let Some(written) = self.store.write_ahead(by, &plans, now).await? else { return Ok(None) };
        let apps: HashMap<TaskId, AppId> = tasks.iter().map(|task| (task.id, task.app_id)).collect();
        let missed = plans.iter().filter(|plan| written.contains(&plan.task_id)).flat_map(|plan| {
            let app = apps.get(&plan.task_id).copied().unwrap_or(OTHER_APPS);
            let ended = plan.fires.iter().filter(|fire| fire.status.is_terminal());
            ended.map(move |fire| (app, fire.status, fire.reason, 1))
        });
        RUNS_ENDED.add(missed);
        Ok(Some(logs))
    }

    /// By this machine's own clock, ms: how long something takes does not depend on whether the database's is set.
    fn here_ms(&self) -> i64 {
        self.clock.local_us().div_euclid(1_000)
    }

    fn until(&self) -> i64 {
        self.clock.now_ms() + self.settings.ahead_ms
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Fence>> {
        self.fence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tenants that fill a page of tasks.
fn heavy(tasks: &[Task]) -> Vec<TenantId> {
    let mut counts: HashMap<TenantId, usize> = HashMap::new();
    for task in tasks {
        *counts.entry(task.tenant_id).or_default() += 1;
    }
    let mut heavy: Vec<TenantId> =
        counts.into_iter().filter(|(_, n)| *n > tasks.len() / PAGE_PARTS).map(|(id, _)| id).collect();
    heavy.sort_unstable();
    heavy
}

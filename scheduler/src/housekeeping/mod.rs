//! Retention: what is older than its tenant keeps it (`data.max_retain_days` where that says
//! nothing) goes, in bounded batches, by the node that holds the lease.
//!
//! Logs that no tenant keeps any more are deleted from the oldest on. For each shorter time that tenants
//! keep their logs, one scan passes over all logs that have reached that age, of any tenant, and
//! continues where it ended: each log is read once for each such time.
//! Statistics have a lease of their own.

mod aggregator;

pub use aggregator::{Aggregator, StatisticsSettings};

use crate::cluster::{Clock, Membership};
use crate::store::{ClusterStore, Fence, HousekeepingStore, LeaseName, Result};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Rows in one DELETE.
const BATCH: u64 = 1_000;

/// Batches of one age in one tick at most; the next tick goes on. With a tick a minute: 50,000 logs/s.
const BATCHES_MAX: usize = 3_000;

/// Ages beside the longest that one tick looks at; where tenants have more, they take turns.
const AGES_MAX: usize = 32;

const DAY_MS: i64 = 86_400_000;

/// What is deleted cannot come back: the database's clock, which decides, may be so much ahead of this machine's, ms.
const AHEAD_MAX_MS: i64 = 3_600_000;

/// How long ended sessions and tokens are kept, for later investigation, ms.
const ENDED_ACCESS_KEPT_MS: i64 = 7 * DAY_MS;

/// What is kept, and how long the lease lives, ms.
#[derive(Debug, Clone, Copy)]
pub struct HousekeepingSettings {
    /// Age at which ended logs go where their tenant says nothing else.
    pub retain_ms: i64,
    /// Life of the lease without renewal; longer than a tick's period.
    pub lease_ttl_ms: i64,
}

/// The housekeeper of one node.
pub struct Housekeeper<S: ?Sized> {
    store: Arc<S>,
    clock: Arc<dyn Clock>,
    membership: Arc<Membership>,
    settings: HousekeepingSettings,
    fence: Mutex<Option<Fence>>,
    /// Ticks so far.
    turn: AtomicUsize,
}

impl<S: HousekeepingStore + ClusterStore + ?Sized> Housekeeper<S> {
    /// Over the node's parts.
    pub fn new(
        store: Arc<S>,
        clock: Arc<dyn Clock>,
        membership: Arc<Membership>,
        settings: HousekeepingSettings,
    ) -> Self {
        Self { store, clock, membership, settings, fence: Mutex::default(), turn: AtomicUsize::new(0) }
    }

    /// Deletes what is too old; returns how many logs.
    pub async fn tick(&self) -> Result<u64> {
        if !self.holds_lease().await? {
            return Ok(0);
        }
        if believed(&*self.clock).is_none() {
            return Ok(0);
        }
        let age = |days: &i32| if *days == 0 { self.settings.retain_ms } else { i64::from(*days) * DAY_MS };
        let mut days = self.store.retentions().await?;
        days.sort_by_key(|days| std::cmp::Reverse(age(days)));
        let longest = days.first().map_or(self.settings.retain_ms, age);
        let mut deleted = self.purge(None, longest).await?;
        self.purge_members(longest).await?;
        days.retain(|days| age(days) < longest);
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let places = days.len();
        for at in 0..places.min(AGES_MAX) {
            let of = days[(turn.wrapping_mul(AGES_MAX) + at) % places];
            deleted += self.purge(Some(of), age(&of)).await?;
        }
        if deleted > 0 {
            tracing::info!(logs = deleted, "old task logs deleted");
        }
        self.purge_access().await?;
        Ok(deleted)
    }

    /// Whether this node had the lease at its last look.
    pub fn has_lease(&self) -> bool {
        self.lock().is_some()
    }

    /// Deletes what is older than `age` (ms): of tenants that keep their logs for `days`, or of
    /// whatever tenant. Returns how many.
    async fn purge(&self, days: Option<i32>, age: i64) -> Result<u64> {
        let mut deleted = 0;
        for _ in 0..BATCHES_MAX {
            if !self.holds_lease().await? {
                break;
            }
            let Some(now) = believed(&*self.clock) else { break };
            let before = now - age;
            let step = match days {
                Some(days) => self.store.purge_of(days, before, BATCH).await?,
                None => self.store.purge(before, BATCH).await?,
            };
            deleted += step.deleted;
            if !step.is_more {
                break;
            }
        }
        Ok(deleted)
    }

    /// Deletes executors, nodes and what belongs to them that are older than `age` (ms).
    async fn purge_members(&self, age: i64) -> Result<()> {
        for _ in 0..BATCHES_MAX {
            if !self.holds_lease().await? {
                break;
            }
            let Some(now) = believed(&*self.clock) else { break };
            // Of several tables: as many in all may come without a full batch of any. Then the next look finds less.
            if self.store.purge_members(now - age, BATCH).await? < BATCH {
                break;
            }
        }
        Ok(())
    }

    /// Deletes sessions and tokens that have been over for a while.
    async fn purge_access(&self) -> Result<()> {
        let Some(now) = believed(&*self.clock) else { return Ok(()) };
        let before = now - ENDED_ACCESS_KEPT_MS;
        for _ in 0..BATCHES_MAX {
            if !self.holds_lease().await? || self.store.purge_access(before, BATCH).await? < BATCH {
                break;
            }
        }
        Ok(())
    }

    async fn holds_lease(&self) -> Result<bool> {
        let held = *self.lock();
        let ttl_ms = self.settings.lease_ttl_ms;
        let fence = self.store.take_lease(LeaseName::Housekeeping, self.membership.id(), held, ttl_ms).await?;
        *self.lock() = fence;
        Ok(fence.is_some())
    }

    /// Lets another node do it at once.
    pub async fn release(&self) -> Result<()> {
        let held = self.lock().take();
        match held {
            Some(fence) => self.store.release_lease(fence).await,
            None => Ok(()),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Fence>> {
        self.fence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cluster time, ms, by which something may be deleted or given up; `None`, and a word in the log, while it has jumped ahead.
fn believed(clock: &dyn Clock) -> Option<i64> {
    let (now, here) = (clock.now_ms(), clock.here_us().div_euclid(1_000));
    if has_jumped(now, here) {
        tracing::error!(
            ahead_ms = now - here,
            "nothing is deleted or counted: the database's clock is far ahead of this machine's; correct the wrong one"
        );
        return None;
    }
    Some(now)
}

/// Whether the cluster clock says more than the wall clock of this machine can believe; both epoch ms.
fn has_jumped(cluster: i64, here: i64) -> bool {
    cluster.saturating_sub(here) > AHEAD_MAX_MS
}

#[cfg(test)]
mod tests;

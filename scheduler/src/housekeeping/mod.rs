//! Retention: what is older than `data.max_retain_days` goes, in bounded batches, by the node
//! that holds the lease. Statistics have a lease of their own.

mod statistics;

pub use statistics::{Statistician, StatisticsSettings};

use crate::cluster::{Clock, Membership};
use crate::store::{ClusterStore, Fence, HousekeepingStore, LeaseName, Result};
use std::sync::{Arc, Mutex, PoisonError};

/// Rows in one DELETE.
const BATCH: u64 = 1_000;

/// Batches in one tick at most; the next tick goes on.
const BATCHES_MAX: usize = 500;

/// What is kept, and how long the lease lives, ms.
#[derive(Debug, Clone, Copy)]
pub struct HousekeepingSettings {
    /// Age at which ended logs go.
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
}

impl<S: HousekeepingStore + ClusterStore + ?Sized> Housekeeper<S> {
    /// Over the node's parts.
    pub fn new(
        store: Arc<S>,
        clock: Arc<dyn Clock>,
        membership: Arc<Membership>,
        settings: HousekeepingSettings,
    ) -> Self {
        Self { store, clock, membership, settings, fence: Mutex::default() }
    }

    /// Deletes what is too old; answers how many logs.
    pub async fn tick(&self) -> Result<u64> {
        let mut deleted = 0;
        for _ in 0..BATCHES_MAX {
            let held = *self.lock();
            let fence = self
                .store
                .take_lease(LeaseName::Housekeeping, self.membership.id(), held, self.settings.lease_ttl_ms)
                .await?;
            *self.lock() = fence;
            if fence.is_none() {
                return Ok(deleted);
            }
            let before = self.clock.now_ms() - self.settings.retain_ms;
            let batch = self.store.purge(before, BATCH).await?;
            deleted += batch;
            if batch < BATCH {
                self.store.purge_members(before).await?;
                break;
            }
        }
        if deleted > 0 {
            tracing::info!(logs = deleted, "old task logs deleted");
        }
        Ok(deleted)
    }

    /// Whether this node had the lease at its last look.
    pub fn has_lease(&self) -> bool {
        self.lock().is_some()
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

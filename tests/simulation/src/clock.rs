//! One source of time for all, and clocks that lag behind it.

use async_trait::async_trait;
use carillon::cluster::Clock;
use carillon::store::{ClusterStore, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::time::Instant;

/// Where virtual time begins: 2026-01-01T00:00:00Z, epoch µs.
const VIRTUAL_EPOCH_US: i64 = 1_767_225_600_000_000;

/// True time: what the model's database answers. Follows tokio's clock, so a paused runtime
/// makes it virtual.
#[derive(Debug)]
pub struct SimTime {
    origin: Instant,
    base_us: i64,
}

impl SimTime {
    /// Time that begins at a fixed instant.
    #[must_use]
    pub fn simulated() -> Arc<Self> {
        Self::from(VIRTUAL_EPOCH_US)
    }

    /// Time that goes on from this instant, epoch µs.
    #[must_use]
    pub fn from(base_us: i64) -> Arc<Self> {
        Arc::new(Self { origin: Instant::now(), base_us })
    }

    /// Epoch µs.
    #[must_use]
    pub fn now_us(&self) -> i64 {
        self.base_us + i64::try_from(self.origin.elapsed().as_micros()).expect("fits for 290,000 years")
    }

    /// Epoch ms.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.now_us().div_euclid(1_000)
    }

    /// Milliseconds since the beginning: what a trace prints.
    #[must_use]
    pub fn elapsed_ms(&self) -> i64 {
        i64::try_from(self.origin.elapsed().as_millis()).expect("fits for 290,000 years")
    }

    /// Sleeps until that instant, epoch ms.
    pub async fn until_ms(&self, at: i64) {
        let wait_us = at.saturating_mul(1_000) - self.now_us();
        if wait_us > 0 {
            tokio::time::sleep(std::time::Duration::from_micros(wait_us as u64)).await;
        }
    }
}

/// One process's estimate of the cluster clock: behind true time, never ahead of it, as the
/// estimator of the protocol guarantees.
#[derive(Debug)]
pub struct SimClock {
    time: Arc<SimTime>,
    lag_us: AtomicI64,
}

impl SimClock {
    /// A clock that lags.
    #[must_use]
    pub fn new(time: Arc<SimTime>, lag_us: i64) -> Self {
        Self { time, lag_us: AtomicI64::new(lag_us.max(0)) }
    }

    /// Lets it lag by so much from now on, µs.
    pub fn set_lag(&self, lag_us: i64) {
        self.lag_us.store(lag_us.max(0), Ordering::Relaxed);
    }
}

#[async_trait]
impl Clock for SimClock {
    fn now_us(&self) -> i64 {
        self.time.now_us() - self.lag_us.load(Ordering::Relaxed)
    }

    fn local_us(&self) -> i64 {
        self.time.now_us()
    }

    /// Asks as the product's clock does, and lags as before.
    async fn observe(&self, store: &dyn ClusterStore) -> Result<()> {
        store.now_us().await.map(drop)
    }
}

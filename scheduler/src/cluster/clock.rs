//! The cluster clock: the database's, estimated from round trips and carried on by this
//! process's monotonic clock, so that no machine's wall clock decides when something fires.

use crate::store::{ClockReading, ClusterStore, Result};
use async_trait::async_trait;
use carillon_protocol::{Estimate, OffsetEstimator};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Cluster time, handed in wherever time matters.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Cluster time, epoch µs. Never ahead of the database's clock.
    fn now_us(&self) -> i64;

    /// Cluster time, epoch ms.
    fn now_ms(&self) -> i64 {
        self.now_us().div_euclid(1_000)
    }

    /// What this machine's own clock says, epoch ms. It decides nothing but whether the database's clock can be believed.
    fn here_ms(&self) -> i64 {
        chrono::Utc::now().timestamp_millis()
    }

    /// Takes one reading of the database's clock, for a clock that is kept in step with it.
    async fn observe(&self, _store: &dyn ClusterStore) -> Result<()> {
        Ok(())
    }

    /// How often the database's clock was found to have been set, by more than servers of one database may differ: times from
    /// before and after that cannot be compared.
    fn times_set(&self) -> u64 {
        0
    }

    /// What this clock said, ms, before the database's was last found to have been set back; 0 for never. Until then things were
    /// done whose times the clock says once more afterwards.
    fn set_back_from(&self) -> i64 {
        0
    }

    /// How this machine's own clock stands to it, if that is measured. Informational only: nothing depends on it.
    fn reading(&self) -> Option<ClockReading> {
        None
    }
}

/// The clock counts as set when the estimate changes by more than this, µs. By less, servers of one database may differ
/// whose clocks are read in turn, and those who compare times leave more room.
const SET_MIN_US: u64 = 250_000;

/// The production clock.
#[derive(Debug)]
pub struct ClusterClock {
    /// Of the runtime's clock, which a simulator turns.
    origin: Instant,
    /// Of the newest [`Estimate`].
    base_us: AtomicI64,
    times_set: AtomicU64,
    set_back_from: AtomicI64,
    estimator: Mutex<OffsetEstimator>,
}

impl ClusterClock {
    /// A clock that agrees with `store`'s after a few first readings.
    pub async fn synchronised(store: &dyn ClusterStore) -> Result<Self> {
        const FIRST_READINGS: usize = 5;
        let clock = Self {
            origin: Instant::now(),
            base_us: AtomicI64::new(0),
            times_set: AtomicU64::new(0),
            set_back_from: AtomicI64::new(0),
            estimator: Mutex::default(),
        };
        for _ in 0..FIRST_READINGS {
            clock.observe(store).await?;
        }
        Ok(clock)
    }

    fn monotonic_us(&self) -> i64 {
        i64::try_from(self.origin.elapsed().as_micros()).unwrap_or(i64::MAX)
    }
}

#[async_trait]
impl Clock for ClusterClock {
    fn now_us(&self) -> i64 {
        Estimate::of_base(self.base_us.load(Ordering::Relaxed)).at(self.monotonic_us())
    }

    async fn observe(&self, store: &dyn ClusterStore) -> Result<()> {
        let sent = self.monotonic_us();
        let remote = store.now_us().await?;
        let received = self.monotonic_us();
        // A poisoned lock only means that a reading was lost; the estimator is whole.
        let mut estimator = self.estimator.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // `monotonic_us` truncates up to 1 µs; without the addition the estimate could lead by that.
        let base_us = estimator.observe(sent, received + 1, remote).base_us();
        let before_us = self.base_us.swap(base_us, Ordering::Relaxed);
        if base_us.abs_diff(before_us) > SET_MIN_US {
            self.times_set.fetch_add(1, Ordering::Relaxed);
        }
        if base_us < before_us - SET_MIN_US as i64 {
            let said_us = Estimate::of_base(before_us).at(received);
            self.set_back_from.fetch_max(said_us.div_euclid(1_000), Ordering::Relaxed);
        }
        Ok(())
    }

    fn times_set(&self) -> u64 {
        self.times_set.load(Ordering::Relaxed)
    }

    fn set_back_from(&self) -> i64 {
        self.set_back_from.load(Ordering::Relaxed)
    }

    fn reading(&self) -> Option<ClockReading> {
        let estimator = self.estimator.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let uncertainty_us = estimator.error_us()?;
        drop(estimator);
        let own = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let own_us = i64::try_from(own.as_micros()).ok()?;
        Some(ClockReading { offset_ms: (own_us - self.now_us()) / 1_000, uncertainty_us })
    }
}

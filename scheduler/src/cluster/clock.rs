//! The cluster clock: the database's, estimated from round trips and carried on by this
//! machine's own clock, so that no machine's wall clock decides when something fires.

use crate::domain::ClockReading;
use crate::domain::clock_step::CLOCK_STEP_MIN_MS;
use crate::store::{ClusterStore, Result};
use async_trait::async_trait;
use carillon_protocol::{LocalClock, RemoteClock};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Cluster time, handed in wherever time matters.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Cluster time, epoch µs. Never ahead of the database's clock.
    fn now_us(&self) -> i64;

    /// Cluster time, epoch ms.
    fn now_ms(&self) -> i64 {
        self.now_us().div_euclid(1_000)
    }

    /// What this machine's own clock says, epoch µs. It decides nothing but whether the database's clock can be believed.
    fn here_us(&self) -> i64 {
        chrono::Utc::now().timestamp_micros()
    }

    /// This machine's own clock, µs since any instant: nobody sets or slews it, and it counts suspensions.
    fn local_us(&self) -> i64;

    /// Takes one reading of the database's clock, for a clock that is kept in step with it.
    async fn observe(&self, _store: &dyn ClusterStore) -> Result<()> {
        Ok(())
    }

    /// Takes one if the last is older than a node that has its database ever lets it get: while the database was away its clock
    /// may have been set, and nothing may be taken for missed, expired or due by what it said before.
    async fn refresh(&self, _store: &dyn ClusterStore) -> Result<()> {
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

    /// How wrong it can be at most against the database's clock, µs, if that is measured.
    fn uncertainty_us(&self) -> Option<i64> {
        None
    }

    /// How this machine's own clock stands to it, if that is measured.
    fn reading(&self) -> Option<ClockReading> {
        let uncertainty_us = self.uncertainty_us()?;
        Some(ClockReading { offset_ms: (self.here_us() - self.now_us()).div_euclid(1_000), uncertainty_us })
    }
}

/// A reading that is older than this is taken again before anything is decided by it, ms: several looks.
const STALE_MS: i64 = 5_000;

/// The production clock.
#[derive(Debug)]
pub struct ClusterClock {
    machine: LocalClock,
    database: RemoteClock,
    /// When the last reading was asked for, by `local_us`.
    read_us: AtomicI64,
    times_set: AtomicU64,
    set_back_from: AtomicI64,
}

impl ClusterClock {
    /// A clock that agrees with `store`'s after a few first readings.
    pub async fn synchronised(store: &dyn ClusterStore) -> Result<Self> {
        Self::synchronised_over(LocalClock::machine(), store).await
    }

    /// The same over the clock of a given machine.
    pub async fn synchronised_over(machine: LocalClock, store: &dyn ClusterStore) -> Result<Self> {
        const FIRST_READINGS: usize = 5;
        let clock = Self {
            machine,
            database: RemoteClock::default(),
            read_us: AtomicI64::new(i64::MIN),
            times_set: AtomicU64::new(0),
            set_back_from: AtomicI64::new(0),
        };
        for _ in 0..FIRST_READINGS {
            clock.observe(store).await?;
        }
        Ok(clock)
    }
}

#[async_trait]
impl Clock for ClusterClock {
    fn now_us(&self) -> i64 {
        // It is known: nobody has this clock before its first readings.
        self.database.at(self.machine.now()).unwrap_or(0)
    }

    fn local_us(&self) -> i64 {
        self.machine.now().free_us
    }

    async fn observe(&self, store: &dyn ClusterStore) -> Result<()> {
        let sent = self.machine.now();
        let remote_us = store.now_us().await?;
        let received = self.machine.now();
        let before_us = self.database.at(received);
        self.database.observe(sent, received, remote_us);
        self.read_us.fetch_max(sent.free_us, Ordering::Relaxed);
        let Some((before_us, after_us)) = before_us.zip(self.database.at(received)) else { return Ok(()) };
        if (after_us - before_us).abs() > CLOCK_STEP_MIN_MS * 1_000 {
            self.times_set.fetch_add(1, Ordering::Relaxed);
        }
        if after_us < before_us - CLOCK_STEP_MIN_MS * 1_000 {
            self.set_back_from.fetch_max(before_us.div_euclid(1_000), Ordering::Relaxed);
        }
        Ok(())
    }

    async fn refresh(&self, store: &dyn ClusterStore) -> Result<()> {
        let is_stale = self.local_us().saturating_sub(self.read_us.load(Ordering::Relaxed)) > STALE_MS * 1_000;
        if is_stale { self.observe(store).await } else { Ok(()) }
    }

    fn times_set(&self) -> u64 {
        self.times_set.load(Ordering::Relaxed)
    }

    fn set_back_from(&self) -> i64 {
        self.set_back_from.load(Ordering::Relaxed)
    }

    fn uncertainty_us(&self) -> Option<i64> {
        self.database.error_us()
    }
}

#[cfg(test)]
mod tests;

//! The cluster clock: the database's, estimated from round trips and carried on by this
//! machine's own clock, so that no machine's wall clock decides when something fires.

use crate::store::{ClockReading, ClusterStore, Result};
use async_trait::async_trait;
use carillon_protocol::{LocalClock, RemoteClock};
use std::time::{SystemTime, UNIX_EPOCH};

/// Cluster time, handed in wherever time matters.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Cluster time, epoch µs. Never ahead of the database's clock.
    fn now_us(&self) -> i64;

    /// Cluster time, epoch ms.
    fn now_ms(&self) -> i64 {
        self.now_us().div_euclid(1_000)
    }

    /// This machine's own clock, µs since any instant: nobody sets or slews it, and it counts suspensions.
    fn local_us(&self) -> i64;

    /// Takes one reading of the database's clock, for a clock that is kept in step with it.
    async fn observe(&self, _store: &dyn ClusterStore) -> Result<()> {
        Ok(())
    }

    /// How this machine's own clock stands to it, if that is measured. Informational only: nothing depends on it.
    fn reading(&self) -> Option<ClockReading> {
        None
    }
}

/// The production clock.
#[derive(Debug)]
pub struct ClusterClock {
    machine: LocalClock,
    database: RemoteClock,
}

impl ClusterClock {
    /// A clock that agrees with `store`'s after a few first readings.
    pub async fn synchronised(store: &dyn ClusterStore) -> Result<Self> {
        Self::synchronised_over(LocalClock::machine(), store).await
    }

    /// The same over the clock of a given machine.
    pub async fn synchronised_over(machine: LocalClock, store: &dyn ClusterStore) -> Result<Self> {
        const FIRST_READINGS: usize = 5;
        let clock = Self { machine, database: RemoteClock::default() };
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
        self.database.observe(sent, self.machine.now(), remote_us);
        Ok(())
    }

    fn reading(&self) -> Option<ClockReading> {
        let uncertainty_us = self.database.error_us()?;
        let own = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let own_us = i64::try_from(own.as_micros()).ok()?;
        Some(ClockReading { offset_ms: (own_us - self.now_us()) / 1_000, uncertainty_us })
    }
}

#[cfg(test)]
mod tests;

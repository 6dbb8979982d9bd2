//! This process's estimate of the cluster clock: this machine's own clock plus an estimated offset.
//!
//! The wall clock of this machine never decides when a run starts. It only dates the very first
//! request, before the first reply from a node.

use carillon_protocol::{LocalClock, LocalInstant, RemoteClock};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// No time has been told yet.
const UNKNOWN: i64 = i64::MIN;

/// The clocks of a machine.
pub trait TimeSource: std::fmt::Debug + Send + Sync {
    /// Now, by clocks that go on while the machine is suspended.
    fn local(&self) -> LocalInstant;

    /// The wall clock, epoch ms.
    fn wall_ms(&self) -> i64;
}

/// This machine's.
pub(crate) fn machine() -> Arc<dyn TimeSource> {
    Arc::new(LocalClock::machine())
}

impl TimeSource for LocalClock {
    fn local(&self) -> LocalInstant {
        self.now()
    }

    fn wall_ms(&self) -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
    }
}

/// Cluster time without locks on the reading side.
#[derive(Debug)]
pub(crate) struct ClusterClock {
    machine: Arc<dyn TimeSource>,
    cluster: RemoteClock,
    /// Latest time returned, epoch µs: a correction by microseconds must not let a run that was
    /// released at its due time read an earlier one.
    told_us: AtomicI64,
}

/// An estimate that is behind what was told by more than this means that the cluster clock was set back, and is followed, µs.
const STEP_BACK_US: i64 = 1_000_000;

impl ClusterClock {
    /// Over this machine's clocks.
    pub(crate) fn new() -> Self {
        Self::over(self::machine())
    }

    pub(crate) fn over(machine: Arc<dyn TimeSource>) -> Self {
        Self { machine, cluster: RemoteClock::default(), told_us: AtomicI64::new(UNKNOWN) }
    }

    /// Now, by this machine.
    pub(crate) fn local(&self) -> LocalInstant {
        self.machine.local()
    }

    /// This machine's free-running clock, µs: what is promised for a time counts by it.
    pub(crate) fn local_us(&self) -> i64 {
        self.local().free_us
    }

    /// Cluster time, epoch µs; `None` before the first reading.
    pub(crate) fn now_us(&self) -> Option<i64> {
        self.at_us(self.local())
    }

    /// Cluster time at an instant that has just been read, epoch µs; `None` before the first reading.
    pub(crate) fn at_us(&self, now: LocalInstant) -> Option<i64> {
        let now = self.cluster.at(now)?;
        let told = self.told_us.fetch_max(now, Ordering::Relaxed);
        if told > now.saturating_add(STEP_BACK_US) {
            // Whoever still reads by the time before brings it back: each reader puts it right again.
            self.told_us.store(now, Ordering::Relaxed);
            return Some(now);
        }
        Some(told.max(now))
    }

    /// Cluster time, epoch ms; `None` before the first reading.
    pub(crate) fn now_ms(&self) -> Option<i64> {
        self.now_us().map(|us| us.div_euclid(1_000))
    }

    /// Time for a signature, epoch ms: the cluster's if known, otherwise this machine's.
    pub(crate) fn signing_ms(&self) -> i64 {
        self.now_ms().unwrap_or_else(|| self.machine.wall_ms())
    }

    /// Takes a node's reading (epoch µs) between two local instants.
    pub(crate) fn observe(&self, sent: LocalInstant, received: LocalInstant, cluster_us: i64) {
        self.cluster.observe(sent, received, cluster_us);
        tracing::trace!(cluster_us = self.cluster.at(received), error_us = self.cluster.error_us(), "clock.observed");
    }
}

#[cfg(test)]
mod tests;

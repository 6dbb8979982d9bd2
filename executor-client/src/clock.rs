//! This process's estimate of the cluster clock: the monotonic clock plus an estimated offset.
//!
//! The wall clock of this machine never decides when a run starts. It only dates the very first
//! request, before the first reply from a node.

use crate::sync::lock;
use carillon_protocol::{Estimate, OffsetEstimator};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Base before the first reading.
const UNKNOWN: i64 = i64::MIN;

/// The clocks of a machine.
pub trait TimeSource: std::fmt::Debug + Send + Sync {
    /// Microseconds of the monotonic clock, from any origin.
    fn monotonic_us(&self) -> i64;

    /// The wall clock, epoch ms.
    fn wall_ms(&self) -> i64;
}

/// This machine's.
pub(crate) fn machine() -> Arc<dyn TimeSource> {
    Arc::new(MachineTime { origin: Instant::now() })
}

#[derive(Debug)]
struct MachineTime {
    origin: Instant,
}

impl TimeSource for MachineTime {
    fn monotonic_us(&self) -> i64 {
        self.origin.elapsed().as_micros() as i64
    }

    fn wall_ms(&self) -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
    }
}

/// Cluster time without locks on the reading side.
#[derive(Debug)]
pub(crate) struct ClusterClock {
    machine: Arc<dyn TimeSource>,
    /// Of the newest [`Estimate`], µs; [`UNKNOWN`] before the first reading.
    base_us: AtomicI64,
    estimator: Mutex<OffsetEstimator>,
    /// Latest time returned, epoch µs: a correction by microseconds must not let a run that was
    /// released at its due time read an earlier one.
    told_us: AtomicI64,
}

/// An estimate that falls by more than this means that the cluster clock was set back, and is followed, µs.
const STEP_BACK_US: i64 = 1_000_000;

impl ClusterClock {
    /// Over this machine's clocks.
    pub(crate) fn new() -> Self {
        Self::over(self::machine())
    }

    pub(crate) fn over(machine: Arc<dyn TimeSource>) -> Self {
        Self {
            machine,
            base_us: AtomicI64::new(UNKNOWN),
            estimator: Mutex::new(OffsetEstimator::default()),
            told_us: AtomicI64::new(UNKNOWN),
        }
    }

    /// Microseconds of the monotonic clock.
    pub(crate) fn local_us(&self) -> i64 {
        self.machine.monotonic_us()
    }

    /// Cluster time, epoch µs; `None` before the first reading.
    pub(crate) fn now_us(&self) -> Option<i64> {
        match self.base_us.load(Ordering::Relaxed) {
            UNKNOWN => None,
            base => {
                let now = Estimate::of_base(base).at(self.local_us());
                Some(self.told_us.fetch_max(now, Ordering::Relaxed).max(now))
            }
        }
    }

    /// Cluster time, epoch ms; `None` before the first reading.
    pub(crate) fn now_ms(&self) -> Option<i64> {
        self.now_us().map(|us| us.div_euclid(1_000))
    }

    /// Time for a signature, epoch ms: the cluster's if known, otherwise this machine's.
    pub(crate) fn signing_ms(&self) -> i64 {
        self.now_ms().unwrap_or_else(|| self.machine.wall_ms())
    }

    /// Takes a node's reading between two local instants, all µs.
    pub(crate) fn observe(&self, sent_us: i64, received_us: i64, cluster_us: i64) {
        let mut estimator = lock(&self.estimator);
        // `local_us` truncates up to 1 µs; without the addition the estimate could lead by that.
        let estimate = estimator.observe(sent_us, received_us + 1, cluster_us);
        let before = self.base_us.swap(estimate.base_us(), Ordering::Relaxed);
        if before != UNKNOWN && estimate.base_us() < before - STEP_BACK_US {
            self.told_us.store(UNKNOWN, Ordering::Relaxed);
        }
        tracing::trace!(cluster_us = estimate.at(received_us), error_us = estimator.error_us(), "clock.observed");
    }
}

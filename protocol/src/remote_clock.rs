//! A remote clock, carried on by this machine's between two readings of it.

use crate::local_clock::LocalInstant;
use crate::{Estimate, OffsetEstimator};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Base before the first reading.
const UNKNOWN: i64 = i64::MIN;

/// A remote clock. Reading it takes no lock.
#[derive(Debug, Default)]
pub struct RemoteClock {
    by_free: Carried,
}

/// The estimate by one local clock.
#[derive(Debug)]
struct Carried {
    /// Of the newest [`Estimate`], µs; [`UNKNOWN`] before the first reading.
    base_us: AtomicI64,
    estimator: Mutex<OffsetEstimator>,
}

impl RemoteClock {
    /// Remote time at that local instant, epoch µs; `None` before the first reading.
    #[must_use]
    pub fn at(&self, now: LocalInstant) -> Option<i64> {
        self.by_free.at(now.free_us)
    }

    /// Takes the reading `remote_us` (epoch µs), made between two local instants.
    pub fn observe(&self, sent: LocalInstant, received: LocalInstant, remote_us: i64) {
        self.by_free.observe(sent.free_us, received.free_us, remote_us);
    }

    /// How wrong the offset to this machine's free clock can be at most, µs; `None` before the first reading.
    #[must_use]
    pub fn error_us(&self) -> Option<i64> {
        self.by_free.estimator.lock().unwrap_or_else(PoisonError::into_inner).error_us()
    }
}

impl Default for Carried {
    fn default() -> Self {
        Self { base_us: AtomicI64::new(UNKNOWN), estimator: Mutex::default() }
    }
}

impl Carried {
    fn at(&self, local_us: i64) -> Option<i64> {
        match self.base_us.load(Ordering::Relaxed) {
            UNKNOWN => None,
            base => Some(Estimate::of_base(base).at(local_us)),
        }
    }

    fn observe(&self, sent_us: i64, received_us: i64, remote_us: i64) {
        // A poisoned lock only means that a reading was lost; the estimator is whole.
        let mut estimator = self.estimator.lock().unwrap_or_else(PoisonError::into_inner);
        // Local instants are cut to whole µs; without the addition the estimate could lead by that.
        let estimate = estimator.observe(sent_us, received_us + 1, remote_us);
        self.base_us.store(estimate.base_us(), Ordering::Relaxed);
    }
}

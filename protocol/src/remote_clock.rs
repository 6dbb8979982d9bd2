//! A remote clock, carried on by this machine's between two readings of it.
//!
//! Each of the machine's two clocks may be fast: the steered one while a time service slews it, by more than any drift, and
//! the free one for good, if the kernel has misjudged the frequency of its counter. So each gives an estimate of its own, and
//! the earlier of the two counts: it leads the remote clock only if both do.

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
    by_steered: Carried,
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
        // While a reading is being taken, one of the two is the estimate before it, which is as good.
        Some(self.by_free.at(now.free_us)?.min(self.by_steered.at(now.steered_us)?))
    }

    /// Takes the reading `remote_us` (epoch µs), made between two local instants.
    pub fn observe(&self, sent: LocalInstant, received: LocalInstant, remote_us: i64) {
        self.by_free.observe(sent.free_us, received.free_us, remote_us);
        self.by_steered.observe(sent.steered_us, received.steered_us, remote_us);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// How far the clock is ahead of the remote one at worst, and behind at worst, µs: of exchanges every three seconds, with
    /// a way of 100 µs there and back each, over local clocks that are fast by so much, ppm.
    fn worst_of(free_ppm: i64, steered_ppm: i64) -> (i64, i64) {
        let clock = RemoteClock::default();
        let (mut true_us, mut ahead, mut behind) = (0, i64::MIN, i64::MIN);
        let local = |at: i64| LocalInstant {
            free_us: at + at * free_ppm / 1_000_000,
            steered_us: at + at * steered_ppm / 1_000_000,
        };
        for _ in 0..20 {
            clock.observe(local(true_us), local(true_us + 200), true_us + 100);
            for _ in 0..3_000 {
                let us = clock.at(local(true_us + 200)).unwrap() - (true_us + 200);
                (ahead, behind) = (ahead.max(us), behind.max(-us));
                true_us += 1_000;
            }
        }
        (ahead, behind)
    }

    #[test]
    fn it_leads_only_if_both_clocks_do() {
        for (free, steered) in [(0, 0), (100, 100), (-100, 0), (0, 50_000), (20, 83_333), (300, 0), (500, -500)] {
            let (ahead, _) = worst_of(free, steered);
            assert!(ahead <= 0, "{ahead} µs ahead at {free} and {steered} ppm");
        }
        assert!(worst_of(300, 300).0 > 0, "by more than is allowed for");
    }

    #[test]
    fn it_is_behind_by_the_way_back_and_what_clocks_may_drift_apart() {
        // As far as the steered clock alone was, before.
        assert!(worst_of(0, 0).1 <= 100 + 300 + 2);
        assert!(worst_of(20, 0).1 <= 100 + 300 + 2);
        // And what the free clock is slow by.
        assert!(worst_of(-20, 0).1 <= 100 + 360 + 2, "{:?}", worst_of(-20, 0));
        assert!(worst_of(-100, 0).1 <= 100 + 600 + 2, "{:?}", worst_of(-100, 0));
    }
}

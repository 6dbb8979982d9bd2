//! An estimate of a remote clock that never runs ahead of it.
//!
//! A run must never start before its fire time, so the estimate is not the usual midpoint of a
//! round trip. A remote reading `r` that was taken somewhere between the local
//! instants `sent` and `received` proves that the offset (remote − local) lies within
//! `[r − received, r − sent]`. The estimate is the largest lower bound of the recent readings:
//! it lags the remote clock by at most the shortest of their return trips (well under a
//! millisecond in one data centre) and never leads it. Between readings the estimate runs slow by
//! what the two clocks may drift apart meanwhile, so that a local clock that is a little fast
//! does not make it lead either. What a time service slews may drift by far more; that is why
//! [`RemoteClock`](crate::RemoteClock) carries on two estimates.
//!
//! Readings that contradict each other (`max lower > min upper`) mean that the remote clock was
//! set; then only the newest one counts. The intersection of intervals is Marzullo's
//! (K. Marzullo, 1984), reduced to one source.

use std::collections::VecDeque;

/// Readings kept.
const READINGS_MAX: usize = 8;

/// How fast two clocks may drift apart, parts per million: a reading's lower bound is aged by
/// this, so that a local clock that runs fast does not lead. Crystals differ by some tens.
pub const DRIFT_PPM: i64 = 100;

/// How far two readings may contradict each other before the remote clock counts as set, µs.
const DISAGREEMENT_MAX_US: i64 = 2_000;

/// One round trip.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_field_names)] // units belong into names
struct Reading {
    received_us: i64,
    lower_us: i64,
    upper_us: i64,
}

/// A remote clock as a function of the local one, until the next reading: `base + local − drift(local)`, µs.
///
/// One number, so that readers need no lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    base_us: i64,
}

impl Estimate {
    fn new(received_us: i64, offset_us: i64) -> Self {
        Self { base_us: offset_us + drift(received_us) }
    }

    /// An estimate that [`Self::base_us`] was taken from.
    #[must_use]
    pub const fn of_base(base_us: i64) -> Self {
        Self { base_us }
    }

    /// What identifies this estimate, µs: to be kept in an atomic.
    #[must_use]
    pub const fn base_us(self) -> i64 {
        self.base_us
    }

    /// Remote time at the local instant `local_us`, epoch µs. Never ahead of the remote clock from the reading on,
    /// as long as the clocks drift apart by no more than [`DRIFT_PPM`].
    #[must_use]
    pub const fn at(self, local_us: i64) -> i64 {
        // One for the rounding of both drifts.
        self.base_us + local_us - drift(local_us) - 1
    }
}

/// How far two clocks may drift apart in `us` microseconds, µs.
const fn drift(us: i64) -> i64 {
    us * DRIFT_PPM / 1_000_000
}

/// Estimates `remote − local` in microseconds from round trips.
#[derive(Debug, Default, Clone)]
pub struct OffsetEstimator {
    /// Oldest first.
    readings: VecDeque<Reading>,
}

impl OffsetEstimator {
    /// Takes one round trip: local microseconds at sending and at receipt, and the
    /// remote epoch microseconds read in between. Returns the new estimate.
    pub fn observe(&mut self, sent_us: i64, received_us: i64, remote_us: i64) -> Estimate {
        let reading = Reading { received_us, lower_us: remote_us - received_us, upper_us: remote_us - sent_us };
        if self.readings.len() == READINGS_MAX {
            self.readings.pop_front();
        }
        self.readings.push_back(reading);
        let (lower, upper) = self.bounds().unwrap_or((reading.lower_us, reading.upper_us));
        if lower > upper + DISAGREEMENT_MAX_US {
            self.readings.clear();
            self.readings.push_back(reading);
            return Estimate::new(received_us, reading.lower_us);
        }
        Estimate::new(received_us, lower)
    }

    /// How wrong the offset can be at most, µs (the remaining interval); `None` before the
    /// first reading.
    #[must_use]
    pub fn error_us(&self) -> Option<i64> {
        self.bounds().map(|(lower, upper)| (upper - lower).max(0))
    }

    /// Largest lower and smallest upper bound, each reading widened by what the clocks may have
    /// drifted since.
    fn bounds(&self) -> Option<(i64, i64)> {
        let newest = self.readings.back()?.received_us;
        let aged = |reading: &Reading| drift(newest - reading.received_us);
        let lower = self.readings.iter().map(|reading| reading.lower_us - aged(reading)).max()?;
        let upper = self.readings.iter().map(|reading| reading.upper_us + aged(reading)).min()?;
        Some((lower, upper))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_remote_clock_that_is_set_is_followed_at_once() {
        let mut estimator = OffsetEstimator::default();
        estimator.observe(0, 100, 1_000_050);
        assert_eq!(estimator.observe(1_000, 1_100, 501_050).at(1_100), 501_049);
        assert_eq!(estimator.error_us(), Some(100));
    }

    proptest! {
        #[test]
        fn never_ahead_of_the_remote_and_behind_by_no_more_than_the_last_return_trip(
            offset in -1_000_000_000i64..1_000_000_000,
            trips in prop::collection::vec((0i64..5_000, 0i64..5_000), 1..30),
        ) {
            let mut estimator = OffsetEstimator::default();
            let mut now = 0;
            for (there, back) in trips {
                let read_at = now + there;
                let received = read_at + back;
                let estimate = estimator.observe(now, received, read_at + offset).at(received);
                prop_assert!(estimate <= received + offset);
                prop_assert!(received + offset - estimate <= back + 1);
                now = received + 3_000_000;
            }
        }

        /// A local clock that runs fast by as much as is allowed for must not make it lead, up to the next reading.
        #[test]
        fn a_fast_local_clock_does_not_make_it_lead(
            trips in prop::collection::vec((0i64..5_000, 0i64..5_000, 0i64..60_000_000), 2..30),
        ) {
            let mut estimator = OffsetEstimator::default();
            let mut remote = 1_000_000_000;
            let local = |remote: i64| remote + drift(remote);
            for (there, back, pause) in trips {
                let (sent, read, received) = (local(remote), remote + there, remote + there + back);
                let estimate = estimator.observe(sent, local(received), read);
                remote = received + pause;
                // A microsecond for the rounding of this clock, and what the drift itself drifts.
                let allowed = 1 + drift(drift(remote));
                prop_assert!(estimate.at(local(received)) <= received + allowed);
                prop_assert!(estimate.at(local(remote)) <= remote + allowed);
            }
        }
    }
}

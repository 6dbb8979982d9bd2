//! An estimate of a remote clock that never runs ahead of it.
//!
//! A run must never start before its fire time, so the estimate is not the usual midpoint of a
//! round trip. A remote reading `r` that was taken somewhere between the local monotonic
//! instants `sent` and `received` proves that the offset (remote − local) lies within
//! `[r − received, r − sent]`. The estimate is the largest lower bound of the recent readings:
//! it lags the remote clock by at most the shortest of their return trips (well under a
//! millisecond in one data centre) and never leads it.
//!
//! Readings that contradict each other (`max lower > min upper`) mean that the remote clock was
//! set; then only the newest one counts. The intersection of intervals is Marzullo's
//! (K. Marzullo, 1984), reduced to one source.

use std::collections::VecDeque;

/// Readings kept.
const READINGS_MAX: usize = 8;

/// How fast two clocks may drift apart, parts per million: an older reading's lower bound is
/// aged by this, so that a local clock that runs fast does not lead.
const DRIFT_PPM: i64 = 100;

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

/// Estimates `remote − local` in microseconds from round trips.
#[derive(Debug, Default, Clone)]
pub struct OffsetEstimator {
    /// Oldest first.
    readings: VecDeque<Reading>,
}

impl OffsetEstimator {
    /// Takes one round trip: local monotonic microseconds at sending and at receipt, and the
    /// remote epoch microseconds read in between. Returns the new offset, µs.
    pub fn observe(&mut self, sent_us: i64, received_us: i64, remote_us: i64) -> i64 {
        let reading = Reading { received_us, lower_us: remote_us - received_us, upper_us: remote_us - sent_us };
        if self.readings.len() == READINGS_MAX {
            self.readings.pop_front();
        }
        self.readings.push_back(reading);
        let (lower, upper) = self.bounds().unwrap_or((reading.lower_us, reading.upper_us));
        if lower > upper + DISAGREEMENT_MAX_US {
            self.readings.clear();
            self.readings.push_back(reading);
            return reading.lower_us;
        }
        lower
    }

    /// The current offset, µs; `None` before the first reading.
    #[must_use]
    pub fn offset_us(&self) -> Option<i64> {
        self.bounds().map(|(lower, _)| lower)
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
        let drift = |reading: &Reading| (newest - reading.received_us) * DRIFT_PPM / 1_000_000;
        let lower = self.readings.iter().map(|reading| reading.lower_us - drift(reading)).max()?;
        let upper = self.readings.iter().map(|reading| reading.upper_us + drift(reading)).min()?;
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
        assert_eq!(estimator.observe(1_000, 1_100, 501_050), 499_950);
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
                let estimate = estimator.observe(now, read_at + back, read_at + offset);
                prop_assert!(estimate <= offset);
                prop_assert!(offset - estimate <= back);
                now = read_at + back + 3_000_000;
            }
        }

        /// A local clock that runs fast by as much as is allowed for must not make it lead.
        #[test]
        fn a_fast_local_clock_does_not_make_it_lead(trips in prop::collection::vec((0i64..5_000, 0i64..5_000), 2..30)) {
            let mut estimator = OffsetEstimator::default();
            let mut remote = 1_000_000_000;
            let local = |remote: i64| remote + remote * DRIFT_PPM / 1_000_000;
            for (there, back) in trips {
                let (sent, read, received) = (local(remote), remote + there, remote + there + back);
                let estimate = estimator.observe(sent, local(received), read);
                // A microsecond for the rounding of the drift itself.
                prop_assert!(estimate <= received - local(received) + 1);
                remote = received + 3_000_000;
            }
        }
    }
}

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

/// Readings kept; with one every 3 s, drift between the clocks stays below a millisecond.
const READINGS_MAX: usize = 8;

/// How far two readings may contradict each other before the remote clock counts as set, µs.
const DISAGREEMENT_MAX_US: i64 = 2_000;

/// Estimates `remote − local` in microseconds from round trips.
#[derive(Debug, Default, Clone)]
pub struct OffsetEstimator {
    /// (lower, upper) bounds of the offset, oldest first.
    readings: VecDeque<(i64, i64)>,
}

impl OffsetEstimator {
    /// Takes one round trip: local monotonic microseconds at sending and at receipt, and the
    /// remote epoch microseconds read in between. Returns the new offset, µs.
    pub fn observe(&mut self, sent_us: i64, received_us: i64, remote_us: i64) -> i64 {
        let reading = (remote_us - received_us, remote_us - sent_us);
        if self.readings.len() == READINGS_MAX {
            self.readings.pop_front();
        }
        self.readings.push_back(reading);
        let lower = self.readings.iter().map(|r| r.0).max();
        let upper = self.readings.iter().map(|r| r.1).min();
        if let (Some(lower), Some(upper)) = (lower, upper)
            && lower > upper + DISAGREEMENT_MAX_US
        {
            self.readings.clear();
            self.readings.push_back(reading);
        }
        self.offset_us().unwrap_or(reading.0)
    }

    /// The current offset, µs; `None` before the first reading.
    #[must_use]
    pub fn offset_us(&self) -> Option<i64> {
        self.readings.iter().map(|r| r.0).max()
    }

    /// How wrong the offset can be at most, µs (the remaining interval); `None` before the
    /// first reading.
    #[must_use]
    pub fn error_us(&self) -> Option<i64> {
        let upper = self.readings.iter().map(|r| r.1).min()?;
        Some((upper - self.offset_us()?).max(0))
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
        fn never_ahead_of_the_remote_and_behind_by_no_more_than_the_best_return_trip(
            offset in -1_000_000_000i64..1_000_000_000,
            trips in prop::collection::vec((0i64..5_000, 0i64..5_000), 1..30),
        ) {
            let mut estimator = OffsetEstimator::default();
            let mut now = 0;
            let mut best = Vec::new();
            for (there, back) in trips {
                let read_at = now + there;
                let estimate = estimator.observe(now, read_at + back, read_at + offset);
                best.push(back);
                if best.len() > READINGS_MAX { best.remove(0); }
                prop_assert!(estimate <= offset);
                prop_assert!(offset - estimate <= *best.iter().min().unwrap_or(&0));
                now = read_at + back + 3_000_000;
            }
        }
    }
}

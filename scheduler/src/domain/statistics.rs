//! Compact figures of many runs: numbers of fires, their outcomes, lateness and duration.
//!
//! Figures of two periods, or of two tasks, add up to the figures of both: everything is a count,
//! a sum or a maximum. Times are counted in buckets on a logarithmic scale, the same for all, so
//! that a percentile of any sum can be told to within its bucket.

use std::ops::Range;

/// Largest time in each bucket but the last, ms; the last has no end. In steps of 1-2-5 up to ten
/// seconds, then as people count.
pub const BOUNDS_MS: [i64; 22] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000,
    1_800_000, 3_600_000, 10_800_000, 43_200_000,
];

/// Buckets of a histogram.
pub const BUCKETS: usize = BOUNDS_MS.len() + 1;

/// One minute, ms.
pub const MINUTE_MS: i64 = 60_000;

/// One hour, ms.
pub const HOUR_MS: i64 = 3_600_000;

/// One day, ms.
pub const DAY_MS: i64 = 86_400_000;

/// Times, counted in buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Histogram {
    /// How many lie in each bucket.
    pub counts: [u64; BUCKETS],
    /// All of them together, ms.
    pub sum_ms: u64,
    /// The largest, ms.
    pub max_ms: u64,
}

impl Histogram {
    /// The bucket of a time; one below 0 counts as 0. ms.
    #[must_use]
    pub fn bucket_of(ms: i64) -> usize {
        BOUNDS_MS.partition_point(|bound| *bound < ms)
    }

    /// The times that a bucket holds: more than the start, up to the end, ms. The first holds 0,
    /// too, and the last ends nowhere.
    #[must_use]
    pub fn edges(bucket: usize) -> Range<i64> {
        let below = if bucket == 0 { 0 } else { BOUNDS_MS[bucket - 1] };
        below..BOUNDS_MS.get(bucket).copied().unwrap_or(i64::MAX)
    }

    /// Counts one time, ms.
    pub fn record(&mut self, ms: i64) {
        self.counts[Self::bucket_of(ms)] += 1;
        self.sum_ms += ms.max(0) as u64;
        self.max_ms = self.max_ms.max(ms.max(0) as u64);
    }

    /// Adds another.
    pub fn merge(&mut self, other: &Self) {
        for (mine, others) in self.counts.iter_mut().zip(other.counts) {
            *mine += others;
        }
        self.sum_ms += other.sum_ms;
        self.max_ms = self.max_ms.max(other.max_ms);
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The average, ms; nothing when there are none.
    #[must_use]
    pub fn mean_ms(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum_ms as f64 / count as f64)
    }

    /// The time that a share of `quantile` (0..=1) does not exceed, ms: in the bucket in which it
    /// truly lies, and never more than the largest. Nothing when there are none.
    #[must_use]
    pub fn quantile_ms(&self, quantile: f64) -> Option<f64> {
        let count = self.count();
        let rank = ((quantile * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut before = 0;
        for (bucket, here) in self.counts.iter().copied().enumerate() {
            if before + here >= rank {
                let edges = Self::edges(bucket);
                let until = edges.end.min(self.max_ms as i64).max(edges.start);
                let share = (rank - before) as f64 / here as f64;
                return Some(edges.start as f64 + share * (until - edges.start) as f64);
            }
            before += here;
        }
        None
    }
}

/// What there is to say about many fires. A sharded run counts as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Fires that have a task log.
    pub fires: u64,
    /// Ended well.
    pub succeeded: u64,
    /// Failed with no attempts left.
    pub failed: u64,
    /// Failed, and the task discards failures.
    pub discarded: u64,
    /// Too late.
    pub expired: u64,
    /// Revoked or stopped.
    pub cancelled: u64,
    /// Not ended when they were counted.
    pub open: u64,
    /// Failed attempts of all of them, those included that were tried again.
    pub failures: u64,
    /// From the due time of the last attempt to its start, where it started; early counts as 0.
    pub lateness: Histogram,
    /// From the start of the last attempt to its end, where both are known.
    pub duration: Histogram,
}

impl Figures {
    /// Adds others.
    pub fn merge(&mut self, other: &Self) {
        self.fires += other.fires;
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.discarded += other.discarded;
        self.expired += other.expired;
        self.cancelled += other.cancelled;
        self.open += other.open;
        self.failures += other.failures;
        self.lateness.merge(&other.lateness);
        self.duration.merge(&other.duration);
    }
}

/// What one stored row of figures is of. The numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i32)]
pub enum Grain {
    /// A task's minute.
    TaskMinute = 1,
    /// A task's hour.
    TaskHour = 2,
    /// A tenant's minute; tenant 0 is all of them together.
    TenantMinute = 3,
    /// A tenant's hour; tenant 0 is all of them together.
    TenantHour = 4,
}

/// Every grain.
pub const GRAINS: [Grain; 4] = [Grain::TaskMinute, Grain::TaskHour, Grain::TenantMinute, Grain::TenantHour];

/// In place of a tenant: all of them together.
pub const ALL_TENANTS: i64 = 0;

impl Grain {
    /// How long the period of one row is, ms.
    #[must_use]
    pub fn period_ms(self) -> i64 {
        match self {
            Self::TaskMinute | Self::TenantMinute => MINUTE_MS,
            Self::TaskHour | Self::TenantHour => HOUR_MS,
        }
    }
}

/// How wide the points of a chart are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// `1m`
    Minute,
    /// `5m`
    FiveMinutes,
    /// `1h`
    Hour,
    /// `1d`: 24 hours from where the range starts.
    Day,
}

/// Every step with its word in the API.
pub const STEPS: [(Step, &str); 4] =
    [(Step::Minute, "1m"), (Step::FiveMinutes, "5m"), (Step::Hour, "1h"), (Step::Day, "1d")];

impl Step {
    /// The step of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        STEPS.iter().find(|(_, w)| *w == word).map(|(step, _)| *step)
    }

    /// ms
    #[must_use]
    pub fn ms(self) -> i64 {
        match self {
            Self::Minute => MINUTE_MS,
            Self::FiveMinutes => 5 * MINUTE_MS,
            Self::Hour => HOUR_MS,
            Self::Day => DAY_MS,
        }
    }

    /// Period of the rows that a point is made of: hours as far as there are any, else minutes. ms.
    #[must_use]
    pub fn period_ms(self) -> i64 {
        if self.ms() >= HOUR_MS { HOUR_MS } else { MINUTE_MS }
    }
}

/// Longest pause before a minute is counted again, ms.
const AGAIN_MAX_MS: i64 = HOUR_MS;

/// After how long a minute is counted again of which runs had not ended at `tries` counts before. ms.
#[must_use]
pub fn count_again_after_ms(tries: i32) -> i64 {
    (MINUTE_MS << tries.clamp(0, 16)).min(AGAIN_MAX_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Times around every bound, and anywhere.
    fn times() -> impl Strategy<Value = Vec<i64>> {
        let near = prop::sample::select(BOUNDS_MS.to_vec()).prop_flat_map(|bound| bound - 1..=bound + 1);
        prop::collection::vec(prop_oneof![near, -5i64..100_000_000], 0..200)
    }

    fn histogram(times: &[i64]) -> Histogram {
        let mut all = Histogram::default();
        for ms in times {
            all.record(*ms);
        }
        all
    }

    fn merged(a: &Histogram, b: &Histogram) -> Histogram {
        let mut both = *a;
        both.merge(b);
        both
    }

    proptest! {
        #[test]
        fn a_time_lies_within_the_edges_of_its_bucket(ms in -5i64..100_000_000) {
            let edges = Histogram::edges(Histogram::bucket_of(ms));
            let ms = ms.max(0);
            prop_assert!((edges.start < ms || ms == 0) && ms <= edges.end, "{ms} in {edges:?}");
        }

        #[test]
        fn merging_is_counting_all_in_any_order(a in times(), b in times(), c in times()) {
            let all: Vec<i64> = a.iter().chain(&b).chain(&c).copied().collect();
            let [a, b, c] = [a, b, c].map(|times| histogram(&times));
            prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
            prop_assert_eq!(merged(&a, &b), merged(&b, &a));
            prop_assert_eq!(merged(&merged(&a, &b), &c), histogram(&all));
            prop_assert_eq!(merged(&a, &Histogram::default()), a);
        }

        #[test]
        fn a_quantile_lies_in_the_bucket_of_the_true_one(mut times in times(), quantile in 0.0f64..=1.0) {
            let told = histogram(&times).quantile_ms(quantile);
            for ms in &mut times {
                *ms = (*ms).max(0);
            }
            times.sort_unstable();
            let Some(max) = times.last() else {
                prop_assert_eq!(told, None);
                return Ok(());
            };
            let rank = ((quantile * times.len() as f64).ceil() as usize).max(1);
            let edges = Histogram::edges(Histogram::bucket_of(times[rank - 1]));
            let told = told.unwrap();
            prop_assert!(edges.start as f64 <= told && told <= edges.end as f64, "{told} in {edges:?}");
            prop_assert!(told <= *max as f64, "{told} is more than the largest, {max}");
        }
    }

    #[test]
    fn quantiles_grow_and_end_at_the_largest() {
        let all = histogram(&[3, 4, 40, 900, 50_000_000]);
        let quantiles = [0.1, 0.5, 0.9, 0.99, 1.0].map(|q| all.quantile_ms(q).unwrap());
        assert!(quantiles.is_sorted(), "{quantiles:?}");
        assert!((quantiles[4] - 50_000_000.0).abs() < f64::EPSILON);
        assert_eq!(all.mean_ms(), Some(10_000_189.4));
    }

    #[test]
    fn counting_again_is_put_off_longer_and_longer_and_never_more_than_an_hour() {
        let pauses: Vec<i64> = (0..9).map(|tries| count_again_after_ms(tries) / MINUTE_MS).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(count_again_after_ms(i32::MAX), HOUR_MS);
    }
}

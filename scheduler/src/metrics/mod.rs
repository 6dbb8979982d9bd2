//! What this process has done since it started, counted where it happens and shown on `/metrics`.
//!
//! Plain atomics in one place that everything can reach: counting takes no lock, looks nothing up
//! and allocates nothing, and times are counted in the same buckets as in the statistics. (The
//! usual exporter keeps each time in memory until somebody asks.) Labels have few, fixed values;
//! no tenant, task or address is one.

mod text;

pub use text::Text;

use crate::domain::statistics::{BUCKETS, Histogram};
use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of this process.
pub static METRICS: Metrics = Metrics::new();

/// A number that grows.
#[derive(Debug)]
pub struct Counter(AtomicU64);

impl Counter {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Counts some.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// How many so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number for each of a few words.
#[derive(Debug)]
pub struct Family<const N: usize> {
    words: [&'static str; N],
    counts: [Counter; N],
}

impl<const N: usize> Family<N> {
    const fn new(words: [&'static str; N]) -> Self {
        Self { words, counts: [const { Counter::new() }; N] }
    }

    /// Counts some for the word at that place.
    pub fn add(&self, at: usize, count: u64) {
        if let Some(counter) = self.counts.get(at) {
            counter.add(count);
        }
    }

    /// Each word and its number.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.words.iter().copied().zip(self.counts.iter().map(Counter::get))
    }
}

/// Times in the buckets of [`Histogram`].
#[derive(Debug)]
pub struct Times {
    counts: [Counter; BUCKETS],
    sum_us: Counter,
}

impl Times {
    const fn new() -> Self {
        Self { counts: [const { Counter::new() }; BUCKETS], sum_us: Counter::new() }
    }

    /// Counts one, µs; less than nothing counts as nothing.
    pub fn record_us(&self, us: i64) {
        // What is a little more than a bound belongs to the next bucket, as a whole millisecond does.
        let ms = us / 1_000 + i64::from(us % 1_000 > 0);
        self.counts[Histogram::bucket_of(ms)].add(1);
        self.sum_us.add(us.max(0) as u64);
    }

    /// How many in each bucket, and the sum, µs.
    pub fn all(&self) -> ([u64; BUCKETS], u64) {
        (std::array::from_fn(|bucket| self.counts[bucket].get()), self.sum_us.get())
    }
}

/// Everything that is counted. A family of an enum has its words in the enum's order.
#[derive(Debug)]
#[allow(missing_docs)] // each is explained where `/metrics` is put together, and in docs/operating.md
pub struct Metrics {
    pub claims_won: Counter,
    pub claims_lost: Counter,
    pub marks_lost: Counter,
    pub taken_back: Counter,
    pub runs_lost: Counter,
    /// By [`carillon_protocol::DispatchOutcome`], then [`UNREACHABLE`] and [`UNCONFIRMED`].
    pub handovers: Family<9>,
    /// By [`carillon_protocol::RunStatus`].
    pub results: Family<11>,
    pub results_stale: Counter,
    pub results_unknown: Counter,
    pub lateness: Times,
    pub duration: Times,
    pub statements: Times,
    /// By [`crate::store::StoreErrorKind`].
    pub store_errors: Family<8>,
    /// By the worker.
    pub rounds_failed: Family<12>,
    /// By the first digit of the status, from 1.
    pub requests: Family<5>,
}

/// Runs whose executor could not be reached.
pub const UNREACHABLE: usize = 7;

/// Runs whose hand-over nobody confirmed in time.
pub const UNCONFIRMED: usize = 8;

impl Metrics {
    const fn new() -> Self {
        Self {
            claims_won: Counter::new(),
            claims_lost: Counter::new(),
            marks_lost: Counter::new(),
            taken_back: Counter::new(),
            runs_lost: Counter::new(),
            handovers: Family::new([
                "accepted",
                "duplicate",
                "shutting_down",
                "handler_missing",
                "busy",
                "cancelled",
                "too_late",
                "unreachable",
                "unconfirmed",
            ]),
            results: Family::new([
                "succeeded",
                "failed",
                "failed_for_good",
                "panicked",
                "timed_out",
                "cancelled",
                "not_started",
                "abandoned",
                "blocked",
                "covered",
                "wait_timed_out",
            ]),
            results_stale: Counter::new(),
            results_unknown: Counter::new(),
            lateness: Times::new(),
            duration: Times::new(),
            statements: Times::new(),
            store_errors: Family::new([
                "unavailable",
                "contention",
                "duplicate",
                "conflict",
                "not_found",
                "invalid",
                "read_only",
                "other",
            ]),
            rounds_failed: Family::new([
                "heartbeat",
                "look",
                "keys",
                "pregenerate",
                "load",
                "load_urgent",
                "reap",
                "waiting",
                "follow",
                "backfill",
                "housekeeping",
                "statistics",
            ]),
            requests: Family::new(["1xx", "2xx", "3xx", "4xx", "5xx"]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreErrorKind;
    use carillon_protocol::{DispatchOutcome, RunStatus};

    /// The word that serde gives each, at its place.
    fn assert_words<T: serde::Serialize + Copy, const N: usize>(
        family: &Family<N>,
        all: &[T],
        place: impl Fn(T) -> usize,
    ) {
        for one in all {
            let word = serde_json::to_value(one).unwrap();
            assert_eq!(family.words[place(*one)], word.as_str().unwrap());
        }
    }

    #[test]
    fn the_words_of_a_family_stand_in_the_order_of_its_enum() {
        use DispatchOutcome::{Accepted, Busy, Cancelled, Duplicate, HandlerMissing, ShuttingDown, TooLate};
        let outcomes = [Accepted, Duplicate, ShuttingDown, HandlerMissing, Busy, Cancelled, TooLate];
        assert_words(&METRICS.handovers, &outcomes, |outcome| outcome as usize);
        let results = [
            RunStatus::Succeeded,
            RunStatus::Failed,
            RunStatus::FailedForGood,
            RunStatus::Panicked,
            RunStatus::TimedOut,
            RunStatus::Cancelled,
            RunStatus::NotStarted,
            RunStatus::Abandoned,
            RunStatus::Blocked,
            RunStatus::Covered,
            RunStatus::WaitTimedOut,
        ];
        assert_words(&METRICS.results, &results, |status| status as usize);
        assert_eq!(
            (METRICS.handovers.words[UNREACHABLE], METRICS.handovers.words[UNCONFIRMED]),
            ("unreachable", "unconfirmed")
        );
        assert_eq!(METRICS.store_errors.words[StoreErrorKind::Unavailable as usize], "unavailable");
        assert_eq!(METRICS.store_errors.words[StoreErrorKind::ReadOnly as usize], "read_only");
        assert_eq!(METRICS.store_errors.words[StoreErrorKind::Other as usize], "other");
    }

    #[test]
    fn a_time_above_a_bound_lies_in_the_next_bucket() {
        let times = Times::new();
        for us in [-5, 0, 1_000, 1_001, 2_000] {
            times.record_us(us);
        }
        let (counts, sum_us) = times.all();
        assert_eq!((counts[0], counts[1], sum_us), (3, 2, 4_001));
    }
}

//! What this process has done since it started, counted where it happens and shown on `/metrics`.
//!
//! Plain atomics in one place that everything can reach: counting takes no lock, looks nothing up
//! and allocates nothing, and times are counted in the same buckets as in the statistics. (The
//! usual exporter keeps each time in memory until it is scraped.) Labels have few, fixed values,
//! except that ended runs are counted by app, up to a bounded number of apps.

mod ended;
mod text;

pub use ended::{OTHER_APPS, RUNS_ENDED};
pub use text::Text;

/// A family with a word for each variant of an enum, in their order, and perhaps more; a variant that
/// is in the enum and not here does not compile.
macro_rules! family {
    ($of:ident { $($name:ident $word:literal,)* } $($more:literal)*) => {{
        const _: fn($of) = |of| match of {
            $($of::$name)|* => {}
        };
        const _: () = {
            let places = [$($of::$name as usize),*];
            let mut at = 0;
            while at < places.len() {
                assert!(places[at] == at, "the words are not in the order of the enum");
                at += 1;
            }
        };
        $crate::metrics::Family::new([$($word,)* $($more),*])
    }};
}

pub(crate) use family;

use crate::domain::statistics::{BUCKETS, Histogram};
use carillon_protocol::{DispatchOutcome, RunStatus};
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
    /// All at nothing.
    pub const fn new(words: [&'static str; N]) -> Self {
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

/// What is counted, except errors and rounds: their families are beside the enums that name them.
#[derive(Debug)]
#[allow(missing_docs)] // each is explained where `/metrics` is put together, and in docs/operating.md
pub struct Metrics {
    pub claims_won: Counter,
    pub claims_lost: Counter,
    pub dispatch_conflicts: Counter,
    pub reclaimed: Counter,
    pub runs_lost: Counter,
    /// By [`DispatchOutcome`], then [`UNREACHABLE`] and [`UNCONFIRMED`].
    pub dispatches: Family<10>,
    /// By [`RunStatus`].
    pub results: Family<12>,
    pub results_stale: Counter,
    pub results_unknown: Counter,
    pub lateness: Times,
    pub duration: Times,
    pub statements: Times,
    /// By whether one came.
    pub nacos_answers: Family<2>,
    /// By the first digit of the status, from 1.
    pub requests: Family<5>,
}

/// Runs whose executor could not be reached.
pub const UNREACHABLE: usize = 8;

/// Runs whose dispatch was not confirmed in time.
pub const UNCONFIRMED: usize = 9;

impl Metrics {
    const fn new() -> Self {
        Self {
            claims_won: Counter::new(),
            claims_lost: Counter::new(),
            dispatch_conflicts: Counter::new(),
            reclaimed: Counter::new(),
            runs_lost: Counter::new(),
            dispatches: family!(
                DispatchOutcome {
                    Accepted "accepted",
                    Duplicate "duplicate",
                    ShuttingDown "shutting_down",
                    HandlerMissing "handler_missing",
                    Busy "busy",
                    Cancelled "cancelled",
                    TooLate "too_late",
                    Other "other",
                }
                "unreachable" "unconfirmed"
            ),
            results: family!(RunStatus {
                Succeeded "succeeded",
                Failed "failed",
                FailedForGood "failed_for_good",
                Panicked "panicked",
                TimedOut "timed_out",
                Cancelled "cancelled",
                NotStarted "not_started",
                Abandoned "abandoned",
                Blocked "blocked",
                Covered "covered",
                WaitTimedOut "wait_timed_out",
                Other "other",
            }),
            results_stale: Counter::new(),
            results_unknown: Counter::new(),
            lateness: Times::new(),
            duration: Times::new(),
            statements: Times::new(),
            nacos_answers: Family::new(["answered", "failed"]),
            requests: Family::new(["1xx", "2xx", "3xx", "4xx", "5xx"]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_beyond_the_enum_have_their_places() {
        let words: Vec<&str> = METRICS.dispatches.all().map(|(word, _)| word).collect();
        assert_eq!((words[UNREACHABLE], words[UNCONFIRMED]), ("unreachable", "unconfirmed"));
        METRICS.dispatches.add(words.len(), 1);
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

//! Since when runs are over at their executors, as far as those say.

use carillon_protocol::RunKey;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Runs that are remembered at most; of others nothing is proved meanwhile.
const REMEMBERED_MAX: usize = 50_000;

/// When the executor of a run said for the first time that it is idle, though it must have had the run by then; by the machine's
/// own clock, ms. From then on the run is over there, whatever else of its task has come since.
pub(super) struct IdleRuns {
    since: Mutex<HashMap<RunKey, i64>>,
    forgotten_after_ms: i64,
}

impl IdleRuns {
    /// Remembers none. What has been idle for `forgotten_after_ms` is forgotten when there is no room.
    pub fn new(forgotten_after_ms: i64) -> Self {
        Self { since: Mutex::default(), forgotten_after_ms }
    }

    /// For how long the executor of `run` has been without it, ms, if it said at `idle_at` that it is idle and must have had the
    /// run at `there_at`.
    pub fn idle_ms(&self, run: RunKey, there_at: i64, idle_at: i64) -> i64 {
        if idle_at <= there_at {
            return 0;
        }
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        if since.len() >= REMEMBERED_MAX {
            since.retain(|_, since| idle_at.saturating_sub(*since) < self.forgotten_after_ms);
        }
        if since.len() >= REMEMBERED_MAX && !since.contains_key(&run) {
            return 0;
        }
        idle_at - *since.entry(run).or_insert(idle_at)
    }

    /// It has ended.
    pub fn end(&self, run: RunKey) {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: RunKey = RunKey(1, 1);

    #[test]
    fn only_idleness_that_was_seen_after_a_run_had_come_says_something_of_it() {
        for (what, idle_at, ms) in [
            ("once", vec![110], 0),
            ("twice", vec![110, 150], 40),
            ("also before it came", vec![20, 90, 150], 0),
            ("before it came, and twice after", vec![90, 110, 150], 40),
            ("only before it came", vec![20, 90], 0),
            ("the instant it came", vec![100, 150], 0),
        ] {
            let runs = IdleRuns::new(1_000);
            let said = idle_at.iter().map(|at| runs.idle_ms(RUN, 100, *at)).last();
            assert_eq!(said, Some(ms), "{what}");
        }
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let runs = IdleRuns::new(1_000);
        let many = |at| (0..=REMEMBERED_MAX as i64).filter(|n| runs.idle_ms(RunKey(*n, 1), 0, at) > 0).count();
        assert_eq!(many(100), 0);
        assert_eq!(many(200), REMEMBERED_MAX, "one has no room, and proves nothing");
        runs.end(RUN);
        assert_eq!(runs.idle_ms(RUN, 0, 300), 0);
        assert_eq!(many(1_200), 1, "the others are forgotten");
    }
}

//! The thread that waits for due times.
//!
//! Cron fires on whole seconds, so thousands of runs share one due millisecond. They lie in one
//! bucket per millisecond: accepting a run appends to a vector, and releasing a burst moves
//! that vector. The thread sleeps on a condition variable until the first bucket is due by the
//! cluster clock and looks again whenever the clock's estimate changes.

use crate::clock::ClusterClock;
use crate::sync::lock;
use carillon_protocol::RunKey;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Longest sleep; bounds the harm of a clock change that nobody announced.
const SLEEP_MAX: Duration = Duration::from_millis(250);

/// Runs by due time.
#[derive(Debug, Default)]
pub(crate) struct Timer {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Due time (cluster ms) → runs in the order of their arrival. A run that was cancelled
    /// stays here until it is due and is skipped then.
    buckets: BTreeMap<i64, Vec<RunKey>>,
    stopped: bool,
}

impl Timer {
    /// Adds runs with their due times, cluster ms.
    pub(crate) fn push(&self, runs: &[(i64, RunKey)]) {
        if runs.is_empty() {
            return;
        }
        let mut state = lock(&self.state);
        let earliest = state.earliest();
        for (due_ms, key) in runs {
            state.buckets.entry(*due_ms).or_default().push(*key);
        }
        let sooner = state.earliest() != earliest;
        drop(state);
        if sooner {
            self.changed.notify_one();
        }
    }

    /// Looks at the clock again: its estimate has changed.
    pub(crate) fn nudge(&self) {
        // Taken so that the thread is either before its look at the clock or asleep.
        drop(lock(&self.state));
        self.changed.notify_one();
    }

    /// Forgets every run.
    pub(crate) fn clear(&self) {
        lock(&self.state).buckets.clear();
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_one();
    }

    /// The thread: hands what is due to `release` until stopped.
    pub(crate) fn run(&self, clock: &ClusterClock, release: impl Fn(&[RunKey])) {
        let mut state = lock(&self.state);
        while !state.stopped {
            let sleep = match (state.earliest(), clock.now_us()) {
                (Some(due_ms), Some(now_us)) => {
                    let left_us = due_ms.saturating_mul(1_000).saturating_sub(now_us);
                    if left_us <= 0 {
                        let due = state.take_due(now_us.div_euclid(1_000));
                        drop(state);
                        release(&due);
                        state = lock(&self.state);
                        continue;
                    }
                    Duration::from_micros(left_us as u64).min(SLEEP_MAX)
                }
                _ => SLEEP_MAX,
            };
            state = self.changed.wait_timeout(state, sleep).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl State {
    fn earliest(&self) -> Option<i64> {
        self.buckets.first_key_value().map(|(due, _)| *due)
    }

    fn take_due(&mut self, now_ms: i64) -> Vec<RunKey> {
        let mut due = Vec::new();
        while let Some(bucket) = self.buckets.first_entry() {
            if *bucket.key() > now_ms {
                break;
            }
            let runs = bucket.remove();
            if due.is_empty() {
                due = runs;
            } else {
                due.extend(runs);
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_leaves_in_the_order_of_due_times() {
        let timer = Timer::default();
        timer.push(&[(20, RunKey(2, 1)), (10, RunKey(1, 1)), (30, RunKey(3, 1))]);
        let mut state = lock(&timer.state);
        assert_eq!(state.take_due(20), vec![RunKey(1, 1), RunKey(2, 1)]);
        assert_eq!(state.earliest(), Some(30));
    }
}

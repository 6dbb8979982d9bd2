//! Waits for due times, on a thread of its own.
//!
//! Cron fires on whole seconds, so thousands of runs share one due millisecond. They are kept in
//! one bucket per millisecond: accepting a run appends to a vector, and releasing a burst moves
//! that vector. The thread sleeps on a condition variable until the first bucket is due by the
//! cluster clock, and checks again whenever the clock's estimate changes.

use crate::clock::ClusterClock;
use crate::ready::Ticket;
use crate::sync::{Bell, lock};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// Longest sleep; bounds the harm of an unannounced clock change.
const SLEEP_MAX: Duration = Duration::from_millis(250);

/// Runs by due time.
#[derive(Debug, Default)]
pub(crate) struct Timer {
    state: Mutex<State>,
    changed: Bell,
}

/// What follows a turn.
enum Next {
    /// Another turn, at once.
    Turn,
    /// Another turn after so long, or when something has changed.
    Wait(Duration),
    /// None: it was stopped.
    Nothing,
}

#[derive(Debug, Default)]
struct State {
    /// Due time (cluster ms) → runs in the order of their arrival. A run that was cancelled
    /// stays here until it is due and is skipped then.
    buckets: BTreeMap<i64, Vec<Ticket>>,
    /// When the first of those that wait has waited too long, cluster ms.
    look_ms: Option<i64>,
    /// Whether the thread should check at once.
    is_woken: bool,
    stopped: bool,
}

impl Timer {
    /// Adds runs.
    pub(crate) fn push(&self, runs: &[Ticket]) {
        if runs.is_empty() {
            return;
        }
        let mut state = lock(&self.state);
        let earliest = state.earliest();
        for run in runs {
            state.buckets.entry(run.due_ms).or_default().push(*run);
        }
        let sooner = state.earliest() != earliest;
        drop(state);
        if sooner {
            self.changed.ring();
        }
    }

    /// Makes the thread read the clock again: its estimate has changed.
    pub(crate) fn nudge(&self) {
        // Locked so that the thread either has not read the clock yet or is asleep.
        drop(lock(&self.state));
        self.changed.ring();
    }

    /// Makes the thread call `release` once, whether or not runs are due.
    pub(crate) fn wake(&self) {
        lock(&self.state).is_woken = true;
        self.changed.ring();
    }

    /// Runs that it waits for.
    #[cfg(feature = "simulation")]
    pub(crate) fn count(&self) -> usize {
        lock(&self.state).buckets.values().map(Vec::len).sum()
    }

    /// Forgets every run.
    pub(crate) fn clear(&self) {
        let mut state = lock(&self.state);
        state.buckets.clear();
        state.look_ms = None;
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.ring();
    }

    /// The thread: until stopped, passes due runs, with the cluster time in µs, to `release`, which
    /// returns the latest time of its next call (cluster ms).
    pub(crate) fn run(&self, clock: &ClusterClock, release: impl Fn(Vec<Ticket>, i64) -> Option<i64>) {
        let mut state = lock(&self.state);
        loop {
            let (unlocked, next) = self.turn(state, clock, &release);
            state = match next {
                Next::Turn => unlocked,
                Next::Wait(limit) => self.changed.wait(unlocked, limit),
                Next::Nothing => return,
            };
        }
    }

    /// The same as a task.
    #[cfg(feature = "simulation")]
    pub(crate) async fn run_as_task(&self, clock: &ClusterClock, release: impl Fn(Vec<Ticket>, i64) -> Option<i64>) {
        loop {
            let next = self.turn(lock(&self.state), clock, &release).1;
            match next {
                Next::Turn => {}
                Next::Wait(limit) => self.changed.rung(limit).await,
                Next::Nothing => return,
            }
        }
    }

    /// Releases what is due. The guard is given up meanwhile; it comes back so that nothing changes unseen
    /// before a thread waits.
    fn turn<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        clock: &ClusterClock,
        release: impl Fn(Vec<Ticket>, i64) -> Option<i64>,
    ) -> (MutexGuard<'a, State>, Next) {
        if state.stopped {
            return (state, Next::Nothing);
        }
        let (Some(at_ms), Some(now_us)) = (state.earliest(), clock.now_us()) else {
            return (state, Next::Wait(SLEEP_MAX));
        };
        let left_us = at_ms.saturating_mul(1_000).saturating_sub(now_us);
        if left_us > 0 {
            return (state, Next::Wait(Duration::from_micros(left_us as u64).min(SLEEP_MAX)));
        }
        let due = state.take_due(now_us.div_euclid(1_000));
        drop(state);
        let look_ms = release(due, now_us);
        state = lock(&self.state);
        state.look_ms = look_ms;
        (state, Next::Turn)
    }
}

impl State {
    /// When there is something to do, cluster ms.
    fn earliest(&self) -> Option<i64> {
        if self.is_woken {
            return Some(i64::MIN);
        }
        let due = self.buckets.first_key_value().map(|(due, _)| *due);
        due.into_iter().chain(self.look_ms).min()
    }

    fn take_due(&mut self, now_ms: i64) -> Vec<Ticket> {
        self.is_woken = false;
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
    use carillon_protocol::RunKey;

    #[test]
    fn due_runs_leave_in_due_order() {
        let ticket = |due_ms, log| Ticket {
            due_ms,
            key: RunKey(log, 1),
            task: 1,
            priority: 5,
            exclusive: false,
            limited: false,
        };
        let timer = Timer::default();
        timer.push(&[ticket(20, 2), ticket(10, 1), ticket(30, 3)]);
        let mut state = lock(&timer.state);
        assert_eq!(state.take_due(20), [ticket(10, 1), ticket(20, 2)]);
        assert_eq!(state.earliest(), Some(30));
        state.look_ms = Some(25);
        assert_eq!(state.earliest(), Some(25));
        state.is_woken = true;
        assert!(state.take_due(24).is_empty());
        assert_eq!(state.earliest(), Some(25));
    }
}

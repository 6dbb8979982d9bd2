//! Every run that this executor answers for, as plain data: no clock, no I/O, no tasks.
//!
//! ```text
//!            accept            due, slot free            ended             acknowledged
//!   (absent) ─────▶ Held ────────────────────▶ Running ───────▶ Unacknowledged ───────▶ ended
//!      ▲             │ cancel, drain              │ lease gone: NotStarted ▲            (remembered)
//!      └─────────────┘ (a cancel is remembered)   └────────────────────────┘
//! ```
//!
//! A run is in exactly one state at any time, so a heartbeat's snapshot never misses one.

use crate::context::Run;
use crate::remembered::Remembered;
use carillon_protocol::{CancelOutcome, DispatchOutcome, RunKey, RunResult, RunStatus};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// How long an ended run answers `Duplicate`, monotonic µs.
const ENDED_KEEP_US: i64 = 150 * 1_000_000;

/// Ended runs remembered at most; beyond, dispatches are refused as busy.
const ENDED_MAX: usize = 2_000_000;

/// How long a cancel that came before its run is remembered, monotonic µs.
const CANCELLED_KEEP_US: i64 = 300 * 1_000_000;

/// Cancels remembered at most; beyond, the oldest are forgotten.
const CANCELLED_MAX: usize = 200_000;

/// Runs answered for at most in any state: more would not fit into one heartbeat.
pub(crate) const LIVE_MAX: usize = 200_000;

pub(crate) enum State {
    Held(Arc<Run>),
    Running(Arc<Run>),
    Unacknowledged,
}

/// How many runs are in which state.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) held: usize,
    pub(crate) running: usize,
    pub(crate) unacknowledged: usize,
}

/// The sets of a heartbeat.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) held: Vec<RunKey>,
    pub(crate) running: Vec<RunKey>,
    pub(crate) unacknowledged: Vec<RunKey>,
}

/// What became of a run that was to start.
pub(crate) enum Begin {
    Start(Arc<Run>),
    /// Not due yet after all (the clock's estimate went back); due at this cluster ms.
    Early(i64),
    /// Cancelled meanwhile, or not started because the lease ran out.
    Skipped,
}

/// The runs. Instants named `now_us` are monotonic.
pub(crate) struct Table {
    pub(crate) live: HashMap<RunKey, State>,
    /// Due and waiting for a slot, in order.
    pub(crate) ready: VecDeque<RunKey>,
    /// Results that the recorder has not fetched yet.
    pub(crate) finished: Vec<RunResult>,
    pub(crate) counts: Counts,
    /// Slots taken by slot tasks.
    pub(crate) slots: usize,
    pub(crate) draining: bool,
    ended: Remembered,
    cancelled: Remembered,
    held_max: usize,
}

impl Table {
    pub(crate) fn new(held_max: usize) -> Self {
        Self {
            live: HashMap::with_capacity(held_max.min(LIVE_MAX)),
            ready: VecDeque::with_capacity(1_024),
            finished: Vec::with_capacity(1_024),
            counts: Counts::default(),
            slots: 0,
            draining: false,
            ended: Remembered::new(ENDED_KEEP_US, ENDED_MAX),
            cancelled: Remembered::new(CANCELLED_KEEP_US, CANCELLED_MAX),
            held_max,
        }
    }

    /// Whether this hand-over was accepted before.
    pub(crate) fn knows(&self, key: RunKey) -> bool {
        self.live.contains_key(&key) || self.ended.contains(key)
    }

    /// Takes a run, or says why not. `journal_full` refuses rather than risk its result.
    pub(crate) fn accept(&mut self, run: Arc<Run>, journal_full: bool, now_us: i64) -> DispatchOutcome {
        let key = run.key();
        if self.knows(key) {
            return DispatchOutcome::Duplicate;
        }
        if self.draining {
            return DispatchOutcome::ShuttingDown;
        }
        if self.cancelled.contains(key) {
            return DispatchOutcome::Cancelled;
        }
        if journal_full
            || self.counts.held >= self.held_max
            || self.live.len() >= LIVE_MAX
            || self.ended.is_full(now_us)
        {
            return DispatchOutcome::Busy;
        }
        self.live.insert(key, State::Held(run));
        self.counts.held += 1;
        DispatchOutcome::Accepted
    }

    /// Moves a due run to `Running`, if it is still held and may start. `cluster_us` is the
    /// cluster clock.
    pub(crate) fn begin(&mut self, key: RunKey, may_start: bool, cluster_us: i64) -> Begin {
        let Some(state) = self.live.get_mut(&key) else {
            return Begin::Skipped;
        };
        let State::Held(run) = state else {
            return Begin::Skipped;
        };
        if run.due_us() > cluster_us {
            return Begin::Early(run.item.due_time);
        }
        self.counts.held -= 1;
        if may_start {
            let run = Arc::clone(run);
            *state = State::Running(Arc::clone(&run));
            self.counts.running += 1;
            return Begin::Start(run);
        }
        *state = State::Unacknowledged;
        self.counts.unacknowledged += 1;
        self.finished.push(RunResult {
            log: key.0,
            attempt: key.1,
            status: RunStatus::NotStarted,
            message: "not started: no node had acknowledged this executor's heartbeat for so \
                      long that the run may have been given to another"
                .to_owned(),
            output: String::new(),
            started_at: 0,
            finished_at: cluster_us.div_euclid(1_000),
        });
        Begin::Skipped
    }

    /// Takes the result of a running run. Ignored when it was ended by force before.
    pub(crate) fn finish(&mut self, result: RunResult) {
        let key = RunKey(result.log, result.attempt);
        if let Some(state @ State::Running(_)) = self.live.get_mut(&key) {
            *state = State::Unacknowledged;
            self.counts.running -= 1;
            self.counts.unacknowledged += 1;
            self.finished.push(result);
        }
    }

    /// A result from the journal of an earlier process.
    pub(crate) fn restore(&mut self, key: RunKey) {
        if self.live.insert(key, State::Unacknowledged).is_none() {
            self.counts.unacknowledged += 1;
        }
    }

    /// Ends the life of results that a node has taken.
    pub(crate) fn acknowledged(&mut self, keys: &[RunKey], now_us: i64) {
        for key in keys {
            if let Some(State::Unacknowledged) = self.live.get(key) {
                self.live.remove(key);
                self.counts.unacknowledged -= 1;
                self.ended.insert(*key, now_us);
            }
        }
    }

    /// Cancels one run; a running one is only named, for the caller to stop outside the lock.
    pub(crate) fn cancel(
        &mut self,
        key: RunKey,
        unstarted_only: bool,
        now_us: i64,
    ) -> (CancelOutcome, Option<Arc<Run>>) {
        match self.live.get(&key) {
            Some(State::Held(_)) => {
                self.live.remove(&key);
                self.counts.held -= 1;
                self.remember_cancel(key, now_us);
                (CancelOutcome::Dropped, None)
            }
            Some(State::Running(_)) if unstarted_only => (CancelOutcome::Running, None),
            Some(State::Running(run)) => (CancelOutcome::Stopping, Some(Arc::clone(run))),
            Some(State::Unacknowledged) => (CancelOutcome::Unknown, None),
            None => {
                if !self.ended.contains(key) {
                    self.remember_cancel(key, now_us);
                }
                (CancelOutcome::Unknown, None)
            }
        }
    }

    fn remember_cancel(&mut self, key: RunKey, now_us: i64) {
        if self.cancelled.make_room(now_us) {
            tracing::warn!(max = CANCELLED_MAX, "cancels.forgotten_early");
        }
        self.cancelled.insert(key, now_us);
    }

    pub(crate) fn is_running(&self, key: RunKey) -> bool {
        matches!(self.live.get(&key), Some(State::Running(_)))
    }

    pub(crate) fn running(&self) -> Vec<Arc<Run>> {
        self.live
            .values()
            .filter_map(|state| match state {
                State::Running(run) => Some(Arc::clone(run)),
                State::Held(_) | State::Unacknowledged => None,
            })
            .collect()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot {
            held: Vec::with_capacity(self.counts.held),
            running: Vec::with_capacity(self.counts.running),
            unacknowledged: Vec::with_capacity(self.counts.unacknowledged),
        };
        for (key, state) in &self.live {
            match state {
                State::Held(_) => snapshot.held.push(*key),
                State::Running(_) => snapshot.running.push(*key),
                State::Unacknowledged => snapshot.unacknowledged.push(*key),
            }
        }
        snapshot
    }

    /// Takes no more runs and gives up what is held, which it returns.
    pub(crate) fn drain(&mut self) -> Vec<RunKey> {
        self.draining = true;
        self.ready.clear();
        let held: Vec<RunKey> =
            self.live.iter().filter(|(_, state)| matches!(state, State::Held(_))).map(|(key, _)| *key).collect();
        for key in &held {
            self.live.remove(key);
        }
        self.counts.held = 0;
        held
    }
}

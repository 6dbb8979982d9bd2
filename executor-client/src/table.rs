//! Every run that this executor answers for, as plain data: no clock, no I/O, no tasks.
//!
//! ```text
//!            accept          due, its turn, slot free         ended             acknowledged
//!   (absent) ─────▶ Held ─────────────────────────▶ Running ───────▶ Unacknowledged ───────▶ ended
//!      ▲             │ │ never started: lease gone, blocked, covered,      ▲          (remembered)
//!      └─────────────┘ │ waited too long                                   │
//!       cancel, drain  └───────────────────────────────────────────────────┘
//!       (a cancel is remembered)
//! ```
//!
//! A run is in exactly one state at any time, so a heartbeat's snapshot never misses one. A run
//! that waits for its turn is held. `turns` decides what a due run does while others of its task run.

use crate::ready::{Ready, Ticket};
use crate::remembered::Remembered;
use crate::run::Run;
use crate::run_map::RunMap;
use crate::tasks::{TaskAt, Tasks};
use carillon_protocol::{CancelOutcome, DispatchOutcome, OutputState, RunKey, RunResult, RunStatus};
use std::collections::{BTreeSet, HashSet};
use std::hash::BuildHasherDefault;
use std::sync::Arc;

/// How long an ended run answers `Duplicate`, monotonic µs.
const ENDED_KEEP_US: i64 = 150 * 1_000_000;

/// Most ended runs remembered; beyond that, dispatches are refused as busy.
const ENDED_MAX: usize = 2_000_000;

/// How long a refused dispatch stays refused, monotonic µs: nodes give it to others at once, and the message may come again.
/// Beyond its time it is too late in any case, unless the clock was set back.
const REFUSED_KEEP_US: i64 = 60 * 1_000_000;

/// Most refused dispatches remembered; beyond that, the oldest are forgotten.
const REFUSED_MAX: usize = 200_000;

/// How long a cancel that came before its run is remembered, monotonic µs.
const CANCELLED_KEEP_US: i64 = 300 * 1_000_000;

/// Most cancels remembered; beyond that, the oldest are forgotten.
const CANCELLED_MAX: usize = 200_000;

/// Most runs in any state: a node refuses a heartbeat with more.
pub(crate) const LIVE_MAX: usize = carillon_protocol::EXECUTOR_RUNS_MAX;

pub(crate) enum State {
    Held(Arc<Run>, TaskAt),
    Running(Arc<Run>, TaskAt),
    /// Without a task when it comes from an earlier process.
    Unacknowledged(Option<TaskAt>),
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

/// Outcome of an attempt to start a run.
pub(crate) enum Begin {
    Start(Arc<Run>),
    /// Not due yet after all: the clock's estimate went back.
    Early,
    /// Cancelled in the meantime, not its turn, or ended without a start.
    Skipped,
}

/// The runs. Instants named `now_us` are monotonic.
pub(crate) struct Table {
    pub(crate) live: RunMap<State>,
    pub(crate) tasks: Tasks,
    /// Due and waiting for a slot.
    pub(crate) ready: Ready,
    /// Due runs that may wait only until an instant (cluster ms).
    pub(crate) waits: BTreeSet<(i64, RunKey)>,
    /// Results that the recorder has not fetched yet.
    pub(crate) finished: Vec<RunResult>,
    /// Running runs to stop, each with the log that replaces it. The caller that changed the table
    /// stops them outside the lock, because that wakes handlers.
    pub(crate) covered: Vec<(Arc<Run>, i64)>,
    pub(crate) counts: Counts,
    /// Slots taken by slot tasks.
    pub(crate) slots: usize,
    pub(crate) draining: bool,
    ended: Remembered,
    cancelled: Remembered,
    refused: Remembered,
    held_max: usize,
}

impl Table {
    pub(crate) fn new(held_max: usize) -> Self {
        Self {
            live: RunMap::with_capacity_and_hasher(held_max.min(LIVE_MAX), BuildHasherDefault::default()),
            tasks: Tasks::default(),
            ready: Ready::new(),
            waits: BTreeSet::new(),
            finished: Vec::with_capacity(1_024),
            covered: Vec::new(),
            counts: Counts::default(),
            slots: 0,
            draining: false,
            ended: Remembered::new(ENDED_KEEP_US, ENDED_MAX),
            cancelled: Remembered::new(CANCELLED_KEEP_US, CANCELLED_MAX),
            refused: Remembered::new(REFUSED_KEEP_US, REFUSED_MAX),
            held_max,
        }
    }

    /// How much it keeps of what has not ended, by name.
    #[cfg(feature = "simulation")]
    pub(crate) fn sizes(&self) -> Vec<(&'static str, usize)> {
        let Counts { held, running, unacknowledged } = self.counts;
        let of_runs = [
            ("runs", self.live.len()),
            ("runs by their states", held + running + unacknowledged),
            ("ready", self.ready.len()),
            ("waits", self.waits.len()),
            ("finished", self.finished.len()),
            ("covered", self.covered.len()),
        ];
        of_runs.into_iter().chain(self.tasks.sizes()).collect()
    }

    /// Whether this dispatch was accepted before.
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
            || self.refused.contains(key)
        {
            return self.refuse(key, DispatchOutcome::Busy, now_us);
        }
        let task = self.tasks.enter(run.item.task, run.is_exclusive());
        self.live.insert(key, State::Held(run, task));
        self.counts.held += 1;
        DispatchOutcome::Accepted
    }

    /// Refuses a dispatch, now and when its message comes again.
    pub(crate) fn refuse(&mut self, key: RunKey, why: DispatchOutcome, now_us: i64) -> DispatchOutcome {
        self.refused.make_room(now_us);
        self.refused.insert(key, now_us);
        why
    }

    /// Moves a due run to `Running`, if it is still held, has its turn and may start.
    /// `cluster_us` is the cluster clock.
    pub(crate) fn begin(&mut self, ticket: Ticket, may_start: bool, cluster_us: i64) -> Begin {
        let Some(state) = self.live.get_mut(&ticket.key) else {
            return Begin::Skipped;
        };
        let State::Held(run, at) = state else {
            return Begin::Skipped;
        };
        let at = *at;
        if ticket.exclusive && !self.tasks.take_turn(at, ticket) {
            return Begin::Skipped;
        }
        if run.due_us() > cluster_us {
            self.settle(at);
            return Begin::Early;
        }
        let run = Arc::clone(run);
        let too_late = ticket.limited && run.give_up_ms() <= cluster_us.div_euclid(1_000);
        let beside = ticket.exclusive && self.tasks.running(at) > 0;
        if too_late || beside || !may_start {
            self.not_begun(&run, at, (too_late, may_start), cluster_us);
            return Begin::Skipped;
        }
        self.tasks.started(at, ticket.exclusive.then_some(&run));
        *state = State::Running(Arc::clone(&run), at);
        self.counts.held -= 1;
        self.counts.running += 1;
        if ticket.limited {
            self.waits.remove(&(run.give_up_ms(), ticket.key));
        }
        Begin::Start(run)
    }

    /// Ends a held run that will never start.
    pub(crate) fn end_unstarted(&mut self, run: &Run, status: RunStatus, message: String, cluster_us: i64) {
        let key = run.key();
        let Some(state @ State::Held(..)) = self.live.get_mut(&key) else {
            return;
        };
        let State::Held(_, at) = *state else {
            return;
        };
        *state = State::Unacknowledged(Some(at));
        self.counts.held -= 1;
        self.counts.unacknowledged += 1;
        self.finished.push(unstarted(key, status, message, cluster_us.div_euclid(1_000)));
        self.forget_wait(run, at);
    }

    /// Makes a result of a run that a shutdown has dropped.
    pub(crate) fn end_dropped(&mut self, key: RunKey, message: &str, cluster_ms: i64) {
        self.restore(key);
        self.finished.push(unstarted(key, RunStatus::NotStarted, message.to_owned(), cluster_ms));
    }

    /// Takes the result of a running run. Ignored when it was ended by force before.
    pub(crate) fn finish(&mut self, result: RunResult) {
        let key = RunKey(result.log, result.attempt);
        if let Some(state) = self.live.get_mut(&key)
            && let State::Running(_, at) = *state
        {
            *state = State::Unacknowledged(Some(at));
            self.counts.running -= 1;
            self.counts.unacknowledged += 1;
            self.finished.push(result);
            self.tasks.ended(at, key);
            self.settle(at);
        }
    }

    /// A result that no run in this table ends with: from the journal of an earlier process, or of a run that was dropped.
    pub(crate) fn restore(&mut self, key: RunKey) {
        if self.live.insert(key, State::Unacknowledged(None)).is_none() {
            self.counts.unacknowledged += 1;
        }
    }

    /// Removes results that a node has committed.
    pub(crate) fn acknowledged(&mut self, keys: &[RunKey], now_us: i64) {
        for key in keys {
            if let Some(State::Unacknowledged(at)) = self.live.get(key) {
                if let Some(at) = *at {
                    self.tasks.leave(at);
                }
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
            Some(State::Held(run, at)) => {
                let (run, at) = (Arc::clone(run), *at);
                self.live.remove(&key);
                self.counts.held -= 1;
                self.forget_wait(&run, at);
                self.tasks.leave(at);
                self.remember_cancel(key, now_us);
                (CancelOutcome::Dropped, None)
            }
            Some(State::Running(..)) if unstarted_only => (CancelOutcome::Running, None),
            Some(State::Running(run, _)) => (CancelOutcome::Stopping, Some(Arc::clone(run))),
            Some(State::Unacknowledged(_)) => (CancelOutcome::Ended, None),
            None if self.ended.contains(key) => (CancelOutcome::Ended, None),
            None => {
                self.remember_cancel(key, now_us);
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

    /// Progress of a run; `None` when it never came, or has been forgotten.
    pub(crate) fn output_state(&self, key: RunKey) -> Option<OutputState> {
        match self.live.get(&key) {
            Some(State::Held(..)) => Some(OutputState::Waiting),
            Some(State::Running(..)) => Some(OutputState::Running),
            Some(State::Unacknowledged(_)) => Some(OutputState::Ended),
            None => self.ended.contains(key).then_some(OutputState::Ended),
        }
    }

    pub(crate) fn is_running(&self, key: RunKey) -> bool {
        matches!(self.live.get(&key), Some(State::Running(..)))
    }

    pub(crate) fn running(&self) -> Vec<Arc<Run>> {
        self.live
            .values()
            .filter_map(|state| match state {
                State::Running(run, _) => Some(Arc::clone(run)),
                State::Held(..) | State::Unacknowledged(_) => None,
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
                State::Held(..) => snapshot.held.push(*key),
                State::Running(..) => snapshot.running.push(*key),
                State::Unacknowledged(_) => snapshot.unacknowledged.push(*key),
            }
        }
        snapshot
    }

    /// Takes no more runs and gives up what is held, which it returns.
    pub(crate) fn drain(&mut self) -> Vec<RunKey> {
        self.draining = true;
        self.ready.clear();
        self.waits.clear();
        let mut held = Vec::with_capacity(self.counts.held);
        let (live, tasks) = (&mut self.live, &mut self.tasks);
        live.retain(|key, state| match state {
            State::Held(run, at) => {
                tasks.give_up(*at, run.ticket());
                tasks.leave(*at);
                held.push(*key);
                false
            }
            State::Running(..) | State::Unacknowledged(_) => true,
        });
        self.counts.held = 0;
        held
    }

    /// Those of `tasks` with a run that is running, or due and waiting; in their order, each once.
    pub(crate) fn busy(&self, tasks: &[i64]) -> Vec<i64> {
        let mut asked = HashSet::with_capacity(tasks.len());
        let mut busy: HashSet<i64> = HashSet::new();
        // Held, and perhaps due: the concurrent ones are in the queue before the slots only.
        let mut perhaps = HashSet::new();
        for id in tasks {
            if let Some(at) = self.tasks.find(*id)
                && asked.insert(*id)
            {
                let occupied = self.tasks.running(at) > 0 || self.tasks.waiting(at).next().is_some();
                if occupied {
                    busy.insert(*id)
                } else {
                    perhaps.insert(*id)
                };
            }
        }
        if !perhaps.is_empty() {
            let held = |key| matches!(self.live.get(key), Some(State::Held(..)));
            let waiting = self.ready.iter().filter(|ticket| perhaps.contains(&ticket.task) && held(&ticket.key));
            busy.extend(waiting.map(|ticket| ticket.task));
        }
        tasks.iter().filter(|id| busy.remove(id)).copied().collect()
    }
}

fn unstarted(key: RunKey, status: RunStatus, message: String, finished_at: i64) -> RunResult {
    let (log, attempt, output) = (key.0, key.1, String::new());
    RunResult { log, attempt, status, message, output, started_at: 0, finished_at, due_time: 0 }
}

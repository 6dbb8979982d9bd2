//! The live runs: accepting, starting, stopping and ending them.
//!
//! A *slot task* is a tokio task that owns one unit of capacity. It takes the next due run,
//! awaits its handler in place, stores the result and takes the next one in the same critical
//! section, until nothing is due. So a burst costs one spawn per slot, not per run, and a run
//! takes one short lock to start and one to end.

use crate::clock::ClusterClock;
use crate::handler::Handlers;
use crate::lease::Lease;
use crate::output::Outputs;
use crate::ready::Ticket;
use crate::run::{Run, Stop};
use crate::settings::Settings;
use crate::sync::{Signal, lock};
use crate::table::{Begin, Counts, Snapshot, Table};
use crate::timer::Timer;
use carillon_protocol::{
    BlockStrategy, CancelOutcome, DispatchItem, DispatchOutcome, LocalInstant, OutputState, RunKey, RunResult,
    RunStatus,
};
use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Runs handled per critical section, so that no burst keeps the lock from the slots for long.
const LOCK_BATCH: usize = 64;

/// Runs released per critical section when there is nothing to judge.
const RELEASE_BATCH: usize = 1_024;

/// References to a running exclusive run other than those of slots, contexts and blocking parts: the
/// table's, its turns', and one in a list of running runs. A run with no others has lost its runtime.
const HELD_HERE: usize = 3;

/// Shared by the server, the timer, the slots, the heartbeat and the recorder.
pub(crate) struct Runs {
    table: Mutex<Table>,
    handlers: Handlers,
    pub(crate) clock: Arc<ClusterClock>,
    pub(crate) lease: Arc<Lease>,
    pub(crate) outputs: Arc<Outputs>,
    pub(crate) timer: Timer,
    /// Set when there are results to record.
    pub(crate) record: Signal,
    /// Whether the journal holds as much as it may, or cannot be written.
    pub(crate) journal_full: AtomicBool,
    pub(crate) capacity: usize,
    pub(crate) cancel_grace: Duration,
}

impl Runs {
    pub(crate) fn new(clock: Arc<ClusterClock>, lease: Arc<Lease>, outputs: Arc<Outputs>, settings: &Settings) -> Self {
        Self {
            table: Mutex::new(Table::new(settings.held_max)),
            handlers: settings.handlers.clone(),
            clock,
            lease,
            outputs,
            timer: Timer::default(),
            record: Signal::default(),
            journal_full: AtomicBool::new(false),
            capacity: settings.capacity,
            cancel_grace: settings.cancel_grace,
        }
    }

    /// Takes the items of one dispatch; one outcome each, in their order.
    pub(crate) fn dispatch(&self, items: Vec<DispatchItem>) -> Vec<DispatchOutcome> {
        let journal_full = self.journal_full.load(Ordering::Acquire);
        let cluster_ms = self.clock.now_ms().unwrap_or(i64::MAX);
        let now_us = self.clock.local_us();
        let mut outcomes = Vec::with_capacity(items.len());
        let mut due = Vec::with_capacity(items.len());
        // Made outside the lock: it is the expensive half.
        let mut candidates = items.into_iter().map(|item| self.candidate(item)).peekable();
        while candidates.peek().is_some() {
            let batch: Vec<_> = candidates.by_ref().take(LOCK_BATCH).collect();
            let mut table = lock(&self.table);
            for candidate in batch {
                outcomes.push(match candidate {
                    Ok(run) if run.item.accept_until < cluster_ms && !table.knows(run.key()) => {
                        table.refuse(run.key(), DispatchOutcome::TooLate, now_us)
                    }
                    Ok(run) => {
                        let ticket = run.ticket();
                        let outcome = table.accept(run, journal_full, now_us);
                        if outcome == DispatchOutcome::Accepted {
                            due.push(ticket);
                        }
                        outcome
                    }
                    Err(key) if table.knows(key) => DispatchOutcome::Duplicate,
                    Err(_) => DispatchOutcome::HandlerMissing,
                });
            }
        }
        self.timer.push(&due);
        outcomes
    }

    fn candidate(&self, item: DispatchItem) -> Result<Arc<Run>, RunKey> {
        match self.handlers.by_name.get(&item.handler) {
            Some(handler) if item.block_strategy != BlockStrategy::Other => {
                let (clock, outputs) = (Arc::clone(&self.clock), Arc::clone(&self.outputs));
                Ok(Arc::new(Run::new(item, Arc::clone(handler), clock, outputs)))
            }
            // A strategy of a later release, too: an executor that knows it may have the run.
            _ => Err(RunKey(item.log, item.attempt)),
        }
    }

    /// Changes the table, and handles the consequences outside its lock.
    fn change<T>(&self, work: impl FnOnce(&mut Table) -> T) -> T {
        let mut table = lock(&self.table);
        let nothing_to_record = table.finished.is_empty();
        let worked = work(&mut table);
        let record = nothing_to_record && !table.finished.is_empty();
        let covered = std::mem::take(&mut table.covered);
        drop(table);
        if record {
            self.record.set();
        }
        for (run, log) in covered {
            run.stop(Stop::Covered(log));
        }
        worked
    }

    /// Takes what is due at the cluster instant `now_us`, and ends what has waited too long.
    /// `start` is told how many slot tasks to start. Returns when it must be called again for
    /// those that wait, cluster ms.
    pub(crate) fn release(&self, mut due: Vec<Ticket>, now_us: i64, start: impl Fn(usize)) -> Option<i64> {
        let may_start = self.lease.may_start(self.clock.local_us());
        // Runs of one kind that only wait for a slot cost no more than a move.
        let alike = |first: &Ticket| {
            due.iter().all(|ticket| !ticket.exclusive && !ticket.limited && ticket.priority == first.priority)
        };
        let batch = if due.first().is_none_or(alike) { RELEASE_BATCH } else { LOCK_BATCH };
        if batch == LOCK_BATCH {
            due.sort_unstable_by_key(|ticket| (Reverse(ticket.priority), *ticket));
        }
        for batch in due.chunks(batch) {
            start(self.change(|table| {
                for ticket in batch {
                    table.due(*ticket, may_start, now_us);
                }
                self.claim_slots(table)
            }));
        }
        loop {
            let (look_ms, slots) = self.change(|table| (table.expire(now_us), self.claim_slots(table)));
            start(slots);
            if look_ms.is_none_or(|at| at > now_us.div_euclid(1_000)) {
                return look_ms;
            }
        }
    }

    /// Takes slots for what is ready, as far as there are any.
    fn claim_slots(&self, table: &mut Table) -> usize {
        let more = table.ready.len().min(self.capacity.saturating_sub(table.slots));
        table.slots += more;
        more
    }

    /// Stores the result of a slot's last run and takes its next one, at an instant that has just been read. `None` frees the
    /// slot.
    pub(crate) fn next(&self, mut done: Option<RunResult>, mut now: LocalInstant) -> Option<Arc<Run>> {
        loop {
            let may_start = self.lease.may_start(now.free_us);
            let cluster_us = self.clock.at_us(now).unwrap_or(i64::MIN);
            let mut early = Vec::new();
            let (next, again) = self.change(|table| {
                if let Some(result) = done.take() {
                    table.finish(result);
                }
                take_next(table, may_start, cluster_us, &mut early)
            });
            self.timer.push(&early);
            if !again {
                return next;
            }
            now = self.clock.local();
        }
    }

    /// Cancels runs; one outcome each, in their order. Running ones are told to stop.
    pub(crate) fn cancel(&self, keys: &[RunKey], unstarted_only: bool) -> Vec<CancelOutcome> {
        let now_us = self.clock.local_us();
        let mut outcomes = Vec::with_capacity(keys.len());
        let mut stopping = Vec::new();
        for batch in keys.chunks(LOCK_BATCH) {
            let ready = self.change(|table| {
                for key in batch {
                    let (outcome, run) = table.cancel(*key, unstarted_only, now_us);
                    outcomes.push(outcome);
                    stopping.extend(run);
                }
                !table.ready.is_empty() && table.slots < self.capacity
            });
            if ready {
                // It may have become the turn of another, and slots are started by the timer.
                self.timer.wake();
            }
        }
        // Outside the lock: it wakes handlers.
        for run in stopping {
            run.stop(Stop::Cancelled);
        }
        outcomes
    }

    /// What a probe asks: how many there are, and which of `tasks` are busy.
    pub(crate) fn probe(&self, tasks: &[i64]) -> (Counts, Vec<i64>) {
        let table = lock(&self.table);
        (table.counts, table.busy(tasks))
    }

    /// State of a run for readers of its output; `None` when it is no longer known.
    pub(crate) fn output_state(&self, key: RunKey) -> Option<OutputState> {
        lock(&self.table).output_state(key)
    }

    pub(crate) fn is_running(&self, key: RunKey) -> bool {
        lock(&self.table).is_running(key)
    }

    /// Stops everything that runs. Returns how many had not been told to stop before.
    pub(crate) fn abandon_running(&self) -> usize {
        let running = lock(&self.table).running();
        running.iter().filter(|run| run.stop(Stop::Abandoned)).count()
    }

    /// Ends runs that do not stop, as far as the nodes are concerned, except exclusive ones, since the
    /// next run of their task would start at once. Those end when nothing works on them any more.
    /// Returns how many it ended.
    pub(crate) fn end_by_force(&self, why: &str) -> usize {
        let finished_at = self.clock.now_ms().unwrap_or(0);
        self.change(|table| {
            let mut running = table.running();
            running.retain(|run| !run.is_exclusive() || Arc::strong_count(run) <= HELD_HERE);
            for run in &running {
                table.finish(RunResult {
                    log: run.item.log,
                    attempt: run.item.attempt,
                    status: RunStatus::Abandoned,
                    message: why.to_owned(),
                    output: String::new(),
                    // It did start, not before it was due; the exact instant is with its task.
                    started_at: run.item.due_time,
                    finished_at,
                    due_time: run.item.due_time,
                });
            }
            running.len()
        })
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        lock(&self.table).snapshot()
    }

    pub(crate) fn counts(&self) -> Counts {
        lock(&self.table).counts
    }

    /// How much is kept of runs that have not ended, by name.
    #[cfg(feature = "simulation")]
    pub(crate) fn sizes(&self) -> Vec<(&'static str, usize)> {
        let mut sizes = lock(&self.table).sizes();
        sizes.push(("timer", self.timer.count()));
        sizes
    }

    pub(crate) fn is_draining(&self) -> bool {
        lock(&self.table).draining
    }

    /// Whether due runs wait for a slot.
    pub(crate) fn is_bursting(&self) -> bool {
        !lock(&self.table).ready.is_empty()
    }

    /// Takes no more runs and drops the held ones, which it returns.
    pub(crate) fn drain(&self) -> Vec<RunKey> {
        let held = lock(&self.table).drain();
        self.timer.clear();
        held
    }

    /// Makes results of runs that were dropped, and that no node has taken back.
    pub(crate) fn end_dropped(&self, keys: &[RunKey], why: &str) {
        let cluster_ms = self.clock.now_ms().unwrap_or(0);
        for batch in keys.chunks(LOCK_BATCH) {
            self.change(|table| batch.iter().for_each(|key| table.end_dropped(*key, why, cluster_ms)));
        }
    }

    /// Fetches the results that have come in since the last call.
    pub(crate) fn take_finished(&self) -> Vec<RunResult> {
        let mut table = lock(&self.table);
        let room = Vec::with_capacity(table.finished.capacity().min(16 * 1_024));
        std::mem::replace(&mut table.finished, room)
    }

    /// Results found in the journal at start.
    pub(crate) fn restore(&self, keys: impl Iterator<Item = RunKey>) {
        let mut table = lock(&self.table);
        for key in keys {
            table.restore(key);
        }
    }

    /// A node has taken the results of these runs.
    pub(crate) fn acknowledged(&self, keys: &[RunKey]) {
        let now_us = self.clock.local_us();
        for batch in keys.chunks(LOCK_BATCH) {
            lock(&self.table).acknowledged(batch, now_us);
        }
    }
}

/// The next run that may start. The second value asks for another round after others had a chance
/// at the lock; without it and without a run, the slot has been freed.
fn take_next(table: &mut Table, may_start: bool, cluster_us: i64, early: &mut Vec<Ticket>) -> (Option<Arc<Run>>, bool) {
    for _ in 0..LOCK_BATCH {
        let Some(ticket) = table.ready.pop() else {
            table.slots -= 1;
            return (None, false);
        };
        match table.begin(ticket, may_start, cluster_us) {
            Begin::Start(run) => return (Some(run), false),
            Begin::Early => early.push(ticket),
            Begin::Skipped => {}
        }
    }
    (None, true)
}

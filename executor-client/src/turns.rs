//! Turns: what a due run does while others of its task are running.
//!
//! A run that is not `concurrent` is *exclusive*: it starts only while no other run of its task
//! is running. Whenever one of them has ended, or has left the order without a start, the next
//! gets its turn ([`Table::settle`]) and goes to the slots. A run counts as running until it has
//! really ended, however long ago it was told to stop, so no strategy lets two overlap.
//!
//! A run is judged by its own strategy, and concurrent runs of the same task that wait for a
//! slot are ignored: both kinds meet only across an edit of the task, at which the nodes revoke
//! held runs.

use crate::ready::Ticket;
use crate::run::Run;
use crate::table::{State, Table};
use crate::tasks::TaskAt;
use carillon_protocol::{BlockStrategy, RunKey, RunStatus};
use std::sync::Arc;

/// Runs ended in one critical section for having waited too long.
const EXPIRED_BATCH: usize = 64;

const LEASE_GONE: &str = "not started: no node had acknowledged this executor's heartbeat for so long that the run may \
                          have been given to another";

impl Table {
    /// Routes a run that has become due: to the slots, or wherever its strategy sends it.
    pub(crate) fn due(&mut self, ticket: Ticket, may_start: bool, cluster_us: i64) {
        if !ticket.exclusive && !ticket.limited {
            return self.ready.push(ticket);
        }
        let Some(State::Held(run, at)) = self.live.get(&ticket.key) else {
            return;
        };
        let (run, at) = (Arc::clone(run), *at);
        if ticket.limited {
            self.waits.insert((run.give_up_ms(), ticket.key));
        }
        if !ticket.exclusive {
            self.ready.push(ticket);
        } else if may_start {
            self.judge(&run, at, cluster_us);
        } else {
            // Before it can stop or outlive another.
            self.end_unstarted(&run, RunStatus::NotStarted, LEASE_GONE.to_owned(), cluster_us);
        }
    }

    /// Applies the strategy of a due run.
    fn judge(&mut self, run: &Arc<Run>, at: TaskAt, cluster_us: i64) {
        let ticket = run.ticket();
        match run.item.block_strategy {
            BlockStrategy::Concurrent => self.ready.push(ticket),
            BlockStrategy::Serial | BlockStrategy::Other => self.line_up(ticket, at),
            BlockStrategy::DiscardLater => {
                if let Some(RunKey(log, attempt)) = self.blocker(at) {
                    let message = format!("not started: run {log} (attempt {attempt}) of the task was still running");
                    self.end_unstarted(run, RunStatus::Blocked, message, cluster_us);
                } else {
                    self.line_up(ticket, at);
                }
            }
            BlockStrategy::CoverEarly => self.cover(run, at, cluster_us),
        }
    }

    /// Lets a run wait for its turn, which may be at once.
    fn line_up(&mut self, ticket: Ticket, at: TaskAt) {
        self.tasks.wait(at, ticket);
        self.settle(at);
    }

    /// A run of the task that is running or waiting.
    fn blocker(&self, at: TaskAt) -> Option<RunKey> {
        let running = self.running_of(at).first().map(|run| run.key());
        running.or_else(|| self.tasks.waiting(at).next().map(|ticket| ticket.key))
    }

    /// The latest run of a task replaces all others.
    fn cover(&mut self, run: &Arc<Run>, at: TaskAt, cluster_us: i64) {
        let ticket = run.ticket();
        let running: Vec<_> = self.running_of(at).into_iter().filter(|run| run.stop_reason().is_none()).collect();
        let waiting: Vec<_> = self.tasks.waiting(at).collect();
        let latest = running.iter().map(|run| run.ticket()).chain(waiting.iter().copied()).max();
        if let Some(latest) = latest.filter(|latest| *latest > ticket) {
            return self.end_unstarted(run, RunStatus::Covered, instead(latest.key.0), cluster_us);
        }
        for earlier in waiting {
            if let Some(State::Held(earlier, _)) = self.live.get(&earlier.key) {
                let earlier = Arc::clone(earlier);
                self.end_unstarted(&earlier, RunStatus::Covered, instead(ticket.key.0), cluster_us);
            }
        }
        self.covered.extend(running.into_iter().map(|run| (run, ticket.key.0)));
        self.line_up(ticket, at);
    }

    /// The running runs of a task.
    fn running_of(&self, at: TaskAt) -> Vec<Arc<Run>> {
        match (self.tasks.running(at), self.tasks.running_exclusively(at)) {
            (0, _) => Vec::new(),
            (1, Some(run)) => vec![Arc::clone(run)],
            // Concurrent ones, from before an edit of the task.
            _ => {
                let id = self.tasks.id(at);
                self.running().into_iter().filter(|run| run.item.task == id).collect()
            }
        }
    }

    /// Sends the run whose turn it has become to the slots.
    pub(crate) fn settle(&mut self, at: TaskAt) {
        if let Some(next) = self.tasks.call_next(at) {
            self.ready.push(next);
        }
    }

    /// A held run waits no more.
    pub(crate) fn forget_wait(&mut self, run: &Run, at: TaskAt) {
        let ticket = run.ticket();
        if ticket.limited {
            self.waits.remove(&(run.give_up_ms(), ticket.key));
        }
        if ticket.exclusive {
            self.tasks.give_up(at, ticket);
            self.settle(at);
        }
    }

    /// Handles a run that got to a slot and may not take it.
    pub(crate) fn not_begun(
        &mut self,
        run: &Arc<Run>,
        at: TaskAt,
        (too_late, may_start): (bool, bool),
        cluster_us: i64,
    ) {
        if too_late {
            self.end_unstarted(run, RunStatus::WaitTimedOut, waited(run), cluster_us);
        } else if may_start {
            self.judge(run, at, cluster_us);
        } else {
            self.end_unstarted(run, RunStatus::NotStarted, LEASE_GONE.to_owned(), cluster_us);
        }
    }

    /// Ends some of the runs that have waited too long. Returns when the next one has; not after
    /// `cluster_us` when there are more of them.
    pub(crate) fn expire(&mut self, cluster_us: i64) -> Option<i64> {
        for _ in 0..EXPIRED_BATCH {
            let (give_up_ms, key) = *self.waits.first()?;
            if give_up_ms > cluster_us.div_euclid(1_000) {
                return Some(give_up_ms);
            }
            self.waits.pop_first();
            if let Some(State::Held(run, _)) = self.live.get(&key) {
                let run = Arc::clone(run);
                self.end_unstarted(&run, RunStatus::WaitTimedOut, waited(&run), cluster_us);
            }
        }
        self.waits.first().map(|(give_up_ms, _)| *give_up_ms)
    }
}

fn instead(log: i64) -> String {
    format!("not started: run {log} of the task replaced it")
}

fn waited(run: &Run) -> String {
    format!("not started within its wait time-out of {} ms", run.item.wait_timeout_ms)
}

#[cfg(test)]
mod tests;

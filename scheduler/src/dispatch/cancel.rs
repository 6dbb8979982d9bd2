//! Revoking what executors hold unstarted, when a task was edited, stopped or deleted.

use super::{EndedRuns, SendError, Transport};
use crate::cluster::{Clock, Registry};
use crate::domain::{Executor, ExecutorId, LogId, Reason, Run, Status, Transition};
use crate::store::{BATCH_MAX, DispatchStore, DispatchedRun, FROM_THE_FIRST, OutcomeStore, Place, Result};
use carillon_protocol::{Cancel, CancelOutcome, DISPATCH_ITEMS_MAX, RunKey};
use futures_util::future::join_all;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What became of runs that executors had.
#[derive(Debug, Default)]
pub struct Revocation {
    /// Dropped before they started: cancelled now, or, after an edit, on their way again.
    pub dropped: Vec<LogId>,
    /// Running: they go on.
    pub running: Vec<LogId>,
    /// Their executor could not be asked; they may still start.
    pub unreachable: Vec<LogId>,
    /// How many were told to stop, and it is written down.
    pub noted: usize,
}

/// Shards stopped in one round.
const SHARDS_MAX: u64 = 500;

/// What an executor does not know has not started when it is due later than this, ms: this node's clock may lag, and an
/// executor may have forgotten a run that has ended.
const UNKNOWN_MARGIN_MS: i64 = 1_000;

/// How often a cancel is retried for shards that change between reading and writing; then the reaper takes over.
const ROUNDS_MAX: usize = 10;

/// What executors are asked to do with runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// To drop what has not started.
    Drop,
    /// To stop them, started or not.
    Stop,
    /// The same once more: they may have been told so before, also by another node.
    StopAgain,
}

/// Asks executors to drop runs.
pub struct Canceller<S: ?Sized> {
    store: Arc<S>,
    clock: Arc<dyn Clock>,
    registry: Arc<Registry>,
    transport: Arc<dyn Transport>,
    ended: Arc<EndedRuns>,
    /// Whether this node has told executors to stop or drop runs and does not know that they have.
    is_open: AtomicBool,
    /// Behind which the repetition of stops goes on.
    repeated_after: Mutex<Place>,
}

impl<S: DispatchStore + OutcomeStore + ?Sized> Canceller<S> {
    /// Over the node's parts.
    pub fn new(
        store: Arc<S>,
        clock: Arc<dyn Clock>,
        registry: Arc<Registry>,
        transport: Arc<dyn Transport>,
        ended: Arc<EndedRuns>,
    ) -> Self {
        let (is_open, repeated_after) = (AtomicBool::new(false), Mutex::new(FROM_THE_FIRST));
        Self { store, clock, registry, transport, ended, is_open, repeated_after }
    }

    /// Asks for what a change of their task revoked: `runs` (DISPATCHED, marked in the transaction of the change). What has
    /// not started goes on under the present definition or ends; what has goes on as it is. Parents follow their shards.
    pub async fn revoke(&self, runs: Vec<DispatchedRun>) -> Result<Revocation> {
        let ids: Vec<LogId> = runs.iter().map(|dispatched| dispatched.run.id).collect();
        let mut took = self.revoke_once(runs).await?;
        // What moved on between the transaction and the question (another attempt at another executor) is asked once more
        // where it is now.
        let asked: HashSet<LogId> =
            [&took.dropped, &took.running, &took.unreachable].into_iter().flatten().copied().collect();
        let moved: Vec<LogId> = ids.into_iter().filter(|id| !asked.contains(id)).collect();
        if moved.is_empty() {
            return Ok(took);
        }
        let mut again = self.store.runs(None, &moved).await?;
        again.retain(|dispatched| dispatched.run.status == Status::Dispatched);
        let second = self.revoke_once(again).await?;
        took.dropped.extend(second.dropped);
        took.running.extend(second.running);
        took.unreachable.extend(second.unreachable);
        Ok(took)
    }

    async fn revoke_once(&self, mut runs: Vec<DispatchedRun>) -> Result<Revocation> {
        runs.retain(|dispatched| !dispatched.run.is_parent());
        if !runs.is_empty() {
            self.is_open.store(true, Ordering::SeqCst);
        }
        let (answers, unreachable) = self.ask_all(runs, Wish::Drop).await;
        let mut took = Revocation { unreachable, ..Revocation::default() };
        let (mut unstarted, mut started) = (Vec::new(), Vec::new());
        for (dispatched, outcome) in answers {
            if has_not_started(&dispatched.run, outcome, self.clock.now_ms()) {
                unstarted.push(dispatched.run);
                continue;
            }
            // Of an unknown run that may have started the executor's next list tells, or its result; of one that has ended, its
            // result, which may say that it never started.
            if !matches!(outcome, CancelOutcome::Unknown | CancelOutcome::Ended) {
                started.push((dispatched.run.id, dispatched.run.version));
            }
            took.running.push(dispatched.run.id);
        }
        self.store.leave_running(&started).await?;
        took.dropped = self.settle_unstarted(&unstarted).await?;
        Ok(took)
    }

    /// Lets revoked runs that have certainly not started go on under the present definition of their task, or end. Answers
    /// which did, parents that ended with the last of their shards among them.
    pub async fn settle_unstarted(&self, runs: &[Run]) -> Result<Vec<LogId>> {
        let mut settled = Vec::new();
        for batch in runs.chunks(BATCH_MAX) {
            settled.extend(self.store.settle_revoked(batch, self.clock.now_ms()).await?);
        }
        self.ended.note(settled.iter().copied());
        Ok(settled)
    }

    /// Tells executors to stop `runs` (DISPATCHED, no parents), started or not.
    async fn stop_at_executors(&self, runs: Vec<DispatchedRun>, reason: Reason, wish: Wish) -> Result<Revocation> {
        let (answers, unreachable) = self.ask_all(runs, wish).await;
        let mut took = Revocation { unreachable, ..Revocation::default() };
        let mut changes = Vec::new();
        for (dispatched, outcome) in answers {
            if has_not_started(&dispatched.run, outcome, self.clock.now_ms()) {
                let change = Transition::of(&dispatched.run, Status::Cancelled, reason);
                changes.push(Transition { finished_at: self.clock.now_ms(), ..change });
            } else {
                took.running.push(dispatched.run.id);
            }
        }
        for batch in changes.chunks(BATCH_MAX) {
            took.dropped.extend(self.store.change(batch).await?);
        }
        self.ended.note(took.dropped.iter().copied());
        Ok(took)
    }

    /// Asks the executors of `runs` to cancel them; also those whose executor could not be asked.
    async fn ask_all(&self, runs: Vec<DispatchedRun>, wish: Wish) -> (Vec<(DispatchedRun, CancelOutcome)>, Vec<LogId>) {
        let mut by_executor: HashMap<ExecutorId, Vec<DispatchedRun>> = HashMap::new();
        for dispatched in runs {
            by_executor.entry(dispatched.run.executor_id).or_default().push(dispatched);
        }
        let (mut answers, mut unreachable) = (Vec::new(), Vec::new());
        let mut messages = Vec::new();
        for (executor_id, mut runs) in by_executor {
            let Some(executor) = self.registry.find(executor_id) else {
                unreachable.extend(runs.iter().map(|dispatched| dispatched.run.id));
                continue;
            };
            while !runs.is_empty() {
                let rest = runs.split_off(runs.len().min(DISPATCH_ITEMS_MAX));
                messages.push(self.ask(Arc::clone(&executor), runs, wish));
                runs = rest;
            }
        }
        for (runs, answer) in join_all(messages).await {
            match answer {
                Ok(outcomes) if outcomes.len() == runs.len() => answers.extend(runs.into_iter().zip(outcomes)),
                Ok(_) | Err(_) => unreachable.extend(runs.iter().map(|dispatched| dispatched.run.id)),
            }
        }
        (answers, unreachable)
    }

    /// Stops `runs` (DISPATCHED) for `reason`, wherever they are: the wish is written down first,
    /// so that it outlives this node and an executor that cannot be reached; a run counts as
    /// stopped when its executor says so. Shards are stopped with their parent.
    pub async fn stop(&self, runs: Vec<DispatchedRun>, reason: Reason) -> Result<Revocation> {
        self.stop_by(&self.store, runs, reason).await
    }

    /// The same, where `store` writes the wish down, and with it what it notes in the audit.
    pub async fn stop_by(&self, store: &S, runs: Vec<DispatchedRun>, reason: Reason) -> Result<Revocation> {
        let parents: Vec<LogId> =
            runs.iter().filter(|dispatched| dispatched.run.is_parent()).map(|dispatched| dispatched.run.id).collect();
        let took = self.note_and_revoke(store, runs, reason).await?;
        if !parents.is_empty() {
            for _ in 0..ROUNDS_MAX {
                if self.stop_shards().await? == 0 {
                    break;
                }
            }
            self.store.settle_parents(&parents, self.clock.now_ms()).await?;
            self.ended.note(parents);
        }
        Ok(took)
    }

    /// Cancels a run that has not ended, as it was read: at once where no executor has it, else as [`Canceller::stop`] does;
    /// `message` says why, for people. `store` writes it down, and what it notes in the audit. `false` when the run has
    /// changed since it was read.
    pub async fn cancel_by(
        &self,
        store: &S,
        dispatched: &DispatchedRun,
        reason: Reason,
        message: &str,
    ) -> Result<bool> {
        if dispatched.run.status == Status::Dispatched {
            return Ok(self.stop_by(store, vec![dispatched.clone()], reason).await?.noted > 0);
        }
        let (finished_at, message) = (self.clock.now_ms(), message.to_owned());
        let change = Transition { message, finished_at, ..Transition::of(&dispatched.run, Status::Cancelled, reason) };
        Ok(!store.change(&[change]).await?.is_empty())
    }

    async fn note_and_revoke(&self, store: &S, runs: Vec<DispatchedRun>, reason: Reason) -> Result<Revocation> {
        let keys: Vec<(LogId, i64)> =
            runs.iter().map(|dispatched| (dispatched.run.id, dispatched.run.version)).collect();
        self.is_open.store(true, Ordering::SeqCst);
        let noted = store.note_stop(&keys, reason).await?;
        // A parent ends with its shards.
        let told =
            runs.into_iter().filter(|dispatched| noted.contains(&dispatched.run.id) && !dispatched.run.is_parent());
        let (again, first): (Vec<_>, Vec<_>) = told.partition(DispatchedRun::is_stopping);
        let mut took = Revocation::default();
        for (mut runs, wish) in [(first, Wish::Stop), (again, Wish::StopAgain)] {
            for dispatched in &mut runs {
                dispatched.run.version += 1;
                dispatched.stopping = reason;
            }
            let part = self.stop_at_executors(runs, reason, wish).await?;
            took.dropped.extend(part.dropped);
            took.running.extend(part.running);
            took.unreachable.extend(part.unreachable);
        }
        Ok(Revocation { noted: noted.len(), ..took })
    }

    /// Stops shards whose parent was told to stop; one between two attempts has no owner, and ends at
    /// once. Returns how many there were.
    async fn stop_shards(&self) -> Result<usize> {
        let open = self.store.shards_to_stop(SHARDS_MAX).await?;
        let count = open.len();
        let now = self.clock.now_ms();
        let (dispatched, idle): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|shard| shard.run.status == Status::Dispatched);
        let changes: Vec<Transition> = idle
            .iter()
            .map(|shard| Transition {
                finished_at: now,
                ..Transition::of(&shard.run, Status::Cancelled, shard.stopping)
            })
            .collect();
        self.store.change(&changes).await?;
        let mut by_reason: HashMap<Reason, Vec<DispatchedRun>> = HashMap::new();
        for shard in dispatched {
            by_reason.entry(shard.stopping).or_default().push(shard);
        }
        for (reason, shards) in by_reason {
            self.note_and_revoke(&self.store, shards, reason).await?;
        }
        Ok(count)
    }

    /// Whether this node has told executors to stop or drop runs, and has not found since that nothing is left to repeat.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::SeqCst)
    }

    /// Repeats stops and revocations that no executor has confirmed yet, of runs that are due before `until` (ms): so many, and the
    /// next time those behind them. One page of executors that can't be reached hides no others.
    pub async fn repeat_stops(&self, until: i64, limit: u64) -> Result<usize> {
        let was_open = self.is_open.swap(false, Ordering::SeqCst);
        let repeated = self.repeat_marked(until, limit).await;
        if repeated.is_err() && was_open {
            self.is_open.store(true, Ordering::SeqCst);
        }
        repeated
    }

    async fn repeat_marked(&self, until: i64, limit: u64) -> Result<usize> {
        self.stop_shards().await?;
        let marked = self.next_marked(until, limit).await?;
        let (revoked, stopped): (Vec<_>, Vec<_>) =
            marked.into_iter().partition(|dispatched| dispatched.stopping.is_revocation());
        let mut dropped = self.revoke_once(revoked).await?.dropped.len();
        let mut by_reason: HashMap<Reason, Vec<DispatchedRun>> = HashMap::new();
        for dispatched in stopped {
            by_reason.entry(dispatched.stopping).or_default().push(dispatched);
        }
        for (reason, runs) in by_reason {
            dropped += self.stop_at_executors(runs, reason, Wish::StopAgain).await?.dropped.len();
        }
        Ok(dropped)
    }

    async fn next_marked(&self, until: i64, limit: u64) -> Result<Vec<DispatchedRun>> {
        let after = *self.lock_repeated();
        let marked = self.store.stopping(until, after, limit).await?;
        let last = marked.last().filter(|_| marked.len() as u64 >= limit);
        *self.lock_repeated() = last.map_or(FROM_THE_FIRST, |last| (last.run.due_time, last.run.id));
        if !marked.is_empty() || after != FROM_THE_FIRST {
            // Until a look from the first on finds none: not every answer can be had.
            self.is_open.store(true, Ordering::SeqCst);
        }
        Ok(marked)
    }

    fn lock_repeated(&self) -> MutexGuard<'_, Place> {
        self.repeated_after.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(
        &self,
        executor: Arc<Executor>,
        runs: Vec<DispatchedRun>,
        wish: Wish,
    ) -> (Vec<DispatchedRun>, std::result::Result<Vec<CancelOutcome>, SendError>) {
        let keys = runs.iter().map(|dispatched| RunKey(dispatched.run.id.0, dispatched.run.attempt)).collect();
        let message = Cancel { executor_id: executor.id.0, runs: keys, unstarted_only: wish == Wish::Drop };
        let answer = self.transport.cancel(&executor, &message, wish == Wish::StopAgain).await.map(|ack| ack.outcomes);
        (runs, answer)
    }
}

/// Whether a run certainly has not started, and will not, when its executor answers this to a cancel at `now` (epoch ms):
/// one that it does not know it refuses from then on, should it still arrive.
fn has_not_started(run: &Run, outcome: CancelOutcome, now: i64) -> bool {
    match outcome {
        CancelOutcome::Dropped => true,
        CancelOutcome::Unknown => run.due_time > now + UNKNOWN_MARGIN_MS,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An executor of 0.1 also says `Unknown` of what has ended, and a node's clock may lag.
    #[test]
    fn a_run_that_an_executor_does_not_know_may_have_ended_once_it_is_nearly_due() {
        let run = crate::domain::task_log::test::run_of(1, 100_000);
        let unstarted = |outcome, now| has_not_started(&run, outcome, now);
        assert!(unstarted(CancelOutcome::Unknown, 98_999));
        assert!(!unstarted(CancelOutcome::Unknown, 99_000));
        assert!(!unstarted(CancelOutcome::Unknown, 100_001));
        assert!(unstarted(CancelOutcome::Dropped, 200_000), "it said so itself");
        for outcome in [CancelOutcome::Ended, CancelOutcome::Running, CancelOutcome::Stopping, CancelOutcome::Stopped] {
            assert!(!unstarted(outcome, 0), "{outcome:?}");
        }
    }
}

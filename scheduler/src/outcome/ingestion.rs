//! Results → states, in batches. A result counts only with the attempt that is current; an older
//! one is recorded and answered `stale`. The answer goes out after the commit.

use super::shared_writes::{Share, SharedWrites, Turn, Verdicts, Written, key};
use crate::cluster::Clock;
use crate::dispatch::{EndedRuns, TaskCache};
use crate::domain::failure::{self, Attempt};
use crate::domain::{ExecutorId, IdSource, LogId, Owner, Reason, Run, Status, Transition};
use crate::metrics::METRICS;
use crate::store::{
    BATCH_MAX, DispatchStore, DispatchedRun, OutcomeStore, PlanStore, Result, StoreError, StoreErrorKind,
};
use carillon_protocol::{RunKey, RunResult, RunStatus, Verdict};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A member of the database does not lag behind another for longer than this, ms.
pub const LAG_MAX_MS: i64 = 60_000;

/// An executor's estimate of cluster time is not further ahead of this node's, ms, unless the clock was set back.
const AHEAD_MAX_MS: i64 = 60_000;

/// A run does not begin longer before its log was made, ms, however a clock was set.
const BEFORE_LOG_MAX_MS: i64 = 86_400_000;

/// How often a row is judged again that changes between reading and writing.
const ROUNDS_MAX: usize = 5;

/// Takes results in.
pub struct ResultIngestion<S: ?Sized> {
    store: Arc<S>,
    clock: Arc<dyn Clock>,
    ids: Arc<IdSource>,
    tasks: Arc<TaskCache<S>>,
    ended: Arc<EndedRuns>,
    writes: Arc<SharedWrites>,
}

impl<S: OutcomeStore + DispatchStore + PlanStore + ?Sized> ResultIngestion<S> {
    /// Over the node's parts.
    pub fn new(
        store: Arc<S>,
        clock: Arc<dyn Clock>,
        ids: Arc<IdSource>,
        tasks: Arc<TaskCache<S>>,
        ended: Arc<EndedRuns>,
    ) -> Self {
        Self { store, clock, ids, tasks, ended, writes: Arc::default() }
    }

    /// Commits what counts; answers one verdict per result, in their order.
    pub async fn apply(&self, owner: Owner, executor_id: ExecutorId, results: &[RunResult]) -> Result<Vec<Verdict>> {
        let mut verdicts = HashMap::with_capacity(results.len());
        for batch in results.chunks(BATCH_MAX) {
            let (good, bad): (Vec<_>, Vec<_>) = batch.iter().partition(|result| result.status == RunStatus::Succeeded);
            self.succeed(owner, &good, &mut verdicts).await?;
            self.fail(owner, &bad, &mut verdicts).await?;
        }
        let answer = |result: &RunResult| verdicts.get(&key(result)).copied().unwrap_or(Verdict::Unknown);
        let answers: Vec<Verdict> = results.iter().map(answer).collect();
        let applied = results.iter().zip(&answers).filter(|(_, verdict)| **verdict == Verdict::Applied);
        self.ended.note(applied.map(|(result, _)| LogId(result.log)));
        self.record_stale(executor_id, results, &answers).await?;
        let now = self.clock.now_ms();
        results.iter().zip(&answers).for_each(|(result, verdict)| measure(&with_times(result, now), *verdict));
        Ok(answers)
    }

    async fn succeed(
        &self,
        owner: Owner,
        results: &[&RunResult],
        verdicts: &mut HashMap<RunKey, Verdict>,
    ) -> Result<()> {
        if results.is_empty() {
            return Ok(());
        }
        let written = match self.writes.turn(owner, results).await {
            Turn::Written(written) => written,
            Turn::Write(share) => self.write_shared(owner, results, share).await,
            Turn::Alone => Arc::new(self.write_successes(owner, results).await),
        };
        let written = written.as_ref().as_ref().map_err(Clone::clone)?;
        verdicts.extend(results.iter().filter_map(|result| written.get_key_value(&key(result))));
        Ok(())
    }

    /// Writes these successes and those of others who wait.
    async fn write_shared(&self, owner: Owner, results: &[&RunResult], mut share: Share) -> Written {
        let all: Vec<&RunResult> = results.iter().copied().chain(share.results()).collect();
        let mut written = self.write_successes(owner, &all).await;
        // What cannot be written may be another's: each writes its own then.
        if !share.is_empty() && written.as_ref().is_err_and(|error| !error.is_temporary()) {
            share.leave();
            written = self.write_successes(owner, results).await;
        }
        let written = Arc::new(written);
        share.tell(&written);
        written
    }

    /// Writes successes of one owner, whoever told them, and answers what became of each.
    async fn write_successes(&self, owner: Owner, results: &[&RunResult]) -> Result<Verdicts> {
        let now = self.clock.now_ms();
        let complete: Vec<_> = results.iter().map(|result| with_times(result, now)).collect();
        let complete: Vec<&RunResult> = complete.iter().map(AsRef::as_ref).collect();
        let (all, whole) = (results.len() as u64, self.store.succeed_whole(owner, &complete).await?);
        let all_applied = || results.iter().map(|result| (key(result), Verdict::Applied)).collect();
        if whole == all {
            return Ok(all_applied());
        }
        // The others are shards, or not current.
        if whole + self.store.succeed(owner, &complete).await? == all {
            let logs: Vec<LogId> = results.iter().map(|result| LogId(result.log)).collect();
            let parents = self.store.parents_of(&logs).await?;
            self.settle(parents.into_iter().collect()).await?;
            return Ok(all_applied());
        }
        let rows = self.read(owner, results).await?;
        self.settle(rows.values().map(|row| row.run.parent_id).collect()).await?;
        Ok(results.iter().map(|result| (key(result), judge(rows.get(&LogId(result.log)), result, now))).collect())
    }

    async fn fail(&self, owner: Owner, results: &[&RunResult], verdicts: &mut HashMap<RunKey, Verdict>) -> Result<()> {
        if results.is_empty() {
            return Ok(());
        }
        let mut open: Vec<&RunResult> = results.to_vec();
        for _ in 0..ROUNDS_MAX {
            open = self.fail_once(owner, &open, verdicts).await?;
            if open.is_empty() {
                return Ok(());
            }
        }
        Err(StoreError::new(StoreErrorKind::Contention, "record failures", "rows keep changing; send them again"))
    }

    /// Returns those whose row changed between reading and writing: they are judged again.
    async fn fail_once<'a>(
        &self,
        owner: Owner,
        results: &[&'a RunResult],
        verdicts: &mut HashMap<RunKey, Verdict>,
    ) -> Result<Vec<&'a RunResult>> {
        let rows = self.read(owner, results).await?;
        let runs: Vec<Run> = rows.values().map(|row| row.run.clone()).collect();
        let tasks = self.tasks.of(&runs).await?;
        let now = self.clock.now_ms();
        let (mut changes, mut revoked) = (Vec::new(), Vec::new());
        let mut tried = Vec::new();
        for result in results {
            let row = rows.get(&LogId(result.log));
            let current = row.filter(|row| row.run.status == Status::Dispatched && row.run.attempt == result.attempt);
            let Some(row) = current else {
                verdicts.insert(key(result), judge(row, result, now));
                continue;
            };
            if tasks.is_unreadable(row.run.task_id) {
                // A node of a later release knows what its failure means.
                verdicts.insert(key(result), Verdict::Again);
                continue;
            }
            if result.status == RunStatus::NotStarted && row.stopping.is_revocation() {
                // A change of its task took it back: that decides what becomes of it, not a later one.
                revoked.push(row.run.clone());
            } else {
                changes.push(step(row, result, tasks.get(row.run.task_id).map(AsRef::as_ref), now));
            }
            tried.push(*result);
        }
        let mut moved = self.store.change(&changes).await?;
        moved.extend(self.store.settle_revoked(&revoked, now).await?);
        let ended = changes.iter().filter(|change| change.to.is_terminal() && moved.contains(&change.id));
        let parents: HashSet<LogId> =
            ended.filter_map(|change| rows.get(&change.id)).map(|row| row.run.parent_id).collect();
        let (done, open): (Vec<_>, Vec<_>) = tried.into_iter().partition(|result| moved.contains(&LogId(result.log)));
        verdicts.extend(done.iter().map(|result| (key(result), Verdict::Applied)));
        self.settle(parents).await?;
        Ok(open)
    }

    async fn read(&self, owner: Owner, results: &[&RunResult]) -> Result<HashMap<LogId, DispatchedRun>> {
        let ids: Vec<LogId> = results.iter().map(|result| LogId(result.log)).collect();
        let rows = self.store.runs(Some(owner), &ids).await?;
        Ok(rows.into_iter().map(|row| (row.run.id, row)).collect())
    }

    async fn settle(&self, mut parents: HashSet<LogId>) -> Result<()> {
        parents.remove(&LogId::NONE);
        let parents: Vec<LogId> = parents.into_iter().collect();
        if self.store.settle_parents(&parents, self.clock.now_ms()).await? > 0 {
            self.ended.note(parents);
        }
        Ok(())
    }

    async fn record_stale(&self, executor_id: ExecutorId, results: &[RunResult], verdicts: &[Verdict]) -> Result<()> {
        let stale: Vec<&RunResult> =
            results.iter().zip(verdicts).filter(|(_, verdict)| **verdict == Verdict::Stale).map(|(r, _)| r).collect();
        if stale.is_empty() {
            return Ok(());
        }
        let now = self.clock.now_ms();
        tracing::warn!(executor = executor_id.0, results = stale.len(), "stale results recorded, not applied");
        let ids: Vec<i64> = stale.iter().map(|_| self.ids.next(now)).collect();
        let stale: Vec<_> = stale.into_iter().map(|result| with_times(result, now)).collect();
        self.store.record_stale(executor_id, &stale.iter().map(AsRef::as_ref).collect::<Vec<_>>(), &ids, now).await
    }
}

/// Counts a result that is answered so.
fn measure(result: &RunResult, verdict: Verdict) {
    match verdict {
        Verdict::Stale => return METRICS.results_stale.add(1),
        Verdict::Unknown => return METRICS.results_unknown.add(1),
        Verdict::Again | Verdict::Other => return,
        Verdict::Applied => METRICS.results.add(result.status as usize, 1),
    }
    // Times come from executors: what they say must not overflow anything here.
    let us = |from: i64, until: i64| until.saturating_sub(from).saturating_mul(1_000);
    if result.started_at > 0 && result.due_time > 0 {
        METRICS.lateness.record_us(us(result.due_time, result.started_at));
    }
    if result.started_at > 0 && result.finished_at > 0 {
        METRICS.duration.record_us(us(result.started_at, result.finished_at));
    }
}

/// The verdict on a result that moved nothing now: applied by an earlier sending, or not at all. An attempt that is not
/// there yet, though it has ended, was dispatched through a member of the database that this one lags behind.
fn judge(row: Option<&DispatchedRun>, result: &RunResult, now: i64) -> Verdict {
    // Its executor's estimate of cluster time may be a little ahead of this node's.
    let may_come = now.saturating_sub(result.finished_at).saturating_abs() < LAG_MAX_MS;
    let is_ahead = row.is_none_or(|row| row.run.attempt < result.attempt || lags(row, result));
    if is_ahead && may_come {
        return Verdict::Again;
    }
    let Some(row) = row else { return Verdict::Unknown };
    let same = row.run.attempt == result.attempt
        && row.run.status != Status::Dispatched
        && row.finished_at == result.finished_at
        && result.finished_at > 0;
    if same { Verdict::Applied } else { Verdict::Stale }
}

/// Whether the row is as it was before this attempt's success: it could not be moved, and yet nothing else has.
fn lags(row: &DispatchedRun, result: &RunResult) -> bool {
    row.run.attempt == result.attempt && row.run.status == Status::Dispatched
}

/// The result with times that can be. Figures, retention and what follows its end go by them: an end that its executor does
/// not name, or that cannot be, is `now` (epoch ms); such a beginning is not known.
fn with_times(result: &RunResult, now: i64) -> Cow<'_, RunResult> {
    let earliest = IdSource::made_at(result.log).min(now).saturating_sub(BEFORE_LOG_MAX_MS).max(1);
    let can_be = |at: i64| (earliest..=now.saturating_add(AHEAD_MAX_MS)).contains(&at);
    if can_be(result.finished_at) && (result.started_at == 0 || can_be(result.started_at)) {
        return Cow::Borrowed(result);
    }
    let started_at = if can_be(result.started_at) { result.started_at } else { 0 };
    let finished_at = if can_be(result.finished_at) { result.finished_at } else { now };
    Cow::Owned(RunResult { started_at, finished_at, ..result.clone() })
}

fn step(row: &DispatchedRun, result: &RunResult, task: Option<&crate::domain::Task>, now: i64) -> Transition {
    let run = &row.run;
    let reason = match result.status {
        RunStatus::Succeeded | RunStatus::Failed => Reason::HandlerFailed,
        RunStatus::FailedForGood => Reason::HandlerFailedForGood,
        RunStatus::Panicked => Reason::HandlerPanicked,
        RunStatus::TimedOut => Reason::TimedOut,
        RunStatus::Cancelled => Reason::CancelledManually,
        RunStatus::NotStarted => Reason::GivenBack,
        RunStatus::Abandoned => Reason::Abandoned,
        RunStatus::Blocked => Reason::Blocked,
        RunStatus::Covered => Reason::Covered,
        RunStatus::WaitTimedOut => Reason::WaitTimedOut,
        RunStatus::Other => Reason::OutcomeUnknown,
    };
    // What was told to stop and did not succeed has been stopped, however it ended.
    let reason = if row.is_stopping() { row.stopping } else { reason };
    let message = match (reason, result.status) {
        (_, RunStatus::Other) => format!(
            "its executor is of a later release, and told its end in a word that this node does not know: {}",
            result.message
        ),
        (Reason::Covered, RunStatus::Cancelled) => "stopped: a later run of the task replaced it".to_owned(),
        _ => result.message.clone(),
    };
    let attempt = Attempt::of(run);
    let times = with_times(result, now);
    let (status, due_time, failures) = match task {
        Some(task) => {
            let next = failure::after(task, attempt, reason, now);
            (next.status, next.due_time, next.failures)
        }
        // The task is gone: nothing decides about another attempt any more.
        None => (Status::Failed, run.due_time, run.failures + 1),
    };
    Transition {
        to: status,
        due_time,
        failures,
        message,
        started_at: times.started_at,
        finished_at: times.finished_at,
        ..Transition::of(run, status, reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::NodeId;
    use crate::domain::task_log::test::run_of;

    const NOW: i64 = 1_000_000;

    /// The second attempt, as far as a member of the database has come.
    fn row(attempt: i32, status: Status, finished_at: i64) -> DispatchedRun {
        DispatchedRun {
            run: Run { attempt, status, ..run_of(7, NOW) },
            node_id: NodeId(1),
            dispatched_at: NOW,
            finished_at,
            stopping: Reason::None,
        }
    }

    fn success(finished_at: i64) -> RunResult {
        RunResult {
            log: 7,
            attempt: 2,
            status: RunStatus::Succeeded,
            message: String::new(),
            output: String::new(),
            started_at: NOW,
            finished_at,
            due_time: NOW,
        }
    }

    #[test]
    fn a_result_that_is_ahead_of_its_row_is_sent_again_for_a_while() {
        let ended_at = NOW + 1_000;
        let at = |row: Option<&DispatchedRun>, now: i64| judge(row, &success(ended_at), now);
        let lagging = row(2, Status::Dispatched, 0);
        for (what, row, in_the_end) in [
            ("no row", None, Verdict::Unknown),
            ("an earlier attempt", Some(&row(1, Status::Retry, 0)), Verdict::Stale),
            ("dispatched, though a success could not move it", Some(&lagging), Verdict::Stale),
        ] {
            assert_eq!(at(row, ended_at), Verdict::Again, "{what}");
            assert_eq!(at(row, ended_at + LAG_MAX_MS - 1), Verdict::Again, "{what}");
            assert_eq!(at(row, ended_at + LAG_MAX_MS), in_the_end, "{what}: no member lags so long");
            assert_eq!(at(row, ended_at - 20), Verdict::Again, "{what}: its executor's clock is ahead");
            assert_eq!(at(row, ended_at - LAG_MAX_MS), in_the_end, "{what}: no clock is so much ahead");
        }
        assert_eq!(at(Some(&row(2, Status::Succeeded, ended_at)), ended_at), Verdict::Applied, "by an earlier sending");
        assert_eq!(at(Some(&row(2, Status::Failed, ended_at - 1)), ended_at), Verdict::Stale, "ended in another way");
        assert_eq!(at(Some(&row(3, Status::Dispatched, 0)), ended_at), Verdict::Stale, "another attempt is under way");
    }
}

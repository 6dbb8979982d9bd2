//! Runs for which nobody calls back: whether their executor still has them is found by asking it. Clients lose callbacks (they are
//! killed, restarted at the same port, or keep what they could not tell in memory only), and answer a node that asks only whether a
//! task is idle, not whether a run is there.

use super::reports::{Report, Reports};
use super::sent_runs::SentRuns;
use super::standin::{StandIn, place_of};
use super::vouch::is_of;
use crate::cluster::{Clock, Membership, Registry};
use crate::dispatch::TaskCache;
use crate::domain::task::{BlockStrategy, Delivery};
use crate::domain::xxljob::said::Load;
use crate::domain::{Executor, ExecutorId, LogId, Status, TaskId};
use crate::store::{DispatchedRun, FROM_THE_FIRST, OutcomeStore, PlanStore, Result, Suspects};
use carillon_protocol::{RunKey, RunResult, RunStatus};
use futures_util::StreamExt;
use futures_util::stream;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Runs that one round asks about at most; the next round goes on behind them.
const PAGE_RUNS: u64 = 500;

/// Questions at once.
const ASKED_MAX: usize = 32;

/// What has gone on for so long is asked about less often, ms.
const LONG_MS: i64 = 600_000;

/// How many times less often.
const LONG_FACTOR: i64 = 6;

/// Distances of the inquiry, ms.
#[derive(Debug, Clone, Copy)]
pub struct InquirySettings {
    /// How long after the mark an executor may be sent a run.
    pub accept_window_ms: i64,
    /// An executor that has been idle for so long has told what it had to tell.
    pub patience_ms: i64,
    /// The same of a run that was told to stop, or may have been covered.
    pub lost_after_ms: i64,
}

impl InquirySettings {
    /// A run is asked about from so long after it was dispatched, and was due.
    fn asked_after_ms(&self) -> i64 {
        self.accept_window_ms + self.ask_every_ms()
    }

    /// Between two questions about a task.
    fn ask_every_ms(&self) -> i64 {
        self.patience_ms / 4
    }
}

/// What is known of a task at an executor.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// By the machine's own clock, ms.
    asked_at: i64,
    /// The first and the last of the answers since it was seen busy, if all of them were that it is idle, by the same clock, ms.
    idle: Option<(i64, i64)>,
}

impl Known {
    /// After an answer to a question that was asked at `asked_at`.
    fn after(before: Option<Self>, load: Load, asked_at: i64) -> Self {
        let before = before.and_then(|known| known.idle);
        let idle = match load {
            Load::Idle => Some((before.map_or(asked_at, |(first, _)| first), asked_at)),
            // No answer proves nothing, and takes nothing back.
            Load::Unknown => before,
            Load::Busy => None,
        };
        Self { asked_at, idle }
    }

    /// For how long it was seen idle after `begun_at`, ms. What it was before a run came there says nothing of that run.
    fn idle_ms(&self, begun_at: i64) -> i64 {
        self.idle.map_or(0, |(first, last)| last - first.max(begun_at))
    }
}

/// What it works with.
pub struct InquiryParts<S> {
    /// The database.
    pub store: Arc<S>,
    /// Definitions.
    pub tasks: TaskCache<S>,
    /// Executors online.
    pub registry: Arc<Registry>,
    /// This node among others.
    pub membership: Arc<Membership>,
    /// Asks.
    pub stand_in: Arc<StandIn>,
    /// What this node has sent.
    pub sent: SentRuns,
    /// Where what is found goes.
    pub reports: Arc<Reports>,
    /// Cluster time.
    pub clock: Arc<dyn Clock>,
}

/// The inquiry of one node.
pub struct Inquiry<S> {
    parts: InquiryParts<S>,
    settings: InquirySettings,
    known: Mutex<HashMap<(ExecutorId, TaskId), Known>>,
    after: Mutex<(i64, LogId)>,
}

impl<S: OutcomeStore + PlanStore> Inquiry<S> {
    /// Over its parts.
    pub fn new(parts: InquiryParts<S>, settings: InquirySettings) -> Self {
        Self { parts, settings, known: Mutex::default(), after: Mutex::new(FROM_THE_FIRST) }
    }

    /// One round, about the runs of plain executors in this node's share. Where there are none, it asks nobody.
    pub async fn tick(&self) -> Result<()> {
        let share = self.parts.membership.view().share;
        let executors: HashMap<ExecutorId, Arc<Executor>> = self
            .parts
            .registry
            .everyone()
            .into_iter()
            .filter(|executor| executor.plain && is_of(share, executor.id))
            .map(|executor| (executor.id, executor))
            .collect();
        if executors.is_empty() {
            return Ok(());
        }
        let rows = self.page(executors.keys().copied().collect()).await?;
        let now = self.parts.clock.now_ms();
        let open = |row: &DispatchedRun| {
            let since = row.dispatched_at.max(row.run.due_time);
            row.run.status == Status::Dispatched && now - since > self.settings.asked_after_ms()
        };
        let mut of_tasks: BTreeMap<(ExecutorId, TaskId), Vec<DispatchedRun>> = BTreeMap::new();
        for row in rows.into_iter().filter(open) {
            of_tasks.entry((row.run.executor_id, row.run.task_id)).or_default().push(row);
        }
        self.ask(&executors, &of_tasks, now).await;
        for (of, rows) in of_tasks {
            let Some(executor) = executors.get(&of.0) else { continue };
            self.judge(executor, of, rows, now).await?;
        }
        Ok(())
    }

    /// Open runs of these executors, a page a round.
    async fn page(&self, executors: Vec<ExecutorId>) -> Result<Vec<DispatchedRun>> {
        let due_before = self.parts.clock.now_ms() - self.settings.asked_after_ms();
        let after = *self.after.lock().unwrap_or_else(PoisonError::into_inner);
        let which = Suspects {
            executors,
            except: Vec::new(),
            due_before,
            or_not_by: Vec::new(),
            until: due_before,
            after,
            limit: PAGE_RUNS,
        };
        let suspects = self.parts.store.suspects(&which).await?;
        let next = suspects.last().filter(|_| suspects.len() as u64 >= PAGE_RUNS).map(|last| (last.due_time, last.log));
        *self.after.lock().unwrap_or_else(PoisonError::into_inner) = next.unwrap_or(FROM_THE_FIRST);
        let ids: Vec<LogId> = suspects.iter().map(|suspect| suspect.log).collect();
        if ids.is_empty() { Ok(Vec::new()) } else { self.parts.store.runs(None, &ids).await }
    }

    /// Asks about those tasks whose turn it is.
    async fn ask(
        &self,
        executors: &HashMap<ExecutorId, Arc<Executor>>,
        of_tasks: &BTreeMap<(ExecutorId, TaskId), Vec<DispatchedRun>>,
        now: i64,
    ) {
        let local = self.local_ms();
        let is_due = |(of, rows): &(&(ExecutorId, TaskId), &Vec<DispatchedRun>)| {
            let oldest = rows.iter().map(|row| row.dispatched_at).min().unwrap_or(now);
            let every = self.settings.ask_every_ms() * if now - oldest > LONG_MS { LONG_FACTOR } else { 1 };
            self.known(**of).is_none_or(|known| local - known.asked_at >= every)
        };
        let due: Vec<(ExecutorId, TaskId)> = of_tasks.iter().filter(is_due).map(|(of, _)| *of).collect();
        let asked = stream::iter(due).map(async |of: (ExecutorId, TaskId)| {
            let load = match executors.get(&of.0) {
                Some(executor) => self.parts.stand_in.load(place_of(executor), of.1).await,
                None => Load::Unknown,
            };
            (of, load)
        });
        let answers: Vec<_> = asked.buffer_unordered(ASKED_MAX).collect().await;
        let asked_at = self.local_ms();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (of, load) in answers {
            let after = Known::after(known.get(&of).copied(), load, local);
            known.insert(of, after);
        }
        // Of tasks without open runs nothing needs to be known.
        let open: HashSet<_> = of_tasks.keys().copied().collect();
        known.retain(|of, known| {
            open.contains(of) || asked_at - known.asked_at < LONG_FACTOR * self.settings.ask_every_ms()
        });
    }

    /// Ends those that their executor certainly has no more.
    async fn judge(
        &self,
        executor: &Executor,
        of: (ExecutorId, TaskId),
        rows: Vec<DispatchedRun>,
        now: i64,
    ) -> Result<()> {
        let Some(known) = self.known(of).filter(|known| known.idle.is_some()) else { return Ok(()) };
        let local = self.local_ms();
        let runs: Vec<_> = rows.iter().map(|row| row.run.clone()).collect();
        let tasks = self.parts.tasks.of(&runs).await?;
        let spec = tasks.get(of.1).map(|task| &task.spec);
        let covers = spec.is_some_and(|spec| spec.block_strategy == BlockStrategy::CoverEarly);
        let at_most_once = spec.is_some_and(|spec| spec.delivery == Delivery::AtMostOnce);
        for row in rows {
            // Clients took it off their list when they were told to stop it, while its handler went on: idle proves less then.
            let is_doubtful = row.is_stopping() || covers;
            let patience_ms = if is_doubtful { self.settings.lost_after_ms } else { self.settings.patience_ms };
            let begun_at = local - (now - row.dispatched_at.max(row.run.due_time));
            if known.idle_ms(begun_at) < patience_ms {
                continue;
            }
            let key = RunKey(row.run.id.0, row.run.attempt);
            let owner = row.run.owner();
            let never_came = self.parts.stand_in.has_no_log(place_of(executor), owner, key).await;
            let (status, message) = if never_came && !at_most_once {
                (RunStatus::NotStarted, "its executor is idle and has no log of it")
            } else {
                (RunStatus::Abandoned, "its executor is idle and has not told how it ended")
            };
            tracing::warn!(log = row.run.id.0, executor = executor.id.0, ?status, "a run of a plain executor is lost");
            let started_at = if never_came { 0 } else { self.started_at(key, &row) };
            let result = RunResult {
                log: row.run.id.0,
                attempt: row.run.attempt,
                status,
                message: message.to_owned(),
                output: String::new(),
                started_at,
                finished_at: now,
                due_time: row.run.due_time,
            };
            self.parts.sent.end(key);
            self.parts.reports.say(Report { owner, executor_id: executor.id, result });
        }
        Ok(())
    }

    fn started_at(&self, key: RunKey, row: &DispatchedRun) -> i64 {
        self.parts.sent.sent_at(key).unwrap_or_else(|| row.run.due_time.max(row.dispatched_at))
    }

    fn known(&self, of: (ExecutorId, TaskId)) -> Option<Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&of).copied()
    }

    fn local_ms(&self) -> i64 {
        self.parts.clock.local_us().div_euclid(1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_idleness_that_was_seen_after_a_run_had_come_says_something_of_it() {
        let answers = |answers: &[(Load, i64)]| {
            let known = answers.iter().fold(None, |known, (load, at)| Some(Known::after(known, *load, *at)));
            known.map_or(0, |known| known.idle_ms(100))
        };
        let (idle, busy, unknown) = (Load::Idle, Load::Busy, Load::Unknown);
        for (what, said, ms) in [
            ("once", vec![(idle, 110)], 0),
            ("twice", vec![(idle, 110), (idle, 150)], 40),
            ("also before it came", vec![(idle, 20), (idle, 90), (idle, 150)], 50),
            ("only before it came", vec![(idle, 20), (idle, 90), (unknown, 150), (unknown, 500)], -10),
            ("no answer in between", vec![(idle, 110), (unknown, 130), (idle, 150)], 40),
            ("busy in between", vec![(idle, 110), (busy, 130), (idle, 150)], 0),
        ] {
            assert_eq!(answers(&said), ms, "{what}");
        }
    }
}

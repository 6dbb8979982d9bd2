//! Runs that were missed end here, a page at a time, without being claimed first: after an outage, or while more is due than
//! the cluster carries, they are many, and what is due now must not wait behind them.
//!
//! What is left out is decided by the same rules as for a run that was claimed too late (`dispatch/judge`), which decides
//! on whatever is not clear here.

use crate::cluster::{Clock, RuleBook};
use crate::domain::missed::{is_missed, made_up_for, unwritten, why_left_out};
use crate::domain::{NodeId, Reason, Run, Status, Task, TaskId};
use crate::metrics::RUNS_ENDED;
use crate::store::{BATCH_MAX, ClaimStore, DueRange, MissedQuestion, PlanStore, Result, Share, UnclaimedEnd};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// One look goes on for so long at most, ms: claims wait for it.
const LOOK_MS: i64 = 1_000;

/// What is known of a task is read again after this long, ms.
const KNOWN_MS: i64 = 2_000;

/// Tasks remembered at most; when full, what is known of them is forgotten.
const TASKS_MAX: usize = 50_000;

/// What a task does about its missed fires.
struct Policy {
    task: Task,
    /// Fires before this instant are left out, ms; there are only more of them later.
    left_out_before: i64,
    read_at: i64,
}

type Policies = HashMap<TaskId, Policy>;

/// Ends missed runs that no node has claimed.
pub struct MissedRuns<S: ?Sized> {
    store: Arc<S>,
    node: NodeId,
    clock: Arc<dyn Clock>,
    rules: Arc<RuleBook>,
    misfire_after_ms: i64,
    /// One look at a time: a second one would read the same rows.
    policies: tokio::sync::Mutex<Policies>,
}

impl<S: ClaimStore + PlanStore + ?Sized> MissedRuns<S> {
    /// Over the node's parts; a run was missed `misfire_after_ms` after its due time.
    pub fn new(
        store: Arc<S>,
        node: NodeId,
        clock: Arc<dyn Clock>,
        rules: Arc<RuleBook>,
        misfire_after_ms: i64,
    ) -> Self {
        Self { store, node, clock, rules, misfire_after_ms, policies: tokio::sync::Mutex::default() }
    }

    /// The instant before which runs that are due were missed, epoch ms.
    pub fn due_before(&self, now: i64) -> i64 {
        now - self.misfire_after_ms
    }

    /// After this time a run that nobody has claimed was missed, ms.
    pub fn misfire_after_ms(&self) -> i64 {
        self.misfire_after_ms
    }

    /// Whether one of these runs was missed, if it is claimed now.
    pub fn is_among(&self, runs: &[Run], now: i64) -> bool {
        runs.iter().any(|run| is_missed(run, now, self.misfire_after_ms))
    }

    /// Ends those of this share, or of all, for a second at most; returns whether it came to their end.
    pub async fn end(&self, share: Option<Share>) -> Result<bool> {
        let mut policies = self.policies.lock().await;
        let began_us = self.clock.local_us();
        let mut after = self.rules.held_until(self.clock.now_ms()).unwrap_or(i64::MIN);
        loop {
            let now = self.clock.now_ms();
            let due = DueRange { after, until: self.due_before(now) - 1 };
            if due.after >= due.until {
                return Ok(true);
            }
            let mut runs = self.store.claimable(share, due, BATCH_MAX as u64).await?;
            runs.truncate(BATCH_MAX);
            let Some(last) = runs.last().map(|run| run.due_time) else { return Ok(true) };
            let ended = self.end_those(&runs, now, &mut policies).await?;
            if runs.len() < BATCH_MAX {
                return Ok(true);
            }
            if ended * 2 < runs.len() {
                // Most of them are to run, or are left to the dispatcher: on past them.
                after = last;
            }
            if self.clock.local_us() - began_us > LOOK_MS * 1_000 {
                return Ok(false);
            }
        }
    }

    async fn end_those(&self, runs: &[Run], now: i64, policies: &mut Policies) -> Result<usize> {
        let rules = self.rules.now();
        let is_candidate = |run: &&Run| {
            run.status == Status::Init && is_missed(run, now, self.misfire_after_ms) && !rules.skips(run.due_time)
        };
        let candidates: Vec<&Run> = runs.iter().filter(is_candidate).collect();
        self.learn(&candidates, now, policies).await?;
        let ends: Vec<UnclaimedEnd> = candidates
            .iter()
            .filter_map(|run| {
                let (reason, message) = why_ends(run, policies.get(&run.task_id)?, now)?;
                Some(UnclaimedEnd { id: run.id, version: run.version, reason, message })
            })
            .collect();
        let moved = self.store.expire_unclaimed(self.node, &ends, now).await?;
        let reasons: HashMap<_, _> = ends.iter().map(|end| (end.id, end.reason)).collect();
        let counted = candidates.iter().filter(|run| moved.contains(&run.id));
        RUNS_ENDED.add(counted.filter_map(|run| Some((run.app_id, Status::Expired, *reasons.get(&run.id)?, 1))));
        Ok(moved.len())
    }

    /// Reads what is not known of these runs' tasks, or not for sure any more.
    async fn learn(&self, runs: &[&Run], now: i64, policies: &mut Policies) -> Result<()> {
        let is_known = |run: &Run| {
            let policy = policies.get(&run.task_id);
            // By the time before the clock was set back more was missed.
            policy
                .filter(|known| known.read_at <= now)
                .is_some_and(|known| run.fire_time < known.left_out_before || now - known.read_at < KNOWN_MS)
        };
        let mut since: BTreeMap<TaskId, i64> = BTreeMap::new();
        for run in runs.iter().filter(|run| !is_known(run)) {
            since.entry(run.task_id).and_modify(|at| *at = run.fire_time.min(*at)).or_insert(run.fire_time);
        }
        if since.is_empty() {
            return Ok(());
        }
        if policies.len() + since.len() > TASKS_MAX {
            policies.clear();
        }
        let ids: Vec<TaskId> = since.keys().copied().collect();
        let due_before = self.due_before(now);
        let mut questions = Vec::new();
        // Fires that were not written when we looked come after all that were.
        let tasks = self.store.find_tasks(&ids).await?.tasks;
        let skipped = self.store.skipped_of(&tasks, due_before).await?;
        for task in tasks {
            let cancelled = skipped.get(&task.id).map_or(&[][..], Vec::as_slice);
            let (wanted, unwritten) = (made_up_for(&task), unwritten(&task, due_before, cancelled).len());
            let (id, until) = (task.id, task.next_fire_at);
            let none_left = unwritten >= wanted;
            if !none_left {
                let (from, place) = (since.get(&id).copied().unwrap_or(i64::MIN), (wanted - unwritten) as i64);
                questions.push(MissedQuestion { task: id, from, until, place });
            }
            // What is written later may be missed later, too, and nothing stands for it then.
            let left_out_before = if none_left { until } else { i64::MIN };
            policies.insert(id, Policy { task, left_out_before, read_at: now });
        }
        for (task, fire_time) in self.store.missed_at(&questions, due_before).await? {
            policies.entry(task).and_modify(|policy| policy.left_out_before = fire_time);
        }
        Ok(())
    }
}

/// Why a missed run ends now; `None` for one that may run, or that the dispatcher should decide on.
fn why_ends(run: &Run, policy: &Policy, now: i64) -> Option<(Reason, String)> {
    let task = &policy.task;
    if task.revision != run.revision {
        return None;
    }
    let late = now - run.due_time;
    if task.is_expired(run, now) {
        return Some((Reason::Expired, format!("{late} ms after it was due")));
    }
    let later = if run.fire_time < policy.left_out_before { usize::MAX } else { 0 };
    why_left_out(task, late, later).map(|message| (Reason::MisfireSkipped, message))
}

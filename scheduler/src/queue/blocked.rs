//! Runs that wait for others to end, or for an executor to come: beside the queue, so that a thousand waiting runs of one
//! task cost one look and not a thousand.

use crate::domain::permit::Limit;
use crate::domain::task::{BlockStrategy, Task};
use crate::domain::{AppId, LogId, Reason, Run, TaskId, TenantId, failure};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most runs of one task taken at once, unless its own bound is lower.
const HEADS_MAX: usize = 32;

/// Most runs taken at once: one batch.
const LOOK_MAX: usize = 500;

/// A waiting run and what its task says of waiting.
#[derive(Debug, Clone)]
struct BlockedRun {
    run: Run,
    /// From when on it must be looked at whatever its place, ms: its time-out for waiting, or the
    /// instant at which it is discarded.
    look_at: i64,
    /// Whether only the newest that is due stays.
    newest_only: bool,
    /// Whether those of the task go in the order of time, else by priority first.
    in_order: bool,
    /// How many of the task may start at once.
    heads: usize,
    /// When it was last tried, ms; it stays here until it is admitted or has ended.
    tried_at: i64,
    /// What it waits for, as its last try found.
    limit: Limit,
    /// Since when, ms.
    since: i64,
    /// Whether its row says so.
    is_noted: bool,
}

/// A run that waits longer than this has its reason written to its row, ms.
const NOTE_AFTER_MS: i64 = 1_000;

/// A run that was tried is not tried again before it came back, or this long has passed, ms.
const TRY_AGAIN_MS: i64 = 2_000;

/// What waits for an executor is tried again after this long though none has come, ms: an edit, a
/// stop or a cancel may have ended it meanwhile.
const TRY_EXECUTORS_MS: i64 = 15_000;

type ByTask = BTreeMap<TaskId, BTreeMap<(i64, LogId), BlockedRun>>;

/// Runs that wait for a permit, by task.
#[derive(Default)]
pub struct BlockedRuns {
    tasks: Mutex<ByTask>,
}

/// What a look takes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// To try again.
    pub again: Vec<Run>,
    /// A later run of the task takes their place: (run, the later one's log).
    pub covered: Vec<(Run, LogId)>,
    /// Whose rows should say now what they wait for: (log, version, reason).
    pub to_note: Vec<(LogId, i64, Reason)>,
}

impl BlockedRuns {
    /// Lets a run of `task` wait that `limit` holds up at `now` (ms).
    pub fn block(&self, run: Run, task: &Task, limit: Limit, now: i64) {
        let spec = &task.spec;
        let for_executor = limit == Limit::Executor;
        let discards = task.blocks_app() && spec.block_strategy == BlockStrategy::DiscardLater && !for_executor;
        let mut gives_up =
            if spec.wait_timeout_ms > 0 { run.due_time.saturating_add(spec.wait_timeout_ms) } else { i64::MAX };
        if for_executor {
            gives_up = gives_up.min(failure::waits_for_executor_until(spec, &run)).min(task.expires_at(&run));
        }
        let heads = if task.blocks_app() { 1 } else { usize::try_from(spec.max_concurrent).unwrap_or(0) };
        let key = (run.due_time, run.id);
        let mut tasks = self.lock();
        let runs = tasks.entry(run.task_id).or_default();
        if runs.get(&key).is_some_and(|before| before.run.version > run.version) {
            return;
        }
        let before = runs.get(&key).filter(|before| before.run.version == run.version);
        let waiting = BlockedRun {
            look_at: if discards { run.due_time } else { gives_up },
            newest_only: task.blocks_app() && spec.block_strategy == BlockStrategy::CoverEarly,
            in_order: task.blocks_app(),
            heads: if heads == 0 { HEADS_MAX } else { heads.min(HEADS_MAX) },
            tried_at: if for_executor { now } else { i64::MIN },
            limit,
            // It says nothing new of a run whose row says something already.
            is_noted: before.map_or(run.reason != Reason::None, |before| before.is_noted),
            since: before.map_or(now, |before| before.since),
            run,
        };
        runs.insert(key, waiting);
    }

    /// Takes what may have a chance at `now` (ms), and what must be judged: bounded, the most
    /// urgent first. What is `under_way` is being tried.
    pub fn look(&self, now: i64, under_way: &HashSet<LogId>) -> Looked {
        let mut tasks = self.lock();
        let mut looked = Looked::default();
        let mut found = Vec::new();
        for runs in tasks.values_mut() {
            cover(runs, now, &mut looked.covered);
            let room = LOOK_MAX - looked.to_note.len();
            let silent = runs.values_mut().filter(|w| !w.is_noted && now - w.since >= NOTE_AFTER_MS).take(room);
            looked.to_note.extend(silent.map(|w| {
                w.is_noted = true;
                if w.limit == Limit::Executor {
                    w.run.reason = Reason::NoExecutor;
                }
                (w.run.id, w.run.version, w.limit.reason())
            }));
            let heads = runs.values().next().map_or(0, |first| first.heads);
            let may = |place: usize, w: &BlockedRun| place < heads || w.look_at <= now || w.limit == Limit::Executor;
            let rests = |w: &BlockedRun| {
                if under_way.contains(&w.run.id) {
                    return false;
                }
                let is_slow = w.limit == Limit::Executor && now < w.look_at;
                now >= w.tried_at.saturating_add(if is_slow { TRY_EXECUTORS_MS } else { TRY_AGAIN_MS })
            };
            let mut line: Vec<_> = runs.iter().collect();
            if line.first().is_some_and(|(_, first)| !first.in_order) {
                line.sort_by_key(|(_, w)| Reverse(w.run.priority));
            }
            let chosen = line.into_iter().enumerate().filter(|(place, (_, w))| may(*place, w) && rests(w));
            found.extend(chosen.map(|(_, (key, w))| Candidate {
                urgency: (Reverse(w.run.priority), *key),
                task: w.run.task_id,
                tenant: w.run.tenant_id,
            }));
        }
        for (key, task) in in_turns(found).take(LOOK_MAX) {
            let Some(runs) = tasks.get_mut(&task) else { continue };
            let Some(waiting) = runs.get_mut(&key) else { continue };
            waiting.tried_at = now;
            looked.again.push(waiting.run.clone());
            if waiting.limit == Limit::Executor {
                runs.remove(&key);
            }
        }
        tasks.retain(|_, runs| !runs.is_empty());
        looked
    }

    /// Takes out a run that waits no longer: it is admitted, or has ended. A newer copy of it stays.
    pub fn leave(&self, run: &Run) {
        let mut tasks = self.lock();
        if let Some(runs) = tasks.get_mut(&run.task_id) {
            let key = (run.due_time, run.id);
            if runs.get(&key).is_some_and(|waiting| waiting.run.version <= run.version) {
                runs.remove(&key);
            }
            if runs.is_empty() {
                tasks.remove(&run.task_id);
            }
        }
    }

    /// Takes out what waits for executors of these apps (tenant, app), of which one has come.
    pub fn leave_for(&self, apps: &HashSet<(TenantId, AppId)>) -> Vec<Run> {
        let mut tasks = self.lock();
        let mut runs = Vec::new();
        for waiting in tasks.values_mut() {
            let comes = |w: &BlockedRun| w.limit == Limit::Executor && apps.contains(&(w.run.tenant_id, w.run.app_id));
            runs.extend(waiting.extract_if(.., |_, w| comes(w)).map(|(_, w)| w.run));
        }
        tasks.retain(|_, runs| !runs.is_empty());
        runs
    }

    /// How many wait for executors.
    pub fn waiting_for_executors(&self) -> usize {
        self.lock().values().flat_map(BTreeMap::values).filter(|w| w.limit == Limit::Executor).count()
    }

    /// Whether this run waits here, at least as new.
    pub fn holds(&self, run: &Run) -> bool {
        let tasks = self.lock();
        let inside = tasks.get(&run.task_id).and_then(|runs| runs.get(&(run.due_time, run.id)));
        inside.is_some_and(|waiting| waiting.run.version >= run.version)
    }

    /// How many wait here, by tenant.
    pub fn by_tenant(&self) -> BTreeMap<TenantId, usize> {
        let mut counts = BTreeMap::new();
        for waiting in self.lock().values().flat_map(BTreeMap::values) {
            *counts.entry(waiting.run.tenant_id).or_default() += 1;
        }
        counts
    }

    /// Ids and versions that wait here.
    pub fn versions(&self) -> HashMap<LogId, i64> {
        self.lock().values().flat_map(BTreeMap::values).map(|w| (w.run.id, w.run.version)).collect()
    }

    /// What each waits for.
    pub fn reasons(&self) -> HashMap<LogId, Reason> {
        self.lock().values().flat_map(BTreeMap::values).map(|w| (w.run.id, w.limit.reason())).collect()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.lock().values().map(BTreeMap::len).sum()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Forgets all.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, ByTask> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A blocked run that may have a chance.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// Priority, due time, log.
    urgency: (Reverse<i32>, (i64, LogId)),
    task: TaskId,
    tenant: TenantId,
}

/// The first of each tenant, then the second of each, and so on; among those the most urgent first. So a tenant with many
/// blocked runs does not keep another's from being looked at.
fn in_turns(mut found: Vec<Candidate>) -> impl Iterator<Item = ((i64, LogId), TaskId)> {
    found.sort_unstable();
    let mut before: HashMap<TenantId, usize> = HashMap::new();
    let mut turns: Vec<(usize, Candidate)> = found
        .into_iter()
        .map(|candidate| {
            let turn = before.entry(candidate.tenant).or_default();
            *turn += 1;
            (*turn, candidate)
        })
        .collect();
    turns.sort_unstable();
    turns.into_iter().map(|(_, candidate)| (candidate.urgency.1, candidate.task))
}

/// Of the due runs of a task whose later runs cover earlier ones, only the newest stays.
fn cover(runs: &mut BTreeMap<(i64, LogId), BlockedRun>, now: i64, covered: &mut Vec<(Run, LogId)>) {
    let is_due = |key: &(i64, LogId)| key.0 <= now;
    let Some(newest) = runs.iter().filter(|(key, w)| is_due(key) && w.newest_only).map(|(key, _)| *key).next_back()
    else {
        return;
    };
    while let Some(first) = runs.first_entry().filter(|first| *first.key() < newest) {
        covered.push((first.remove().run, newest.1));
    }
}

#[cfg(test)]
mod tests;

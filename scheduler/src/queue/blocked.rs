//! Runs that wait for others to end, or for an executor to come: beside the queue, so that a thousand waiting runs of one
//! task cost one look and not a thousand.

use crate::domain::permit::Limit;
use crate::domain::task::{BlockStrategy, Task};
use crate::domain::{AppId, LogId, Reason, Run, TaskId, TenantId, Urgency, failure};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Bound;
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
    /// Since when, ms; not before it is due.
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

/// Due time and log: the order of time.
type Place = (i64, LogId);

/// Runs that wait for a permit or for an executor, by task. Each look costs a few runs of each task of which any waits, since the
/// next permit may be theirs, and not all that wait.
#[derive(Default)]
pub struct BlockedRuns {
    waiting: Mutex<Waiting>,
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
        let mut waiting = self.lock();
        let before = waiting.remove(run.task_id, (run.due_time, run.id));
        if let Some(newer) = before.as_ref().filter(|before| before.run.version > run.version) {
            waiting.insert(newer.clone());
            return;
        }
        let before = before.filter(|before| before.run.version == run.version);
        waiting.insert(BlockedRun {
            look_at: if discards { run.due_time } else { gives_up },
            newest_only: task.blocks_app() && spec.block_strategy == BlockStrategy::CoverEarly,
            in_order: task.blocks_app(),
            heads: if heads == 0 { HEADS_MAX } else { heads.min(HEADS_MAX) },
            tried_at: if for_executor { now } else { i64::MIN },
            limit,
            // It says nothing new of a run whose row says something already.
            is_noted: before.as_ref().map_or(run.reason != Reason::None, |before| before.is_noted),
            since: before.as_ref().map_or(now.max(run.due_time), |before| before.since),
            run,
        });
    }

    /// Takes what may have a chance at `now` (ms), and what must be judged: bounded, the most
    /// urgent first. What is `under_way` is being tried. What is due more than `early_ms` later asks early.
    pub fn look(&self, now: i64, early_ms: i64, under_way: &HashSet<LogId>) -> Looked {
        let mut waiting = self.lock();
        let mut looked = Looked { covered: waiting.cover(now), to_note: waiting.note(now), again: Vec::new() };
        let rests = |w: &BlockedRun| {
            let is_slow = w.limit == Limit::Executor && now < w.look_at;
            let rest_ms = if is_slow { TRY_EXECUTORS_MS } else { TRY_AGAIN_MS };
            // A try that is still to come was made before the clock was set back.
            let lately = w.tried_at..w.tried_at.saturating_add(rest_ms);
            under_way.contains(&w.run.id) || lately.contains(&now)
        };
        let heads = waiting.lines.values().flat_map(|line| line.heads(now + early_ms));
        let due = waiting.wakes.range(..=(now, TaskId(i64::MAX), (i64::MAX, LogId(i64::MAX))));
        let due = due.filter_map(|(_, task, place)| waiting.get(*task, *place));
        let mut found: Vec<Candidate> = heads.chain(due).filter(|w| !rests(w)).map(Candidate::of).collect();
        found.sort_unstable();
        found.dedup();
        for (place, task) in in_turns(found).take(LOOK_MAX) {
            let Some(w) = waiting.lines.get_mut(&task).and_then(|line| line.runs.get_mut(&place)) else { continue };
            looked.again.push(w.run.clone());
            if w.limit == Limit::Executor {
                waiting.remove(task, place);
            } else {
                // No index goes by it.
                w.tried_at = now;
            }
        }
        looked
    }

    /// Takes out a run that waits no longer: it is admitted, or has ended. A newer copy of it stays.
    pub fn leave(&self, run: &Run) {
        let mut waiting = self.lock();
        let place = (run.due_time, run.id);
        if waiting.get(run.task_id, place).is_some_and(|inside| inside.run.version <= run.version) {
            waiting.remove(run.task_id, place);
        }
    }

    /// Takes out what waits for executors of these apps (tenant, app), of which one has come.
    pub fn leave_for(&self, apps: &HashSet<(TenantId, AppId)>) -> Vec<Run> {
        let mut waiting = self.lock();
        let places: BTreeSet<(TaskId, Place)> =
            apps.iter().filter_map(|app| waiting.for_executors.get(app)).flatten().copied().collect();
        places.into_iter().filter_map(|(task, place)| waiting.remove(task, place)).map(|w| w.run).collect()
    }

    /// How many wait for executors.
    pub fn waiting_for_executors(&self) -> usize {
        self.lock().for_executors.values().map(BTreeSet::len).sum()
    }

    /// Whether this run waits here, at least as new.
    pub fn holds(&self, run: &Run) -> bool {
        let waiting = self.lock();
        let inside = waiting.get(run.task_id, (run.due_time, run.id));
        inside.is_some_and(|inside| inside.run.version >= run.version)
    }

    /// How many wait here, by tenant.
    pub fn by_tenant(&self) -> BTreeMap<TenantId, usize> {
        self.lock().tenants.clone()
    }

    /// What waits here: log, version and due time, ms. Of a run that has another due time since, an older copy waits until its
    /// own has come.
    pub fn copies(&self) -> Vec<(LogId, i64, i64)> {
        self.lock().all().map(|w| (w.run.id, w.run.version, w.run.due_time)).collect()
    }

    /// What each waits for.
    pub fn reasons(&self) -> HashMap<LogId, Reason> {
        self.lock().all().map(|w| (w.run.id, w.limit.reason())).collect()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.lock().tenants.values().sum()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.lock().lines.is_empty()
    }

    /// Forgets all.
    pub fn clear(&self) {
        *self.lock() = Waiting::default();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The waiting runs of one task.
#[derive(Default)]
struct Line {
    runs: BTreeMap<Place, BlockedRun>,
    /// The same by priority, the highest first, then by time.
    by_priority: BTreeSet<Urgency>,
    /// How many of them give way to a newer one.
    newest_only: usize,
}

impl Line {
    /// As many as may start at once, those whose turn it is. Where they go by priority, as many of those that are due by
    /// `early_from` (ms), too: what is due later gets half of the permits at most, and must not keep those behind it from the
    /// other half. A run may be among both.
    fn heads(&self, early_from: i64) -> impl Iterator<Item = &BlockedRun> {
        let first = self.runs.values().next();
        let count = first.map_or(0, |first| first.heads);
        let in_order = first.is_none_or(|first| first.in_order);
        let by_time = self.runs.values().take(if in_order { count } else { 0 });
        let count = if in_order { 0 } else { count };
        let by_priority = self.by_priority.iter().take(count).chain(self.due(early_from).take(count));
        by_time.chain(by_priority.filter_map(|(_, place)| self.runs.get(place)))
    }

    /// Those that are due by `until` (ms), by priority and then by time: a look at each priority, not at all that is early.
    fn due(&self, until: i64) -> impl Iterator<Item = &Urgency> {
        const LAST: Place = (i64::MAX, LogId(i64::MAX));
        let first = self.by_priority.first().map(|(priority, _)| *priority);
        let priorities = std::iter::successors(first, |priority| {
            let behind = self.by_priority.range((Bound::Excluded((*priority, LAST)), Bound::Unbounded)).next();
            behind.map(|(priority, _)| *priority)
        });
        priorities.flat_map(move |priority| {
            let earliest = (priority, (i64::MIN, LogId(i64::MIN)));
            self.by_priority.range(earliest..=(priority, (until, LogId(i64::MAX))))
        })
    }

    /// The newest of those that are due at `now` (ms) and give way to newer ones.
    fn newest_due(&self, now: i64) -> Option<Place> {
        let due = self.runs.range(..=(now, LogId(i64::MAX)));
        (self.newest_only > 0).then(|| due.rev().find(|(_, w)| w.newest_only).map(|(place, _)| *place))?
    }
}

/// What waits, and for each question that is asked often, what answers it without a look at all of it.
#[derive(Default)]
struct Waiting {
    lines: BTreeMap<TaskId, Line>,
    /// How many there are, by tenant.
    tenants: BTreeMap<TenantId, usize>,
    /// What must be looked at wherever it stands, by the instant (ms).
    wakes: BTreeSet<(i64, TaskId, Place)>,
    /// Those whose rows do not say what they wait for, by the instant (ms) since which they do.
    unnoted: BTreeSet<(i64, TaskId, Place)>,
    /// Those that wait for an executor, by app.
    for_executors: BTreeMap<(TenantId, AppId), BTreeSet<(TaskId, Place)>>,
    /// Tasks whose later runs cover earlier ones.
    covering: BTreeSet<TaskId>,
}

impl Waiting {
    fn get(&self, task: TaskId, place: Place) -> Option<&BlockedRun> {
        self.lines.get(&task)?.runs.get(&place)
    }

    fn all(&self) -> impl Iterator<Item = &BlockedRun> {
        self.lines.values().flat_map(|line| line.runs.values())
    }

    /// Adds a run that is not inside.
    fn insert(&mut self, waiting: BlockedRun) {
        let (run, place) = (&waiting.run, waiting.place());
        let task = run.task_id;
        *self.tenants.entry(run.tenant_id).or_default() += 1;
        if waiting.wake_at() < i64::MAX {
            self.wakes.insert((waiting.wake_at(), task, place));
        }
        if !waiting.is_noted {
            self.unnoted.insert((waiting.since, task, place));
        }
        if waiting.limit == Limit::Executor {
            self.for_executors.entry((run.tenant_id, run.app_id)).or_default().insert((task, place));
        }
        if waiting.newest_only {
            self.covering.insert(task);
        }
        let line = self.lines.entry(task).or_default();
        line.newest_only += usize::from(waiting.newest_only);
        line.by_priority.insert(run.urgency());
        line.runs.insert(place, waiting);
    }

    /// Takes a run out, with all that stands of it anywhere.
    fn remove(&mut self, task: TaskId, place: Place) -> Option<BlockedRun> {
        let line = self.lines.get_mut(&task)?;
        let waiting = line.runs.remove(&place)?;
        let (tenant, app) = (waiting.run.tenant_id, waiting.run.app_id);
        line.by_priority.remove(&waiting.run.urgency());
        line.newest_only -= usize::from(waiting.newest_only);
        if line.newest_only == 0 {
            self.covering.remove(&task);
        }
        if line.runs.is_empty() {
            self.lines.remove(&task);
        }
        if let Some(count) = self.tenants.get_mut(&tenant) {
            *count -= 1;
            if *count == 0 {
                self.tenants.remove(&tenant);
            }
        }
        self.wakes.remove(&(waiting.wake_at(), task, place));
        self.unnoted.remove(&(waiting.since, task, place));
        if let Some(places) = self.for_executors.get_mut(&(tenant, app)) {
            places.remove(&(task, place));
            if places.is_empty() {
                self.for_executors.remove(&(tenant, app));
            }
        }
        Some(waiting)
    }

    /// Of the due runs of a task whose later runs cover earlier ones, only the newest stays.
    fn cover(&mut self, now: i64) -> Vec<(Run, LogId)> {
        let mut covered = Vec::new();
        for task in self.covering.clone() {
            let Some(newest) = self.lines.get(&task).and_then(|line| line.newest_due(now)) else { continue };
            let first = |lines: &BTreeMap<TaskId, Line>| lines.get(&task)?.runs.keys().next().copied();
            while let Some(place) = first(&self.lines).filter(|place| *place < newest) {
                covered.extend(self.remove(task, place).map(|w| (w.run, newest.1)));
            }
        }
        covered
    }

    /// Whose rows should say by now what they wait for; they count as told.
    fn note(&mut self, now: i64) -> Vec<(LogId, i64, Reason)> {
        let until = (now - NOTE_AFTER_MS, TaskId(i64::MAX), (i64::MAX, LogId(i64::MAX)));
        let silent: Vec<_> = self.unnoted.range(..=until).take(LOOK_MAX).copied().collect();
        let mut to_note = Vec::with_capacity(silent.len());
        for entry in silent {
            self.unnoted.remove(&entry);
            let (_, task, place) = entry;
            let Some(w) = self.lines.get_mut(&task).and_then(|line| line.runs.get_mut(&place)) else { continue };
            w.is_noted = true;
            if w.limit == Limit::Executor {
                w.run.reason = Reason::NoExecutor;
            }
            to_note.push((w.run.id, w.run.version, w.limit.reason()));
        }
        to_note
    }
}

impl BlockedRun {
    fn place(&self) -> Place {
        (self.run.due_time, self.run.id)
    }

    /// From when on it is looked at wherever it stands, ms; `i64::MAX` is never.
    fn wake_at(&self) -> i64 {
        if self.limit == Limit::Executor {
            let gives_up = self.look_at.max(self.tried_at.saturating_add(TRY_AGAIN_MS));
            gives_up.min(self.tried_at.saturating_add(TRY_EXECUTORS_MS))
        } else {
            self.look_at
        }
    }
}

/// A blocked run that may have a chance.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    urgency: Urgency,
    task: TaskId,
    tenant: TenantId,
}

impl Candidate {
    fn of(waiting: &BlockedRun) -> Self {
        let Run { task_id, tenant_id, .. } = waiting.run;
        Self { urgency: waiting.run.urgency(), task: task_id, tenant: tenant_id }
    }
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

#[cfg(test)]
mod tests;

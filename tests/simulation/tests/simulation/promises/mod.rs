//! The promises of docs/reliability.md, by their numbers, held against the rows and against what executors really did.

mod bounds;
mod calm;
mod database_clock;
mod fates;
mod leftovers;
mod memory;
mod missed;
mod named;
mod operations;
mod plain;
mod punctuality;
mod results;
mod sleepers;
mod tenants;
mod turns;

use crate::faults::{Fault, Planned};
use crate::settings::{HEARTBEAT_MS, OFFLINE_AFTER_MS};
use crate::tasks::Answered;
use crate::world::World;
use carillon::domain::task::{Delivery, NEVER, ScheduleKind, TaskSpec};
use carillon::domain::{IdSource, LogId, Reason, Status, TaskId};
use carillon::store::ATTEMPTS_KEPT_MAX;
use carillon_protocol::{RunKey, RunStatus, Verdict};
use carillon_simulation::executor::{Start, Stop};
use carillon_simulation::store::{DispatchMark, End, Redefinition, State};
use database_clock::DatabaseClock;
use std::collections::BTreeMap;
use std::ops::Range;

/// After a takeover that lost commits the promises about attempts, turns and edits hold again for what fires so much later, ms.
const WEAKENED_MS: i64 = 40_000;

/// Who starts runs has read the database's clock, through a node, within this time, ms.
const READ_MS: i64 = 5_000;

/// The same while something is out of order: what was read slowly, and so vaguely, counts for some readings more.
pub const READ_IN_TROUBLE_MS: i64 = 3 * OFFLINE_AFTER_MS + HEARTBEAT_MS;

/// Clocks of nodes differ so much, and what a node reads of others is so old at most, ms.
const CLOCKS_MS: i64 = 100;

/// Before a calm change a fire has its row so long after it, ms: its clock may be another's.
const WRITTEN_AHEAD_MS: i64 = 1_000;

/// A change that was decided is committed within this time, ms.
const COMMIT_MS: i64 = 5_000;

/// Of what was missed by one task at least so many have a row.
const MISSED_KEPT: usize = 100;

/// After the database is back, what is due has its rows within this time, ms: an interval between two writings of what is
/// coming, and a statement.
const WRITTEN_AFTER_MS: i64 = 8_000;

/// A promise that was broken.
#[derive(Debug, Clone)]
pub struct Broken {
    /// Which one, and how: the same words for the same kind of fault.
    pub promise: &'static str,
    /// The log that it is about, if it is about one.
    pub log: Option<LogId>,
    /// The details.
    pub detail: String,
}

/// What is looked at.
pub struct Evidence<'a> {
    /// Where it happened.
    pub world: &'a World,
    /// The rows, and what they forget.
    pub state: &'a State,
    /// What executors started.
    pub starts: BTreeMap<RunKey, Vec<Start>>,
    /// And how that ended.
    pub stops: BTreeMap<RunKey, Stop>,
    /// What the database's clock said when.
    pub clock: DatabaseClock,
    broken: Vec<Broken>,
}

/// Everything that was not kept.
pub fn check(world: &World) -> Vec<Broken> {
    let mut starts: BTreeMap<RunKey, Vec<Start>> = BTreeMap::new();
    for start in world.ledger.starts() {
        starts.entry(start.key).or_default().push(start);
    }
    let stops = world.ledger.stops().into_iter().map(|stop| (stop.key, stop)).collect();
    let clock = DatabaseClock::of(&world.time.steps());
    world.store.inspect(|state| {
        let mut evidence = Evidence { world, state, starts, stops, clock, broken: Vec::new() };
        evidence.every_fire_has_one_row();
        evidence.every_row_ends();
        evidence.steps_are_allowed();
        evidence.no_row_is_stuck();
        evidence.nothing_starts_early();
        evidence.every_end_leaves_the_outbox();
        evidence.tenants_are_apart();
        evidence.nothing_is_left_over();
        evidence.shares_are_kept();
        let always = evidence.broken.len();
        evidence.what_holds_while_commits_last();
        if let Some(weakened) = weakened(world) {
            let mut broken = evidence.broken.split_off(always);
            broken.retain(|one| one.log.is_some_and(|log| evidence.is_beside(log, &weakened)));
            evidence.broken.append(&mut broken);
        }
        evidence.broken
    })
}

/// Where a standby without the last commits has taken over, attempts and edits may be forgotten: of runs that end or fire in
/// this time (true time, epoch ms) less is promised.
fn weakened(world: &World) -> Option<Range<i64>> {
    let losses = world.faults.iter().filter_map(|planned| match planned.fault {
        Fault::LostCommits { last } => Some((planned.at - last, planned.until() + WEAKENED_MS)),
        _ => None,
    });
    let (from, until) = losses.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))?;
    Some(world.began + from..world.began + until)
}

impl Evidence<'_> {
    fn is_beside(&self, log: LogId, weakened: &Range<i64>) -> bool {
        self.state.logs.get(&log).is_some_and(|row| {
            let has_ended = row.finished_at > 0 && self.clock.last(row.finished_at) < weakened.start;
            // It may have ended once more, which was lost.
            let went_on = || self.starts_of(log).any(|start| weakened.contains(&start.at));
            (has_ended && !went_on()) || self.clock.first(row.run.fire_time) > weakened.end
        })
    }

    /// Whether this change was lost after its answer, with the last commits.
    fn is_taken_back(&self, answered: &Answered) -> bool {
        let is_it =
            |c: &Redefinition| c.task == answered.task && c.revision == answered.revision && c.at <= answered.at;
        !self.state.changes.iter().any(is_it)
    }

    /// Whenever a handler was entered for one of its attempts.
    fn starts_of(&self, log: LogId) -> impl Iterator<Item = &Start> {
        self.starts.range(RunKey(log.0, 0)..RunKey(log.0 + 1, 0)).flat_map(|(_, starts)| starts)
    }

    /// The dispatches of a run, by attempt.
    fn marks_of(&self, log: LogId) -> impl DoubleEndedIterator<Item = (i32, &DispatchMark)> {
        let marks = self.state.dispatch_marks.range((log, 0)..(LogId(log.0 + 1), 0));
        marks.map(|((_, attempt), mark)| (*attempt, mark))
    }

    /// Notes a promise that was broken.
    pub fn breaks(&mut self, promise: &'static str, log: Option<LogId>, detail: String) {
        self.broken.push(Broken { promise, log, detail });
    }

    fn what_holds_while_commits_last(&mut self) {
        self.an_attempt_starts_once();
        self.attempts_follow_each_other();
        self.every_attempt_is_reported();
        self.runs_reported_unstarted_never_start();
        self.at_most_once_is_once();
        self.acknowledged_results_stay();
        self.what_plain_executors_told_is_committed();
        self.no_result_is_lost();
        self.old_definitions_start_nothing();
        self.only_what_must_be_is_named();
        self.turns_are_kept();
        self.bounds_are_kept();
        self.permits_are_used();
        self.waiting_for_executors_is_no_failure();
        self.ends_follow_policies();
        self.missed_fires_run_as_policies_say();
        self.what_a_stopped_task_would_have_fired_is_not_made_up_for();
        self.nothing_is_late_without_need();
        self.nothing_is_sent_before_its_lead();
        self.what_is_held_starts_while_the_database_is_away();
        self.what_people_did_holds();
    }

    fn steps_are_allowed(&mut self) {
        for violation in self.state.violations.clone() {
            self.breaks("P2 the state machine is kept", None, violation);
        }
    }

    /// P2. An app without executors waits as long as its task says.
    fn waiting_for_executors_is_no_failure(&mut self) {
        for log in self.state.logs.values() {
            let run = &log.run;
            let patience = self.state.tasks.get(&run.task_id).map_or(0, |task| task.view.spec.no_executor_timeout_ms);
            let waited = log.finished_at - run.fire_time;
            if run.status == Status::Failed && run.reason == Reason::NoExecutor && waited < patience {
                let detail = format!("given up {waited} ms after its fire time");
                let promise = "P2 waiting for an executor is no failure";
                self.broken.push(Broken { promise, log: Some(run.id), detail });
            }
        }
    }

    /// P1. A fire shortly before a stop may have missed its chance to be written.
    fn every_fire_has_one_row(&mut self) {
        let mut by_task: BTreeMap<TaskId, Vec<&Redefinition>> = BTreeMap::new();
        for change in &self.state.changes {
            by_task.entry(change.task).or_default().push(change);
        }
        for (task, changes) in by_task {
            // A delay counts from ends, and restarts with every edit: `turns.rs` checks it.
            for (by, until) in active(&changes) {
                if by.spec.schedule != ScheduleKind::FixedDelay {
                    self.fires_have_rows(task, &by.spec, by.from, until);
                }
            }
        }
    }

    fn fires_have_rows(&mut self, task: TaskId, spec: &TaskSpec, from: i64, stop: &Redefinition) {
        let schedule = spec.to_schedule(from, task).unwrap();
        let mut fire = schedule.next_after(from);
        // What the clock passed over when it was set forward has had as long to be written.
        // In a calm world all is written long before it is due, and before people change a task, what it owes is written.
        let calm = self.is_calm(stop.at - self.misfire_after_ms(), stop.at);
        let is_owed = calm || stop.started || stop.spec.pause_after_failures == 0;
        let margin = if is_owed { WRITTEN_AHEAD_MS } else { self.misfire_after_ms() };
        let is_due = |fire: i64| fire <= stop.from - margin && self.clock.last(fire) <= stop.at - margin;
        let mut fires = Vec::new();
        while fire != NEVER && is_due(fire) {
            fires.push(fire);
            fire = schedule.next_after(fire);
        }
        for fire in fires {
            let rows = self.state.by_fire.range((task, fire, i32::MIN)..(task, fire + 1, i32::MIN));
            let logs: Vec<LogId> = rows.filter(|((_, _, shard), _)| *shard <= 0).map(|(_, log)| *log).collect();
            match logs.first() {
                None if self.is_beyond_what_is_kept(task, fire) || self.had_no_chance(fire, stop) => {}
                None => self.breaks("P1 every fire has a row", None, format!("task {task} fire {fire} has none")),
                Some(log) => {
                    let run = &self.state.logs[log].run;
                    let given_up = run.status == Status::Cancelled && run.reason == Reason::TaskEdited;
                    // What the clock had passed as far as the node could know is past, and stays so.
                    let known = |at: i64| at + self.clock.most_ahead(at - READ_MS, at);
                    let is_later = |c: &Redefinition| c.revision > run.revision && known(c.at) < fire;
                    // Who gave it up went by the newest definition of then, whatever the row says.
                    // The row has the time at which a change was decided; its commit may have come late.
                    let ended_at = self.clock.last(self.state.logs[log].finished_at) + COMMIT_MS;
                    let is_by = |c: &&Redefinition| c.task == task && c.at <= ended_at;
                    let mut by_then = self.state.changes.iter().filter(is_by);
                    let by_old = by_then.next_back().is_some_and(is_later);
                    let ran = self.starts_of(*log).next().is_some();
                    if given_up && by_old && !ran {
                        let detail = format!("task {task} fire {fire} was cancelled by an edit and not taken over");
                        self.breaks("P1 an edit loses no later fire", Some(*log), detail);
                    }
                }
            }
        }
    }

    fn misfire_after_ms(&self) -> i64 {
        self.world.shape.misfire_after_ms
    }

    /// Whether it was missed together with so many later ones that it has no row.
    fn is_beyond_what_is_kept(&self, task: TaskId, fire: i64) -> bool {
        let later = self.state.by_fire.range((task, fire + 1, i32::MIN)..(TaskId(task.0 + 1), i64::MIN, i32::MIN));
        let late_ms = |log: &LogId| IdSource::made_at(*log) - self.state.logs[log].run.fire_time;
        let was_missed = |log: &LogId| late_ms(log) > self.misfire_after_ms();
        later.filter(|((_, _, shard), log)| *shard <= 0 && was_missed(log)).count() >= MISSED_KEPT
    }

    /// Whether nobody could write it down before the task paused itself: the database had just come back, or the only node,
    /// and failures were reported first. Before people change a task, what it owes is written.
    fn had_no_chance(&self, fire: i64, change: &Redefinition) -> bool {
        if change.started || change.spec.pause_after_failures == 0 {
            return false;
        }
        let began = self.world.began;
        let is_only_node = self.world.shape.nodes == 1;
        let mut until = i64::MIN;
        let mut of_all: Vec<&Planned> = self
            .world
            .faults
            .iter()
            .filter(|planned| match planned.fault {
                Fault::StoreAway { node: None, .. } | Fault::ReadOnly { .. } => true,
                Fault::Crash { .. } | Fault::CrashAtCommit { .. } | Fault::Pause { .. } => is_only_node,
                _ => false,
            })
            .collect();
        of_all.sort_by_key(|planned| planned.at);
        for planned in of_all {
            let is_from_here = self.clock.last(fire) >= began + planned.at;
            if is_from_here || began + planned.at <= until + WRITTEN_AFTER_MS {
                until = until.max(began + planned.until());
            }
        }
        change.at <= until.saturating_add(WRITTEN_AFTER_MS)
    }

    /// Every dispatch but the last one, of which the row itself tells, is kept; and none that never was.
    fn every_attempt_is_reported(&mut self) {
        for ((log, attempt), kept) in &self.state.attempts.clone() {
            let was = self.state.dispatch_marks.get(&(*log, *attempt)).map(|hand| hand.executor_id);
            let is_parent = self.state.logs.get(log).is_some_and(|row| row.run.is_parent());
            if !is_parent && was != Some(kept.executor_id) {
                self.breaks("P4 attempts are kept as they were", Some(*log), format!("{kept:?}, but {was:?} had it"));
            }
        }
        for ((log, attempt), hand) in self.state.dispatch_marks.clone() {
            let last = self.state.logs.get(&log).map_or(0, |row| row.run.attempt);
            let is_due = attempt < last && attempt > last - ATTEMPTS_KEPT_MAX;
            if is_due && !self.state.attempts.contains_key(&(log, attempt)) {
                self.breaks("P4 every attempt is kept", Some(log), format!("attempt {attempt} of {last}: {hand:?}"));
            }
        }
    }

    /// P2.
    fn every_row_ends(&mut self) {
        let open: Vec<_> = self.state.logs.values().filter(|row| !row.run.status.is_terminal()).cloned().collect();
        for row in open {
            let detail = format!("{:?} attempt {} of task {}", row.run.status, row.run.attempt, row.run.task_id);
            self.breaks("P2 every row ends", Some(row.run.id), detail);
        }
    }

    fn no_row_is_stuck(&mut self) {
        for row in self.world.stuck.lock().unwrap().iter() {
            let run = &row.run;
            let detail = format!("{:?} {:?} since {} of task {}", run.status, run.reason, run.due_time, run.task_id);
            self.breaks("P2 no state is a trap", Some(run.id), detail);
        }
    }

    /// P3, by the clock as it could be known: who has not read it since it was set back goes by what it said before.
    fn nothing_starts_early(&mut self) {
        for start in self.starts.values().flatten().cloned().collect::<Vec<_>>() {
            let calm = self.is_calm_but_for_clocks(start.at - READ_IN_TROUBLE_MS, start.at);
            let read_within = if calm { READ_MS } else { READ_IN_TROUBLE_MS };
            let known = start.at + self.clock.most_ahead(start.at - read_within, start.at);
            let is_early = known < start.due_time && !self.waited_on_a_plain_executor(&start);
            if is_early || start.due_time < start.fire_time {
                self.breaks("P3 nothing starts early", Some(LogId(start.key.0)), format!("{start:?}"));
            }
        }
    }

    /// P4.
    fn an_attempt_starts_once(&mut self) {
        for (key, starts) in self.starts.clone() {
            if starts.len() > 1 {
                self.breaks("P4 an attempt starts once", Some(LogId(key.0)), format!("{starts:?}"));
            }
        }
    }

    /// A later attempt starts only when every earlier one has ended or never starts.
    fn attempts_follow_each_other(&mut self) {
        for (key, starts) in self.starts.clone() {
            let later = &starts[0];
            for attempt in 1..key.1 {
                let Some(earlier) = self.starts.get(&RunKey(key.0, attempt)).map(|starts| starts[0].clone()) else {
                    continue;
                };
                if earlier.at > later.at {
                    let detail = format!("attempt {attempt} started at {} after {} at {}", earlier.at, key.1, later.at);
                    self.breaks("P4 an old attempt does not start after a new one", Some(LogId(key.0)), detail);
                } else if self.stops.get(&earlier.key).is_none_or(|stop| stop.at > later.at)
                    && !self.was_asleep(earlier.key, later.at)
                    && !self.was_unheard(earlier.key, later.at)
                {
                    let detail = format!("attempt {attempt} ran when {} started at {}", key.1, later.at);
                    self.breaks("P4 attempts do not run side by side", Some(LogId(key.0)), detail);
                }
            }
        }
    }

    /// P4. "It certainly never started" has to be true, before and after it was said; and what
    /// counts as dead must not run.
    fn runs_reported_unstarted_never_start(&mut self) {
        for ((log, attempt), end) in self.state.ends.clone() {
            let key = RunKey(log.0, attempt);
            let Some(start) = self.starts.get(&key).map(|starts| starts[0].clone()) else { continue };
            if says_unstarted(&end) {
                let detail = format!(
                    "attempt {attempt} ended as {end:?} but started at {} ({:?})",
                    start.at,
                    self.stops.get(&key)
                );
                self.breaks("P4 what is called unstarted never starts", Some(log), detail);
            }
            let dead = matches!(end.reason, Reason::OutcomeUnknown | Reason::Abandoned);
            let running = self.stops.get(&key).is_none_or(|stop| stop.at > end.at) || start.at > end.at;
            if dead && running && !self.was_asleep(key, end.at) && !self.was_unheard(key, end.at) {
                let detail = format!("attempt {attempt} was called dead at {} but ran: {start:?}", end.at);
                self.breaks("P4 what is called dead does not run", Some(log), detail);
            }
        }
    }

    /// P4: handlers of these tasks never fail, so a second start has no excuse.
    fn at_most_once_is_once(&mut self) {
        let mut started: BTreeMap<i64, Vec<RunKey>> = BTreeMap::new();
        for (key, starts) in &self.starts {
            let task = &self.state.tasks[&starts[0].task].view.spec;
            if task.delivery == Delivery::AtMostOnce {
                started.entry(key.0).or_default().push(*key);
            }
        }
        for (log, keys) in started {
            if keys.len() > 1 {
                let ends: Vec<_> = keys.iter().map(|key| self.state.ends.get(&(LogId(key.0), key.1))).collect();
                let detail = format!("attempts {keys:?} started; the first ended as {:?}", ends[0]);
                self.breaks("P4 at most once is once", Some(LogId(log)), detail);
            }
        }
    }

    /// P5.
    fn acknowledged_results_stay(&mut self) {
        for ack in self.world.ledger.acks() {
            let RunKey(log, attempt) = ack.key;
            let end = self.state.ends.get(&(LogId(log), attempt)).copied();
            let fits = |end: &End| match ack.status {
                RunStatus::Succeeded => end.to == Status::Succeeded,
                // What was told to stop and fails has been stopped.
                RunStatus::Failed => matches!(end.reason, Reason::HandlerFailed | Reason::CancelledManually),
                RunStatus::NotStarted => {
                    // What a change of its task had taken back ends so.
                    matches!(end.reason, Reason::GivenBack | Reason::Covered | Reason::CancelledManually)
                        || end.reason.is_revocation()
                }
                RunStatus::Abandoned => {
                    matches!(end.reason, Reason::Abandoned | Reason::Covered | Reason::CancelledManually)
                }
                _ => true,
            };
            if ack.verdict == Verdict::Applied && !end.as_ref().is_some_and(fits) {
                let detail = format!("{:?} of attempt {attempt} was acknowledged; the row says {end:?}", ack.status);
                self.breaks("P5 an acknowledged result is committed", Some(LogId(log)), detail);
            }
            let state = self.state.logs.get(&LogId(log)).map(|row| row.run.status);
            let succeeded = ack.verdict == Verdict::Applied && ack.status == RunStatus::Succeeded;
            if succeeded && state != Some(Status::Succeeded) {
                self.breaks("P5 an acknowledged result stays", Some(LogId(log)), format!("the row is {state:?} now"));
            }
        }
    }

    /// P6.
    fn old_definitions_start_nothing(&mut self) {
        for answered in self.world.answers.lock().unwrap().iter() {
            if self.is_taken_back(answered) {
                continue;
            }
            for (key, starts) in self.starts.clone() {
                let start = &starts[0];
                let Some(hand) = self.state.dispatch_marks.get(&(LogId(key.0), key.1)).copied() else { continue };
                if start.task != answered.task || hand.revision >= answered.revision || start.at <= answered.at {
                    continue;
                }
                let detail = format!(
                    "revision {} attempt {} started at {}; revision {} was answered at {}",
                    hand.revision, key.1, start.at, answered.revision, answered.at
                );
                if !answered.names(LogId(key.0)) {
                    self.breaks("P6 an old definition starts nothing", Some(LogId(key.0)), detail);
                } else if hand.at > answered.at {
                    self.breaks("P6 a named run is not dispatched again", Some(LogId(key.0)), detail);
                }
            }
        }
    }
}

/// Whether this end says that the attempt was certainly never started.
fn says_unstarted(end: &End) -> bool {
    let by_reason = matches!(
        end.reason,
        Reason::GivenBack | Reason::ExecutorGone | Reason::Undelivered | Reason::NotAccepted | Reason::NoExecutor
    );
    let dropped = end.to == Status::Cancelled && matches!(end.reason, Reason::TaskEdited | Reason::TaskStopped);
    let refused = end.to == Status::Dispatched;
    by_reason || dropped || refused
}

/// When a task fired by which schedule, as spans between changes that left it alone: the first definition of each, and what ended it.
fn active<'a>(changes: &[&'a Redefinition]) -> Vec<(&'a Redefinition, &'a Redefinition)> {
    let mut spans = Vec::new();
    let mut open: Option<&Redefinition> = None;
    for change in changes {
        if change.started && open.is_some_and(|by| by.spec.cron == change.spec.cron) {
            continue;
        }
        spans.extend(open.take().map(|by| (by, *change)));
        open = change.started.then_some(*change);
    }
    spans
}

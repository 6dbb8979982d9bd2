//! The promises about runs that wait for each other and runs that follow each other.
//!
//! How many runs of a task go on at once is counted by true time, over all executors, from what
//! they really did. There is no exception for an attempt whose executor was judged dead
//! and that is repeated (`at_least_once`): a run gives its turn back only when its result is
//! committed, when it certainly never started, or when its executor has certainly ended it (it is
//! gone, or stopped what it ran after `abandon_after`). There is one where an executor stands still for longer than that:
//! `sleepers.rs`. Outside the simulation there is another: a handler that goes on although its executor told it to stop.

use crate::promises::{CLOCKS_MS, Evidence};
use carillon::domain::task::{BlockScope, BlockStrategy, ParentOutcome, ScheduleKind, TaskSpec};
use carillon::domain::{IdSource, LogId, Reason, Run, Status, TaskId, TenantId, Trigger};
use carillon_protocol::RunKey;
use carillon_simulation::executor::Start;
use carillon_simulation::store::{Follow, LogRow, Redefinition};
use std::collections::BTreeMap;

/// How long a fixed delay's next fire may take to be written in a calm world, ms.
const CHAINED_WITHIN_MS: i64 = 5_000;

/// A run by true time, ms.
#[derive(Debug, Clone)]
pub struct Going {
    /// Which.
    pub key: RunKey,
    /// When it was entered.
    pub from: i64,
    /// When it ended.
    pub to: i64,
}

impl<'a> Evidence<'a> {
    /// Everything about turns.
    pub fn turns_are_kept(&mut self) {
        self.no_more_at_once_than_allowed();
        self.a_blocked_run_has_a_predecessor();
        self.a_covered_run_has_a_successor();
        self.a_delay_counts_from_the_end();
        self.a_delay_goes_on();
        self.children_follow_successes_once();
    }

    /// What went on when, by task.
    pub fn going(&self) -> BTreeMap<TaskId, Vec<Going>> {
        let mut stopped: BTreeMap<(RunKey, usize), Vec<i64>> = BTreeMap::new();
        for stop in self.world.ledger.stops() {
            stopped.entry((stop.key, stop.machine)).or_default().push(stop.at);
        }
        let mut going: BTreeMap<TaskId, Vec<Going>> = BTreeMap::new();
        // Where commits were lost, an attempt may go on twice, one after the other.
        for start in self.starts.values().flatten() {
            let stops = stopped.get(&(start.key, start.machine)).into_iter().flatten().copied();
            let (key, from) = (start.key, start.at);
            let to = stops.filter(|at| *at >= from).min().unwrap_or(i64::MAX);
            going.entry(start.task).or_default().push(Going { key, from, to });
        }
        for runs in going.values_mut() {
            runs.sort_by_key(|run| run.from);
        }
        going
    }

    /// What had a permit when: from its dispatch, which may be before it is due, to the commit of its end. Shards go by
    /// their parent's.
    pub fn permits(&self) -> impl Iterator<Item = (&'a Run, Going)> + use<'a> {
        let state = self.state;
        state.dispatch_marks.iter().filter_map(move |((log, attempt), mark)| {
            let run = state.logs.get(log).map(|row| &row.run).filter(|run| run.parent_id.is_none())?;
            let to = state.ends.get(&(*log, *attempt)).map_or(i64::MAX, |end| end.at);
            Some((run, Going { key: RunKey(log.0, *attempt), from: mark.at, to }))
        })
    }

    fn no_more_at_once_than_allowed(&mut self) {
        let going = self.going();
        let mut of_tenants: BTreeMap<TenantId, Vec<Going>> = BTreeMap::new();
        for (task, runs) in going {
            let view = &self.state.tasks[&task].view;
            of_tenants.entry(view.owner.tenant_id).or_default().extend(runs.iter().cloned());
            if let Some(bound) = bound_of(&view.spec) {
                self.at_most(bound, &runs, "P11 no more runs of a task at once than allowed");
            }
            if takes_turns_on_executors(&view.spec) {
                for mut runs in self.by_machine(runs) {
                    runs.retain(|run| !self.is_off_the_list(run.key));
                    self.at_most(1, &runs, "P11 no more runs of a task at once on an executor than allowed");
                }
            }
        }
        for (tenant, mut runs) in of_tenants {
            let most = self.state.quotas.get(&tenant).map_or(0, |quotas| quotas.max_concurrent);
            if let Some(bound) = usize::try_from(most).ok().filter(|most| *most > 0) {
                runs.sort_by_key(|run| run.from);
                self.at_most(bound, &runs, "P11 no more runs of a tenant at once than allowed");
            }
        }
    }

    fn by_machine(&self, runs: Vec<Going>) -> Vec<Vec<Going>> {
        let mut of_machines: BTreeMap<usize, Vec<Going>> = BTreeMap::new();
        for run in runs {
            let start = self.starts[&run.key].iter().find(|start| start.at == run.from).expect("it is made of one");
            of_machines.entry(start.machine).or_default().push(run);
        }
        of_machines.into_values().collect()
    }

    /// Of these runs, in the order of their beginnings, no more went on at once.
    pub fn at_most(&mut self, bound: usize, runs: &[Going], promise: &'static str) {
        for (place, run) in runs.iter().enumerate() {
            let goes_on = |earlier: &&Going| earlier.to > run.from && !self.was_asleep(earlier.key, run.from);
            let beside: Vec<&Going> = runs[..place].iter().filter(goes_on).collect();
            if beside.len() >= bound {
                self.breaks(promise, Some(LogId(run.key.0)), format!("{run:?} started beside {beside:?}"));
            }
        }
    }

    /// An earlier run of the task was with an executor when the discarded one was due.
    fn a_blocked_run_has_a_predecessor(&mut self) {
        for row in self.ended_as(Status::Discarded, Reason::Blocked) {
            let due = row.run.due_time;
            if self.is_blocked_on_its_executor(&row) {
                continue;
            }
            let mut earlier = self.rows_of(row.run.task_id).filter(|other| other.run.fire_time <= due);
            let blocks = |other: &LogRow| {
                let id = other.run.id;
                let end = |attempt| self.state.ends.get(&(id, attempt));
                let lasted = |attempt| end(attempt).is_none_or(|end| end.at >= self.clock.first(due));
                id != row.run.id && self.marks_of(id).any(|(attempt, _)| lasted(attempt))
            };
            if !earlier.any(blocks) {
                let detail = format!("due at {due}, and no run of task {} went on then", row.run.task_id);
                self.breaks("P2 only what is blocked is discarded", Some(row.run.id), detail);
            }
        }
    }

    /// Whether runs of its task wait for each other on each executor, and another one went on there between its due time and its end: it
    /// may have come late.
    fn is_blocked_on_its_executor(&self, row: &LogRow) -> bool {
        let run = &row.run;
        let at = |log: LogId, attempt| self.state.dispatch_marks.get(&(log, attempt)).map(|mark| mark.executor_id.0);
        let Some(ended_at) = self.state.ends.get(&(run.id, run.attempt)).map(|end| end.at) else { return false };
        let goes_on = |start: &Start| {
            let until = self.stops.get(&start.key).map_or(i64::MAX, |stop| stop.at);
            let beside = start.at <= ended_at && until >= self.clock.first(run.due_time);
            start.task == run.task_id && Some(start.executor_id) == at(run.id, run.attempt) && beside
        };
        let spec = &self.state.tasks[&run.task_id].view.spec;
        takes_turns_on_executors(spec) && self.starts.values().flatten().any(goes_on)
    }

    fn a_covered_run_has_a_successor(&mut self) {
        for row in self.ended_as(Status::Cancelled, Reason::Covered) {
            // Its time had come by then, as far as a node could know. What no schedule names, is tried again or was postponed is due
            // later than its fire.
            let end = self.state.ends.get(&(row.run.id, row.run.attempt)).map_or(i64::MIN, |end| end.at);
            let ended_at = self.clock.last(row.finished_at).max(end) + CLOCKS_MS;
            let has_come = |at: i64| at > row.run.fire_time && self.clock.first(at) <= ended_at;
            let covers = |other: &LogRow| {
                let run = &other.run;
                let of_schedule = run.trigger == Trigger::Schedule;
                let came_at = if of_schedule { run.fire_time } else { run.fire_time.max(run.due_time) };
                // What a backfill takes up again had come before, too, when its schedule named it.
                let is_revived = run.trigger == Trigger::Backfill && IdSource::made_at(run.id) < run.fire_time;
                let is_late = (of_schedule && run.due_time > run.fire_time) || run.attempt > 1;
                let came_later = self.came_later_to_a_plain_executor(run, &row.run);
                let has_come = has_come(came_at) || (is_revived && has_come(run.fire_time));
                run.id != row.run.id && (has_come || is_late || came_later)
            };
            if !self.rows_of(row.run.task_id).any(covers) {
                let detail = format!("no later run of task {} had come at {}", row.run.task_id, row.finished_at);
                self.breaks("P2 only what is covered is stopped for it", Some(row.run.id), detail);
            }
        }
    }

    /// Each definition has one chain of runs, and each fire of it lies one delay after the end of
    /// the run before it. What an executor held when it was changed is its first link.
    fn a_delay_counts_from_the_end(&mut self) {
        for change in self.delays() {
            let mut expected = change.from + change.spec.interval_ms;
            for row in self.chain_of(&change) {
                let fire = row.run.fire_time;
                expected = self.free_from(&change, expected);
                if fire != expected && !self.is_adopted(&row, &change) {
                    let detail = format!("task {} fires at {fire}, not at {expected}", change.task);
                    self.breaks("P12 a delay counts from the end of the run before", Some(row.run.id), detail);
                }
                // What was adopted may have ended before, which nobody knew then.
                expected = next_link(&row, &change);
            }
        }
    }

    /// Whether an executor had it by an earlier definition.
    fn is_adopted(&self, row: &LogRow, change: &Redefinition) -> bool {
        self.marks_of(row.run.id).any(|(_, mark)| mark.revision < change.revision)
    }

    /// The last definition is stopped in a calm world: until then there was always a next fire.
    fn a_delay_goes_on(&mut self) {
        let changes = self.state.changes.clone();
        for change in self.delays() {
            let mut later =
                changes.iter().filter(|other| other.task == change.task && other.revision > change.revision);
            let Some(stop) = later.next().filter(|_| later.next().is_none()) else { continue };
            let last = self.chain_of(&change).into_iter().next_back();
            let next = match &last {
                Some(row) if row.run.reason.is_given_up() => continue,
                Some(row) => next_link(row, &change),
                None => change.from + change.spec.interval_ms,
            };
            let next = self.free_from(&change, next);
            if self.clock.last(next) + CHAINED_WITHIN_MS < stop.at {
                let detail = format!("task {} did not fire at {next}, nor until {}", change.task, stop.from);
                self.breaks("P12 a delay goes on", last.map(|row| row.run.id), detail);
            }
        }
    }

    /// P12.
    pub fn every_end_leaves_the_outbox(&mut self) {
        for (log, task) in self.state.outbox_entries.clone() {
            let detail = format!("of task {task}");
            self.breaks("P12 the end of every run is followed up", Some(log), detail);
        }
    }

    /// A child that is started has one run for each success of its parent.
    fn children_follow_successes_once(&mut self) {
        for link in self.state.links.iter().filter(|link| link.on == ParentOutcome::Success).copied() {
            let parents: Vec<LogRow> =
                self.rows_of(link.parent).filter(|row| row.run.parent_id == LogId::NONE).cloned().collect();
            let mut children: BTreeMap<String, usize> = BTreeMap::new();
            for row in self.rows_of(link.child).filter(|row| row.run.trigger == Trigger::Parent) {
                *children.entry(row.run.params.clone().unwrap_or_default()).or_default() += 1;
            }
            for row in parents {
                let succeeded = row.run.status == Status::Succeeded;
                let followed = self.state.follows.get(&row.run.id).copied();
                let expected =
                    usize::from(succeeded && followed.is_some_and(|followed| self.was_started(link.child, followed)));
                let found = children.remove(&row.run.id.to_string()).unwrap_or(0);
                if found != expected {
                    let detail = format!("{:?}, followed up at {followed:?}, has {found} child(ren)", row.run.status);
                    self.breaks("P12 a success is followed by one child", Some(row.run.id), detail);
                }
                if succeeded && followed.is_none() {
                    let detail = "its end was not examined".to_owned();
                    self.breaks("P12 the end of every run is followed up", Some(row.run.id), detail);
                }
            }
            if !children.is_empty() {
                self.breaks("P12 a success is followed by one child", None, format!("after nothing: {children:?}"));
            }
        }
    }

    fn rows_of(&self, task: TaskId) -> impl Iterator<Item = &'a LogRow> + use<'a> {
        let state = self.state;
        let ids = state.by_fire.range((task, i64::MIN, i32::MIN)..(TaskId(task.0 + 1), i64::MIN, i32::MIN));
        ids.map(|(_, id)| &state.logs[id])
    }

    fn ended_as(&self, status: Status, reason: Reason) -> Vec<LogRow> {
        let rows = self.state.logs.values();
        rows.filter(|row| row.run.status == status && row.run.reason == reason).cloned().collect()
    }

    /// Every definition by which a task fired after a delay.
    fn delays(&self) -> Vec<Redefinition> {
        let is_delay = |change: &&Redefinition| change.started && change.spec.schedule == ScheduleKind::FixedDelay;
        self.state.changes.iter().filter(is_delay).cloned().collect()
    }

    /// The runs of a definition, in the order in which they were written: that is not the order of their fires where the clock
    /// was set back.
    fn chain_of(&self, change: &Redefinition) -> Vec<LogRow> {
        let of_it = self.rows_of(change.task).filter(|row| row.run.revision == change.revision);
        let mut chain: Vec<LogRow> = of_it.cloned().collect();
        chain.sort_by_key(|row| row.run.seq);
        chain
    }

    /// Where a chain goes on that comes to an instant which the task has had: beside it.
    fn free_from(&self, change: &Redefinition, mut at: i64) -> i64 {
        let is_link = |run: &Run| run.revision == change.revision && run.trigger.is_scheduled();
        let is_taken = |at: i64| {
            let there = self.state.by_fire.range((change.task, at, i32::MIN)..(change.task, at + 1, i32::MIN));
            there.map(|(_, id)| &self.state.logs[id].run).any(|run| run.parent_id == LogId::NONE && !is_link(run))
        };
        while is_taken(at) {
            at += 1;
        }
        at
    }

    /// Whether the task was started when the end of another's run was followed up.
    fn was_started(&self, task: TaskId, followed: Follow) -> bool {
        let mut changes = self.state.changes[..followed.changes].iter().filter(|change| change.task == task);
        changes.next_back().is_some_and(|change| change.started)
    }
}

/// How many runs of a task may go on at once.
pub fn bound_of(spec: &TaskSpec) -> Option<usize> {
    if spec.blocks_app() { Some(1) } else { usize::try_from(spec.max_concurrent).ok().filter(|most| *most > 0) }
}

/// Whether its runs wait for each other on each executor.
pub fn takes_turns_on_executors(spec: &TaskSpec) -> bool {
    spec.block_scope == BlockScope::Executor && spec.block_strategy != BlockStrategy::Concurrent
}

/// The fire that follows a run of a delay: one delay after its end, unless the clock was set back so far that this is not after
/// its own fire.
fn next_link(row: &LogRow, change: &Redefinition) -> i64 {
    let after = |end: i64| end.max(change.from) + change.spec.interval_ms;
    if after(row.finished_at) > row.run.fire_time { after(row.finished_at) } else { after(row.run.fire_time) }
}

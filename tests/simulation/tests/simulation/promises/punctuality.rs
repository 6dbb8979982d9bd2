//! P3, P9 and P10: what starts on time. A run is late for a reason: something was out of order near its fire, its task
//! was changed just then, or as many runs went on as may.

use super::turns::{Going, bound_of, takes_turns_on_executors};
use super::{CLOCKS_MS, Evidence, READ_IN_TROUBLE_MS, READ_MS, plain};
use crate::faults::{Fault, Planned};
use crate::settings::{AHEAD_MS, HEARTBEAT_MS, OFFLINE_AFTER_MS};
use carillon::domain::task::{ScheduleKind, TaskSpec};
use carillon::domain::{LogId, Reason, Run, TaskId, Trigger};
use carillon_protocol::RunKey;
use carillon_simulation::executor::Start;
use std::collections::BTreeMap;

const HELD: &str = "P9 executors start what they hold while the database is away";

/// A fire starts within this time, ms.
const ON_TIME_MS: i64 = 50;

/// A run whose due time is known only when it is written, or written again, starts within this time, ms.
pub(super) const SOON_MS: i64 = 1_600;

/// A run that waits for others starts within this time after there is room for it, ms.
const TURN_MS: i64 = 3_500;

/// While the database is away, executors go on for so long at least, ms: nodes say so for an offline time-out after their last
/// heartbeat, and leases last as long again after that of the executor.
const HELD_MS: i64 = 2 * (OFFLINE_AFTER_MS - HEARTBEAT_MS);

/// A run is with its executor so long after it was recorded as dispatched, ms.
const SENT_MS: i64 = 1_000;

impl Evidence<'_> {
    /// Looks at every start.
    pub fn nothing_is_late_without_need(&mut self) {
        let going = self.with_permits();
        let starts: Vec<Start> = self.starts.values().map(|starts| starts[0].clone()).collect();
        for start in starts {
            let Some(run) = self.state.logs.get(&LogId(start.key.0)).map(|row| &row.run) else { continue };
            let spec = &self.state.tasks[&start.task].view.spec;
            let due_at = self.free_since(&start, self.due_at(&start));
            let is_held = !self.has_plain(run.tenant_id);
            // How soon its turn comes on an executor is not judged.
            if run.trigger == Trigger::Manual
                || takes_turns_on_executors(spec)
                || self.is_crowded(run.tenant_id, due_at)
                || self.is_changed(start.task, due_at, start.at)
            {
                continue;
            }
            let late = start.at - due_at;
            let allowed = allowance(spec, run, start.key.1);
            let detail =
                format!("task {} fire {} started {late} ms late, at {}", start.task, start.fire_time, start.at);
            if late <= allowed || waits_for_others(&start, due_at, spec, &going) || self.waits_for_room(run, &start) {
                continue;
            }
            // Before a run that waits for others these must have their time, too.
            let is_bounded = bound_of(spec).is_some();
            let until = if is_bounded { start.at } else { due_at + allowed };
            if self.is_held_back(run.tenant_id, due_at, if is_bounded { start.at } else { due_at }) {
                continue;
            }
            if self.is_calm_for(run.tenant_id, self.in_memory_from(start.due_time, due_at), until) {
                self.breaks("P3 a fire with no fault near it starts on time", Some(run.id), detail);
            } else if is_held && !is_bounded && self.lies_with_its_executor_while_the_database_is_away(&start) {
                self.breaks(HELD, Some(run.id), detail);
            } else if is_held && allowed == ON_TIME_MS && !is_bounded && self.only_one_node_dies(&start) {
                self.breaks("P10 the death of a node makes no fire late", Some(run.id), detail);
            }
        }
    }

    /// P3. A run that lies with its executor for longer than the lead keeps its permit and its place there from others, and an edit
    /// may reach it no more.
    pub fn nothing_is_sent_before_its_lead(&mut self) {
        for ((log, attempt), mark) in self.state.dispatch_marks.clone() {
            let Some(run) = self.state.logs.get(&log).map(|row| &row.run) else { continue };
            let is_plain = self.is_plain_executor(mark.executor_id);
            let lead_ms = if is_plain { plain::LEAD_MS } else { self.world.shape.lead_ms };
            let due = run.fire_time - lead_ms - CLOCKS_MS;
            let is_set = |planned: &Planned| matches!(planned.fault, Fault::ClockSet { .. });
            let is_read = self.disturbances(mark.at - READ_IN_TROUBLE_MS, mark.at).all(is_set);
            let read_ms = if is_read { READ_MS } else { READ_IN_TROUBLE_MS };
            let shown = mark.at + self.clock.most_ahead(mark.at - read_ms, mark.at);
            if shown < due {
                let detail =
                    format!("attempt {attempt} of fire {} at {}, {} ms early", run.fire_time, mark.at, due - shown);
                self.breaks("P3 nothing is sent before its lead", Some(log), detail);
            }
        }
    }

    /// What had a permit when, by task.
    fn with_permits(&self) -> BTreeMap<TaskId, Vec<Going>> {
        let mut held: BTreeMap<TaskId, Vec<Going>> = BTreeMap::new();
        for (run, going) in self.permits() {
            held.entry(run.task_id).or_default().push(going);
        }
        held
    }

    /// P9: it was sent well before the database went away, and nothing else is out of order.
    fn lies_with_its_executor_while_the_database_is_away(&self, start: &Start) -> bool {
        let Some(mark) = self.state.dispatch_marks.get(&(LogId(start.key.0), start.key.1)) else { return false };
        let from = mark.at - SENT_MS;
        if !self.has_begun(from) {
            return false;
        }
        let mut away = false;
        for planned in self.disturbances(from, self.due_at(start) + ON_TIME_MS) {
            let at = self.world.began + planned.at;
            match planned.fault {
                Fault::StoreAway { node: None, .. } | Fault::ReadOnly { .. } if at > mark.at + SENT_MS => away = true,
                _ => return false,
            }
        }
        away
    }

    /// P9: what an executor held when the database went away starts there, for as long as nodes let it.
    pub fn what_is_held_starts_while_the_database_is_away(&mut self) {
        let lost: Vec<(LogId, String)> = self
            .state
            .dispatch_marks
            .iter()
            .filter(|((log, attempt), _)| *attempt == 1 && !self.starts.contains_key(&RunKey(log.0, 1)))
            .filter_map(|((log, _), mark)| {
                let row = self.state.logs.get(log)?;
                let away = self.went_away_over(&row.run, mark.at)?;
                let is_its_own = self.state.ends.get(&(*log, 1)).is_none_or(|end| end.at > away);
                let detail = format!("sent at {}, the database away from {away}, due {}", mark.at, row.run.fire_time);
                is_its_own.then_some((*log, detail))
            })
            .collect();
        for (log, detail) in lost {
            self.breaks(HELD, Some(log), detail);
        }
    }

    /// When the database went away (true time, epoch ms) over a fire that an executor had got before, and that was due while nodes let
    /// the executor go on; `None` also where anything else may keep it from starting.
    fn went_away_over(&self, run: &Run, sent_at: i64) -> Option<i64> {
        let spec = &self.state.tasks.get(&run.task_id)?.view.spec;
        let due_at = self.clock.first(run.fire_time);
        let is_plain = run.trigger == Trigger::Schedule && bound_of(spec).is_none() && !takes_turns_on_executors(spec);
        let is_left_alone = !self.is_changed(run.task_id, sent_at, due_at)
            && !self.is_held_back(run.tenant_id, sent_at, due_at)
            && run.reason != Reason::CancelledManually;
        if run.is_parent() || !is_plain || !is_left_alone || !self.has_begun(sent_at - SENT_MS) {
            return None;
        }
        let mut away = None;
        for planned in self.disturbances(sent_at - SENT_MS, due_at + ON_TIME_MS) {
            let (from, until) = (self.world.began + planned.at, self.world.began + planned.until());
            let held = from + 1..from.saturating_add(HELD_MS).min(until);
            match planned.fault {
                Fault::StoreAway { node: None, .. } | Fault::ReadOnly { .. }
                    if from > sent_at + SENT_MS && held.contains(&due_at) =>
                {
                    away = Some(from);
                }
                _ => return None,
            }
        }
        away
    }

    /// Deaths of nodes since what is due then could be written. Each can keep the lease for as long as that lives.
    fn deaths_before(&self, due_at: i64) -> usize {
        let from = due_at - self.world.shape.ahead_ms - OFFLINE_AFTER_MS - self.world.began;
        let until = due_at - self.world.began;
        let dies =
            |planned: &&Planned| planned.node_that_dies().is_some() && planned.at <= until && planned.until() >= from;
        self.world.faults.iter().filter(dies).count()
    }

    /// P10: the dispatch lead is longer than the offline time-out, and only one of several nodes is out of order, while no other
    /// is stopped.
    fn only_one_node_dies(&self, start: &Start) -> bool {
        let due_at = self.due_at(start);
        let mut dead = self.disturbances(due_at, due_at + ON_TIME_MS);
        let death = dead.next();
        let first = death.and_then(Planned::node_that_dies);
        let is_stopped_meanwhile = |planned: &Planned| {
            let meanwhile = death.is_some_and(|death| planned.at <= death.until() && death.at <= planned.until());
            meanwhile && matches!(planned.fault, Fault::Stop { .. })
        };
        self.world.shape.has_long_lead()
            && self.world.nodes.len() > 1
            && self.has_begun(due_at)
            && first.is_some()
            && !self.world.faults.iter().any(is_stopped_meanwhile)
            && (self.world.shape.ahead_ms >= AHEAD_MS || self.deaths_before(due_at) <= 1)
            && dead.all(|planned| planned.node_that_dies() == first)
    }
}

/// How late a run may start when nothing is out of order, ms.
fn allowance(spec: &TaskSpec, run: &Run, attempt: i32) -> i64 {
    let is_named = run.trigger == Trigger::Schedule && spec.schedule != ScheduleKind::FixedDelay;
    if is_named && attempt == 1 { ON_TIME_MS } else { SOON_MS }
}

/// The longest time, between these instants, in which fewer than `bound` of these runs went on.
fn longest_room(runs: &[&Going], bound: usize, from: i64, until: i64) -> i64 {
    let changes = runs.iter().flat_map(|run| [run.from, run.to]);
    longest(changes, from, until, |at| runs.iter().filter(|run| run.from <= at && run.to > at).count() < bound)
}

/// The longest time, between these instants, in which `holds` held, which changes only at these.
pub(super) fn longest(changes: impl Iterator<Item = i64>, from: i64, until: i64, holds: impl Fn(i64) -> bool) -> i64 {
    let mut instants: Vec<i64> = changes.chain([from, until]).filter(|at| (from..=until).contains(at)).collect();
    instants.sort_unstable();
    instants.dedup();
    let (mut longest, mut since) = (0, None);
    for pair in instants.windows(2) {
        if holds(pair[0]) {
            longest = longest.max(pair[1] - *since.get_or_insert(pair[0]));
        } else {
            since = None;
        }
    }
    longest
}

/// Whether as many runs of the task went on as may, almost all of the time that it was late.
fn waits_for_others(start: &Start, due_at: i64, spec: &TaskSpec, going: &BTreeMap<TaskId, Vec<Going>>) -> bool {
    let Some(bound) = bound_of(spec) else { return false };
    let others: Vec<&Going> = going.get(&start.task).into_iter().flatten().filter(|run| run.key != start.key).collect();
    longest_room(&others, bound, due_at, start.at) <= TURN_MS
}

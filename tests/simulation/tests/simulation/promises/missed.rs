//! P2 of fires that were missed: which of them run, and which leave a row that says why not, is as their task's
//! `misfire_strategy` has it. That each has a row at all is P1; so what was missed and not left out has run, or has ended as
//! any run may.

use super::{CLOCKS_MS, Evidence};
use crate::faults::Fault;
use carillon::domain::task::{MisfireStrategy, ScheduleKind, TaskSpec};
use carillon::domain::{LogId, Reason, Run, Status, Trigger};
use carillon_simulation::store::{Claim, LogRow};

/// A node that judges a run has read what else was missed so long before at most, ms.
const READ_MS: i64 = 5_000;

impl Evidence<'_> {
    /// What speaks against leaving this fire out, which its row says was missed.
    pub fn why_not_left_out(&self, row: &LogRow, spec: &TaskSpec) -> Option<&'static str> {
        // Until it has read the clock again, a node judges by what that said before.
        if self.sets_the_clock() {
            return None;
        }
        let (fire, ended) = (row.run.fire_time, row.finished_at);
        let late = ended - row.run.due_time + CLOCKS_MS;
        if late <= self.misfire_after_ms() {
            return Some("it was not missed");
        }
        // What would stand for it may have been stopped with the task before it was written.
        if self.is_changed(row.run.task_id, ended, ended) {
            return None;
        }
        // What a later run replaced stood for it, and now that one does.
        let is_there = |other: &Run, other_ended: i64| {
            !matches!(other.status, Status::Expired | Status::Cancelled)
                || other.reason == Reason::Covered
                || other_ended + CLOCKS_MS >= ended
        };
        let later = self.fires_between(row, fire + 1, ended - self.misfire_after_ms() + CLOCKS_MS);
        let later = later.filter(|other| is_there(&other.run, other.finished_at)).count();
        let is = |holds: bool, objection: &'static str| (!holds).then_some(objection);
        match spec.misfire_strategy {
            MisfireStrategy::Skip => None,
            MisfireStrategy::FireOnce => {
                is(later >= 1, "it was the latest that was missed, and no other stands for it")
            }
            MisfireStrategy::FireAll => is(
                later >= made_up_for(spec) || is_beyond(spec, late),
                "it was one of the latest that were missed, which run",
            ),
        }
    }

    /// What was missed runs only as its task says.
    pub fn missed_fires_run_as_policies_say(&mut self) {
        if self.sets_the_clock() {
            return;
        }
        for row in self.state.logs.values().cloned().collect::<Vec<_>>() {
            let run = &row.run;
            let Some(task) = self.state.tasks.get(&run.task_id) else { continue };
            let Some(judged) = self.missed_at(&row) else { continue };
            if self.is_changed(run.task_id, judged, judged) || self.is_held_back(run.tenant_id, run.fire_time, judged) {
                continue;
            }
            if let Some(why) = self.why_not_run(&row, &task.view.spec, judged) {
                let detail = format!("task {} fire {} was missed at {judged}: {why}", run.task_id, run.fire_time);
                self.breaks("P2 a missed fire runs only as its task says", Some(run.id), detail);
            }
        }
    }

    /// While a task is stopped or paused it misses nothing.
    pub fn what_a_stopped_task_would_have_fired_is_not_made_up_for(&mut self) {
        let state = self.state;
        if self.sets_the_clock() {
            return;
        }
        for start in state.changes.iter().filter(|change| change.started) {
            let mut before = state.changes.iter().filter(|c| c.task == start.task && c.revision < start.revision);
            let Some(stop) = before.next_back().filter(|change| !change.started) else { continue };
            let keys = (start.task, stop.from + 1, i32::MIN)..(start.task, start.from, i32::MIN);
            for run in state.by_fire.range(keys).map(|(_, id)| &state.logs[id].run) {
                let marks = || self.marks_of(run.id).map(|(_, mark)| mark);
                // Of a fixed delay, what an executor had before the stop, and may have started, is the next link of its chain.
                let is_link = start.spec.schedule == ScheduleKind::FixedDelay
                    && marks().any(|mark| mark.revision < stop.revision);
                if run.trigger.is_scheduled() && !is_link && marks().any(|mark| mark.revision >= start.revision) {
                    let detail = format!("task {} was stopped at {}, and ran", run.task_id, run.fire_time);
                    self.breaks("P2 a stopped task misses nothing", Some(run.id), detail);
                }
            }
        }
    }

    /// Where the database's clock is set, what was missed depends on which of its times a node had read.
    fn sets_the_clock(&self) -> bool {
        self.world.faults.iter().any(|planned| matches!(planned.fault, Fault::ClockSet { .. }))
    }

    /// When this run, which was dispatched, was found to have been missed, epoch ms.
    fn missed_at(&self, row: &LogRow) -> Option<i64> {
        let run = &row.run;
        self.state.dispatch_marks.get(&(run.id, 1))?;
        let claim = self.state.claims.get(&run.id)?;
        let is_late = claim.at - claim.due_time > self.misfire_after_ms() + CLOCKS_MS;
        match run.trigger {
            _ if run.parent_id != LogId::NONE => None,
            // It is due when it is written.
            Trigger::Misfire => Some(claim.due_time),
            Trigger::Schedule => (is_late && waited_for_nothing(claim)).then_some(claim.at),
            _ => None,
        }
    }

    /// What speaks against the run of this fire, which was missed. By `fire_once` more than one of those may run that had a
    /// row (docs/concepts.md, "Not promised"), but none that came before another that was missed by then, too.
    fn why_not_run(&self, row: &LogRow, spec: &TaskSpec, judged: i64) -> Option<&'static str> {
        let run = &row.run;
        let counts = |other: &&LogRow| {
            let other = &other.run;
            other.trigger.is_scheduled()
                && !matches!(other.status, Status::Expired | Status::Cancelled)
                && other.revision == run.revision
                && (other.trigger == Trigger::Misfire) == (run.trigger == Trigger::Misfire)
        };
        let until = judged - self.misfire_after_ms() - READ_MS;
        let later = self.fires_between(row, run.fire_time + 1, until).filter(counts).count();
        let is = |holds: bool, objection: &'static str| (!holds).then_some(objection);
        match spec.misfire_strategy {
            MisfireStrategy::Skip => Some("none of its task runs then"),
            MisfireStrategy::FireOnce => is(later == 0, "a later one runs in its place"),
            MisfireStrategy::FireAll => is(later < made_up_for(spec), "only the latest run").or_else(|| {
                is(!is_beyond(spec, judged - run.fire_time - READ_MS), "it was too late to be made up for")
            }),
        }
    }

    /// Fires of the same task between these instants, the last one included, epoch ms.
    fn fires_between(&self, row: &LogRow, from: i64, until: i64) -> impl Iterator<Item = &LogRow> {
        let task = row.run.task_id;
        let keys = (task, from, i32::MIN)..(task, until.max(from - 1) + 1, i32::MIN);
        self.state
            .by_fire
            .range(keys)
            .map(|(_, id)| &self.state.logs[id])
            .filter(|row| row.run.parent_id == LogId::NONE)
    }
}

/// What a quota, others of its kind, a lack of executors or the node that had it have delayed was not missed.
fn waited_for_nothing(claim: &Claim) -> bool {
    !matches!(claim.reason, Reason::OverQuota | Reason::NoExecutor | Reason::GivenBack) && !claim.reason.is_wait()
}

fn made_up_for(spec: &TaskSpec) -> usize {
    usize::try_from(spec.misfire_max).unwrap_or(0)
}

fn is_beyond(spec: &TaskSpec, late: i64) -> bool {
    spec.misfire_max_late_ms > 0 && late > spec.misfire_max_late_ms
}

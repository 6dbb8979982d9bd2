//! What people do besides changing tasks has the effect that it was answered to have.

use super::turns::Going;
use super::{Evidence, weakened};
use crate::operations::{Done, Effect};
use carillon::domain::rules::MaintenanceWindow;
use carillon::domain::{BackfillId, LogId, Reason, TaskId, Trigger};
use carillon_protocol::RunKey;
use carillon_simulation::executor::Start;
use std::collections::BTreeSet;
use std::ops::Range;

/// Every node goes by a rule so long after it was answered, where nothing is out of order, ms.
const KNOWN_MS: i64 = 3_000;

impl Evidence<'_> {
    /// Looks at every answer.
    pub fn what_people_did_holds(&mut self) {
        let done = self.world.done.lock().unwrap().clone();
        // What was done shortly before a standby took over without the last commits may be lost with these.
        let weakened = weakened(self.world);
        let lasts = |one: &&Done| weakened.as_ref().is_none_or(|range| !range.contains(&one.at));
        // When something was undone, or may have been; never, as far as anybody asked for.
        let undone =
            |how: &Effect| done.iter().filter(|one| one.what == *how).map(|one| one.at).min().unwrap_or(i64::MAX);
        for Done { what, at } in done.iter().filter(lasts) {
            match what {
                Effect::Cancelled(log) => self.nothing_goes_out_again(*log, *at),
                Effect::Skipped(task, fire_time) => {
                    let until = undone(&Effect::Restored(*task, *fire_time));
                    self.a_fire_stays_away((*task, *fire_time), *at..until);
                }
                Effect::Ran(log) => self.a_run_is_written(*log, *at),
                Effect::Back(task, fire_time) => self.a_fire_is_back((*task, *fire_time), *at),
                Effect::Filled(id) => self.a_range_is_filled(*id, *at),
                Effect::Window(window) => self.a_window_holds(window, *at..undone(&Effect::Dropped(window.id))),
                Effect::Cancelling(_) | Effect::Skipping(..) | Effect::Restored(..) | Effect::Dropped(_) => {}
            }
        }
    }

    /// Whether somebody asked for this.
    pub fn is_asked_for(&self, what: &Effect) -> bool {
        self.world.done.lock().unwrap().iter().any(|one| one.what == *what)
    }

    /// In how many operations somebody asked for a fire to be skipped: each may ask several times.
    pub fn skipped_by(&self, task: TaskId, fire_time: i64) -> usize {
        let done = self.world.done.lock().unwrap();
        let of_fire = done.iter().filter_map(|one| match one.what {
            Effect::Skipping(of, at, number) if (of, at) == (task, fire_time) => Some(number),
            _ => None,
        });
        of_fire.collect::<BTreeSet<usize>>().len()
    }

    fn is_changed_after(&self, task: TaskId, at: i64) -> bool {
        self.state.changes.iter().any(|change| change.task == task && change.at > at)
    }

    fn nothing_goes_out_again(&mut self, log: LogId, at: i64) {
        let again = self.marks_of(log).find(|(_, mark)| mark.at > at).map(|(attempt, mark)| (attempt, *mark));
        if let Some((attempt, mark)) = again {
            let detail = format!("attempt {attempt} was dispatched at {}; it was cancelled by {at}", mark.at);
            self.breaks("P2 what is cancelled is not dispatched again", Some(log), detail);
        }
    }

    fn a_fire_stays_away(&mut self, fire: (TaskId, i64), skipped: Range<i64>) {
        let is_it = |start: &&Start| (start.task, start.fire_time) == fire && skipped.contains(&start.at);
        if let Some(start) = self.starts.values().flatten().find(is_it).cloned() {
            let detail = format!("{start:?}, and it was skipped by {}", skipped.start);
            self.breaks("P2 a fire that is skipped does not start", Some(LogId(start.key.0)), detail);
        }
    }

    fn a_run_is_written(&mut self, log: LogId, at: i64) {
        if !self.state.logs.contains_key(&log) {
            self.breaks("P1 what people start has a row", Some(log), format!("it was answered at {at}"));
        }
    }

    /// Unless its task was changed, or a person cancelled it after all, it is as any other fire.
    fn a_fire_is_back(&mut self, (task, fire_time): (TaskId, i64), at: i64) {
        if self.is_changed_after(task, at) || self.skipped_by(task, fire_time) > 1 {
            return;
        }
        let mut there = self.state.by_fire.range((task, fire_time, i32::MIN)..(task, fire_time + 1, i32::MIN));
        let row = there.next().and_then(|(_, log)| self.state.logs.get(log)).cloned();
        let is_cancelled = row.as_ref().is_some_and(|row| self.is_asked_for(&Effect::Cancelling(row.run.id)));
        if row.as_ref().is_none_or(|row| row.run.reason == Reason::CancelledManually) && !is_cancelled {
            let detail = format!("task {task} fire {fire_time} was restored by {at}: {row:?}");
            self.breaks("P2 a skip that is taken back leaves no fire out", row.map(|row| row.run.id), detail);
        }
    }

    /// Of each fire of a backfill that is done there is a row, and no more of its runs went on at once than it may have.
    fn a_range_is_filled(&mut self, id: BackfillId, at: i64) {
        let Some(backfill) = self.state.backfills.get(&id).cloned() else { return };
        let runs = self.state.backfill_runs.iter().filter(|(_, of)| **of == id).map(|(log, _)| *log);
        let going = |log: LogId| {
            let from = self.marks_of(log).next()?.1.at;
            let row = self.state.logs.get(&log)?;
            let end = self.state.ends.get(&(log, row.run.attempt)).map_or(i64::MAX, |end| end.at);
            Some(Going { key: RunKey(log.0, 1), from, to: end })
        };
        let mut going: Vec<Going> = runs.filter_map(going).collect();
        going.sort_by_key(|run| run.from);
        self.at_most(backfill.max_concurrent as usize, &going, "P11 no more runs of a backfill at once than asked for");
        let task = backfill.task_id;
        let Some(view) = self.state.tasks.get(&task).map(|row| row.view.clone()) else { return };
        if backfill.status != "done" || self.is_changed_after(task, at) {
            return;
        }
        let schedule = view.spec.to_schedule(view.anchor_at, task).expect("it was checked");
        let mut fire = schedule.next_after(backfill.range_from - 1);
        while fire < backfill.range_until {
            if self.state.by_fire.range((task, fire, i32::MIN)..(task, fire + 1, i32::MIN)).next().is_none() {
                let detail = format!("task {task} fire {fire} has no row, and {backfill:?}");
                self.breaks("P2 a backfill leaves no fire out", None, detail);
            }
            fire = schedule.next_after(fire);
        }
    }

    /// What is due in a window, and goes out when every node knows it, does not start before the window is over.
    fn a_window_holds(&mut self, window: &MaintenanceWindow, known: Range<i64>) {
        let until = known.end.min(self.clock.first(window.ends_at));
        let within = window.starts_at..window.ends_at;
        for start in self.starts.values().flatten().cloned().collect::<Vec<_>>() {
            let log = LogId(start.key.0);
            let Some(row) = self.state.logs.get(&log) else { continue };
            let goes_by_it = row.run.tenant_id == window.tenant_id
                && row.run.trigger != Trigger::Manual
                && row.run.parent_id.is_none()
                && within.contains(&start.due_time)
                && start.at < until;
            let Some(mark) = self.state.dispatch_marks.get(&(log, start.key.1)) else { continue };
            if goes_by_it && mark.at > known.start + KNOWN_MS && self.is_calm(known.start, mark.at) {
                let detail = format!("{start:?} in {window:?}, which was known by {}", known.start);
                self.breaks("P2 what is due in a window does not start in it", Some(log), detail);
            }
        }
    }
}

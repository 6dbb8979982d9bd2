//! What people do besides changing tasks has the effect that it was answered to have.

use super::turns::Going;
use super::{Evidence, weakened};
use crate::operations::Done;
use carillon::domain::rules::MaintenanceWindow;
use carillon::domain::{BackfillId, LogId, TaskId, Trigger, WindowId};
use carillon_protocol::RunKey;
use carillon_simulation::executor::Start;

/// Every node goes by a rule so long after it was answered, where nothing is out of order, ms.
const KNOWN_MS: i64 = 3_000;

impl Evidence<'_> {
    /// Looks at every answer.
    pub fn what_people_did_holds(&mut self) {
        let done = self.world.done.lock().unwrap().clone();
        // What was done shortly before a standby took over without the last commits may be lost with these.
        let weakened = weakened(self.world);
        let lasts = |one: &&Done| weakened.as_ref().is_none_or(|range| !range.contains(&one.at()));
        for one in done.iter().filter(lasts) {
            match one {
                Done::Cancelled { log, at } => self.nothing_goes_out_again(*log, *at),
                Done::Skipped { task, fire_time, at } => self.a_fire_stays_away(&done, (*task, *fire_time), *at),
                Done::Filled { id, at } => self.a_range_is_filled(*id, *at),
                Done::Window { window, at } => self.a_window_holds(&done, window, *at),
                Done::Restored { .. } | Done::Dropped { .. } => {}
            }
        }
    }

    fn nothing_goes_out_again(&mut self, log: LogId, at: i64) {
        let mut marks = self.state.dispatch_marks.range((log, 0)..(LogId(log.0 + 1), 0));
        if let Some(((_, attempt), mark)) = marks.find(|(_, mark)| mark.at > at) {
            let detail = format!("attempt {attempt} was dispatched at {}; it was cancelled by {at}", mark.at);
            self.breaks("P2 what is cancelled is not dispatched again", Some(log), detail);
        }
    }

    fn a_fire_stays_away(&mut self, done: &[Done], (task, fire_time): (TaskId, i64), at: i64) {
        let restored = done.iter().filter_map(|other| match other {
            Done::Restored { task: of, fire_time: fire, at } if (*of, *fire) == (task, fire_time) => Some(*at),
            _ => None,
        });
        let until = restored.min().unwrap_or(i64::MAX);
        let starts = self.starts.values().flatten();
        let is_it =
            |start: &&Start| (start.task, start.fire_time) == (task, fire_time) && (at..until).contains(&start.at);
        if let Some(start) = starts.cloned().collect::<Vec<_>>().iter().find(is_it) {
            let detail = format!("{start:?}, and it was skipped by {at}");
            self.breaks("P2 a fire that is skipped does not start", Some(LogId(start.key.0)), detail);
        }
    }

    /// Of each fire of a backfill that is done there is a row, and no more of its runs went on at once than it may have.
    fn a_range_is_filled(&mut self, id: BackfillId, at: i64) {
        let Some(backfill) = self.state.backfills.get(&id).cloned() else { return };
        let runs = self.state.backfill_runs.iter().filter(|(_, of)| **of == id).map(|(log, _)| *log);
        let going = |log: LogId| {
            let mut marks = self.state.dispatch_marks.range((log, 0)..(LogId(log.0 + 1), 0));
            let from = marks.next()?.1.at;
            let row = self.state.logs.get(&log)?;
            let end = self.state.ends.get(&(log, row.run.attempt)).map_or(i64::MAX, |end| end.at);
            Some(Going { key: RunKey(log.0, 1), from, to: end })
        };
        let mut going: Vec<Going> = runs.filter_map(going).collect();
        going.sort_by_key(|run| run.from);
        self.at_most(backfill.max_concurrent as usize, &going, "P11 no more runs of a backfill at once than asked for");
        let task = backfill.task_id;
        let Some(view) = self.state.tasks.get(&task).map(|row| row.view.clone()) else { return };
        let is_left_alone = !self.state.changes.iter().any(|change| change.task == task && change.at > at);
        if backfill.status != "done" || !is_left_alone {
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
    fn a_window_holds(&mut self, done: &[Done], window: &MaintenanceWindow, at: i64) {
        let dropped = |id: WindowId| {
            let of = done.iter().filter_map(|other| match other {
                Done::Dropped { id: of, at } if *of == id => Some(*at),
                _ => None,
            });
            of.min().unwrap_or(i64::MAX)
        };
        let until = dropped(window.id).min(self.clock.first(window.ends_at));
        let within = window.starts_at..window.ends_at;
        for start in self.starts.values().flatten().cloned().collect::<Vec<_>>() {
            let key = start.key;
            let Some(row) = self.state.logs.get(&LogId(key.0)) else { continue };
            let goes_by_it = row.run.tenant_id == window.tenant_id
                && row.run.trigger != Trigger::Manual
                && row.run.parent_id.is_none()
                && within.contains(&start.due_time)
                && start.at < until;
            let Some(mark) = self.state.dispatch_marks.get(&(LogId(key.0), key.1)) else { continue };
            if goes_by_it && mark.at > at + KNOWN_MS && self.is_calm(at, mark.at) {
                let detail = format!("{start:?} in {window:?}, which was known by {at}");
                self.breaks("P2 what is due in a window does not start in it", Some(LogId(key.0)), detail);
            }
        }
    }
}

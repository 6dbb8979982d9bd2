//! One row for each fire of the schedules while they were started; nothing early; and soon after the last fault
//! everything is on time again.

use super::Evidence;
use crate::history::{History, Schedule, Span, Task};
use std::collections::HashSet;

/// So long after everything is mended, starts are on time again, s.
const RECOVERED_S: i64 = 45;

/// Then nothing is later than this, ms: a wide bound, as the machine may have other work.
const ON_TIME_MS: i64 = 10_000;

/// A machine of which other work has more than this share makes runs late by itself: then how late they are is told, and
/// not judged.
const OTHERS_MAX: f64 = 0.2;

impl Evidence<'_> {
    /// The unique index guarantees it; so the index itself is tested.
    pub(super) fn fires_have_one_row(&mut self) {
        let mut seen = HashSet::new();
        for row in &self.history.rows {
            if !seen.insert((row.task, row.fire_time, row.shard_index)) {
                self.breaks("doubled_row", row.id, row.task, format!("a second row for {}", row.fire_time));
            }
        }
        for task in &self.history.tasks {
            match task.schedule {
                Schedule::Cron(_) => self.every_span_has_its_fires(task),
                Schedule::Rate(every) => self.a_rate_has_no_gap(task, every),
                Schedule::Delay(_) | Schedule::After(..) | Schedule::AfterAll(..) => {}
            }
            if task.is_sharded {
                self.shards_are_whole(task);
            }
        }
    }

    fn every_span_has_its_fires(&mut self, task: &Task) {
        let fires: HashSet<i64> =
            self.rows_of(task.id).iter().filter(|row| !row.is_shard()).map(|row| row.fire_time).collect();
        let spans: Vec<&Span> = self.history.spans.iter().filter(|span| span.task == task.id).collect();
        for span in &spans {
            for fire in fires_in(span, self.history.stopped_us) {
                if !fires.contains(&fire) {
                    self.breaks("lost", 0, task.id, format!("no row for the fire at {fire}"));
                }
            }
        }
        let is_named = |fire: i64| {
            // Between two spans it is one of both, or what was written before.
            let around = spans.iter().filter(|span| span.from_us <= fire * 1_000 && fire * 1_000 <= span.until_us);
            let mut certain = around.peekable();
            certain.peek().is_none() || certain.any(|span| span.every_ms.is_some_and(|every| fire % every == 0))
        };
        let wrong: Vec<(i64, i64)> = self
            .rows_of(task.id)
            .iter()
            .filter(|row| row.is_scheduled() && !row.is_shard() && !is_named(row.fire_time))
            // What was written ahead of a change is cancelled, unless an executor has it that cannot be reached.
            .filter(|row| row.status != crate::history::status::CANCELLED)
            .filter(|row| !spans.iter().any(|span| self.is_out_of_reach(row.id, span)))
            .map(|row| (row.id, row.fire_time))
            .collect();
        for (log, fire) in wrong {
            self.breaks("unnamed_fire", log, task.id, format!("no schedule of then names {fire}"));
        }
    }

    fn a_rate_has_no_gap(&mut self, task: &Task, every: i64) {
        let fires: Vec<(i64, i64)> = self
            .rows_of(task.id)
            .iter()
            .filter(|row| row.is_scheduled() && !row.is_shard())
            .map(|row| (row.fire_time, row.id))
            .collect();
        for pair in fires.windows(2) {
            if pair[1].0 - pair[0].0 != every {
                let detail = format!("{} follows {} with {every} ms in between", pair[1].0, pair[0].0);
                self.breaks("lost", pair[1].1, task.id, detail);
            }
        }
        let last = fires.last().map_or(0, |(fire, _)| *fire);
        if last + every < self.history.stopped_us / 1_000 {
            self.breaks("lost", 0, task.id, format!("no row after the fire at {last}"));
        }
    }

    fn shards_are_whole(&mut self, task: &Task) {
        let mut wrong = Vec::new();
        let rows = self.rows_of(task.id);
        for parent in rows.iter().filter(|row| row.is_parent() && row.shard_total > 0) {
            let mut shards: Vec<i32> =
                rows.iter().filter(|row| row.parent == parent.id).map(|row| row.shard_index).collect();
            shards.sort_unstable();
            // A parent that ended before it was dispatched has none.
            if !shards.is_empty() && shards != (0..parent.shard_total).collect::<Vec<_>>() {
                wrong.push((parent.id, format!("shards {shards:?} of {}", parent.shard_total)));
            }
        }
        for (log, detail) in wrong {
            self.breaks("lost_shard", log, task.id, detail);
        }
    }

    pub(super) fn nothing_starts_early(&mut self) {
        for visit in &self.history.visits {
            let due = visit.due_time.max(visit.fire_time) * 1_000;
            if visit.start_us < due {
                let detail = format!("attempt {} started {} µs too soon", visit.attempt, due - visit.start_us);
                self.breaks("early", visit.log, visit.task, detail);
            }
        }
    }

    /// Runs of tasks that nothing but faults makes late.
    pub(super) fn it_recovers(&mut self) {
        if !is_lateness_judged(self.history) {
            return;
        }
        let calm = (self.history.mended_us / 1_000 + RECOVERED_S * 1_000)..(self.history.stopped_us / 1_000);
        let plain: Vec<i64> = self.history.tasks.iter().filter(|task| task.is_plain).map(|task| task.id).collect();
        let late = |task: &i64| {
            let rows = self.rows_of(*task).iter().filter(|row| calm.contains(&row.fire_time) && row.attempt > 0);
            let first = |log| self.visits_of(log).next().map(|visit| visit.start_us / 1_000);
            rows.filter_map(|row| Some((row.id, *task, first(row.id)? - row.due_time)))
                .filter(|(_, _, late)| *late > ON_TIME_MS)
                .collect::<Vec<_>>()
        };
        for (log, task, late) in plain.iter().flat_map(late).collect::<Vec<_>>() {
            let detail = format!("{late} ms late, more than {RECOVERED_S} s after everything was mended");
            self.breaks("not_recovered", log, task, detail);
        }
    }
}

/// Whether it was carillon's machine while everything was to recover.
pub fn is_lateness_judged(history: &History) -> bool {
    history.others_between(history.mended_us, history.stopped_us) <= OTHERS_MAX
}

/// The fires that a span names for certain, epoch ms.
pub fn fires_in(span: &Span, stopped_us: i64) -> Vec<i64> {
    let Some(every) = span.every_ms else { return Vec::new() };
    let until = span.until_us.min(stopped_us) / 1_000;
    let first = (span.from_us / 1_000).div_euclid(every) * every + every;
    (first..until).step_by(every as usize).collect()
}

//! Fires that were missed: which of them run, and which leave a row that says why not, is as their task has it.

use super::Evidence;
use super::ends::{CLOCKS_MS, MISFIRE_AFTER_MS};
use crate::history::{Misfire, Row, Task, status};
use std::collections::BTreeMap;

/// What stands for a fire that was missed may have been changed with its task when it was so near, ms.
const CHANGE_MS: i64 = 30_000;

impl Evidence<'_> {
    /// What speaks against leaving this fire out, which its row says was missed.
    pub(super) fn is_wrongly_left_out(&self, task: &Task, row: &Row) -> Option<&'static str> {
        let wrong = |is_right: bool, why: &'static str| (!is_right).then_some(why);
        let at = row.finished_at;
        if at - row.due_time + CLOCKS_MS <= MISFIRE_AFTER_MS {
            return Some("it was not that late");
        }
        if self.is_near_change(task, at) {
            return None;
        }
        let missed = (row.fire_time + 1)..=(at - MISFIRE_AFTER_MS + CLOCKS_MS);
        let is_there = |other: &&&Row| {
            let is_out = matches!(other.status, status::EXPIRED | status::CANCELLED);
            missed.contains(&other.fire_time) && !other.is_shard() && (!is_out || other.finished_at + CLOCKS_MS >= at)
        };
        let later = self.rows_of(task.id).iter().filter(is_there).count();
        match task.misfire {
            Misfire::Skip => None,
            Misfire::FireOnce => wrong(later >= 1, "no later fire stands for it"),
            Misfire::FireAll(most) => wrong(later >= most, "it was one of the latest that were missed"),
        }
    }

    /// Of what was missed before it had a row no more run than may: all of a task that were written together are due
    /// together. What had a row in time, and was claimed too late, cannot be told from what waited.
    pub(super) fn missed_fires_run_as_they_may(&mut self) {
        let mut together: BTreeMap<(i64, i64), Vec<&Row>> = BTreeMap::new();
        for row in &self.history.rows {
            if row.trigger == "misfire" && !row.is_shard() && row.attempt == 1 && row.failures == 0 {
                together.entry((row.task, row.due_time)).or_default().push(row);
            }
        }
        for ((task, due), ran) in together {
            let Some(known) = self.tasks.get(&task).copied() else { continue };
            let most = match known.misfire {
                Misfire::Skip => 0,
                Misfire::FireOnce => 1,
                Misfire::FireAll(most) => most,
            };
            if ran.len() > most {
                let detail = format!("{} missed fires ran at {due}, not {most} at most", ran.len());
                self.breaks("ran_though_missed", ran[0].id, task, detail);
            }
        }
    }

    fn is_near_change(&self, task: &Task, at: i64) -> bool {
        let near = |us: i64| (us / 1_000 - at).abs() <= CHANGE_MS;
        let mut spans = self.history.spans.iter().filter(|span| span.task == task.id);
        near(self.history.stopped_us) || (task.is_edited && spans.any(|span| near(span.from_us) || near(span.until_us)))
    }
}

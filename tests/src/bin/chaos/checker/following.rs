//! What follows an end comes exactly once: children, and the next run of a fixed delay.

use super::Evidence;
use crate::history::{Schedule, Task, status};

/// A chain of fixed delays that has no next run so long before the tasks are stopped is broken, ms.
const CHAINED_WITHIN_MS: i64 = 20_000;

/// What had ended so long before a child was made was seen, or the child would have been made of it, ms.
const SEEN_WITHIN_MS: i64 = 1_000;

impl Evidence<'_> {
    pub(super) fn what_follows_comes_once(&mut self) {
        for task in &self.history.tasks {
            match task.schedule {
                Schedule::Delay(ms) => self.a_delay_is_one_chain(task, ms),
                Schedule::After(first, second) => self.each_success_has_its_child(task, first, second),
                Schedule::AfterAll(first, second) => self.both_successes_have_their_child(task, [first, second]),
                Schedule::Cron(_) | Schedule::Rate(_) => {}
            }
        }
    }

    fn a_delay_is_one_chain(&mut self, task: &Task, ms: i64) {
        let rows = self.rows_of(task.id).to_vec();
        for pair in rows.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            if after.fire_time < before.finished_at + ms {
                let detail = format!(
                    "{} fires at {}, {} ms after the end of {}",
                    after.id,
                    after.fire_time,
                    after.fire_time - before.finished_at,
                    before.id
                );
                self.breaks("delay_too_short", after.id, task.id, detail);
            }
        }
        let Some(last) = rows.last() else {
            self.breaks("lost_follower", 0, task.id, "it never fired".to_owned());
            return;
        };
        let latest = self.history.stopped_us / 1_000 - CHAINED_WITHIN_MS;
        if last.status != status::CANCELLED && last.is_ended() && last.finished_at < latest {
            let detail = format!("no run after {}, which ended at {}", last.id, last.finished_at);
            self.breaks("lost_follower", last.id, task.id, detail);
        }
    }

    fn each_success_has_its_child(&mut self, task: &Task, first: i64, second: Option<i64>) {
        let parents = [Some(first), second].into_iter().flatten();
        let successes: usize = parents
            .flat_map(|parent| self.rows_of(parent))
            .filter(|row| !row.is_shard() && row.status == status::SUCCEEDED)
            .count();
        let children = self.rows_of(task.id).iter().filter(|row| row.trigger == "parent").count();
        if children != successes {
            let what = if children < successes { "lost_follower" } else { "doubled_follower" };
            self.breaks(what, 0, task.id, format!("{children} runs after {successes} successes"));
        }
    }
    /// Which successes it took together depends on the order in which they were seen; but each takes one of either parent,
    /// and none is left that would have been enough for another.
    fn both_successes_have_their_child(&mut self, task: &Task, parents: [i64; 2]) {
        let children: Vec<i64> =
            self.rows_of(task.id).iter().filter(|row| row.trigger == "parent").map(|row| row.fire_time).collect();
        let ends = parents.map(|parent| -> Vec<i64> {
            let rows = self.rows_of(parent).iter();
            rows.filter(|row| !row.is_shard() && row.status == status::SUCCEEDED).map(|row| row.finished_at).collect()
        });
        let fewer = ends[0].len().min(ends[1].len());
        if children.len() > fewer {
            let detail = format!("{} runs after {fewer} successes of the rarer parent", children.len());
            self.breaks("doubled_follower", 0, task.id, detail);
        }
        let last = children.iter().max().copied().unwrap_or_default();
        if ends.iter().all(|ends| ends.iter().any(|end| *end > last + SEEN_WITHIN_MS)) {
            self.breaks("lost_follower", 0, task.id, format!("no run after {last}, and both parents succeeded since"));
        }
    }
}

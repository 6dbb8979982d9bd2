//! Every run ends, and as it may.

use super::{Evidence, is_lateness_judged};
use crate::history::{Row, Task, Yields, status};

/// A fire that is written or claimed later than this is a misfire, ms (`schedulers.misfire_after`).
pub(super) const MISFIRE_AFTER_MS: i64 = 30_000;

/// The clocks of a row may differ so much from each other, ms: estimates of the database's clock.
pub(super) const CLOCKS_MS: i64 = 200;

/// With no fault near, nodes know of an end so soon, ms.
const RESULT_MS: i64 = 500;

/// The same on a machine that has other work, ms.
const RESULT_WHEN_BUSY_MS: i64 = 3_000;

impl Evidence<'_> {
    pub(super) fn rows_end_as_they_may(&mut self) {
        for row in &self.history.rows {
            let Some(task) = self.tasks.get(&row.task).copied() else {
                self.breaks("unknown_task", row.id, row.task, format!("{row:?}"));
                continue;
            };
            if !row.is_ended() {
                let detail = format!("state {} ({:?}), attempt {}", row.status, row.reason, row.attempt);
                self.breaks("stuck", row.id, row.task, detail);
            } else if let Some(why_not) = self.is_wrong_end(task, row) {
                let detail = format!("state {} ({:?}), attempt {}: {why_not}", row.status, row.reason, row.attempt);
                self.breaks("wrong_end", row.id, row.task, detail);
            }
            if row.status == status::SUCCEEDED && !row.is_parent() {
                self.success_was_seen(row);
            }
        }
    }

    fn is_wrong_end(&self, task: &Task, row: &Row) -> Option<String> {
        let late = row.finished_at - row.due_time + CLOCKS_MS;
        let wrong = |is_right: bool, why: &str| (!is_right).then(|| why.to_owned());
        let has_no_retries = row.failures >= task.attempts_max;
        let is_final = has_no_retries || row.status == status::DISCARDED;
        if row.finished_at <= 0 {
            return Some("its end has no time".to_owned());
        }
        match (row.status, row.reason.as_str()) {
            (status::SUCCEEDED, _) => None,
            (status::FAILED, "shard_failed") => wrong(row.is_parent(), "it has no shards"),
            (status::FAILED, "outcome_unknown" | "abandoned") => {
                wrong(task.is_at_most_once || has_no_retries, "an unknown outcome is repeated").or_else(|| {
                    let lived = (row.due_time, row.finished_at);
                    wrong(self.can_be_lost(row.id, row.attempt, &row.reason, lived), "its executor was well")
                })
            }
            (status::FAILED | status::DISCARDED, "handler_failed") => {
                let can_fail = task.succeed_at == 0 || row.attempt < task.succeed_at;
                wrong(can_fail && is_final, "its handler does not fail so often")
            }
            (status::FAILED | status::DISCARDED, "timed_out") => wrong(task.timeout_ms > 0, "it has no time-out"),
            // Before its due time that is no failure, and without a fault an executor takes it.
            (status::FAILED | status::DISCARDED, "not_accepted") => {
                let has_waited = late >= 0 && self.history.is_near_trouble(row.finished_at * 1_000);
                wrong(has_waited && is_final, "executors could be reached, or retries were left")
            }
            (status::DISCARDED, "blocked") => wrong(task.yields == Some(Yields::Later), "it waits for its turn")
                .or_else(|| wrong(self.has_predecessor(row), "no earlier run was under way")),
            (status::CANCELLED, "covered") => wrong(task.yields == Some(Yields::Earlier), "nothing covers it")
                .or_else(|| wrong(self.has_successor(row), "no later run was due")),
            (status::EXPIRED, "expired") => {
                wrong(task.expire_after_ms > 0 && late > task.expire_after_ms, "it was not that late")
            }
            (status::EXPIRED, "misfire_skipped") => self.is_wrongly_left_out(task, row).map(str::to_owned),
            (status::CANCELLED, "task_stopped" | "task_edited") => {
                let at_us = row.finished_at * 1_000;
                let is_stopped = self.history.stopped_us - CLOCKS_MS * 1_000 <= at_us;
                let is_edited = task.is_edited && self.follows_change(task.id, at_us, CLOCKS_MS * 1_000);
                wrong(is_stopped || is_edited, "nobody had stopped or edited it then")
            }
            _ => Some("nothing that happened explains it".to_owned()),
        }
    }

    /// How soon nodes know of an end, if nothing keeps it from them, ms.
    pub(super) fn known_within_ms(&self) -> i64 {
        if is_lateness_judged(self.history) { RESULT_MS } else { RESULT_WHEN_BUSY_MS }
    }

    /// Whether another run of the task was under way, as far as nodes knew, when this one was due and ended.
    fn has_predecessor(&self, row: &Row) -> bool {
        let known_within = self.known_within_ms();
        self.rows_of(row.task).iter().any(|other| {
            let began = other.attempt > 0 && other.fire_time <= row.due_time;
            let goes_on = !other.is_ended()
                || other.finished_at + known_within >= row.finished_at
                || self.may_come_late(other.finished_at, row.finished_at);
            other.id != row.id && began && goes_on
        })
    }

    /// Whether a later run of the task was due when this one ended, and had not run before; it may be covered, or stopped,
    /// while this one uses up the time in which a handler may end by itself.
    fn has_successor(&self, row: &Row) -> bool {
        self.rows_of(row.task).iter().any(|other| {
            let was_due = row.fire_time < other.fire_time && other.fire_time <= row.finished_at + CLOCKS_MS;
            let has_run = other.is_ended() && other.finished_at + CLOCKS_MS < row.finished_at;
            was_due && (!has_run || other.status == status::CANCELLED)
        })
    }

    fn success_was_seen(&mut self, row: &Row) {
        let outcome =
            self.visits.get(&(row.id, row.attempt)).and_then(|visits| visits.last()).map(|v| v.outcome.as_str());
        // A result may be on its way when its process dies, after the handler and before its line: the line comes first.
        if outcome != Some("ok") {
            let detail = format!("attempt {} succeeded, but its handler ended as {outcome:?}", row.attempt);
            self.breaks("invented_success", row.id, row.task, detail);
        }
    }
}

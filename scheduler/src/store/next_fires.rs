//! When tasks fire next, for people: after now, whether the run is written already or not.

use super::dialect::Kind;

use super::row::from_row;
use super::skips::is_skip;
use super::statement::Sql;
use super::values::to_json;
use super::{Result, SqlStore, TaskView};
use crate::domain::schedule::Schedule;
use crate::domain::task::{NEVER, ScheduleKind};
use crate::domain::{Status, TaskId};
use std::collections::HashMap;

/// Fires of a task that are written and still to come, ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenFires {
    /// The next of them.
    pub first: i64,
    /// The last.
    pub last: i64,
}

impl TaskView {
    /// Whether only its rows know the fires to come: all that `max_fires` allows are written, or the one that
    /// followed the last run of a fixed delay is.
    #[must_use]
    pub fn is_written_up(&self) -> bool {
        let counts = self.spec.max_fires > 0 || self.spec.schedule == ScheduleKind::FixedDelay;
        self.activity.started && self.next_fire_at == NEVER && counts
    }

    /// The next fire after `now` (ms) by its `schedule` and the fires that are `written`, or [`NEVER`].
    #[must_use]
    pub fn next_fire(&self, schedule: &Schedule, written: Option<WrittenFires>, now: i64) -> i64 {
        match self.spec.schedule {
            _ if !self.activity.started => NEVER,
            _ if self.is_written_up() => written.map_or(NEVER, |written| written.first),
            // What is late is no fire to come.
            ScheduleKind::FixedDelay if self.next_fire_at <= now => NEVER,
            ScheduleKind::FixedDelay => self.next_fire_at,
            _ => schedule.next_after(now),
        }
    }
}

/// The fires of a task that have rows.
struct Written {
    task_id: TaskId,
    first: i64,
    last: i64,
}

from_row!(Written { task_id, first: "first_at", last: "last_at" });

impl SqlStore {
    /// The next fire of each of these tasks after `now` (ms), in their order; [`NEVER`] where there is none, or
    /// where it is not known yet. A fire that a person cancelled beforehand counts as one. Two statements at
    /// most, however many tasks there are.
    pub async fn next_fires(&self, tasks: &[TaskView], now: i64) -> Result<Vec<i64>> {
        let schedules = self.schedules_of(tasks).await?;
        let written = self.written_fires(tasks, now).await?;
        let next =
            |(task, schedule): (&TaskView, &Schedule)| task.next_fire(schedule, written.get(&task.id).copied(), now);
        Ok(tasks.iter().zip(&schedules).map(next).collect())
    }

    /// The fires after `now` (ms) of those of these tasks whose rows alone know them
    /// ([`TaskView::is_written_up`]).
    pub async fn written_fires(&self, tasks: &[TaskView], now: i64) -> Result<HashMap<TaskId, WrittenFires>> {
        const ACTION: &str = "find the next fires";
        let ids: Vec<[TaskId; 1]> = tasks.iter().filter(|task| task.is_written_up()).map(|task| [task.id]).collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let batch = self.backend.rows(1, &[("id", Kind::Big)]);
        let join = self.backend.join_in_order();
        let text = format!(
            "SELECT v.n_id AS task_id, MIN(l.fire_time) AS first_at, MAX(l.fire_time) AS last_at FROM {batch} {join} task_log l ON l.task_id = v.n_id AND \
             l.fire_time > {{2}} WHERE (+l.status < {} OR ({})) AND l.parent_id = 0 AND l.trigger_kind IN ('schedule', \
             'misfire') GROUP BY v.n_id",
            Status::Succeeded as i16,
            is_skip("l")
        );
        let values = [to_json(ACTION, &ids)?.into(), now.into()];
        let found: Vec<Written> = self.query(ACTION, &Sql::new(self.backend, &text), values).await?;
        Ok(found.into_iter().map(|row| (row.task_id, WrittenFires { first: row.first, last: row.last })).collect())
    }
}

//! Coming fires that people cancel before they are written.

use super::rows::{LogRow, State};
use super::{ModelStore, refuse};
use carillon::domain::task::{Routing, ScheduleKind, TaskSpec};
use carillon::domain::task_log::PARENT_SHARD;
use carillon::domain::{ExecutorId, LogId, Reason, Run, Status, TaskId, Trigger};
use carillon::store::{Result, SKIPS_MAX, Skip, Skipped, StoreErrorKind, TaskView};

const ACTION: &str = "cancel a coming fire";
const UNDO: &str = "let a cancelled fire come";

impl ModelStore {
    /// Writes the log of a coming fire as cancelled manually.
    pub async fn skip_fire(&self, task: &TaskView, skip: &Skip, now: i64) -> Result<Skipped> {
        self.call(ACTION, |state, _| state.skip(task, skip, now)).await
    }

    /// Removes the log of a future fire that was cancelled before an executor had it.
    pub async fn restore_fire(&self, task: &TaskView, fire_time: i64, is_named: bool, now: i64) -> Result<()> {
        self.call(UNDO, |state, _| state.restore(task, fire_time, is_named, now)).await
    }
}

fn shard_of(spec: &TaskSpec) -> i32 {
    if spec.routing == Routing::Sharding { PARENT_SHARD } else { 0 }
}

/// A fire that a person cancelled before an executor had it.
pub(super) fn is_skip(run: &Run) -> bool {
    let is_cancelled = (run.status, run.reason, run.attempt) == (Status::Cancelled, Reason::CancelledManually, 0);
    is_cancelled && run.parent_id == LogId::NONE && run.trigger.is_scheduled()
}

impl State {
    fn skip(&mut self, task: &TaskView, skip: &Skip, now: i64) -> Result<Skipped> {
        let Some(row) = self.tasks.get(&task.id).filter(|row| row.view.revision == task.revision) else {
            return refuse(StoreErrorKind::Conflict, ACTION, "the task was changed meanwhile");
        };
        let (view, turn) = (row.view.clone(), row.turn + 1);
        let shard_index = shard_of(&view.spec);
        if let Some(log) = self.by_fire.get(&(task.id, skip.fire_time, shard_index)) {
            return Ok(Skipped::There(*log));
        }
        if view.activity.started && skip.fire_time < view.next_fire_at {
            return refuse(StoreErrorKind::Conflict, ACTION, "the task no longer writes a run for this instant");
        }
        let ahead = self.logs.values().filter(|row| row.run.task_id == task.id && row.run.fire_time > now);
        if ahead.filter(|row| is_skip(&row.run)).count() as i64 >= SKIPS_MAX {
            return refuse(StoreErrorKind::Conflict, ACTION, "too many ahead");
        }
        let mut row = LogRow::new(Run {
            id: skip.id,
            version: 1,
            tenant_id: view.owner.tenant_id,
            app_id: view.owner.app_id,
            task_id: task.id,
            revision: view.revision,
            parent_id: LogId::NONE,
            shard_index,
            shard_total: i32::from(shard_index == 0),
            fire_time: skip.fire_time,
            due_time: skip.fire_time,
            attempt: 0,
            failures: 0,
            status: Status::Cancelled,
            reason: Reason::CancelledManually,
            params: None,
            trigger: Trigger::Schedule,
            seq: turn,
            priority: view.spec.priority,
            executor_id: ExecutorId::NONE,
            queued_at: 0,
            has_rate_slot: false,
        });
        row.message.clone_from(&skip.message);
        row.finished_at = skip.fire_time;
        self.take_turn(task.id);
        self.insert(row);
        Ok(Skipped::Written)
    }

    fn restore(&mut self, task: &TaskView, fire_time: i64, is_named: bool, now: i64) -> Result<()> {
        let Some(row) = self.tasks.get(&task.id).filter(|row| row.view.revision == task.revision) else {
            return refuse(StoreErrorKind::Conflict, UNDO, "the task was changed meanwhile");
        };
        if row.view.spec.schedule == ScheduleKind::FixedDelay {
            return refuse(StoreErrorKind::Conflict, UNDO, "the next run comes by itself");
        }
        let key = (task.id, fire_time, shard_of(&row.view.spec));
        let Some(log) = self.by_fire.get(&key).copied() else {
            return refuse(StoreErrorKind::NotFound, UNDO, "no one cancelled it");
        };
        if !is_skip(&self.logs[&log].run) || fire_time <= now {
            return refuse(StoreErrorKind::Conflict, UNDO, "it cannot come");
        }
        self.take_turn(task.id);
        if is_named {
            self.move_back(task.id, task.revision, fire_time, now);
        }
        self.outbox_entries.remove(&log);
        self.logs.remove(&log);
        self.by_fire.remove(&key);
        self.events.push(format!("log {log} of task {} makes room: its fire {fire_time} comes after all", task.id));
        Ok(())
    }

    fn take_turn(&mut self, task: TaskId) {
        if let Some(row) = self.tasks.get_mut(&task) {
            row.turn += 1;
        }
    }

    /// Makes cancelled fires ahead fit another definition.
    pub(super) fn fit_skips(&mut self, before: &TaskView, spec: &TaskSpec, now: i64) {
        let ahead = self.logs.values().filter(|row| row.run.task_id == before.id && row.run.fire_time > now);
        let ahead: Vec<Run> = ahead.map(|row| row.run.clone()).filter(is_skip).collect();
        let to_delay = spec.schedule == ScheduleKind::FixedDelay && before.spec.schedule != ScheduleKind::FixedDelay;
        let (from, to) = (shard_of(&before.spec), shard_of(spec));
        for run in ahead {
            let key = (run.task_id, run.fire_time, run.shard_index);
            if to_delay && run.version == 1 {
                self.logs.remove(&run.id);
                self.by_fire.remove(&key);
            } else if !to_delay && from != to && run.shard_index == from {
                self.by_fire.remove(&key);
                self.by_fire.insert((run.task_id, run.fire_time, to), run.id);
                if let Some(row) = self.logs.get_mut(&run.id) {
                    row.run.shard_index = to;
                    row.run.shard_total = i32::from(to == 0);
                }
            }
        }
    }
}

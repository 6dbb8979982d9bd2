//! Backfills: runs for the fires of a range that has passed, a few at a time.

use super::rows::{LogRow, State, bucket};
use super::{ModelStore, refuse};
use async_trait::async_trait;
use carillon::domain::task::Routing;
use carillon::domain::task_log::PARENT_SHARD;
use carillon::domain::{BackfillId, ExecutorId, LogId, NodeId, Reason, Run, Status, Task, TaskId, TenantId, Trigger};
use carillon::store::{Backfill, BackfillStore, Result, StoreErrorKind};

const ACTION: &str = "backfill";

/// Fires of the range looked at in one step.
const LOOK_MAX: usize = 1_000;

#[async_trait]
impl BackfillStore for ModelStore {
    async fn open_backfills(&self, after: BackfillId, limit: u64) -> Result<Vec<Backfill>> {
        self.call("read open backfills", |state, _| {
            let open = state.backfills.values().filter(|backfill| backfill.status == "open" && backfill.id > after);
            Ok(open.take(limit as usize).cloned().collect())
        })
        .await
    }

    async fn advance(
        &self,
        node: NodeId,
        of: &Backfill,
        new_id: &(dyn Fn() -> LogId + Sync),
        now: i64,
    ) -> Result<usize> {
        self.call(ACTION, |state, at| {
            let is_known = state.knows(node, at);
            Ok(state.advance(is_known, of, new_id, now))
        })
        .await
    }
}

impl ModelStore {
    /// Asks for runs of a task's fires in a range.
    pub async fn create_backfill(&self, of: &Backfill, now: i64) -> Result<()> {
        let (next_at, status) = (of.range_from, "open".to_owned());
        let row = Backfill { next_at, status, written: 0, existing: 0, created_at: now, finished_at: 0, ..of.clone() };
        self.call(ACTION, |state, _| {
            state.backfills.insert(row.id, row);
            Ok(())
        })
        .await
    }

    /// Backfills of a task before the one of that id, newest first.
    pub async fn backfills_of(
        &self,
        tenant_id: TenantId,
        task_id: TaskId,
        before: Option<BackfillId>,
        limit: u64,
    ) -> Result<Vec<Backfill>> {
        self.call("list backfills", |state, _| {
            let wanted = |one: &&Backfill| {
                (one.tenant_id, one.task_id) == (tenant_id, task_id) && before.is_none_or(|before| one.id < before)
            };
            Ok(state.backfills.values().rev().filter(wanted).take(limit as usize).cloned().collect())
        })
        .await
    }

    /// Ends a backfill of a task before its time; what it has written runs all the same.
    pub async fn cancel_backfill(&self, tenant_id: TenantId, task_id: TaskId, id: BackfillId, now: i64) -> Result<()> {
        self.call(ACTION, |state, _| {
            let of_task = |one: &&mut Backfill| (one.tenant_id, one.task_id) == (tenant_id, task_id);
            let Some(backfill) = state.backfills.get_mut(&id).filter(of_task) else {
                return refuse(StoreErrorKind::NotFound, ACTION, "there is no such backfill");
            };
            end(backfill, now);
            Ok(())
        })
        .await
    }
}

fn end(backfill: &mut Backfill, now: i64) {
    if backfill.status == "open" {
        "cancelled".clone_into(&mut backfill.status);
        backfill.finished_at = now;
    }
}

/// Fires that get a run in this step.
#[derive(Default)]
struct Picked {
    /// They have no row yet.
    chosen: Vec<i64>,
    /// They have one that never ran.
    revived: Vec<LogId>,
    /// Fires passed over, because they have run.
    existing: i64,
    /// Where the next step goes on; `None` at the end of the range.
    next_at: Option<i64>,
}

impl State {
    /// Ends the backfills of a task that is stopped, paused or deleted.
    pub(super) fn end_backfills(&mut self, task: TaskId, now: i64) {
        self.backfills.values_mut().filter(|one| one.task_id == task).for_each(|one| end(one, now));
    }

    fn advance(&mut self, is_known: bool, of: &Backfill, new_id: &(dyn Fn() -> LogId + Sync), now: i64) -> usize {
        let Some(task) = self.tasks.get(&of.task_id).map(|row| self.task(row)) else {
            if let Some(backfill) = self.backfills.get_mut(&of.id) {
                end(backfill, now);
            }
            return 0;
        };
        let is_open = |log: &LogId| self.logs.get(log).is_some_and(|row| !row.run.status.is_terminal());
        let open = self.backfill_runs.iter().filter(|(log, backfill)| **backfill == of.id && is_open(log)).count();
        let room = (of.max_concurrent as usize).saturating_sub(open);
        let is_current =
            self.backfills.get(&of.id).is_some_and(|row| row.status == "open" && row.next_at == of.next_at);
        let Some(until) = of.past_until(now).filter(|_| is_known && room > 0 && is_current) else { return 0 };
        let candidates = task.schedule.fires(of.next_at, until, LOOK_MAX);
        let picked = self.pick(&task, &candidates, room);
        let count = picked.chosen.len() + picked.revived.len();
        let is_done = picked.next_at.is_none() && until == of.range_until;
        let ends = is_done && count == 0;
        if ends && open > 0 {
            // Written to the end; it ends with its last run.
            return 0;
        }
        let next_at = picked.next_at.unwrap_or(until);
        let given = candidates.iter().take_while(|at| **at < next_at).copied();
        let given: Vec<i64> = given.filter(|at| self.taken(&task, *at).is_none_or(|row| never_ran(&row.run))).collect();
        if let Some(row) = self.tasks.get_mut(&task.id) {
            row.turn += 1;
        }
        if let Some(row) = self.backfills.get_mut(&of.id) {
            row.next_at = next_at;
            row.written += count as i64;
            row.existing += picked.existing;
            if ends {
                "done".clone_into(&mut row.status);
                row.finished_at = now;
            }
        }
        for fire_time in picked.chosen {
            let row = self.backfilled(&task, of, new_id(), fire_time, now);
            let id = row.run.id;
            self.insert(row);
            self.note_backfilled(of, id);
        }
        for id in picked.revived {
            self.revive(&task, of, id, now);
            self.note_backfilled(of, id);
        }
        self.note_past_runs(&given, now);
        count
    }

    fn pick(&self, task: &Task, candidates: &[i64], room: usize) -> Picked {
        let mut picked = Picked::default();
        for at in candidates {
            if picked.chosen.len() + picked.revived.len() == room {
                picked.next_at = Some(*at);
                return picked;
            }
            match self.taken(task, *at) {
                None => picked.chosen.push(*at),
                Some(row) if never_ran(&row.run) => picked.revived.push(row.run.id),
                Some(_) => picked.existing += 1,
            }
        }
        picked.next_at = candidates.last().map(|last| last + 1).filter(|_| candidates.len() == LOOK_MAX);
        picked
    }

    /// The log of a fire, if it has one.
    fn taken(&self, task: &Task, fire_time: i64) -> Option<&LogRow> {
        self.by_fire.get(&(task.id, fire_time, shard_of(task))).map(|id| &self.logs[id])
    }

    fn backfilled(&self, task: &Task, of: &Backfill, id: LogId, fire_time: i64, now: i64) -> LogRow {
        let shard_index = shard_of(task);
        let mut row = LogRow::new(Run {
            id,
            version: 1,
            tenant_id: task.tenant_id,
            app_id: task.app_id,
            task_id: task.id,
            revision: task.revision,
            parent_id: LogId::NONE,
            shard_index,
            shard_total: i32::from(shard_index == 0),
            fire_time,
            due_time: now,
            attempt: 0,
            failures: 0,
            status: Status::Init,
            reason: Reason::None,
            params: of.params.clone(),
            trigger: Trigger::Backfill,
            seq: self.tasks[&task.id].turn,
            priority: 0,
            executor_id: ExecutorId::NONE,
            queued_at: 0,
            has_rate_slot: false,
        });
        row.bucket = bucket(id);
        row
    }

    /// A fire that has a row and never ran gets its run under it.
    fn revive(&mut self, task: &Task, of: &Backfill, id: LogId, now: i64) {
        self.outbox_entries.remove(&id);
        let Some(row) = self.logs.get_mut(&id) else { return };
        row.finished_at = 0;
        row.message = String::new();
        let run = &mut row.run;
        run.status = Status::Init;
        run.reason = Reason::None;
        run.version += 1;
        run.revision = task.revision;
        run.due_time = now;
        run.failures = 0;
        run.trigger = Trigger::Backfill;
        run.priority = 0;
        run.params.clone_from(&of.params);
        self.events.push(format!("log {id} is revived by a backfill of task {}", task.id));
    }

    /// Counts a run for the backfill, and has its end followed where it matters.
    fn note_backfilled(&mut self, of: &Backfill, id: LogId) {
        self.backfill_runs.entry(id).or_insert(of.id);
        let counts_failures = self.tasks[&of.task_id].view.spec.pause_after_failures > 0;
        if counts_failures || self.has_children(of.task_id) {
            self.watch(id);
        }
    }
}

fn shard_of(task: &Task) -> i32 {
    if task.spec.routing == Routing::Sharding { PARENT_SHARD } else { 0 }
}

fn never_ran(run: &Run) -> bool {
    run.status == Status::Expired && run.attempt == 0
}

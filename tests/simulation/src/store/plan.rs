//! Writing task logs ahead.

use super::ModelStore;
use super::rows::{LogRow, State, bucket};
use super::skips::is_skip;
use async_trait::async_trait;
use carillon::domain::plan::{Fire, Plan};
use carillon::domain::task::NEVER;
use carillon::domain::task_log::PARENT_SHARD;
use carillon::domain::{ExecutorId, LogId, NodeId, Run, Status, Task, TaskId, TenantId};
use carillon::store::{Fence, FoundTasks, PlanStore, Result, Writer};
use std::collections::HashSet;

#[async_trait]
impl PlanStore for ModelStore {
    async fn tasks_due(&self, until: i64, besides: &[TenantId], limit: u64) -> Result<Vec<Task>> {
        self.call("read due tasks", |state, _| {
            let wanted = |tenant: TenantId| !besides.contains(&tenant);
            let due =
                state.tasks.values().filter(|row| row.view.next_fire_at <= until && wanted(row.view.owner.tenant_id));
            let mut due: Vec<Task> = due.map(|row| state.task(row)).collect();
            due.sort_by_key(|task| task.next_fire_at);
            due.truncate(limit as usize);
            Ok(due)
        })
        .await
    }

    async fn find_tasks(&self, ids: &[TaskId]) -> Result<FoundTasks> {
        self.call("read tasks", |state, _| {
            let wanted = state.tasks.values().filter(|row| ids.contains(&row.view.id));
            let tasks = wanted.map(|row| state.task(row)).collect();
            Ok(FoundTasks { tasks, unreadable: Vec::new() })
        })
        .await
    }

    async fn skipped(&self, since: &[(TaskId, i64)], until: i64, limit: u64) -> Result<Vec<(TaskId, i64)>> {
        self.call("list cancelled fires", |state, _| {
            let wanted = |run: &&Run| since.iter().any(|(task, from)| *task == run.task_id && run.fire_time >= *from);
            let runs = state.logs.values().map(|row| &row.run).filter(|run| is_skip(run) && run.fire_time < until);
            let mut found: Vec<(TaskId, i64)> = runs.filter(wanted).map(|run| (run.task_id, run.fire_time)).collect();
            found.sort_by_key(|(_, fire_time)| std::cmp::Reverse(*fire_time));
            found.truncate(limit as usize);
            Ok(found)
        })
        .await
    }

    async fn write_ahead(&self, by: Writer, plans: &[Plan], asked_at: i64) -> Result<Option<HashSet<TaskId>>> {
        self.call("write ahead", |state, now| {
            let may_write = match by {
                Writer::Lease(fence) => state.renew(fence, now),
                Writer::Node(node) => state.knows(node, now),
            };
            if !may_write {
                return Ok(None);
            }
            let moved: HashSet<TaskId> =
                plans.iter().filter(|plan| state.move_watermark(plan)).map(|p| p.task_id).collect();
            for plan in plans.iter().filter(|plan| moved.contains(&plan.task_id)) {
                for fire in &plan.fires {
                    state.write_fire(plan, fire, now, asked_at);
                }
                state.move_chain_on(plan);
            }
            let written = plans.iter().filter(|plan| moved.contains(&plan.task_id)).flat_map(|plan| &plan.fires);
            let written: Vec<i64> = written.map(|fire| fire.fire_time).collect();
            state.note_past_runs(&written, asked_at);
            Ok(Some(moved))
        })
        .await
    }
}

impl State {
    pub(super) fn renew(&mut self, fence: Fence, at: i64) -> bool {
        let (now, is_known) = (self.clock(at), self.knows(fence.node, at));
        let row = self.leases.entry(fence.lease.as_str()).or_default();
        let valid = is_known && row.holder == fence.node && row.fence == fence.number && row.expires_at >= now;
        if valid {
            row.expires_at = now + fence.ttl_ms;
        }
        valid
    }

    /// Moves the watermark from where the plan found it; one that is moved already counts.
    fn move_watermark(&mut self, plan: &Plan) -> bool {
        let knows_children = plan.outbox || !self.has_children(plan.task_id);
        let Some(row) = self.tasks.get_mut(&plan.task_id) else { return false };
        if row.view.revision != plan.revision || !knows_children {
            return false;
        }
        if row.view.next_fire_at == plan.from {
            row.view.next_fire_at = plan.to;
            row.view.fires += plan.counted();
            row.turn += plan.counted();
            return true;
        }
        row.view.next_fire_at == plan.to
    }

    fn write_fire(&mut self, plan: &Plan, fire: &Fire, now: i64, asked_at: i64) {
        let ended_at = if fire.status.is_terminal() { asked_at } else { 0 };
        let shard_index = if plan.sharded { PARENT_SHARD } else { 0 };
        let existing = self.by_fire.get(&(plan.task_id, fire.fire_time, shard_index)).copied();
        if let Some(id) = existing {
            if plan.takes_over && self.may_take_over(id, plan.revision) {
                self.take_over(id, plan, fire, now, ended_at);
            }
        } else {
            self.insert_fire(plan, fire, shard_index, ended_at);
        }
        let written = self.by_fire.get(&(plan.task_id, fire.fire_time, shard_index)).copied();
        let open = written.filter(|id| {
            let run = &self.logs[id].run;
            run.revision == plan.revision && !run.status.is_terminal()
        });
        if let Some(id) = open.filter(|_| plan.outbox) {
            self.watch(id);
        }
    }

    /// A run of a fixed delay has another one's row at its instant: the chain goes on beside it.
    fn move_chain_on(&mut self, plan: &Plan) {
        let run = plan.fires.iter().find(|fire| plan.instead != NEVER && fire.status == Status::Init);
        let Some(run) = run else { return };
        let shard_index = if plan.sharded { PARENT_SHARD } else { 0 };
        let there = self.by_fire.get(&(plan.task_id, run.fire_time, shard_index)).map(|id| &self.logs[id].run);
        let is_own = there.is_some_and(|there| {
            there.id == run.id || (there.revision == plan.revision && there.trigger.is_scheduled())
        });
        let Some(row) = self.tasks.get_mut(&plan.task_id).filter(|row| !is_own && row.view.next_fire_at == NEVER)
        else {
            return;
        };
        row.view.next_fire_at = plan.instead;
        row.view.fires = (row.view.fires - 1).max(0);
    }

    fn insert_fire(&mut self, plan: &Plan, fire: &Fire, shard_index: i32, ended_at: i64) {
        let owner = self.tasks[&plan.task_id].view.owner;
        let mut row = LogRow::new(Run {
            id: fire.id,
            version: 1,
            tenant_id: owner.tenant_id,
            app_id: owner.app_id,
            task_id: plan.task_id,
            revision: plan.revision,
            parent_id: LogId::NONE,
            shard_index,
            shard_total: i32::from(!plan.sharded),
            fire_time: fire.fire_time,
            due_time: fire.due_time,
            attempt: 0,
            failures: 0,
            status: fire.status,
            reason: fire.reason,
            params: None,
            trigger: fire.trigger,
            seq: fire.seq,
            priority: plan.priority,
            executor_id: ExecutorId::NONE,
            queued_at: 0,
            has_rate_slot: false,
        });
        if plan.together {
            row.bucket = bucket(plan.task_id.0);
        }
        row.message.clone_from(&fire.message);
        row.finished_at = ended_at;
        self.insert(row);
    }

    /// Only what an edit or a stop of an earlier revision gave up.
    fn may_take_over(&self, id: LogId, revision: i64) -> bool {
        let run = &self.logs[&id].run;
        run.status == Status::Cancelled
            && run.parent_id == LogId::NONE
            && run.revision < revision
            && run.reason.is_given_up()
    }

    fn take_over(&mut self, id: LogId, plan: &Plan, fire: &Fire, now: i64, ended_at: i64) {
        let given_up = self.last_attempt(id);
        if given_up.number > 0 && given_up.dispatched_at > 0 {
            self.keep_attempt(id, given_up);
        }
        let Some(row) = self.step(id, fire.status, fire.reason, now) else { return };
        row.run.revision = plan.revision;
        row.run.trigger = fire.trigger;
        row.run.seq = fire.seq;
        row.run.priority = plan.priority;
        row.run.executor_id = ExecutorId::NONE;
        row.run.due_time = fire.due_time;
        row.run.failures = 0;
        if row.run.is_parent() {
            row.run.shard_total = 0;
        }
        row.message.clone_from(&fire.message);
        row.node_id = NodeId::NONE;
        row.finished_at = ended_at;
        if fire.status.is_terminal() {
            self.outbox_entries.remove(&id);
        }
    }
}

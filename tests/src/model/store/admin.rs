//! What the management API asks: the same functions that the product's store has beside the
//! traits.

use super::rows::{LogRow, State, TaskChange, TaskRow, first_fire};
use super::{ModelStore, refuse};
use carillon::domain::task::{Delivery, ExpiredStrategy, FailureStrategy, MisfireStrategy, NEVER, Routing};
use carillon::domain::task_log::PARENT_SHARD;
use carillon::domain::{Reason, Run, Status};
use carillon::store::{LogView, Result, Scope, StoreError, StoreErrorKind, TaskDraft, TaskView, Unsent};

/// An exhausted schedule wrote at most a day ahead, ms.
const DAY_MS: i64 = 86_400_000;

/// A draft with the API's defaults: fires only by hand.
#[must_use]
pub fn draft(name: &str, handler: &str) -> TaskDraft {
    TaskDraft {
        name: name.to_owned(),
        handler: handler.to_owned(),
        description: String::new(),
        cron: String::new(),
        time_zone: "UTC".to_owned(),
        params: String::new(),
        routing: Routing::Random,
        tags: Vec::new(),
        failure_strategy: FailureStrategy::Retry,
        max_retries: 5,
        retry_interval_ms: 10_000,
        expired_strategy: ExpiredStrategy::Execute,
        expire_after_ms: 0,
        misfire_strategy: MisfireStrategy::FireOnce,
        timeout_ms: 0,
        delivery: Delivery::AtLeastOnce,
    }
}

fn invalid(detail: String) -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, "store a task", detail)
}

impl ModelStore {
    /// Creates a tenant.
    pub async fn create_tenant(&self, id: i64, name: &str, _now: i64) -> Result<()> {
        self.call("create tenant", |state, _| {
            if state.tenants.contains_key(name) {
                return refuse(StoreErrorKind::Duplicate, "create tenant", name);
            }
            state.tenants.insert(name.to_owned(), id);
            Ok(())
        })
        .await
    }

    /// Creates an app of a tenant.
    pub async fn create_app(&self, id: i64, tenant: &str, name: &str) -> Result<Scope> {
        self.call("create app", |state, _| {
            let Some(tenant_id) = state.tenants.get(tenant).copied() else {
                return refuse(StoreErrorKind::NotFound, "create app", tenant);
            };
            let scope = Scope { tenant_id, app_id: id };
            state.apps.insert((tenant.to_owned(), name.to_owned()), scope);
            Ok(scope)
        })
        .await
    }

    /// Creates a task, stopped or started.
    pub async fn create_task(
        &self,
        id: i64,
        tenant: &str,
        app: &str,
        draft: &TaskDraft,
        started: bool,
        now: i64,
    ) -> Result<()> {
        self.call("create task", |state, at| {
            let Some(scope) = state.apps.get(&(tenant.to_owned(), app.to_owned())).copied() else {
                return refuse(StoreErrorKind::NotFound, "create task", app);
            };
            let view = TaskView {
                id,
                tenant: tenant.to_owned(),
                app: app.to_owned(),
                draft: draft.clone(),
                started,
                revision: 1,
                next_fire_at: first_fire(draft, started, now).map_err(invalid)?,
                created_at: now,
                updated_at: now,
            };
            state.tasks.insert(id, TaskRow { view, scope, written_until: 0 });
            state.note_change(id, now, at);
            Ok(())
        })
        .await
    }

    /// A task as the API shows it.
    pub async fn task(&self, id: i64) -> Result<Option<TaskView>> {
        self.call("show task", |state, _| Ok(state.tasks.get(&id).map(|row| row.view.clone()))).await
    }

    /// Every log of a task, oldest fire first.
    pub async fn logs(&self, task_id: i64) -> Result<Vec<LogView>> {
        self.call("list logs", |state, _| {
            let ids = state.by_fire.range((task_id, i64::MIN, i32::MIN)..(task_id + 1, i64::MIN, i32::MIN));
            let tenant = state.tasks.get(&task_id).map(|row| row.view.tenant.clone()).unwrap_or_default();
            Ok(ids.map(|(_, id)| state.logs[id].view(&tenant)).collect())
        })
        .await
    }

    /// Changes a task and takes back what nobody has; answers what executors have.
    pub async fn change_task(
        &self,
        before: &TaskView,
        draft: &TaskDraft,
        started: bool,
        reason: Reason,
        now: i64,
    ) -> Result<Unsent> {
        self.call("change task", |state, at| {
            let next_fire_at = first_fire(draft, started, now).map_err(invalid)?;
            let row = state.current(before)?;
            row.written_until = match row.view.next_fire_at {
                NEVER if row.view.started => now + DAY_MS,
                NEVER => row.written_until,
                next => row.written_until.max(next),
            };
            row.view.draft = draft.clone();
            row.view.started = started;
            row.view.revision += 1;
            row.view.next_fire_at = next_fire_at;
            row.view.updated_at = now;
            state.note_change(before.id, now, at);
            Ok(state.take_back(before.id, reason, now, at))
        })
        .await
    }

    /// Moves a started task's watermark back to its first fire at or after `from`.
    pub async fn rewind(&self, id: i64, draft: &TaskDraft, revision: i64, from: i64, now: i64) -> Result<()> {
        self.call("rewind task", |state, _| {
            let first = first_fire(draft, true, from - 1).map_err(invalid)?;
            state.move_back(id, revision, first, now);
            Ok(())
        })
        .await
    }

    /// Deletes a task; its logs stay.
    pub async fn delete_task(&self, before: &TaskView, now: i64) -> Result<Unsent> {
        self.call("delete task", |state, at| {
            state.current(before)?;
            state.tasks.remove(&before.id);
            Ok(state.take_back(before.id, Reason::TaskDeleted, now, at))
        })
        .await
    }

    /// Writes a run to start at once; answers its fire time.
    pub async fn run_now(&self, id: i64, task: &TaskView, params: Option<&str>, now: i64) -> Result<i64> {
        self.call("run now", |state, _| {
            let Some(row) = state.tasks.get(&task.id) else {
                return refuse(StoreErrorKind::NotFound, "run now", "no such task");
            };
            let sharded = task.draft.routing == Routing::Sharding;
            let mut run = Run {
                id,
                version: 1,
                tenant_id: row.scope.tenant_id,
                app_id: row.scope.app_id,
                task_id: task.id,
                revision: row.view.revision,
                parent_id: 0,
                shard_index: if sharded { PARENT_SHARD } else { 0 },
                shard_total: i32::from(!sharded),
                fire_time: now,
                due_time: now,
                attempt: 0,
                failures: 0,
                status: Status::Init,
                reason: Reason::ByHand,
                params: params.map(str::to_owned),
            };
            while !state.insert(LogRow::new(run.clone())) {
                run.fire_time += 1;
                run.due_time += 1;
            }
            Ok(run.fire_time)
        })
        .await
    }
}

impl State {
    /// Moves a watermark back to `first`, if it lies beyond.
    pub(super) fn move_back(&mut self, id: i64, revision: i64, first: i64, now: i64) {
        let Some(row) = self.tasks.get_mut(&id) else { return };
        if row.view.revision == revision && row.view.started && row.view.next_fire_at > first {
            row.written_until = match row.view.next_fire_at {
                NEVER => now + DAY_MS,
                next => row.written_until.max(next),
            };
            row.view.next_fire_at = first;
        }
    }

    fn note_change(&mut self, task: i64, from: i64, at: i64) {
        let TaskView { revision, started, draft, .. } = &self.tasks[&task].view;
        let (revision, started, cron) = (*revision, *started, draft.cron.clone());
        self.events.push(format!("task {task} has revision {revision}, started {started}, from {from}"));
        self.changes.push(TaskChange { task, revision, started, cron, from, at });
    }

    /// The task, if it is still as the caller saw it.
    fn current(&mut self, before: &TaskView) -> Result<&mut TaskRow> {
        match self.tasks.get_mut(&before.id) {
            Some(row) if row.view.revision == before.revision => Ok(row),
            _ => refuse(StoreErrorKind::Conflict, "change task", "the task was changed meanwhile"),
        }
    }

    /// Cancels what nobody has; answers what executors have.
    fn take_back(&mut self, task_id: i64, reason: Reason, now: i64, at: i64) -> Unsent {
        let of_task: Vec<(i64, Status)> = self
            .logs
            .values()
            .filter(|row| row.run.task_id == task_id)
            .map(|row| (row.run.id, row.run.status))
            .collect();
        let mut held = Unsent::new();
        for (id, status) in of_task {
            match status {
                Status::Init | Status::Queued | Status::Retry => {
                    if let Some(row) = self.step(id, Status::Cancelled, reason, at) {
                        row.finished_at = now;
                    }
                }
                Status::Dispatched => held.push(self.logs[&id].handed()),
                _ => {}
            }
        }
        held
    }
}
